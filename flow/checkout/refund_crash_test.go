package checkout_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// refundCrashes are the places around a call to the bank about a refund at which
// the program can die.
var refundCrashes = map[string]func(w *world, die func()){
	"before the bank is told": func(w *world, die func()) {
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				if w.once(die) {
					return flow.Disbursed{}, errDead
				}
				return call()
			}
		})
	},
	"after the bank was told": func(w *world, die func()) {
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				d, err := call()
				w.once(die)
				return d, err
			}
		})
	},
	"after the bank answered a question": func(w *world, die func()) {
		w.weather(rail.Conditions{NotifyLossPercent: 100})
		w.rail.sentOut(func(_ string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			d, err := call()
			w.once(die)
			return d, err
		})
	},
	"before the merchant is told": func(w *world, die func()) {
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			if strings.Contains(string(d.Body), "refund.processed") && w.once(die) {
				return flow.Verdict{Reason: "dead"}
			}
			return flow.Verdict{OK: true, Status: 200}
		})
	},
}

// outlives starts the program again once it crashed, until a refund is done that it
// crashed in.
func (w *world) outlives(id flow.RefundID, alone bool) {
	w.t.Helper()
	for range 20 {
		w.rest()
		if w.dead() {
			w.end()
			w.start(alone)
		}
		if now, err := w.db.Refund(w.t.Context(), id); err == nil && now.Status == flow.RefundProcessed && w.died.Load() {
			break
		}
		w.pass(61 * time.Second)
	}
	if !w.died.Load() {
		w.t.Fatal("nothing crashed")
	}
	w.becomes(id, flow.RefundProcessed)
}

func TestARefundSurvivesACrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	for name, arm := range refundCrashes {
		for alone, how := range map[bool]string{true: "restarted alone", false: "restarted beside others"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				each(t, func(w *world) {
					t := w.t
					w.endpoint("https://shop.test/hook")
					session, p := w.paidFor(500_000)
					arm(w, w.crash)
					r := w.ordered(p, 200_000)
					w.outlives(r.ID, alone)
					w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
					if e := w.events(session.ID); e[flow.RefundPendingKind] != 1 || e[flow.RefundProcessedKind] != 1 {
						t.Errorf("told %v", e)
					}
					now := w.clock()
					lines, err := w.bank.Statement(t.Context(), now.Add(-48*time.Hour), now.Add(time.Hour))
					w.must(err)
					sent := 0
					for _, n := range lines {
						if n.Kind == flow.PaidOut {
							sent++
						}
					}
					if sent != 1 {
						t.Errorf("the bank sent it %d times", sent)
					}
				})
			})
		}
	}
}

// A process sleeps over its lease of a refund and wakes while another one is telling
// the bank of it: what it then ends is not what the other has to go on with.
func TestARefundIsAskedAboutThoughAProcessThatOversleptEndsIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		_, p := w.paidFor(500_000)
		w.end()
		w.open(false)
		r := w.ordered(p, 200_000)
		ctx := context.WithoutCancel(t.Context())
		var slept []store.Work
		w.must(w.db.Update(ctx, func(tx *store.Tx) (err error) {
			now := w.clock()
			slept, err = tx.ClaimTasks(ctx, "asleep/1", now, now.Add(time.Minute), 10)
			return err
		}))
		slept = slices.DeleteFunc(slept, func(w store.Work) bool { return w.Kind != flow.TaskRefund })
		if len(slept) != 1 {
			t.Fatalf("taken are %+v", slept)
		}
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				if !w.once(func() {
					if err := w.db.Update(ctx, func(tx *store.Tx) error { return tx.EndTask(ctx, slept[0]) }); err != nil {
						t.Error(err)
					}
				}) {
					return call()
				}
				return flow.Disbursed{}, rail.ErrUnknown
			}
		})
		w.run()
		w.pass(time.Minute)
		w.until("the bank to be told", func() bool {
			now, err := w.db.Refund(t.Context(), r.ID)
			return err == nil && now.Status == flow.RefundProcessing
		})
		for range 5 {
			w.rest()
			w.pass(61 * time.Second)
		}
		w.becomes(r.ID, flow.RefundProcessed)
	})
}

// dead says whether the program has crashed and was not started again.
func (w *world) dead() bool {
	select {
	case <-w.crashed:
		return true
	default:
		return false
	}
}
