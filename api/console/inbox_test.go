package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// stand seeds chats that a session was opened in, and that wait for a person.
func (w *world) stand(session string, from, to int, more func(i int, chat flow.ChatID, tx *store.Tx) error) {
	w.t.Helper()
	must(w.t, w.dbs[flow.Test].Update(w.t.Context(), func(tx *store.Tx) error {
		for i := from; i < to; i++ {
			row := store.ChatRow{ID: flow.ChatID(fmt.Sprintf("chat_%026d", i)), Number: "2348000000001", Person: fmt.Sprintf("of-%d@lid", i), Name: fmt.Sprintf("Payer %d", i)}
			if _, err := tx.AddChat(w.t.Context(), row, w.now()); err != nil {
				return err
			}
			if err := tx.Watch(w.t.Context(), flow.SessionID(session), row.ID); err != nil {
				return err
			}
			if err := more(i, row.ID, tx); err != nil {
				return err
			}
		}
		return nil
	}))
}

// A payer who speaks of another merchant's payment now waits for those: however many
// there are, they hide none of one's own.
func TestTheInboxHasWhoSpeaksOfOnesOwnPaymentsHoweverManyDoNot(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(session, "Ada")
	own := w.chatOf(session)
	w.stand(session, 0, 201, func(_ int, chat flow.ChatID, tx *store.Tx) error {
		return tx.SetDecided(context.Background(), chat, 0, flow.Desk{State: flow.DeskWaiting, Since: 1}, "")
	})
	must(t, w.services[flow.Test].Hear(t.Context(), checkout.Inbound{
		Number: "2348000000001", Person: "77@lid", Phone: "2348031234567", Message: "H1", Intent: flow.Intent{Kind: flow.MeansHuman, Text: "9"},
	}))
	w.wants(w.as(flow.RoleSupport).get("/inbox"), http.StatusOK, "/inbox/"+string(own.ID))
}

// The inbox says where it does not show all.
func TestTheInboxSaysThatMoreWait(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, "")
	waits := func(i int, chat flow.ChatID, tx *store.Tx) error {
		return tx.SetDecided(context.Background(), chat, 0, flow.Desk{State: flow.DeskWaiting, Since: int64(i + 1)}, "")
	}
	operator := w.as(flow.RoleOperator) // sees all
	shown := func(rows int, more bool) {
		t.Helper()
		page := operator.get("/inbox")
		w.wants(page, http.StatusOK)
		if n := strings.Count(page.body, `<td><a href="/inbox/`); n != rows {
			t.Errorf("%d chats are shown, not %d", n, rows)
		}
		if strings.Contains(page.body, "More wait") != more {
			t.Errorf("that more wait: %v", !more)
		}
	}
	shown(0, false)
	w.stand(session, 0, 200, waits)
	shown(200, false)
	w.stand(session, 200, 201, waits)
	shown(200, true)
}

// Who is to answer a payer whose money the bank took back reads that beside the session, which
// stays paid.
func TestTheInboxSaysThatTheBankTookThePaymentBack(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(session, "Ada")
	w.pays(w.attempt(session), 500_000)
	var paid flow.Payment
	w.until("it is paid", func() bool {
		list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(session))
		if err == nil && len(list) == 1 {
			paid = list[0]
		}
		return paid.ID != ""
	})
	w.wants(w.ask(http.MethodPost, "/v1/test/bank/reversals", w.ada.secret, `{"railTransactionId":"`+paid.RailTransactionID+`"}`), http.StatusOK)
	support := w.as(flow.RoleSupport)
	both := `<span class="badge s-paid">paid</span> <span class="badge s-reversed">reversed</span>`
	w.until("the payer waits for a person", func() bool { return strings.Contains(support.get("/inbox").body, string(w.chatOf(session).ID)) })
	w.wants(support.get("/inbox"), http.StatusOK, both)
	w.wants(support.get("/inbox/"+string(w.chatOf(session).ID)), http.StatusOK, both)
}

