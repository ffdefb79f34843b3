package checkout_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// Calls for the same stretch of time, made at once, queue each event of it once, and
// say among them how many those are: of what was never sent there, and of what was.
func TestReplaysThatAreMadeAtOnceQueueNothingTwice(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		const events, calls = 450, 6 // in more than two parts
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			ids := flow.IDs{Now: w.clock, Rand: w.rand}
			for range events {
				id, err := ids.New(flow.PrefixEvent)
				if err != nil {
					return err
				}
				e := flow.Event{ID: flow.EventID(id), Kind: flow.EndpointDisabledKind, Project: project, CreatedAt: w.clock()}
				if e.Body, err = flow.ComposeEvent(e, "", nil, false); err != nil {
					return err
				}
				if err := tx.AddEvent(t.Context(), e); err != nil {
					return err
				}
			}
			return nil
		}))
		e := w.endpoint("https://shop.test", flow.EndpointDisabledKind)
		for _, was := range []string{"never sent", "delivered"} {
			release, before := make(chan bool), w.to(e.ID)
			w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
				if len(d.Body) == 0 {
					t.Errorf("%s: %s is sent with nothing in it", was, d.Event)
				}
				hangs(ctx, release)
				return flow.Verdict{OK: true, Status: http.StatusOK}
			})
			counts := make([]int, calls)
			var done sync.WaitGroup
			for i := range calls {
				done.Go(func() { counts[i] = w.replays(e.ID, "") })
			}
			done.Wait()
			close(release)
			w.rest()
			total := 0
			for _, n := range counts {
				total += n
			}
			if sent := w.to(e.ID) - before; total != events || sent != events {
				t.Errorf("%s: %d events were queued by calls that said %v, and %d were sent", was, events, counts, sent)
			}
		}
	})
}

// A call that is made again under its key queues nothing, and is answered as it was.
func TestAReplayThatIsMadeAgainUnderItsKeySaysWhatItSaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.session(flow.Headless)
		w.rest()
		for range 2 {
			if n := w.replays(e.ID, "k"); n != 1 {
				t.Errorf("it says that it queued %d", n)
			}
			w.rest()
		}
		if n := w.to(e.ID); n != 2 {
			t.Errorf("it was sent %d times", n)
		}
	})
}

// Who asks for an event while it is being sent gets one try more, and takes none from
// its schedule nor adds one, whichever of the two is answered first.
func TestAnEventThatIsAskedForWhileItIsSentKeepsItsSchedule(t *testing.T) {
	t.Parallel()
	for _, handFirst := range []bool{false, true} {
		t.Run(map[bool]string{false: "the schedule's first", true: "asked for first"}[handFirst], func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				e := w.endpoint("https://shop.test", flow.SessionCreated)
				answers := map[bool]chan bool{false: make(chan bool), true: make(chan bool)} // to what is asked for, and not
				tries := map[bool]*atomic.Int32{false: {}, true: {}}
				w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
					tries[d.ByHand()].Add(1)
					hangs(ctx, answers[d.ByHand()])
					return flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status"}
				})
				session := w.session(flow.Headless)
				w.until("it to be sent", func() bool { return w.to(e.ID) == 1 })
				events, err := w.db.Events(t.Context(), session.ID)
				w.must(err)
				_, err = w.service.Resend(t.Context(), events[0].ID, e.ID, call("", "", nil))
				w.must(err)
				w.until("it to be sent by hand too", func() bool { return w.to(e.ID) == 2 })
				close(answers[handFirst])
				w.until("the first answer to be kept", func() bool {
					kept, err := w.db.Tries(t.Context(), session.ID, 10)
					w.must(err)
					return len(kept) == 1
				})
				close(answers[!handFirst])
				w.rest()
				w.passes(12, retries)
				if auto, hand := tries[false].Load(), tries[true].Load(); auto != 10 || hand != 1 || w.count("state = 'dead'") != 1 {
					t.Errorf("%d tries of its schedule and %d by hand, and %d are dead", auto, hand, w.count("state = 'dead'"))
				}
			})
		})
	}
}

// An endpoint that asks for time when an event is sent to it by hand gets that time: the
// schedule, which goes on, does not try the event any sooner.
func TestWhoAsksForTimeOfATryByHandGetsIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			v := flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status"}
			if d.ByHand() {
				v.RetryAfter = time.Hour
			}
			return v
		})
		session := w.session(flow.Headless)
		w.rest()
		events, err := w.db.Events(t.Context(), session.ID)
		w.must(err)
		_, err = w.service.Resend(t.Context(), events[0].ID, e.ID, call("", "", nil))
		w.must(err)
		w.rest()
		for _, step := range []struct {
			pass time.Duration
			want int
		}{{30 * time.Minute, 2}, {31 * time.Minute, 3}} {
			w.later(step.pass)
			if got := w.to(e.ID); got != step.want {
				t.Errorf("%v later it was tried %d times, want %d", step.pass, got, step.want)
			}
		}
	})
}

// An event that is sent again goes to whom it was owed and to who asks for its kind by
// now, and to nobody else.
func TestAnEventIsSentAgainToWhomItConcerns(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		was := w.endpoint("https://was.test", flow.SessionCreated)
		session := w.session(flow.Headless)
		w.rest()
		w.changed(was.ID, checkout.EndpointChange{Events: &[]flow.EventKind{flow.ChargeSuccess}})
		asks, other := w.endpoint("https://asks.test", flow.SessionCreated), w.endpoint("https://other.test", flow.ChargeSuccess)
		off := w.endpoint("https://off.test", flow.SessionCreated)
		w.changed(off.ID, checkout.EndpointChange{Status: flow.EndpointDisabled})
		events, err := w.db.Events(t.Context(), session.ID)
		w.must(err)
		_, err = w.service.Resend(t.Context(), events[0].ID, "", call("", "", nil))
		w.must(err)
		w.rest()
		for id, want := range map[flow.EndpointID]int{was.ID: 2, asks.ID: 1, other.ID: 0, off.ID: 0} {
			if n := w.to(id); n != want {
				t.Errorf("%s was sent it %d times, not %d", w.endpointIs(id).URL, n, want)
			}
		}
	})
}

// replays replays the last hour to an endpoint, and is what the call says that it
// queued.
func (w *world) replays(to flow.EndpointID, key string) (count int) {
	r := checkout.Replay{Endpoint: to, From: w.clock().Add(-time.Hour), To: w.clock().Add(time.Second)}
	a, err := w.service.Replay(w.t.Context(), r, checkout.Call{Project: project, Key: key, Render: func(m checkout.Made) (int, []byte, error) {
		body, err := json.Marshal(m.Replay.Count)
		return http.StatusOK, body, err
	}})
	if err == nil {
		err = json.Unmarshal(a.Body, &count)
	}
	if err != nil {
		w.t.Error(err)
	}
	return count
}
