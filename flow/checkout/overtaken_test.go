package checkout_test

import (
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// While the bank is asked about a refund that is to be sent again, another worker
// begins to send it and is cut off: whoever asked comes back to it.
func TestARefundThatAnotherWorkerBeganAndWasCutOffInIsSent(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"the bank answers": nil, "it does not": rail.ErrUnknown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				session, p, r := w.lateRefused()
				w.weather(rail.Conditions{})
				w.rail.sentOut(func(_ string, bank func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					d, err := bank()
					now := w.refundsOf(session.ID)[0]
					if now.Status != flow.RefundPending {
						return d, err
					}
					change, begun := now.Anew().Send(w.read(session.ID), w.payment(p.ID), w.clock())
					kept := w.db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveRefund(t.Context(), *change.Refund) })
					if begun != nil || kept != nil {
						t.Error(begun, kept)
					}
					if failure != nil {
						return flow.Disbursed{}, failure
					}
					return d, err
				})
				w.must(w.retryRefund(r))
				w.rest()
				w.until("it is sent", func() bool { // within some seconds, and some that the bank takes
					w.later(2 * time.Second)
					return w.refundsOf(session.ID)[0].Status == flow.RefundProcessed
				})
				if r = w.becomes(r.ID, flow.RefundProcessed); r.Reference != string(r.ID)+"-2" || w.calls()["disburse"] != 2 {
					t.Errorf("the bank was told %d times: %+v", w.calls()["disburse"], r)
				}
				w.proven()
			})
		})
	}
}

// The same of a payout that the bank was not reached for.
func TestAPayoutThatAnotherWorkerBeganAndWasCutOffInIsSent(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.meanwhile(func(flow.Settlement) error { return nil }, 3)
	})
}

// meanwhile has another worker begin to send a payout, and then do more, while the
// bank is asked about it: it is ordered once all the same, after so many tries.
func (w *world) meanwhile(then func(begun flow.Settlement) error, tries int) {
	t := w.t
	t.Helper()
	w.earns()
	w.unreached(true)
	var once sync.Once
	w.rail.sentOut(func(_ string, bank func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		d, err := bank()
		once.Do(func() {
			change, begun := w.settlements(project)[0].Send(w.clock())
			kept := w.db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveSettlement(t.Context(), *change.Settlement) })
			if did := then(*change.Settlement); begun != nil || kept != nil || did != nil {
				t.Error(begun, kept, did)
			}
			w.unreached(false)
		})
		return d, err
	})
	w.at("2026-11-23T08:00:01Z")
	w.passes(12, 2*time.Second)
	if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded || b.Tries != tries || w.calls()["disburse"] != 1 {
		t.Errorf("the bank was told %d times: %+v", w.calls()["disburse"], b)
	}
	w.proven()
}

// Two workers hear that the bank knows nothing of a refund, and one of them has
// ordered it by the time that the other would: it is ordered once.
func TestARefundThatAnotherWorkerOrderedMeanwhileIsNotOrderedTwice(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.unreached(true)
		r := w.ordered(p, 200_000)
		if r = w.becomes(r.ID, flow.RefundProcessing); r.Tries != 1 {
			t.Fatalf("%+v", r)
		}
		w.unreached(false)
		var once sync.Once
		w.rail.sentOut(func(_ string, bank func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			d, err := bank()
			once.Do(func() { // the other worker
				change, begun := r.Send(session, p, w.clock())
				kept := w.db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveRefund(t.Context(), *change.Refund) })
				_, ordered := w.bank.Disburse(t.Context(), r.Order())
				if begun != nil || kept != nil || ordered != nil {
					t.Error(begun, kept, ordered)
				}
			})
			return d, err
		})
		w.later(10 * time.Second)
		w.passes(2, 2*time.Second)
		if r = w.becomes(r.ID, flow.RefundProcessed); r.Tries != 2 || w.calls()["disburse"] != 1 {
			t.Errorf("the bank was told %d times: %+v", w.calls()["disburse"], r)
		}
		w.proven()
	})
}

// The same of a payout.
func TestAPayoutThatAnotherWorkerOrderedMeanwhileIsNotOrderedTwice(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.meanwhile(func(begun flow.Settlement) error {
			_, err := w.bank.Disburse(w.t.Context(), begun.Order())
			return err
		}, 2)
	})
}
