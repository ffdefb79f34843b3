package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
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
