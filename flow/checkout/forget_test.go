package checkout_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
)

const (
	adaPhone  = flow.Phone("2348039990001")
	adaPerson = "199000100020003"
	adaName   = "Adaeze Obi-Nwosu"
	adaEmail  = "adaeze@private.example"
)

// adas are all texts that say who Ada is, as they may stand somewhere.
var adas = []string{string(adaPhone), "08039990001", adaPerson, "Adaeze", "Obi-Nwosu", adaEmail, "Allen Avenue", "GARRI", "ADAEZE O", "for-ada"}

// adaSays lets Ada write.
func (w *world) adaSays(in flow.Intent) {
	w.t.Helper()
	w.heard++
	w.must(w.service.Hear(context.WithoutCancel(w.t.Context()), checkout.Inbound{
		Number: ourNumber, Person: adaPerson, Phone: adaPhone, Name: adaName, Message: "ADA" + string(rune('A'+w.heard)), Intent: in,
	}))
	w.rest()
}

// adaSession is a session that was made for Ada.
func (w *world) adaSession() flow.Session {
	w.t.Helper()
	n := newSession(flow.InChat)
	n.CustomerEmail, n.CustomerPhone, n.CustomerName = adaEmail, adaPhone, adaName
	n.CallbackURL = "https://shop.test/thanks/for-ada"
	n.Reference, n.Description, n.Metadata = "order-1", "5 bags of GARRI to Allen Avenue 7", map[string]string{"door": "Allen Avenue 7", "call": "08039990001"}
	return w.opened(n)
}

// adaPays has Ada pay for a session in her chat.
func (w *world) adaPays(s flow.Session) {
	w.t.Helper()
	w.adaSays(code(s))
	w.adaSays(flow.Intent{Kind: flow.MeansNothing, Text: "please bring it to Allen Avenue, this is Adaeze"})
	w.adaSays(flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"})
	n := credit("ADA"+string(s.ID), w.attempts(s.ID)[0].Reference, s.Amount, w.clock())
	n.Payer = flow.PaidBy{Name: "ADAEZE OBI-NWOSU", BankName: "GTBank", AccountNumberMasked: "******4321"}
	w.must(w.tell(n))
	w.rest()
}

// find looks for Ada.
func (w *world) find() checkout.Payer {
	w.t.Helper()
	p, err := checkout.FindPayer(w.t.Context(), w.db.Reader, adaPhone, "")
	w.must(err)
	return p
}

// Whoever is forgotten stands nowhere any more: not in a row, and, once the files
// are written anew, not in a byte. Money and the story of what was decided stay,
// and other payers are left as they were.
func TestWhoIsForgottenStandsNowhere(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		w.endpoint("https://shop.test/hook", flow.EventKinds()...) // those of a session name its customer in another way
		other := w.session(flow.InChat)
		w.hear("ben", code(other))
		s := w.adaSession()
		w.adaPays(s)
		w.adaSays(code(other)) // somebody else's session, spoken of in her chat
		w.must(w.service.Note(ctx, s.ID, "ngozi@shop.test", "Adaeze called from 08039990001", call("", "", nil)))
		_, err := w.service.Cancel(ctx, other.ID, call("", "", nil))
		w.must(err)
		w.rest()
		before, err := w.db.Ledger(ctx, s.ID)
		w.must(err)

		as, forgot := w.forgotten(w.find())
		if forgot.Sessions != 1 || forgot.Chats != 1 || forgot.Lines == 0 || forgot.Events == 0 {
			t.Errorf("forgot %+v", forgot)
		}
		w.nowhere()
		if p := w.find(); !p.Empty() {
			t.Errorf("she is still found: %+v", p)
		}
		after, err := w.db.Ledger(ctx, s.ID)
		w.must(err)
		if len(before) == 0 || len(after) != len(before) {
			t.Errorf("the ledger had %d transactions, and has %d", len(before), len(after))
		}
		w.retold(s.ID, as)
		theirs, err := w.db.Session(ctx, other.ID)
		w.must(err)
		if theirs.CustomerEmail != "bola@example.com" {
			t.Errorf("another session's customer became %q", theirs.CustomerEmail)
		}
		kept, err := w.db.Session(ctx, s.ID)
		w.must(err)
		if kept.Reference != "order-1" || kept.CustomerName != as || kept.Amount != s.Amount || kept.Status != flow.SessionPaid {
			t.Errorf("of the session stays %+v", kept)
		}
		w.end()
		w.must(store.Wipe(ctx, w.store))
		w.noByte()
	})
}

