package crash

import (
	"context"
	"testing"
)

// An audit that finds nothing proves nothing: everything that it is to find is
// made up here, in the journal of a Till that lost none of it.
func TestTheAuditFindsWhatIsNotThere(t *testing.T) {
	w := newWorld(t)
	s := &shop{w: w, sales: map[string]sale{}}
	a := &audit{w: w, shop: s, sink: newSink(w), ended: map[string]string{}}
	one := sale{reference: "sale", amount: 500_000}
	over, end := context.WithCancel(t.Context())
	end()
	must(t, s.chat(over, &one))
	kept, bank := w.books("test"), w.books("bank")
	defer kept.Close()
	defer bank.Close()
	w.until("the payment is told of", func() bool {
		return a.sink.told(one.session) == 1 && w.number(kept, "SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered'") == 0
	})
	look := map[string]func(){
		"a reply":      func() { calls := w.journal.of("call"); a.replies(calls) },
		"a session":    func() { a.settled(one) },
		"the money":    func() { a.money(kept, bank) },
		"the webhooks": func() { a.events(kept) },
		"a message":    func() { a.messages(kept) },
		"the ledger":   a.prove,
	}
	for what, do := range look {
		if do(); len(w.found) > 0 {
			t.Fatalf("%s: it finds %v where all is well", what, w.found)
		}
	}
	calls := w.journal.of("call")
	changed := calls[len(calls)-1]
	changed.Reply += " "
	never := changed
	never.Key, never.Body = "never made", `{"amount":100,"customerEmail":"bola@example.com"}`
	gone := one
	gone.paid, gone.session = 2*one.amount, "wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9ef"
	less := one
	less.paid = 1
	for _, made := range []struct {
		what, as string
		up       *entry
		find     func()
	}{
		{"a reply of other bytes", "lost", &changed, look["a reply"]},
		{"a call that was never made", "lost", nil, func() { a.replies([]entry{never}) }},
		{"a session that is not there", "lost", nil, func() { a.settled(gone) }},
		{"a session that is paid and was not", "doubled", nil, func() { a.settled(less) }},
		{"a session that was cancelled", "undone", nil, func() { a.ended[one.session] = "CANCELLED"; a.settled(one) }},
		{"a transfer that the bank does not have", "lost", &entry{Kind: "transfer", ID: "tx_made_up"}, look["the money"]},
		{"a sum that the bank does not have", "doubled", &entry{Kind: "transfer", ID: "tx_made_up", Amount: 1}, look["the money"]},
		{"a webhook that is not kept", "lost", &entry{Kind: "hook", ID: "evt_made_up"}, look["the webhooks"]},
		{"a message that was not heard", "lost", &entry{Kind: "said", ID: "made up"}, look["a message"]},
	} {
		w.found = map[string][]string{}
		before := len(w.journal.all)
		if made.up != nil {
			must(t, w.journal.keep(*made.up))
		}
		made.find()
		if w.count(made.as) == 0 {
			t.Errorf("%s is not found: %v", made.what, w.found)
		}
		w.journal.all = w.journal.all[:before]
	}
}
