package checkout_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
	"till/flow/store"
	"till/rail"
)

// lineTold writes one line into a session's log and says how it is told.
func (w *world) lineTold(session flow.SessionID, l store.Line, data any) checkout.Moment {
	w.t.Helper()
	l.Stream, l.Session, l.At = string(session), session, w.clock()
	var err error
	if raw, ok := data.(json.RawMessage); ok {
		l.Data = raw
	} else {
		l.Data, err = json.Marshal(data)
		w.must(err)
	}
	var seq int64
	w.must(w.db.Update(w.t.Context(), func(tx *store.Tx) error {
		seq, err = tx.Append(w.t.Context(), l)
		return err
	}))
	story, err := checkout.Timeline(w.t.Context(), w.service.Reader(), session)
	w.must(err)
	for _, m := range story {
		if m.Line == fmt.Sprint(seq) && m.What != "" {
			return m
		}
	}
	w.t.Fatalf("line %d is not told of", seq)
	return checkout.Moment{}
}

// TestEveryKindOfLineIsToldInASentence goes through what the log can hold: kinds of
// line, and within them what a bank or a chat can say.
func TestEveryKindOfLineIsToldInASentence(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.spoilt = true // its lines tell of events that there never were
	session := w.session(flow.Headless)
	_, a, err := w.service.Instruct(t.Context(), project, session.ID, checkout.Ask{Method: flow.BankTransfer})
	w.must(err)
	now := w.clock()
	heard := func(in flow.Intent) flow.Turn { return flow.Turn{Heard: &in} }
	news := func(n flow.News) flow.Turn { return flow.Turn{News: &n} }
	decided := func(state flow.TalkState, why string) replay.Outcome {
		return replay.Outcome{Decision: flow.Decision{Chat: flow.Chat{Talks: []flow.Talk{{Session: session.ID, State: state}}}, Why: why}}
	}
	notice := func(kind flow.NoticeKind) flow.Notice {
		return flow.Notice{Kind: kind, Amount: 150_050, Channel: flow.BankTransfer, PaidAt: now.Add(-time.Hour), RailTransactionID: "T1", Reason: "no funds."}
	}
	for i, line := range []struct {
		kind string
		data any
		want string
	}{
		{replay.Heard, heard(flow.Intent{Kind: flow.MeansMethod, Method: flow.USSD, Text: "2"}), "The payer wrote “2”. Till read it so: the payer chooses USSD."},
		{replay.Heard, heard(flow.Intent{Kind: flow.MeansCode}), "The payer opens a payment with its code."},
		{replay.Heard, heard(flow.Intent{Kind: "sings", Text: "la"}), "means “sings”, which this version of Till has no words for"},
		{replay.Heard, flow.Turn{Heard: &flow.Intent{Kind: flow.MeansPaid, Text: "paid"}, Came: "picture"}, "The payer sent a picture with the words “paid”. Till read it so: the payer says that it is paid"},
		{replay.Heard, flow.Turn{Heard: &flow.Intent{Kind: flow.MeansUnread}, Came: "voice note"}, "The payer sent a voice note. Till read it so:"},
		{replay.Heard, flow.Turn{Heard: &flow.Intent{Kind: flow.MeansAgain, Text: "5"}, Edits: "3A", Of: 4}, "The payer changed the message of line 4 into “5”."},
		{replay.Heard, flow.Turn{Heard: &flow.Intent{Kind: flow.MeansUnread}, Edits: "3A", Came: "something that is not text"}, "The payer changed a message into something that is not text."},
		{replay.Heard, flow.Turn{Heard: &flow.Intent{Kind: flow.MeansNote, Text: "(took back a message)"}, Revokes: "3A", Of: 4}, "The payer took the message of line 4 back."},
		{replay.Heard, heard(flow.Intent{Kind: flow.MeansTakeover, Text: "hi"}), "Somebody on the phone of our own number wrote “hi”."},
		{replay.News, news(flow.News{Kind: flow.NewsPartial, Amount: 100_000}), "The chat hears that some of the money is there (₦1,000)."},
		{replay.News, news(flow.News{Kind: flow.NewsReply, By: "ngozi", Reason: "Please wait."}), "ngozi writes to the payer: “Please wait.”."},
		{replay.News, news(flow.News{Kind: "party"}), "news of the kind “party”, which this version of Till has no words for"},
		{replay.News, flow.Turn{}, "a line of the kind “news”, which this version of Till has no words for"},
		{replay.Decided, decided(flow.Opening, "chose bank_transfer"), "The payer chose bank transfer. Now the bank’s instructions are waited for."},
		{replay.Decided, decided(flow.Paid, "the bank confirmed the payment"), "The bank confirmed the payment. Now all is paid."},
		{replay.Decided, decided("dancing", ""), "Nothing was decided. Now the chat stands at “dancing”."},
		{replay.Decided, json.RawMessage(`5`), "What was decided cannot be read. What is kept of it stands below."},
		{replay.Sent, map[string]string{}, "A message of Till’s left for WhatsApp: one tick."},
		{replay.Delivered, map[string]string{}, "A message of Till’s reached the payer’s phone: two ticks."},
		{replay.Read, map[string]string{}, "A message of Till’s was read by the payer."},
		{replay.Failed, map[string]string{"reason": "no such number"}, "could not be sent, and is not tried again: no such number."},
		{"bank.asked", map[string]string{"outcome": "ok"}, "The bank was asked what came, and answered."},
		{"bank.asked", map[string]string{"outcome": "pending"}, "money is on its way, and has not arrived."},
		{"bank.asked", map[string]string{"outcome": "ask: the bank cannot be reached: EOF"}, "was asked what came, and could not be reached. It is asked again by itself."},
		{"bank.notice", notice(flow.Credit), "The bank tells us that ₦1,500.50 came by bank transfer, with the time 15:05 (Lagos)."},
		{"bank.answer", notice(flow.Declined), "The bank, asked, answers that a payment of ₦1,500.50 by bank transfer was refused: no funds."},
		{"bank.statement", notice(flow.Reversal), "statement of the day, and nothing before it, says that it took ₦1,500.50 back"},
		{"bank.notice", notice(flow.Pending), "₦1,500.50 is on its way, and has not arrived."},
		{"bank.notice", notice(flow.Returned), "it sent ₦1,500.50 back by itself: no funds. It never was ours."},
		{"bank.notice", flow.Notice{Kind: flow.Returned, Amount: 500_000, Channel: flow.BankTransfer}, "it sent ₦5,000 back by itself, and not why. It never was ours."}, // which is what was asked for
		{replay.News, news(flow.News{Kind: flow.NewsSentBack, Amount: 500_000}), "The chat hears that the bank sent money back by itself (₦5,000)."},
		{"bank.notice", notice(flow.PaidOut), "₦1,500.50 was sent out"},
		{"bank.notice", notice(flow.PayoutFailed), "₦1,500.50 was not sent, or came back: no funds."},
		{"bank.notice", notice("rumour"), "a word of the bank’s about “rumour”, which this version of Till has no words for"},
		{"rail.call", map[string]any{"operation": "start", "attempt": a.ID, "method": a.Method}, "Bank transfer was chosen. The bank is asked for an account number."},
		{"rail.call", map[string]any{"operation": "start", "attempt": "gone", "method": flow.Card}, "Card was chosen. The bank is asked for a page to pay by card."},
		{"rail.call", map[string]any{"operation": "disburse", "refund": "r", "amountMinor": "100"}, "The bank is told to send ₦1 back to who paid it."},
		{"rail.call", map[string]any{"operation": "dance"}, "a call to the bank for “dance”, which this version of Till has no words for"},
		{"rail.answer", map[string]any{"attempt": a.ID, "ms": 420, "outcome": "ok"}, "Bank transfer chosen; account number " + a.Instructions.AccountNumber + " at " +
			a.Instructions.BankName + " was made in 420 ms; it holds until 16:35 (Lagos)."},
		{"rail.answer", map[string]any{"attempt": a.ID, "ms": 7, "outcome": "the bank refused: no more accounts."}, "The bank was asked for an account number and refused: no more accounts. That took 7 ms."},
		{"rail.answer", map[string]any{"attempt": a.ID, "ms": 15000, "outcome": "the bank did not answer in time"}, "nobody knows yet what it did"},
		{"rail.answer", map[string]any{"attempt": a.ID, "ms": 15000, "outcome": "moon"}, "gave no answer that can be used: moon"},
		{"rail.answer", map[string]any{"refund": "r", "ms": 9, "outcome": "pending"}, "The bank has taken on a refund, in 9 ms."},
		{"rail.answer", map[string]any{"refund": "r", "ms": 9, "outcome": "done"}, "The bank has sent a refund."},
		{"rail.answer", map[string]any{"refund": "r", "ms": 9, "outcome": "failed"}, "The bank does not send a refund."},
		{"rail.answer", map[string]any{"refund": "r", "ms": 9, "outcome": "the bank did not answer in time"}, "The bank was told of a refund and did not answer in time"},
		{"rail.answer", map[string]any{"refund": "r", "ms": 9, "outcome": "the bank cannot be reached"}, "was told of a refund and could not be reached, so that nothing was done there."},
		{"rail.answer", map[string]any{"refund": "r", "asked": true, "ms": 9, "outcome": "pending"}, "The bank was asked what became of a refund, and it is still on its way. That took "},
		{"rail.answer", map[string]any{"refund": "r", "asked": true, "ms": 9, "outcome": "the bank did not answer in time: the bank refused: try later"}, "The bank was asked what became of a refund and refused: try later. That"},
		{"session.expired", map[string]any{"by": "clock", "until": "2026-11-21T15:00:00.000Z"}, "The session’s time was over at 16:00 (Lagos), and it expired by itself."},
		{"session.expired", map[string]any{"by": "wsp_per_1", "until": "2026-11-21T15:00:00.000Z"}, "Somebody in the console ended the session’s time."},
		{"session.expired", json.RawMessage(`5`), "a line of the kind “session.expired”, which this version of Till has no words for"},
		{"event", map[string]any{"event": flow.ChargeSuccess, "id": "evt_1"}, "A webhook, charge.success, was made for the merchant: it is paid, and the goods can go out."},
		{"event", map[string]any{"event": "charge.sung", "id": "evt_1"}, "charge.sung, was made for the merchant: of which this version of Till has no words."},
		{"horoscope", map[string]any{}, "The log holds a line of the kind “horoscope”, which this version of Till has no words for."},
		{"rail.call", json.RawMessage(`5`), "which this version of Till has no words for"},
		{"rail.answer", json.RawMessage(`5`), "which this version of Till has no words for"},
	} {
		m := w.lineTold(session.ID, store.Line{Kind: line.kind, Message: fmt.Sprintf("m%d", i)}, line.data)
		if !strings.Contains(m.Told, line.want) || !strings.HasSuffix(strings.TrimRight(m.Told, "”"), ".") || strings.Contains(m.Told, "..") {
			t.Errorf("a line of the kind %s, %s, is told so:\n%s\nand not so:\n%s", line.kind, m.Raw, m.Told, line.want)
		}
	}
}

