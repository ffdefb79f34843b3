package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// An endpoint that was stopped for days and is started again while its server
// still comes up has its first failures: what it missed is not dead for that.
func TestWhatWasHeldWhileAnEndpointWasDisabledIsNotDeadAtItsFirstFailures(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest()
		w.backlog(e, "a", 40)
		w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointDisabled})
		w.later(5 * 24 * time.Hour)
		if n := w.count("state = 'held'"); n != 40 || w.to(e.ID) != 0 {
			t.Fatalf("disabled, %d are held and %d were sent", n, w.to(e.ID))
		}
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled})
		open := func() bool { return !w.endpointIs(e.ID).OpenSince.IsZero() }
		for range 60 {
			w.later(30 * time.Second)
			if open() {
				break
			}
		}
		w.passes(10, 30*time.Minute) // and probes
		if n := w.count("state = 'dead'"); n != 0 || !open() {
			t.Errorf("%d are dead, held back: %t", n, open())
		}
		w.change("UPDATE endpoints SET failing_since = 9000000000000") // it is not disabled by us
		w.later(85 * time.Hour)                                        // the ninetieth
		if n := w.count("state = 'dead'"); n != 0 {
			t.Errorf("%d are dead within 91 hours", n)
		}
		w.later(2 * time.Hour)
		if n := w.count("state = 'dead'"); n != 40 {
			t.Errorf("%d are dead once they were held for as long as a schedule lasts", n)
		}
	})
}

// An endpoint that is held back and asks for more time is not probed before that is
// over.
func TestAnEndpointThatIsHeldBackIsProbedNoSoonerThanItAsks(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.heldBack()
		for probes := range 2 { // the second asks for the same
			tried := w.to(e.ID)
			w.passes(58, time.Minute)
			if n := w.to(e.ID) - tried; n != 0 {
				t.Errorf("after %d probes: %d more within the hour that it asked for", probes, n)
			}
			w.passes(3, time.Minute)
			if n := w.to(e.ID) - tried; n != 1 {
				t.Errorf("after %d probes: %d more once the hour was over", probes, n)
			}
		}
		if w.count("attempts = 2") != 1 {
			t.Error("a probe beside the schedule spent a try of it")
		}
	})
}

// What an endpoint that is gone is owed is held at once, also what waits for a later
// try: who starts it again without what was held is sent none of that.
func TestWhatWaitsForALaterTryIsHeldWithItsEndpoint(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}, e.ID))
		w.session(flow.Headless)
		w.rest()
		w.posting(failing(flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}, e.ID))
		w.session(flow.Headless)
		w.rest()
		if n := w.count("state = 'held'"); n != 2 {
			t.Errorf("%d deliveries are held", n)
		}
		w.posting(nil)
		tried := w.to(e.ID)
		w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled, DropHeld: true})
		w.passes(10, time.Hour)
		if n, cancelled := w.to(e.ID)-tried, w.count("state = 'cancelled'"); n != 0 || cancelled != 2 {
			t.Errorf("%d were sent and %d cancelled", n, cancelled)
		}
	})
}

// How an endpoint's last tries at its old address end does not slow what goes to the
// new one.
func TestWhatTheOldAddressSaysDoesNotSlowTheNewOne(t *testing.T) {
	t.Parallel()
	w := one(t)
	e := w.endpoint("https://old.test", flow.SessionCreated)
	old, all := make(chan bool), make(chan bool)
	var moved atomic.Int32
	w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
		if d.URL == e.URL {
			<-old
			return flow.Verdict{Status: http.StatusTooManyRequests, Reason: "status", RetryAfter: time.Hour}
		}
		moved.Add(1)
		<-all
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	w.session(flow.Headless)
	w.until("it to be under way", func() bool { return w.to(e.ID) == 1 })
	w.changed(e.ID, checkout.EndpointChange{URL: new("https://new.test")})
	close(old)
	w.until("it to be over", func() bool { return w.service.Deliveries().Sending == 0 })
	for range 8 {
		w.session(flow.Headless)
	}
	w.until("eight to be under way at once", func() bool { return moved.Load() == 8 })
	close(all)
}

// What waited in memory when its endpoint's secret was rotated is signed with both, from
// the moment in which the merchant is shown the new one.
func TestWhatWaitsIsSignedWithANewSecretAtOnce(t *testing.T) {
	t.Parallel()
	w := one(t)
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	release := w.stalled(e, 50)
	_, err := w.service.RotateSecret(t.Context(), e.ID, "whsec_new", call("", "", nil))
	w.must(err)
	close(release)
	w.rest()
	for i, d := range w.deliveries(flow.SessionCreated) {
		if n := len(d.Secrets); i >= 8 && n != 2 { // eight were under way
			t.Fatalf("the %dth is signed with %d secrets", i+1, n)
		}
	}
}

// What is held for too long is given up also where it is more than is done at once, and
// an endpoint that asked for more time is not probed for that any sooner.
func TestGivingUpWhatIsHeldProbesNobody(t *testing.T) {
	t.Parallel()
	w := one(t)
	e := w.heldBack()
	const held = 1100
	for range held {
		w.session(flow.Headless)
	}
	w.rest()
	long := fmt.Sprint((92 * time.Hour).Milliseconds())
	w.change("UPDATE deliveries SET created_at = created_at - " + long + " WHERE state = 'held'")
	w.change("UPDATE endpoints SET open_since = open_since - " + long)
	tried := w.to(e.ID)
	w.passes(62, time.Minute)
	if n := w.to(e.ID) - tried; n != 1 {
		t.Fatalf("it is probed %d times once its hour is over", n)
	}
	w.passes(50, time.Minute)
	if n := w.to(e.ID) - tried; n != 1 {
		t.Errorf("it is probed %d times more within the next hour", n-1)
	}
	w.until("all that is held for so long is given up", func() bool { return w.count("state = 'held'") == 0 })
	if n := w.count("state = 'dead'"); n < held {
		t.Errorf("%d of %d are given up", n, held)
	}
}

