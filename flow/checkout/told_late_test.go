package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// jumps has the clock of the environment jump by a day while the bank is told of money
// that is to be sent, which it sends without answering in time or telling of it.
func (w *world) jumps() {
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			w.setClock(w.clock().Add(25 * time.Hour))
			return flow.Disbursed{}, rail.ErrUnknown
		}
	})
	w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
	})
}

// Nobody has to look at what was only not asked about: the clock of the test environment
// may jump while the bank is being told.
func TestARefundIsAskedAboutBeforeSomebodyMustLook(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.jumps()
		r := w.ordered(p, 200_000)
		w.rest()
		w.later(flow.FirstAsk)
		w.becomes(r.ID, flow.RefundProcessed)
		if e := w.events(session.ID); e[flow.RefundAttentionKind] != 0 {
			w.t.Errorf("told %v", e)
		}
	})
}

// Nor is a payout called one that the bank is silent about, and left for a day.
func TestAPayoutIsAskedAboutBeforeItsBankIsCalledSilent(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.jumps()
		w.earns()
		w.at("2026-11-26T08:00:01Z")
		w.rest()
		w.later(flow.FirstAsk)
		if b := w.settlements(project)[0]; b.Status != flow.SettlementSucceeded || w.logged("does not say what became of a payout") != 0 {
			w.t.Errorf("it is %s", b.Status)
		}
	})
}