func TestAWholePaymentIsToldInSentences(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.endpoint("https://shop.test/hook")
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.hear("ada", flow.Intent{Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"})
	w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, 100_000, w.clock())))
	w.rest()
	w.must(w.tell(credit("T2", w.attempts(session.ID)[0].Reference, 500_000, w.clock())))
	w.rest()
	paid, err := w.db.EventsOf(t.Context(), session.ID, 100)
	w.must(err)
	for _, e := range paid {
		if e.Kind == flow.ChargeSuccess {
			_, err = w.service.Resend(t.Context(), e.ID, "", call("", "", nil))
			w.must(err)
		}
	}
	w.rest()
	story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
	w.must(err)
	var all strings.Builder
	for _, m := range story {
		if m.Told == "" || strings.Contains(m.Told, "no words for") || !strings.Contains(m.Told, "“") && strings.ContainsAny(m.Told, "_{}") {
			t.Errorf("%s %q is told so: %q", m.Who, m.What, m.Told)
		}
		fmt.Fprintln(&all, m.Told)
	}
	for _, want := range []string{
		"asked for ₦5,000, to be paid in the chat, until 22 November 2026, 16:05 (Lagos).",
		"Till wrote: “", "The message “", "left for WhatsApp: one tick.",
		"₦1,000 came for this payment: it is less than was due, the rest is waited for. The bank’s time for it is 16:05 (Lagos)",
		"the bank transfer until 16:35 (Lagos).",
		"In the books, for money that came: ₦1,000 is set aside, for the rest of it or for a decision.",
		"In the books, for money that came: ₦5,000 came in at the bank.",
		"The merchant’s server at shop.test was told charge.success (try 1) and took it: it answered 200",
		"was told charge.success (try 2, sent again as somebody asked for it) and took it: it answered 200", // who asks why it came twice
		"As it stands: it is paid; ₦5,000 of ₦5,000 is paid.",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("nowhere stands %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it is told so:\n%s", all.String())
	}
}