// A program that dies between two parts of what it gives up leaves the rest to the next
// probe of the endpoint, which comes no sooner for that; nothing is sent, and nothing
// stays held for good.
func TestGivingUpWhatIsHeldSurvivesACrashBetweenItsParts(t *testing.T) {
	t.Parallel()
	const (
		held = 1200
		part = 500
	)
	for _, parts := range []int{1, 2} {
		for alone, how := range map[bool]string{true: "restarted alone", false: "restarted beside others"} {
			t.Run(fmt.Sprintf("after %d, %s", parts, how), func(t *testing.T) {
				t.Parallel()
				storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
					t.Parallel()
					w := newWorld(t, c)
					w.heeds = &lastLine{of: "deliveries given up", after: parts, die: func() { w.once(w.crash) }}
					w.start(true)
					e := w.heldBack()
					w.backlog(e, "a", held)
					w.rest()
					long := fmt.Sprint((92 * time.Hour).Milliseconds())
					w.change("UPDATE deliveries SET created_at = created_at - " + long + " WHERE state = 'held' AND id LIKE 'dlv_a%'")
					w.change("UPDATE endpoints SET open_since = open_since - " + long)
					tried := w.to(e.ID)
					for range 62 {
						if w.died.Load() {
							break
						}
						w.later(time.Minute)
					}
					w.until("it died", w.died.Load)
					w.end()
					w.start(alone)
					if dead := w.count("state = 'dead'"); dead != parts*part {
						t.Fatalf("%d were given up when it died", dead)
					}
					w.passes(50, time.Minute)
					if n := w.to(e.ID) - tried; n != 1 {
						t.Errorf("within the hour that it asked for it is probed %d times more", n-1)
					}
					w.passes(15, time.Minute)
					w.until("the rest is given up", func() bool { return w.count("state = 'held' AND id LIKE 'dlv_a%'") == 0 })
					if n := w.count("state = 'dead' AND id LIKE 'dlv_a%'"); n < held-2 {
						t.Errorf("%d of %d are given up", n, held)
					}
					if n := w.to(e.ID) - tried; n != 2 {
						t.Errorf("with the probe that found the rest it was called %d times", n)
					}
				})
			})
		}
	}
}

// lastLine is a log that ends its program with a line that comes so often.
type lastLine struct {
	of    string
	after int
	die   func()
	mu    sync.Mutex
}

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if strings.Contains(string(p), l.of) {
		if l.after--; l.after == 0 {
			l.die()
		}
	}
	return len(p), nil
}

// An endpoint that answers what is on its way to it, each with another time that it asks
// for, is left alone for the longest of them, whether they are kept together or not.
func TestTheLongestThatAnEndpointAsksForCounts(t *testing.T) {
	t.Parallel()
	for how, apart := range map[string]bool{"one after another": true, "at once": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				e := w.endpoint("https://shop.test", flow.SessionCreated)
				const together = 8
				answers := make(chan time.Duration)
				w.posting(func(ctx context.Context, _ flow.Delivery) flow.Verdict {
					v := flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
					select {
					case v.RetryAfter = <-answers:
					case <-ctx.Done():
					}
					return v
				})
				for range together {
					w.session(flow.Headless)
				}
				w.until("eight to be under way", func() bool { return w.to(e.ID) == together })
				now := w.clock().UnixMilli()
				w.change(fmt.Sprintf("UPDATE endpoints SET failures = 19, failing_since = %d, failed_at = %d WHERE id = '%s'", now, now, e.ID))
				for i := range together {
					asks := time.Minute
					if i == together/2 {
						asks = 3 * time.Hour
					}
					select {
					case answers <- asks:
					case <-time.After(patience):
						t.Fatal("nobody waits for an answer")
					}
					if apart {
						w.until("it is kept", func() bool { return w.endpointIs(e.ID).Failures == 20+i })
					}
				}
				close(answers) // what comes later asks for nothing
				w.rest()
				if w.endpointIs(e.ID).OpenSince.IsZero() {
					t.Fatal("it is not held back")
				}
				w.passes(35, 5*time.Minute)
				if n := w.to(e.ID); n != together {
					t.Errorf("it is probed %d times within the three hours that it asked for", n-together)
				}
				w.later(6 * time.Minute)
				if n := w.to(e.ID); n != together+1 {
					t.Errorf("it is probed %d times once they are over", n-together)
				}
			})
		})
	}
}

// heldBack is an endpoint that is held back, and asks for an hour each time.
func (w *world) heldBack() flow.Endpoint {
	w.t.Helper()
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	w.posting(failing(flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status", RetryAfter: time.Hour}, e.ID))
	w.session(flow.Headless)
	w.rest()
	w.change("UPDATE endpoints SET failures = 19 WHERE id = '" + string(e.ID) + "'")
	w.later(time.Minute)
	if w.endpointIs(e.ID).OpenSince.IsZero() {
		w.t.Fatal("it is not held back")
	}
	return e
}
