package checkout_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

func TestDaysOfDowntimeAreMadeUpForInOneSettlement(t *testing.T) {
	t.Parallel()
	for back, first := range map[string]string{"2026-11-26T15:00:00Z": "2026-11-26", "2026-11-28T15:00:00Z": "2026-11-27", "2026-11-26T06:00:00Z": "2026-11-25"} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "", func(w *world) {
				w.earns()
				w.at("2026-11-22T15:00:00Z")
				w.earns()
				w.end()
				to, err := time.Parse(time.RFC3339, back)
				w.must(err)
				w.setClock(to)
				w.start(true)
				w.rest()
				w.pass(time.Second)
				list := w.ended(project, 1)
				if string(list[0].SettlesOn) != first || list[0].Amount != 2*482_500 || list[0].Status != flow.SettlementSucceeded {
					w.t.Errorf("%+v", list)
				}
			})
		})
	}
}

func TestAPayoutSurvivesACrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	points := map[string]func(w *world, where *atomic.Bool){
		"before the bank is told": func(w *world, _ *atomic.Bool) {
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					if w.once(w.crash) {
						return flow.Disbursed{}, errDead
					}
					return call()
				}
			})
		},
		"after the bank was told": func(w *world, _ *atomic.Bool) {
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					d, err := call()
					w.once(w.crash)
					return d, err
				}
			})
		},
		"after the bank was asked": func(w *world, _ *atomic.Bool) {
			w.weather(rail.Conditions{NotifyLossPercent: 100})
			w.rail.sentOut(func(_ string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				d, err := call()
				w.once(w.crash)
				return d, err
			})
		},
		"before the settlement is made": func(_ *world, where *atomic.Bool) { where.Store(true) },
	}
	for name, arm := range points {
		for alone, how := range map[bool]string{true: "restarted alone", false: "restarted beside others"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
					t.Parallel()
					w := newWorld(t, c)
					w.pays("")
					var where atomic.Bool
					w.payee = func(context.Context, flow.ProjectID) (flow.BankAccount, bool, error) {
						if where.Load() && w.once(w.crash) {
							return flow.BankAccount{}, false, errDead
						}
						return ownAccount, true, nil
					}
					w.start(true)
					w.endpoint("https://shop.test/hook")
					w.earns()
					arm(w, &where)
					moment := time.Date(2026, 11, 23, 8, 0, 1, 0, time.UTC)
					w.pass(moment.Sub(w.clock()))
					w.until("the payout is made, over a crash", func() bool {
						w.rest()
						select {
						case <-w.crashed:
							w.end()
							w.start(alone)
						default:
						}
						list := w.settlements(project)
						if len(list) == 1 && list[0].Status == flow.SettlementSucceeded {
							return true
						}
						w.pass(30 * time.Second)
						return false
					})
					if !w.died.Load() {
						t.Fatal("nothing crashed")
					}
					list := w.settlements(project)
					if list[0].Amount != 482_500 || list[0].Lines != 1 {
						t.Errorf("%+v", list)
					}
					w.whole(list[0])
					if got, err := w.bank.Disbursed(t.Context(), string(list[0].ID)); err != nil || got.Status != flow.DisbursementDone {
						t.Errorf("the bank says %+v, %v", got, err)
					}
					w.rest()
					w.until("the merchant is told", func() bool { return w.told(flow.SettlementSuccessKind) == 1 })
				})
			})
		}
	}
}

func TestASettlementThatWasCutOffWhileItWasGatheredIsFinished(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		for range 3 {
			w.earns()
		}
		cut := flow.Settlement{ID: "wsp_stl_01k9z3m5x8v2c7n4b6t1q0w9fe", Project: project, SettlesOn: "2026-11-20", Status: flow.SettlementPending}
		ctx := t.Context()
		w.must(w.db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.SaveSettlement(ctx, cut); err != nil {
				return err
			}
			_, err := tx.Gather(ctx, cut, w.clock().Add(time.Hour), 2)
			return err
		}))
		if _, err := w.service.Settlement(ctx, project, cut.ID); flow.CodeOf(err) != flow.CodeNotFound || len(w.settlements(project)) != 0 {
			t.Errorf("one that is being gathered is shown: %v", err)
		}
		w.at("2026-11-23T08:00:01Z")
		list := w.ended(project, 1)
		if list[0].ID != cut.ID || list[0].SettlesOn != "2026-11-23" || list[0].Amount != 3*482_500 || list[0].Status != flow.SettlementSucceeded {
			t.Fatalf("%+v", list)
		}
		w.whole(list[0])
	})
}

func TestManyWhoSettleAtOnceMakeOneSettlement(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		for range 3 {
			w.earns()
		}
		beside := w.service
		if w.store.URL != "" { // another process on the same database
			db, err := store.Open(t.Context(), w.store)
			w.must(err)
			defer func() { w.must(db.Close()) }()
			beside, err = checkout.New(checkout.Config{
				DB: db, Rail: w.rail, Places: &checkout.MemoryPlaces{}, Words: words, Now: w.clock, Rand: w.rand, Payee: w.payee, Calendar: w.calendar, Board: w.board,
			})
			w.must(err)
		}
		var mu sync.Mutex
		ids := map[flow.SettlementID]int{}
		var wg sync.WaitGroup
		for i := range 12 {
			s := w.service
			if i%2 == 1 {
				s = beside
			}
			wg.Go(func() {
				b, made, blocked, err := s.SettleNow(t.Context(), project, "2026-11-23")
				if err != nil || !made || blocked != "" {
					t.Errorf("%+v, %v, %q, %v", b, made, blocked, err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[b.ID]++
			})
		}
		wg.Wait()
		if len(ids) != 1 {
			t.Errorf("one day was settled as %v", ids)
		}
		w.later(2 * time.Minute) // what the other process owed is free
		w.pass(time.Second)
		w.until("it is paid out", func() bool { return w.settlements(project)[0].Status == flow.SettlementSucceeded })
		w.whole(w.settlements(project)[0])
	})
}

func TestANoticeOfAPayoutThatNobodyOrderedChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	w.pays("")
	w.start(true)
	w.earns()
	w.weather(rail.Conditions{Payouts: rail.FatePending})
	w.at("2026-11-23T08:00:01Z")
	b := w.settlements(project)[0]
	for i, n := range []flow.Notice{
		{Kind: flow.PaidOut, Reference: "wsp_stl_01k9z3m5x8v2c7n4b6t1q0w9fe", Amount: 1, RailTransactionID: "out-1", PaidAt: w.clock()},
		{Kind: flow.PayoutFailed, Reference: "wsp_stl_", Amount: 1, PaidAt: w.clock()},
	} {
		w.must(w.tell(n))
		if got := w.logged("a bank tells of a payout that nobody ordered"); got != i+1 {
			t.Errorf("the log tells of it %d times", got)
		}
	}
	for range 3 { // another amount does not change what was ordered, and is told once
		w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), Amount: 1, RailTransactionID: "out-1", PaidAt: w.clock()}))
	}
	if got := w.settlements(project)[0]; got.Status != flow.SettlementSucceeded || got.Amount != b.Amount || w.logged("of another amount than was ordered") == 0 {
		t.Errorf("%+v", got)
	}
	if _, err := w.service.Settlement(t.Context(), project, "wsp_stl_nowhere"); !errors.Is(err, &flow.Error{Code: flow.CodeNotFound}) {
		t.Error(err)
	}
}