func TestWhatPeopleDidIsTold(t *testing.T) {
	t.Parallel()
	for _, act := range []struct {
		action, reason, want string
	}{
		{"phone.reveal", "to call back", "ngozi@shop.test looked at the payer’s whole phone number. Reason: to call back"},
		{"ask.refund.retry", "it is due", "ngozi@shop.test asked to send a refund once more. Reason: it is due"},
		{"agree.payment.send_back", "seen", "ngozi@shop.test agreed, as the second person, to send set-aside money back to who paid it. Reason: seen"},
		{"refuse.payment.accept", "", "ngozi@shop.test refused to give set-aside money to the merchant."},
		{"session.note", "", "ngozi@shop.test left a note."},
		{"moon.visit", "", "ngozi@shop.test did “moon.visit”."},
	} {
		if got := checkout.ToldAct(flow.Audited{Actor: "ngozi@shop.test", Action: act.action, Reason: act.reason}); got != act.want {
			t.Errorf("%s is told so: %s", act.action, got)
		}
	}
}

// What money that did not fit was taken for is told as the session's policy has it.
func TestWhatBecomesOfMoneyThatDoesNotFitIsToldByItsPolicy(t *testing.T) {
	t.Parallel()
	w := one(t)
	for want, c := range map[string]struct {
		policy func(*flow.Policy)
		amount flow.Kobo
		ends   string
	}{
		"it is less than was due, the rest is waited for":             {func(*flow.Policy) {}, 450_000, ""},
		"it is less than was due, and is taken as it is":              {func(p *flow.Policy) { p.Underpayment = "accept" }, 450_000, ""},
		"it is less than was due, and goes back":                      {func(p *flow.Policy) { p.Underpayment = "refund" }, 450_000, ""},
		"it is more than was due, what is too much is set aside":      {func(*flow.Policy) {}, 550_000, ""},
		"it is more than was due, what is too much goes back":         {func(p *flow.Policy) { p.Overpayment = "refund_excess" }, 550_000, ""},
		"it came after the session’s time was over, and is set aside": {func(*flow.Policy) {}, 500_000, "late"},
		"it came after the session’s time was over, and goes back":    {func(p *flow.Policy) { p.LatePayment = "refund" }, 500_000, "late"},
		"it is for a session that was cancelled, and is set aside":    {func(*flow.Policy) {}, 500_000, "cancelled"},
		"it is for a session that was cancelled, and goes back":       {func(p *flow.Policy) { p.LatePayment = "refund" }, 500_000, "cancelled"},
	} {
		w.later(time.Minute) // more is not answered in one
		session := w.payingUnder(c.policy)
		switch c.ends {
		case "late":
			w.later(2 * time.Hour)
		case "cancelled":
			_, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil))
			w.must(err)
			w.rest()
		}
		w.comes(session.ID, c.amount)
		story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
		w.must(err)
		told := ""
		for _, m := range story {
			if strings.HasPrefix(m.What, "matched") {
				told += m.Why + "\n" + m.Told + "\n"
			}
		}
		if strings.Count(told, want) != 2 || (c.ends == "cancelled") == strings.Contains(told, "the session was open until") {
			t.Errorf("%q is told of %d kobo, not %q", told, c.amount, want)
		}
	}
}

