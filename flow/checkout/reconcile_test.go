package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// What the bank moved and nobody booked is missing for whose it is: money by the account
// that it came to, and what was sent out, or came back, by what it was ordered for.
func TestWhatIsNotBookedIsMissingForWhoseItIs(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t, now := w.t, w.clock()
		p := w.earns()
		w.weather(rail.Conditions{Refunds: rail.FatePending, Payouts: rail.FatePending})
		r := w.ordered(p, 100_000)
		b, made, _, err := w.service.SettleNow(t.Context(), project, "2026-11-23")
		if err != nil || !made {
			t.Fatalf("there is no payout (%v)", err)
		}
		session, a := w.paying()
		w.rest()
		w.rail.set(func(s *shakyRail) {
			s.lines = []flow.Notice{
				{Kind: flow.Credit, RailTransactionID: "1", AccountNumber: a.Instructions.AccountNumber, Amount: 1, PaidAt: now},
				{Kind: flow.PaidOut, RailTransactionID: "2", Reference: r.Reference, Amount: 2, PaidAt: now.Add(time.Second)},
				{Kind: flow.PayoutFailed, RailTransactionID: "3", Reference: r.Reference, Reverses: "2", Amount: 3, PaidAt: now.Add(2 * time.Second)},
				{Kind: flow.PaidOut, RailTransactionID: "4", Reference: string(b.ID), Amount: 4, PaidAt: now.Add(3 * time.Second)},
				{Kind: flow.PayoutFailed, RailTransactionID: "5", Reference: string(b.ID), Reverses: "4", Amount: 5, PaidAt: now.Add(4 * time.Second)},
			}
		})
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(now))
		w.must(err)
		want := []flow.Difference{
			{Movement: flow.MovePayment, Session: session.ID}, {Movement: flow.MoveRefund, Session: p.Session}, {Movement: flow.MoveRefundReturned, Session: p.Session},
			{Movement: flow.MovePayout}, {Movement: flow.MovePayoutReturned},
		}
		if len(got.Differences) != len(want) {
			t.Fatalf("%+v", got.Differences)
		}
		for i, d := range got.Differences {
			if d.Kind != flow.MissingInLedger || d.Movement != want[i].Movement || d.Session != want[i].Session || d.Project != project {
				t.Errorf("%+v", d)
			}
		}
		if got, err = w.service.Reconcile(t.Context(), "wsp_prj_2", flow.DateOf(now)); err != nil || len(got.Rail)+len(got.Differences) != 0 {
			t.Errorf("another project's: %+v (%v)", got, err)
		}
	})
}

// What the bank told under the value time of one day, and its statement lists under that
// of another, twice, is booked once.
func TestWhatTheStatementListsTwiceOnAnotherDayIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := one(t)
	_, a := w.paying()
	n := said(flow.Credit, "T1", a, 500_000, w.clock())
	w.must(w.tell(n))
	w.rest()
	w.later(24 * time.Hour)
	n.PaidAt = w.clock().Add(-time.Hour)
	w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{n, n} })
	got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(n.PaidAt))
	if err != nil || len(got.Differences) != 1 || got.Differences[0].Kind != flow.TwiceAtRail || got.Ledger[flow.MovePayment].Count != 1 || got.Events[flow.MovePayment].Count != 1 {
		t.Errorf("%+v (%v)", got, err)
	}
}
