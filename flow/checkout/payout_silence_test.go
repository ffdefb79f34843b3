package checkout_test

import (
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
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
		stuck := func() []store.Waiting {
			list, err := w.service.Reader().Waits(w.t.Context(), store.QueueFilter{Queue: store.QueueStuck, Project: project, Now: w.clock(), Limit: 9})
			w.must(err)
			return list
		}
		w.passes(5, 4*time.Hour)
		if list := stuck(); len(list) != 0 {
			w.t.Errorf("the bank has a day to say what became of it, and already %+v waits for somebody", list)
		}
		asked := 0
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			asked++
			return silent()
		})
		w.passes(8, 4*time.Hour) // it is Sunday
		w.proven()
		if asked < 2 { // at the end of the first day, and of the second
			w.t.Errorf("it is asked %d times", asked)
		}
		if list := stuck(); len(list) != 1 || list[0].Subject != string(w.settlements(project)[0].ID) || list[0].Amount != 482_500 || list[0].Detail != "payout" {
			w.t.Errorf("nobody is shown that it does not arrive: %+v", list)
		}
	})
}

// A payout that the bank took on only when it was told again has its day from then on,
// and no more, however often it is asked about: then it waits for somebody.
func TestAPayoutThatWasTakenOnLateIsShownWhereItHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	w.pays("")
	w.start(true)
	var told atomic.Int64
	var away atomic.Bool
	away.Store(true)
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if told.Add(1) == 1 {
				return flow.Disbursed{}, rail.ErrUnknown
			}
			return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
		}
		r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			switch {
			case away.Load():
				return flow.Disbursed{}, rail.ErrUnavailable
			case told.Load() == 1:
				return flow.Disbursed{}, rail.ErrNotFound
			}
			return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
		}
	})
	w.earns()
	w.at("2026-11-23T08:00:01Z")
	w.passes(2, 24*time.Hour)
	away.Store(false)
	w.later(time.Hour)
	for _, waits := range []int{0, 1} { // after 20 hours, and after 40
		w.passes(5, 4*time.Hour)
		list, err := w.service.Reader().Waits(t.Context(), store.QueueFilter{Queue: store.QueueStuck, Project: project, Now: w.clock(), Limit: 9})
		if err != nil || len(list) != waits || told.Load() != 2 {
			t.Errorf("told %d times, %+v waits for somebody (%v)", told.Load(), list, err)
		}
	}
}
