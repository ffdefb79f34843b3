package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// What is held for an endpoint goes where its merchant says, all of it, also where
// that is more than one transaction does.
func TestAllThatIsHeldGoesWhereItsMerchantSays(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		const many = 700
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		holds := func(name string) {
			t.Helper()
			w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointDisabled})
			w.backlog(e, name, many)
			w.until("all of it to be held", func() bool { w.service.Wake(); return w.count("state = 'held'") == many })
			w.change("UPDATE deliveries SET next_at = next_at + 864000000 WHERE state = 'held'") // the next try is in ten days
		}
		holds("a")
		w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled})
		w.until("all of it to be sent", func() bool { w.pass(time.Second); return w.count("state = 'delivered'") == many })
		holds("b")
		w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled, DropHeld: true})
		w.rest()
		if n := w.count("state = 'cancelled'"); n != many {
			t.Errorf("%d of %d are cancelled", n, many)
		}
		holds("c")
		w.must(w.service.RemoveEndpoint(t.Context(), project, e.ID))
		w.rest()
		if n := w.count("state = 'cancelled'"); n != 2*many {
			t.Errorf("with the endpoint %d of %d are cancelled", n-many, many)
		}
		if n := w.to(e.ID); n != many {
			t.Errorf("it was sent %d, of which %d were to be dropped", n, n-many)
		}
	})
}
