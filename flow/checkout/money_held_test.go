package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// holds has an operator hold what leaves, or let it go again.
func (w *world) holds(to string) {
	w.t.Helper()
	w.must2(w.board.Move(w.t.Context(), flow.SwitchMove{Kind: flow.SwitchMoney, Name: flow.MoneyOut, To: to, By: "ops"}))
}

// After a restore nobody knows what the bank was told since: no payout and no refund
// is newly ordered until somebody looked, and then both go.
func TestNothingIsOrderedWhileMoneyIsHeld(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		_, p := w.paidFor(500_000)
		w.holds(flow.MoneyHeld)
		r := w.ordered(p, 100_000)
		w.at("2026-11-23T08:00:01Z")
		w.until("the payout waits", func() bool { return len(w.settlements(project)) == 1 })
		w.passes(12, 10*time.Minute)
		if n := w.calls()["disburse"]; n != 0 {
			t.Errorf("the bank was told to send money %d times", n)
		}
		b := w.settlements(project)[0] // whatever a bank tells of it: nobody has ordered it
		w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), Amount: b.Amount, RailTransactionID: "out-1", PaidAt: w.clock()}))
		if b = w.settlements(project)[0]; b.Status != flow.SettlementPending || w.logged("a payout that nobody ordered") != 1 {
			t.Errorf("what was not ordered became %+v", b)
		}
		w.holds("")
		w.passes(3, 10*time.Minute)
		w.becomes(r.ID, flow.RefundProcessed)
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded {
			t.Errorf("once it may go on: %+v", b)
		}
	})
}

// What the bank may have been told of is asked about all the same.
func TestWhatWasOrderedIsAskedAboutWhileMoneyIsHeld(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.earns()
		w.weather(rail.Conditions{Payouts: rail.FatePending})
		w.at("2026-11-23T08:00:01Z")
		w.until("the payout is ordered", func() bool {
			list := w.settlements(project)
			return len(list) == 1 && list[0].Status == flow.SettlementProcessing
		})
		w.holds(flow.MoneyHeld)
		w.weather(rail.Conditions{})
		w.passes(24, time.Hour)
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded {
			w.t.Errorf("it became %+v", b)
		}
	})
}
