package checkout_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
)

// textsAt are the texts that a person got from one of our numbers.
func (w *world) textsAt(number, person string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, o := range w.sent {
		if o.Number == number && o.Person == person {
			out = append(out, o.Text)
		}
	}
	return out
}

// A number can be gone between a payment and its receipt. Its payer, who writes to
// another one, is told there what was paid and what becomes of it; nobody else is.
func TestAPayerIsToldOfTheirMoneyAtAnotherNumber(t *testing.T) {
	t.Parallel()
	receipt, where := flow.Intent{Kind: flow.MeansReceipt}, flow.Intent{Kind: flow.MeansMoney}
	comes := func(w *world, s flow.Session, amount flow.Kobo) {
		w.pay(s.ID, amount, false)
		w.until("the money is there", func() bool { return len(w.payments(s.ID)) == 1 })
	}
	paid := func(w *world, s flow.Session) { comes(w, s, 500_000) }
	for name, c := range map[string]struct {
		does   func(w *world, s flow.Session)
		before bool // the code is opened at the other number before the money comes
		person string
		then   flow.Intent
		want   []string
	}{
		"paid before": {does: paid, then: receipt, want: []string{"paid_again", "receipt"}},
		"paid after":  {does: paid, before: true, then: receipt, want: []string{"summary", "receipt", "receipt"}},
		"part of it": {func(w *world, s flow.Session) {
			comes(w, s, 200_000)
			w.pass(25 * time.Hour)
		}, false, "ada", flow.Intent{Kind: flow.MeansMenu}, []string{"session_over", "part_waits", "session_over", "part_waits"}},
		"late": {func(w *world, s flow.Session) {
			w.pass(25 * time.Hour)
			w.rest()
			paid(w, s)
		}, false, "ada", where, []string{"session_over", "paid_late", "session_over", "paid_late", "human"}},
		"somebody else asks": {does: paid, person: "bode", then: where, want: []string{"paid_elsewhere", "need_code"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			session := w.session(flow.InChat)
			w.hearAt(ourNumber, "ada", code(session))
			w.hearAt(ourNumber, "ada", method(flow.BankTransfer))
			if c.person == "" {
				c.person = "ada"
			}
			if c.before {
				w.hearAt(otherNumber, c.person, code(session))
			}
			c.does(w, session)
			w.rest()
			if !c.before {
				w.hearAt(otherNumber, c.person, code(session))
			}
			w.hearAt(otherNumber, c.person, c.then)
			if got := w.textsAt(otherNumber, c.person); !slices.Equal(got, c.want) {
				t.Errorf("the payer reads %q, want %q", got, c.want)
			}
		})
	}
}