// forgottenAda is a session that Ada paid, and her chat, once she was forgotten.
func (w *world) forgottenAda() (flow.Session, flow.ChatID) {
	w.t.Helper()
	s := w.adaSession()
	w.adaPays(s)
	chat := w.find().Chats[0].ID
	_, err := w.forgets(w.find())
	w.must(err)
	return s, chat
}

// Money that still comes for somebody who was forgotten is booked, and nobody is
// written to: there is no address any more.
func TestNewsForWhoIsForgottenGoToNobody(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s, chat := w.forgottenAda()
		w.sending(func(o checkout.Outgoing) error {
			t.Errorf("to %s was sent: %s", o.Person, o.Text)
			return nil
		})
		w.must(w.tell(credit("AGAIN", w.attempts(s.ID)[0].Reference, s.Amount, w.clock())))
		w.rest()
		if n := len(w.payments(s.ID)); n != 2 {
			t.Errorf("there are %d payments", n)
		}
		owed, err := w.db.Owed(ctx, chat, 9)
		w.must(err)
		said, err := w.db.SaysOf(ctx, chat, 99)
		w.must(err)
		if len(owed) != 0 || len(said) == 0 || said[len(said)-1].State != "failed" {
			t.Errorf("owed %+v of %+v", owed, said)
		}
	})
}

// An e-mail address is forgotten where it is the whole of one: a longer one that
// holds it is somebody else's.
func TestAnAddressThatHoldsTheForgottenOneStays(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.endpoint("https://shop.test/hook")
		w.endpoint("https://" + adaPerson + ".test/?to=" + adaEmail)
		made := map[string]flow.Session{}
		for _, email := range []string{adaEmail, "can" + adaEmail, "mary." + adaEmail, adaEmail + ".ng"} {
			n := newSession(flow.InChat)
			n.CustomerEmail, n.Metadata = email, map[string]string{"for": email}
			var one checkout.Made
			_, err := w.service.Open(w.t.Context(), n, call("", "", &one))
			w.must(err)
			made[email] = one.Session
			for i, in := range []flow.Intent{code(one.Session), method(flow.BankTransfer)} { // whose telephone number is not known
				w.must(w.service.Hear(w.t.Context(), checkout.Inbound{
					Number: ourNumber, Person: "payer of " + string(one.Session.ID), Message: fmt.Sprint(one.Session.ID, i), Intent: in,
				}))
				w.rest()
			}
			w.must(w.tell(credit("OF"+string(one.Session.ID), w.attempts(one.Session.ID)[0].Reference, one.Session.Amount, w.clock())))
		}
		w.rest()
		p, err := checkout.FindPayer(w.t.Context(), w.db.Reader, "", adaEmail)
		w.must(err)
		as, forgot := w.forgotten(p)
		if forgot.Sessions != 1 || forgot.Chats != 1 {
			w.t.Errorf("forgot %+v", forgot)
		}
		for email, s := range made {
			kept, err := w.db.Session(w.t.Context(), s.ID)
			w.must(err)
			events, err := w.db.Events(w.t.Context(), s.ID)
			w.must(err)
			stays := email != adaEmail
			if (kept.CustomerEmail == email && kept.Metadata["for"] == email) != stays || len(events) == 0 {
				w.t.Errorf("of %s stays %q, %q and %d events", email, kept.CustomerEmail, kept.Metadata, len(events))
			}
			for _, e := range events {
				if strings.Contains(string(e.Body), email) != stays || strings.Contains(string(e.Body), as) == stays {
					w.t.Errorf("an event of %s holds %s", email, e.Body)
				}
			}
		}
		list, err := w.service.Endpoints(w.t.Context(), project)
		w.must(err)
		if !slices.ContainsFunc(list, func(e flow.Endpoint) bool { return strings.HasSuffix(e.URL, "?to="+as) }) {
			w.t.Errorf("no address went where it stood alone: %+v", list)
		}
	})
}