// A session that is paid stays so: how it stands is told with what of that went back,
// or the bank took back, and with nothing that was gone before it was paid.
func TestAStoryEndsWithWhatOfThePaidMoneyIsGone(t *testing.T) {
	t.Parallel()
	w := one(t)
	ends := func(session flow.Session, what, sentence string) {
		t.Helper()
		story, err := checkout.Timeline(t.Context(), w.service.Reader(), session.ID)
		w.must(err)
		page, _, err := checkout.StoryPage(t.Context(), w.service.Reader(), session.ID, checkout.StoryPlace{}, 100)
		w.must(err)
		for _, list := range [][]checkout.Moment{story, page} {
			if end := list[len(list)-1]; end.What != "session PAID: ₦5,000 of ₦5,000 paid"+what || end.Told != "As it stands: it is paid; ₦5,000 of ₦5,000 is paid."+sentence {
				t.Errorf("the story ends with %q, %q", end.What, end.Told)
			}
		}
	}
	session, p := w.paidFor(600_000) // what is beyond is told of by itself
	ends(session, "", "")
	_, err := w.refund(p, 250_000)
	w.must(err)
	w.rest()
	ends(session, ", ₦1,500 of it sent back", " ₦1,500 of it went back to who paid it, or is on its way.")
	w.bankTakes(p, 600_000, "R1")
	ends(session, ", ₦1,500 of it sent back, ₦5,000 taken back by the bank", " ₦1,500 of it went back to who paid it, or is on its way. The bank took ₦5,000 back.")

	session, p = w.paidFor(600_000) // what does not arrive did not go back, whosever it was
	w.weather(rail.Conditions{Refunds: rail.FateBounce})
	var r flow.Refund
	for _, amount := range []flow.Kobo{100_000, 200_000} { // what was set aside, and some of what is paid
		r = w.goesBack(p, amount)
		w.pass(2 * time.Second)
		r = w.becomes(r.ID, flow.RefundAttention)
	}
	ends(session, ", ₦3,000 of what was sent came back", " ₦3,000 that was sent back did not arrive, and is with us again.")
	w.weather(rail.Conditions{})
	w.must(w.retryRefund(r))
	w.rest()
	w.pass(time.Second)
	w.becomes(r.ID, flow.RefundProcessed)
	ends(session, ", ₦2,000 of it sent back, ₦1,000 of what was sent came back", " ₦2,000 of it went back to who paid it, or is on its way. ₦1,000 that was sent back did not arrive, and is with us again.")

	session, a := w.paying()
	w.must(w.tell(credit("PART", a.Reference, 300_000, w.clock())))
	w.rest()
	w.bankTakes(w.payments(session.ID)[0], 300_000, "R2")
	w.must(w.tell(credit("WHOLE", a.Reference, 500_000, w.clock())))
	w.rest()
	ends(session, "", "")
}

