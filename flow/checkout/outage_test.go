package checkout_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// stalled makes events for an endpoint that takes none before release is closed, and
// waits until as many are on their way as may be at once.
func (w *world) stalled(e flow.Endpoint, events int) (release chan bool) {
	w.t.Helper()
	release = make(chan bool)
	w.posting(func(context.Context, flow.Delivery) flow.Verdict {
		<-release
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	for range events {
		w.session(flow.Headless)
	}
	w.until("eight to be under way", func() bool { return w.to(e.ID) == 8 })
	return release
}

// faraway is a world whose store is reached by a line that can be cut, which may be
// silent for so long, with an endpoint.
func faraway(t *testing.T, within time.Duration) (*world, *storetest.Line, flow.Endpoint) {
	t.Helper()
	place, line := storetest.Through(t, storetest.Postgres(t, store.Checkout))
	place.Within = within
	w := newWorld(t, place)
	w.start(true)
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	w.rest()
	return w, line, e
}

// A store that is away refuses. A database whose host is gone says nothing any more,
// not even that it is gone: that holds deliveries up until it speaks.
func TestWhatTheStoreDoesNotKeepIsKeptOnceItDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		within time.Duration
		away   func(*storetest.Line)
		seen   func(*world) bool
	}{
		"refuses":   {0, (*storetest.Line).Cut, func(*world) bool { return true }},
		"is silent": {2 * time.Second, (*storetest.Line).Hush, func(w *world) bool { return w.logged("look for work") >= 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, line, e := faraway(t, c.within)
			const events = 30
			release := w.stalled(e, events)
			c.away(line)
			close(release)
			w.until("the store to have kept nothing twice", func() bool { return w.service.Deliveries().StoreRefusals >= 2 && c.seen(w) })
			if idle, err := w.service.Idle(t.Context()); err == nil && idle {
				t.Error("it rests, and nothing of what was sent is kept")
			}
			line.Mend()
			w.until("all to be kept", func() bool { return w.service.Deliveries().NotYetKept == 0 && w.service.Deliveries().Queued == 0 })
			w.rest()
			if n := w.count("state = 'delivered'"); n != events || w.to(e.ID) != events {
				t.Errorf("%d posts, %d of %d are kept", w.to(e.ID), n, events)
			}
		})
	}
}

// A store that is away for a night is told of once, and once that it is back.
func TestThatVerificationsAreNotTidiedIsSaidOnce(t *testing.T) {
	t.Parallel()
	w, line, _ := faraway(t, 0)
	v, err := checkout.NewVerifications(w.service, "a pepper of sixteen")
	w.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx) }()
	number, _ := flow.ReadIdentityNumber("22222222221")
	var made checkout.Made
	_, err = v.Begin(ctx, checkout.NewVerification{Key: "key_1", Type: flow.BVN, Number: number, FirstName: "Ada", LastName: "Obi", Purpose: "Account opening"}, call("", "", &made))
	w.must(err) // so it runs
	line.Cut()
	w.until("it to be told", func() bool { return w.logged("the verifications are not tidied") > 0 })
	asked := w.service.Looks()
	w.until("it to be asked for longer than between two looks", func() bool { return w.service.Looks() >= asked+5 }) // 3 s at least
	line.Mend()
	w.until("the end of it to be told", func() bool { return w.logged("the verifications are tidied again") > 0 })
	cancel()
	w.must(<-ended)
	if n := w.logged("verifications are"); n != 2 {
		t.Errorf("%d lines:\n%s", n, w.logs.String())
	}
}

// What can never be kept of one delivery keeps nobody else's from being kept.
func TestADeliveryThatIsGoneKeepsNoOtherFromBeingKept(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest()
		const events = 30
		release := w.stalled(e, events)
		w.mu.Lock()
		gone := w.posted[3].ID
		w.mu.Unlock()
		w.change("DELETE FROM deliveries WHERE id = '" + gone + "'")
		close(release)
		w.until("the others to be kept", func() bool { return w.count("state = 'delivered'") == events-1 })
		w.until("that one to be given up", func() bool { return w.service.Deliveries().NotYetKept == 0 })
		if n := w.logged("msg=\"what became of a delivery is given up\""); n != 1 || w.logged("given up\" delivery="+gone+" ") != 1 {
			t.Errorf("%d were given up", n)
		}
		w.session(flow.Headless)
		w.until("the next one to be kept", func() bool { return w.count("state = 'delivered'") == events })
		w.rest()
		if w.to(e.ID) != events+1 {
			t.Errorf("%d posts of %d", w.to(e.ID), events+1)
		}
	})
}

func TestWhatIsUnderWayWhenTheProgramEndsMayComeToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.end()
		w.drain = 2 * await.Patience
		w.start(true)
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest()
		release := make(chan bool)
		w.posting(func(ctx context.Context, _ flow.Delivery) flow.Verdict {
			select {
			case <-release:
				return flow.Verdict{OK: true, Status: http.StatusOK}
			case <-ctx.Done():
				return flow.Verdict{Reason: "stopped"}
			}
		})
		for range 20 {
			w.session(flow.Headless)
		}
		w.until("eight to be under way", func() bool { return w.to(e.ID) == 8 })
		ended, service := make(chan bool), w.service
		go func() {
			w.end()
			close(ended)
		}()
		w.until("the program to be ending", service.Ending)
		close(release)
		<-ended
		if n := w.to(e.ID); n != 8 {
			t.Errorf("%d posts were begun once the program was ending", n-8)
		}
		w.posting(nil)
		w.start(false) // nobody needs to wait for a lease
		w.rest()
		if n := w.count("state = 'delivered'"); n != 20 || w.to(e.ID) != 20 {
			t.Errorf("%d posts, %d delivered", w.to(e.ID), n)
		}
	})
}

func TestADeliveryComesWhereverItWasWhenTheProgramDied(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest()
		var n atomic.Int32
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			if n.Add(1) == 3 { // the third of a burst dies in the air
				w.once(w.crash)
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		for range 3 {
			w.session(flow.Headless)
		}
		w.until("the crash", w.died.Load)
		w.end()
		w.posting(nil)
		w.start(true)
		w.rest()
		if n := w.count("state = 'delivered'"); n != 3 {
			t.Errorf("%d of 3 were delivered", n)
		}
		if n := w.to(e.ID); n > 6 {
			t.Errorf("%d posts of 3", n)
		}
	})
}

func TestAClockThatGoesBackLosesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.rest()
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		w.session(flow.Headless)
		w.rest()
		w.posting(nil)
		w.pass(-time.Hour)
		w.session(flow.Headless)
		w.rest()
		if n := w.to(e.ID); n != 2 {
			t.Errorf("an hour back: %d posts", n)
		}
		w.later(time.Hour + time.Minute)
		if n := w.count("state = 'delivered'"); n != 2 || w.to(e.ID) != 3 {
			t.Errorf("%d delivered, by %d posts", n, w.to(e.ID))
		}
	})
}
