package checkout_test

import (
	"testing"

	"till/flow"
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