// Whoever looks at a conversation again reads of news how much it was about, and not all
// of the payment that some of goes back.
func TestAConversationThatIsToldAgainSaysHowMuchNewsIsAbout(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.paidFor(600_000)
	w.goesBack(p, 150_000)
	w.bankTakes(p, 200_000, "R1")
	chats, err := w.db.Watchers(t.Context(), session.ID)
	w.must(err)
	told, err := w.service.Retell(t.Context(), "", chats[0].ID, session.ID)
	w.must(err)
	var news []string
	for _, s := range told.Scenes {
		if s.News != nil && s.News.Payment != nil {
			news = append(news, s.Told.What)
		}
	}
	if want := []string{"paid ₦6,000", "refunded ₦1,500", "reversed ₦2,000"}; !slices.Equal(news, want) {
		t.Errorf("told is %q, and not %q", news, want)
	}
}

// What a newer Till wrote stands in a conversation that is told again as it is kept: there is
// nothing below it that a sentence could lead to.
func TestAConversationThatIsToldAgainKeepsWhatThereAreNoWordsFor(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paidFor(600_000)
	chats, err := w.db.Watchers(t.Context(), session.ID)
	w.must(err)
	w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Append(t.Context(), store.Line{Stream: string(chats[0].ID), Session: session.ID, At: w.clock(), Kind: "horoscope", Data: json.RawMessage(`{}`)})
		return err
	}))
	told, err := w.service.Retell(t.Context(), "", chats[0].ID, session.ID)
	w.must(err)
	last := told.Scenes[len(told.Scenes)-1].Around
	if m := last[len(last)-1]; m.Told != "" || m.What != "horoscope" {
		t.Errorf("it is told so: %+v", m)
	}
}
