package checkout_test

import (
	"reflect"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// neighbour is another merchant's project in the same books.
const neighbour = flow.ProjectID("wsp_prj_9")

// neighbours books transactions of the other project.
func (w *world) neighbours(list ...flow.Entry) {
	w.t.Helper()
	ctx := w.t.Context()
	w.must(w.db.Update(ctx, func(tx *store.Tx) error {
		for _, e := range list {
			e.Project = neighbour
			if err := tx.Post(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}))
}

// overBalance fails unless a refund is refused because its merchant has nothing.
func (w *world) overBalance(when string, p flow.Payment) {
	w.t.Helper()
	if r, err := w.refund(p, 10_000); flow.CodeOf(err) != flow.CodeRefundOverBalance || coveredOf(w.t, err) != 0 {
		w.t.Errorf("%s: a refund is made of another's money: %+v (%v)", when, r, err)
	}
}

// Whatever another merchant has, a merchant is paid out its own and refunds out of
// its own: what waits for its day, is being gathered or lies available, and the fees
// that another owes us.
func TestNoMerchantIsPaidOrRefundsWithWhatIsAnothers(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t, ctx := w.t, w.t.Context()
		w.spoilt = true // the other's lines are of no payment
		p := w.earns()
		w.neighbours(line(flow.EntryPayment, 1, 10_000_000, w.clock()))
		w.weather(rail.Conditions{Payouts: rail.FateFail})
		_, made, blocked, err := w.service.SettleNow(ctx, neighbour, "2026-11-23")
		if err != nil || !made || blocked != "" {
			t.Fatalf("the other is not paid out: %v, %q", err, blocked)
		}
		w.rest()
		w.later(3 * time.Second)
		if b := w.ended(neighbour, 1)[0]; b.Status != flow.SettlementFailed {
			t.Fatalf("%+v", b)
		}
		w.weather(rail.Conditions{})
		if _, made, blocked, err := w.service.SettleNow(ctx, project, "2026-11-23"); err != nil || !made {
			t.Fatalf("it is not paid out: %v, %q", err, blocked)
		}
		w.rest()
		w.later(3 * time.Second)
		b := w.ended(project, 1)[0]
		if w.whole(b); b.Amount != netOf || b.Carried != 0 || b.Lines != 1 || b.Status != flow.SettlementSucceeded {
			t.Errorf("beside what another has available it is paid out %+v", b)
		}
		w.overBalance("available", p)

		w.neighbours(line(flow.EntryPayment, 2, 5_000_000, w.clock()))
		w.overBalance("due", p)
		whole := line(flow.EntryPayment, 3, netOf, w.clock()) // and refunded whole, so that it owes us a fee
		whole.Postings = []flow.Posting{{Account: flow.MerchantPending, Amount: -netOf}, {Account: flow.Fees, Amount: -feeOf}, {Account: flow.RailClearing, Amount: netOf + feeOf}}
		w.neighbours(whole, line(flow.EntryRefund, 3, -netOf-feeOf, w.clock()))
		w.overBalance("a fee is owed", p)
		w.must(w.db.Update(ctx, func(tx *store.Tx) error {
			open := flow.Settlement{ID: "wsp_stl_9", Project: neighbour, SettlesOn: "2026-11-24", Status: flow.SettlementPending}
			if err := tx.SaveSettlement(ctx, open); err != nil {
				return err
			}
			_, err := tx.Gather(ctx, open, w.clock().AddDate(0, 0, 1), 10)
			return err
		}))
		w.overBalance("gathered", p)
		if _, made, _, err := w.service.SettleNow(ctx, project, "2026-11-24"); err != nil || made {
			t.Errorf("it is paid out what another is gathering: %v (%v)", made, err)
		}
		if list, _, err := w.service.Settlements(ctx, neighbour, checkout.SettlementFilter{Limit: 10}); err != nil || len(list) != 1 {
			t.Errorf("what is being gathered is shown: %+v (%v)", list, err)
		}
	})
}

// What became of one payment says nothing of another: what went back of it, what the
// bank took and what we gave back of its fee are its own, and a refund is of its own
// charge.
func TestWhatBecomesOfAPaymentIsNoneOfAnothers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		first, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", a, 700_000, w.clock())))
		w.rest()
		second, b := w.paying()
		w.must(w.tell(said(flow.Credit, "T2", b, 500_000, w.clock())))
		w.rest()
		other, p := w.paidFor(600_000)
		before := map[flow.SessionID]flow.Payment{first.ID: w.payments(first.ID)[0], other.ID: w.payments(other.ID)[0]}
		w.goesBack(p, 150_000)
		w.must(w.tell(reversal("R2", "T2", b, 500_000, w.clock())))
		w.rest()

		if is := w.payments(first.ID)[0]; !reflect.DeepEqual(is, before[first.ID]) {
			t.Errorf("of what nothing became: it was %+v, and is %+v", before[first.ID], is)
		}
		if is := w.payments(second.ID)[0]; is.Reversed != 500_000 || is.Lost != netOf || is.FeeBack != feeOf || is.Refunded != 0 || is.Unapplied != 0 {
			t.Errorf("of what the bank took: %+v", is)
		}
		if is := w.payments(other.ID)[0]; is.Refunded != 150_000 || is.Unapplied != 0 || is.Applied != 500_000 || is.Lost != 0 || is.FeeBack != 0 || is.Reversed != 0 {
			t.Errorf("of what some went back: %+v", is)
		}
		for _, session := range []flow.SessionID{first.ID, other.ID} {
			r := w.ordered(w.payments(session)[0], 1_000)
			if kept, err := w.db.Refund(t.Context(), r.ID); err != nil || kept.Charge == "" || kept.Charge != w.read(session).Charge || kept.Credit != w.payments(session)[0].RailTransactionID {
				t.Errorf("a refund is of %+v (%v)", kept, err)
			}
		}
		w.rest()
	})
}
