package checkout_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

var errDead = errors.New("the program died")

// A crash point is a place between a commit and an outside call, or between
// that call and the commit of what came of it. At it the database is gone from
// one moment to the next, once.
var crashPoints = map[string]func(w *world, die func()){
	"before the bank is called": func(w *world, die func()) {
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			if w.once(die) {
				return flow.Instructions{}, errDead
			}
			return call()
		})
	},
	"after the bank was called": func(w *world, die func()) {
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			ins, err := call()
			w.once(die)
			return ins, err
		})
	},
	"before a message is sent": func(w *world, die func()) {
		w.sending(func(checkout.Outgoing) error {
			if w.once(die) {
				return errDead
			}
			return nil
		})
	},
	"after a message was sent": func(w *world, die func()) {
		w.sending(func(checkout.Outgoing) error { w.once(die); return nil })
	},
	"after the bank answered a question": func(w *world, die func()) {
		w.rail.set(func(r *shakyRail) {
			r.onCheck = func(ctx context.Context, reference string) ([]flow.Notice, error) {
				notices, err := r.Rail.Check(ctx, reference)
				if len(notices) > 0 {
					w.once(die)
				}
				return notices, err
			}
		})
	},
	"before a webhook is posted": func(w *world, die func()) {
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			if w.once(die) {
				return flow.Verdict{Reason: "dead"}
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
	},
	"after a webhook was posted": func(w *world, die func()) {
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			w.once(die)
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
	},
}

// once dies unless this world died before.
func (w *world) once(die func()) bool {
	if w.died.Swap(true) {
		return false
	}
	die()
	return true
}

func TestAPaymentSurvivesACrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	for name, arm := range crashPoints {
		for alone, how := range map[bool]string{true: "restarted alone", false: "restarted beside others"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				each(t, func(w *world) {
					t := w.t
					w.endpoint("https://shop.test/hook")
					arm(w, w.crash)
					session := w.session(flow.InChat)
					w.surely(alone, func(message string) error { return w.hears("ada", message, code(session)) })
					w.surely(alone, func(message string) error { return w.hears("ada", message, method(flow.BankTransfer)) })
					w.pay(session.ID, 0, true) // the bank's notice is lost: it must be asked
					w.surely(alone, func(message string) error { return w.hears("ada", message, flow.Intent{Kind: flow.MeansPaid}) })
					if !w.died.Load() {
						t.Fatal("nothing crashed")
					}

					w.is(session.ID, flow.SessionPaid)
					w.balanced(session.ID, 500_000)
					if n := w.events(session.ID)[flow.ChargeSuccess]; n != 1 {
						t.Errorf("there are %d events of success", n)
					}
					if n := w.calls()["create_virtual_account"]; n != 1 {
						t.Errorf("the bank was asked to make %d accounts: %v", n, w.calls())
					}
					account := w.attempts(session.ID)[0].Instructions.AccountNumber
					want := []string{"summary", "transfer_how", account, "wait_menu", "checking", "receipt"}
					got := slices.DeleteFunc(w.texts("ada"), func(text string) bool { return text == "one_moment" }) // time passed
					if !slices.Equal(got, want) {
						t.Errorf("the payer read %q, not %q", got, want)
					}
					posts := w.deliveries(flow.ChargeSuccess)
					for _, d := range posts {
						if d.Event != posts[0].Event || string(d.Body) != string(posts[0].Body) {
							t.Errorf("one event was posted as two: %+v", posts)
						}
					}
					if len(posts) == 0 || len(posts) > 2 {
						t.Errorf("success was posted %d times", len(posts))
					}
				})
			})
		}
	}
}

// surely hands a message over until it is taken in, as WhatsApp does, and lets
// everything that follows be done, over a crash if there is one.
func (w *world) surely(alone bool, hear func(message string) error) {
	w.t.Helper()
	w.heard++
	message := "IN" + string(rune('A'+w.heard))
	for {
		err := hear(message)
		w.rest()
		select {
		case <-w.crashed:
			w.end()
			w.start(alone)
			if !alone {
				w.pass(time.Minute + time.Second) // what the dead one held is free again
			}
			w.rest()
			continue
		default:
		}
		w.must(err)
		return
	}
}

func TestAMerchantsCallThatWasCutOffIsTakenUpByTheNext(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.session(flow.Headless)
		w.rail.starting(func(_ context.Context, _ flow.Order, call func() (flow.Instructions, error)) (flow.Instructions, error) {
			ins, err := call()
			w.once(w.crash)
			return ins, err
		})
		ask := checkout.Ask{Method: flow.BankTransfer}
		if _, _, err := w.service.Instruct(t.Context(), project, session.ID, ask); flow.CodeOf(err) != flow.CodeStorage {
			t.Fatalf("a call whose answer could not be kept said %v", err)
		}
		w.end()
		w.start(false)
		_, attempt, err := w.service.Instruct(t.Context(), project, session.ID, ask)
		w.must(err)
		orders := w.rail.asked()
		if len(orders) != 2 || orders[0].Reference != orders[1].Reference || orders[0].Again || !orders[1].Again {
			t.Errorf("the bank was asked %+v", orders)
		}
		if calls := w.calls(); calls["create_virtual_account"] != 1 || attempt.Instructions == nil {
			t.Errorf("the bank made %v for %+v", calls, attempt)
		}
		w.later(2 * time.Minute) // the task that was kept for the crash finds it done
		if n := len(w.rail.asked()); n != 2 {
			t.Errorf("the bank was asked %d times in the end", n)
		}
	})
}

func TestWorkThatIsOwedBeforeTheServiceRunsIsDoneAtOnceWhenItDoes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.end()
		w.open(false) // beside others: nobody may free leases
		w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
		w.run()
		w.rest()
		if got := w.texts("ada"); !slices.Equal(got, []string{"need_code"}) {
			w.t.Errorf("the payer read %q", got)
		}
	})
}