// A telephone number that came to a second WhatsApp account, as when the SIM went
// to somebody else, has two chats with the same number of ours: both are forgotten,
// each under a name of its own, and the words of both go.
func TestWhoHasTwoWhatsAppAccountsIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s := w.adaSession()
		w.adaPays(s)
		const second = "199000100020999"
		w.pass(time.Minute)                                           // the chat that was first keeps the name that stands for her elsewhere
		for _, number := range []string{ourNumber, "2349010000002"} { // and one with another number of ours
			w.must(w.service.Hear(ctx, checkout.Inbound{
				Number: number, Person: second, Phone: adaPhone, Name: adaName, Message: "SECOND", Intent: flow.Intent{Kind: flow.MeansNothing, Text: "Adaeze again"},
			}))
			w.rest()
		}
		found := w.find()
		if len(found.Chats) != 3 {
			t.Fatalf("she has %d chats", len(found.Chats))
		}
		as, forgot := w.forgotten(found)
		if forgot.Sessions != 1 || forgot.Chats != 3 {
			t.Errorf("forgot %+v", forgot)
		}
		w.nowhere()
		if found, err := w.db.Mentions(ctx, second); err != nil || len(found) > 0 {
			t.Errorf("her second id still stands in %v (%v)", found, err)
		}
		names := map[string]int{}
		for _, c := range found.Chats {
			row, err := w.db.Chat(ctx, c.ID)
			w.must(err)
			if names[row.Person]++; !checkout.Forgotten(row.Person) || row.Phone != "" || row.Name != "" {
				t.Errorf("of a chat stays %+v", row)
			}
		}
		if len(names) != 2 || names[as] != 2 {
			t.Errorf("three chats with two numbers go by the names %v, and %s stands for her", names, as)
		}
		w.retold(s.ID, as)
	})
}

// nowhere fails where a text that says who Ada is stands in a row.
func (w *world) nowhere() {
	w.t.Helper()
	for _, text := range adas {
		found, err := w.db.Mentions(w.t.Context(), text)
		w.must(err)
		if len(found) > 0 {
			w.t.Errorf("%q still stands in %v", text, found)
		}
	}
}

// retold fails unless a session's conversation is decided again as it was, and its
// story says that its payer was forgotten.
func (w *world) retold(id flow.SessionID, as string) {
	w.t.Helper()
	list, err := checkout.Recordings(w.t.Context(), w.db.Reader, id, "")
	w.must(err)
	if len(list) != 1 {
		w.t.Fatalf("%d conversations", len(list))
	}
	report, err := replay.Verify(list[0], words)
	w.must(err)
	if report.Turns < 4 || report.Worst() != replay.Same {
		w.t.Errorf("decided again: %+v", report)
	}
	story, err := checkout.Timeline(w.t.Context(), w.db.Reader, id)
	w.must(err)
	if !slices.ContainsFunc(story, func(m checkout.Moment) bool { return strings.Contains(m.What, "forgotten: "+as) }) {
		w.t.Errorf("the story does not say that its payer was forgotten: %v", story)
	}
	if !slices.ContainsFunc(story, func(m checkout.Moment) bool { return strings.Contains(m.Told, "47 characters, which are not kept") }) {
		w.t.Error("the story does not say that words are gone")
	}
	if pages := w.pages(id, 100); !slices.Equal(told(pages), told(story)) {
		w.t.Errorf("in pages it is %v", told(pages))
	}
}

