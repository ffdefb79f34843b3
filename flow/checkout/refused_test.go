package checkout_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
)

func TestAnEndpointThatRefusesIsNotHeldBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			if d.Attempts == 0 {
				return flow.Verdict{Status: http.StatusBadRequest, Reason: "status"}
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.oneByOne(25)
		is := w.endpointIs(e.ID)
		if !is.OpenSince.IsZero() || is.FailingSince.IsZero() || w.to(e.ID) != 25 {
			t.Errorf("after %d refusals it is %+v", w.to(e.ID), is)
		}
		w.later(time.Minute)
		is = w.endpointIs(e.ID)
		if !is.FailingSince.IsZero() || w.count("state = 'delivered'") != 25 {
			t.Errorf("it took everything, and is %+v", is)
		}
	})
}

func TestAnEndpointThatOnlyRefusesForFiveDaysIsDisabled(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: http.StatusNotFound, Reason: "status"}, e.ID))
		for range 6 {
			w.session(flow.Headless)
			w.rest()
			w.later(24 * time.Hour)
		}
		is := w.endpointIs(e.ID)
		if is.Status != flow.EndpointDisabled || is.DisabledReason != flow.DisabledFailing {
			t.Errorf("it is %+v", is)
		}
	})
}

// A probe that is refused says that the endpoint is there again: what else is held
// for it waits no longer.
func TestAProbeThatIsRefusedLetsTheOthersGo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		var back, probed atomic.Bool
		w.posting(func(_ context.Context, _ flow.Delivery) flow.Verdict {
			switch {
			case !back.Load():
				return flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
			case probed.CompareAndSwap(false, true):
				return flow.Verdict{Status: http.StatusUnprocessableEntity, Reason: "status"}
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.oneByOne(25)
		if n := w.to(e.ID); n != 20 {
			t.Fatalf("tried %d times before it is held back", n)
		}
		back.Store(true)
		w.later(5 * time.Second) // the probe
		w.rest()
		is := w.endpointIs(e.ID)
		if !is.OpenSince.IsZero() || w.count("state = 'held'") != 0 || w.count("state = 'delivered'") != 4 {
			t.Errorf("%d are delivered and %d held; it is %+v", w.count("state = 'delivered'"), w.count("state = 'held'"), is)
		}
		w.passes(2, time.Minute)
		if n := w.count("state = 'delivered'"); n != 25 {
			t.Errorf("%d of 25 are delivered", n)
		}
	})
}

// What comes while an endpoint is held back is tried before what it failed.
func TestWhatIsNewIsProbedBeforeWhatFailed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(failing(flow.Verdict{Status: 500, Reason: "status"}, e.ID))
		w.oneByOne(20)
		w.session(flow.Headless)
		w.rest()
		w.later(5 * time.Second)
		posts := w.deliveries(flow.SessionCreated)
		if len(posts) != 21 || !posts[20].Probe || posts[20].Attempts != 0 {
			t.Fatalf("%d posts, and the probe is not of what is new", len(posts))
		}
		if n := w.count("state = 'held' AND attempts = 1"); n != 21 {
			t.Errorf("%d of 21 were tried once, and are held", n)
		}
		w.later(30 * time.Second)
		if n := w.count("state = 'held' AND attempts = 1"); n != 21 || w.to(e.ID) != 22 {
			t.Errorf("a second try by a probe is one of the schedule: %d of 21 were tried once", n)
		}
	})
}
