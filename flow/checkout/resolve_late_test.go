package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// Late money that is accepted into a session which other late money has paid bears
// what the fee rises by, and not a fee of its own.
func TestMoreLateMoneyBearsWhatTheFeeRisesBy(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, first := w.lateMoney(func(*flow.Policy) {})
		more := w.comes(session.ID, 300_000)
		first, err := w.resolve(first.ID, true)
		w.must(err)
		w.is(session.ID, flow.SessionPaid)
		more, err = w.resolve(more.ID, true)
		w.must(err)
		if more.Match != flow.Late || more.Applied != 300_000 || first.Fee != flow.Fee(500_000) || more.Fee != flow.Fee(800_000)-flow.Fee(500_000) {
			t.Errorf("the first bears %d, and the other is %+v", first.Fee, more)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 800_000, flow.MerchantPending: flow.Fee(800_000) - 800_000, flow.Fees: -flow.Fee(800_000)})
		w.proven()
	})
}

// Money whose decision the bank refused has a day from then on: the clock of before finds
// that it is not its time yet, and it goes back once it is.
func TestTheClockOfWhatCouldNotGoBackBeginsAnew(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.lateMoney(func(*flow.Policy) {})
		first := p.ReturnsAt
		w.later(time.Hour)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		_, err := w.resolve(p.ID, false)
		w.must(err)
		w.refuses(session.ID, 1)
		w.weather(rail.Conditions{})
		p = w.payment(p.ID)
		if !p.ReturnsAt.After(first.Add(time.Hour)) {
			t.Fatalf("it goes back at %s, and would have at %s", p.ReturnsAt, first)
		}
		w.later(first.Sub(w.clock()) + time.Minute)
		w.later(p.ReturnsAt.Sub(w.clock()) - time.Millisecond)
		if list := w.refundsOf(session.ID); len(list) != 1 {
			t.Fatalf("it goes back before its time: %+v", list)
		}
		w.later(time.Millisecond)
		w.later(time.Second)
		if list := w.refundsOf(session.ID); len(list) != 2 || list[1].Origin != flow.OriginClock || list[1].Amount != 500_000 {
			t.Errorf("it does not go back: %+v", list)
		}
	})
}