// noByte fails where a text that says who Ada is stands in a file of SQLite.
func (w *world) noByte() {
	w.t.Helper()
	if w.store.URL != "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(w.store.Dir, "*"))
	w.must(err)
	if len(files) == 0 {
		w.t.Fatal("there is no file to search")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		w.must(err)
		for _, ada := range adas {
			if bytes.Contains(text, []byte(ada)) {
				w.t.Errorf("%q still stands in %s", ada, filepath.Base(name))
			}
		}
	}
}

// Nobody is forgotten while a session of theirs is open or their money waits.
func TestNobodyIsForgottenWhileSomethingIsOpen(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		s := w.adaSession()
		w.adaSays(code(s))
		w.refusesToForget("session", string(s.ID))
		w.adaSays(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
		w.refusesToForget("chat", string(w.find().Chats[0].ID))
		w.adaSays(flow.Intent{Kind: flow.MeansAgain, Text: "5"}) // back to the bot
		w.adaSays(flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"})
		w.pay(s.ID, s.Amount, false)
		w.until("the first payment is here", func() bool { return len(w.payments(s.ID)) == 1 })
		w.pay(s.ID, s.Amount, false)
		w.until("the second payment is here", func() bool { return len(w.payments(s.ID)) == 2 })
		w.rest()
		w.refusesToForget("payment", "wsp_pay_")
		w.pass(25 * time.Hour) // it goes back by itself
		f := checkout.NewForgetter(w.db, w.clock, rand.Reader)
		w.until("the second payment is back, and she is forgotten", func() bool {
			w.pass(time.Minute) // the bank is asked what became of it
			_, err := f.Forget(t.Context(), w.find(), "payer_00000000000000000000000000")
			return err == nil
		})
		w.nowhere()
	})
}

func (w *world) refusesToForget(what, id string) {
	w.t.Helper()
	p := w.find()
	_, err := checkout.NewForgetter(w.db, w.clock, rand.Reader).Forget(w.t.Context(), p, "payer_00000000000000000000000000")
	if !errors.Is(err, checkout.ErrUnsettled) {
		w.t.Fatalf("to forget her with an open %s: %v", what, err)
	}
	open, err := p.Unsettled(w.t.Context(), w.db.Reader, w.clock())
	w.must(err)
	if !slices.ContainsFunc(open, func(u store.Unsettled) bool { return u.What == what && strings.HasPrefix(u.ID, id) }) {
		w.t.Errorf("what is open: %+v, and not the %s", open, what)
	}
}

// What a payer gets who asks holds what is kept of them, and nothing of others.
func TestAPayerIsToldAllThatIsKept(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.endpoint("https://shop.test/hook")
	other := w.session(flow.InChat)
	w.hear("ben", flow.Intent{Kind: flow.MeansNothing, Text: "a word of Ben's"})
	s := w.adaSession()
	w.adaPays(s)
	w.must(w.service.Note(t.Context(), s.ID, "ngozi@shop.test", "she called twice", call("", "", nil)))
	_, err := w.service.Refund(t.Context(), checkout.NewRefund{Payment: w.payments(s.ID)[0].ID, Amount: 100_000, Reason: "a torn bag"}, call("", "", nil))
	w.must(err)
	record, err := w.find().Record(t.Context(), w.db.Reader, flow.Surroundings{})
	w.must(err)
	if refunds := record.Sessions[0].Refunds; len(refunds) != 1 || refunds[0].AmountMinor != "100000" || refunds[0].Reason == nil || *refunds[0].Reason != "a torn bag" {
		t.Errorf("of her refund she is told %+v", refunds)
	}
	text, err := json.Marshal(record)
	w.must(err)
	for _, want := range []string{string(s.ID), string(adaPhone), adaPerson, adaName, adaEmail, "Allen Avenue 7", "charge.success", "this is Adaeze", "ADAEZE OBI-NWOSU", "she called twice"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%q is not in what she is told", want)
		}
	}
	for _, no := range []string{string(other.ID), "a word of Ben's", "clientSecret"} {
		if bytes.Contains(text, []byte(no)) {
			t.Errorf("%q is in what she is told", no)
		}
	}
}