// Whoever opens the inbox sees in which chat a payer waits for an answer, also one that
// somebody has, and since when.
func TestTheInboxSaysWhoWaitsForAnAnswerAndSinceWhen(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(session, "Ada")
	chat := w.chatOf(session)
	says := func(message string, kind flow.IntentKind) {
		t.Helper()
		w.pass(10 * time.Second) // faster would be a flood
		must(t, w.services[flow.Test].Hear(t.Context(), checkout.Inbound{
			Number: chat.Number, Person: chat.Person, Phone: chat.Phone, Message: message, Intent: flow.Intent{Kind: kind, Text: "…"},
		}))
	}
	support := w.as(flow.RoleSupport)
	state := func(want string, not ...string) {
		t.Helper()
		page := support.get("/inbox")
		w.wants(page, http.StatusOK, string(chat.ID), want)
		for _, n := range not {
			if strings.Contains(page.body, n) {
				t.Errorf("the inbox says %q", n)
			}
		}
	}
	for i := range 3 {
		says(fmt.Sprint("unclear ", i), flow.MeansNothing)
	}
	state("last wrote", "<td>–")
	state("Nobody waits for an answer. To be looked at: 1.")
	must(t, w.services[flow.Test].Claim(t.Context(), chat.ID, w.ada.email, 0))
	state("not answered for", "too long")
	w.pass(time.Second)
	must(t, w.services[flow.Test].Reply(t.Context(), chat.ID, w.ada.email, "Good day.", checkout.Call{}))
	state("claimed", "not answered")
	says("back", flow.MeansNothing)
	state("not answered for", "too long")
	state("1 payer waits for an answer: "+chat.Name+".", "looked at:")
	w.pass(31 * time.Minute)
	says("again", flow.MeansNothing)
	state("not answered for 31 min, too long")
}

// Whoever may answer reads on the first page already that somebody waits for them.
func TestTheFirstPageSaysWhoWaitsForAnAnswer(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7709", name: "Bola"}
	p.opens(w.ada)
	const says = "1 payer waits for an answer: Bola."
	support, developer := w.as(flow.RoleSupport), w.as(flow.RoleDeveloper)
	if strings.Contains(support.get("/").body, "waits for an answer") {
		t.Error("nobody asked for a person")
	}
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	w.wants(support.get("/"), http.StatusOK, says)
	if strings.Contains(developer.get("/").body, says) {
		t.Error("who may not answer is told who waits")
	}
}

// An answer that is sent once the bot or somebody else has the chat is not lost.
func TestWhatIsWrittenInAChatThatIsNotOnesOwnAnyMoreIsShown(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7710", name: "Bola"}
	p.opens(w.ada)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	support, at := w.as(flow.RoleSupport), "/inbox/"+string(p.chat)
	w.wants(support.post(at+"/claim", form("reason", "Bola asks")), http.StatusSeeOther)
	w.wants(support.post(at+"/release", nil), http.StatusSeeOther)
	const answer = "Good day Bola, your parcel is with the rider."
	w.wants(support.post(at+"/reply", form("text", answer)), http.StatusConflict, "Not done", answer)
	w.until("the bot has the chat again", func() bool { return strings.Contains(support.get(at).body, "The bot answers.") })
	w.wants(support.post(at+"/reply", form("text", answer)), http.StatusConflict, "Not done", answer)
}

// Who went on to another merchant's payment after nobody had come stands in the inbox of those
// who did not come, and is no payer who waits for an answer.
func TestTheInboxCountsNobodyWhoWentOn(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7712", name: "Bola"}
	p.opens(w.ada)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	w.pass(time.Minute)
	p.opens(w.merchant("Eve Stores"))
	support := w.as(flow.RoleSupport)
	w.wants(support.get("/inbox"), http.StatusOK, "1 payer waits for an answer: Bola.")
	for _, d := range []time.Duration{flow.DeskPatience, flow.DeskIdle} {
		w.pass(d)
		w.until("what is due was done", func() bool {
			row, err := w.dbs[flow.Test].Chat(t.Context(), p.chat)
			return err == nil && (row.Flag == flow.NobodyComes || d == flow.DeskPatience && row.Flag != "")
		})
	}
	w.wants(support.get("/inbox"), http.StatusOK, "/inbox/"+string(p.chat), "Nobody waits for an answer. To be looked at: 1.")
}
