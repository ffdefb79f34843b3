package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// A bank that says nothing of a payout for days is asked on, over a weekend too.
func TestABankThatSaysNothingOfAPayoutIsAskedOnOverTheWeekend(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		silent := func() (flow.Disbursed, error) { return flow.Disbursed{}, rail.ErrUnknown }
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return silent() }
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return silent() }
		})
		w.earns()
		w.at("2026-11-27T08:00:01Z") // a Friday
		w.rest()
		asked := 0
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			asked++
			return silent()
		})
		w.passes(13, 4*time.Hour) // it is Sunday
		w.proven()
		if asked == 0 {
			w.t.Error("it is not asked at all")
		}
	})
}
