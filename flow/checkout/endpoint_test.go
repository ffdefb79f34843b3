package checkout_test

import (
	"context"
	"net/http"
	"reflect"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// Whatever is done to an endpoint, or becomes of it, is done to no other one.
func TestWhatIsDoneToAnEndpointIsDoneToNoOther(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		e := w.endpoint("https://shop.test", flow.SessionCreated)
		other := w.endpoint("https://other.test", flow.SessionCancelKind)
		off := w.endpoint("https://off.test", flow.SessionCreated)
		w.changed(off.ID, checkout.EndpointChange{Status: flow.EndpointDisabled})
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			return flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
		})
		_, err := w.service.Cancel(t.Context(), w.session(flow.Headless).ID, call("", "", nil))
		w.must(err)
		w.rest()
		w.posting(nil)
		failing, disabled := w.endpointIs(other.ID), w.endpointIs(off.ID)
		if failing.Failures != 1 {
			t.Fatalf("it is %+v", failing)
		}
		answers := func(v flow.Verdict) func() {
			return func() {
				w.posting(func(context.Context, flow.Delivery) flow.Verdict { return v })
				w.session(flow.Headless)
				w.rest()
			}
		}
		change := func(c checkout.EndpointChange) func() { return func() { w.changed(e.ID, c) } }
		for _, step := range []struct {
			what string
			do   func()
			want func(flow.Endpoint) bool
		}{
			{"failed", answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}), func(is flow.Endpoint) bool { return is.Failures == 2 }},
			{"moved", change(checkout.EndpointChange{URL: new("https://new.test")}), func(is flow.Endpoint) bool { return is.URL == "https://new.test" && is.Failures == 0 }},
			{"described", change(checkout.EndpointChange{Description: new("orders")}), func(is flow.Endpoint) bool { return is.Description == "orders" && is.URL == "https://new.test" }},
			{"told of more", change(checkout.EndpointChange{Events: &[]flow.EventKind{flow.SessionCreated, flow.ChargeSuccess}}), func(is flow.Endpoint) bool { return len(is.Events) == 2 && is.Description == "orders" }},
			{"given another secret", func() {
				var made checkout.Made
				_, err := w.service.RotateSecret(t.Context(), e.ID, "whsec_y", call("", "", &made))
				w.must(err)
			}, func(is flow.Endpoint) bool { return is.Secrets[0] == "whsec_y" && len(is.Secrets) == 2 }},
			{"disabled", change(checkout.EndpointChange{Status: flow.EndpointDisabled}), func(is flow.Endpoint) bool { return is.Status == flow.EndpointDisabled }},
			{"enabled", change(checkout.EndpointChange{Status: flow.EndpointEnabled}), func(is flow.Endpoint) bool { return is.Status == flow.EndpointEnabled }},
			{"gone", answers(flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}), func(is flow.Endpoint) bool { return is.DisabledReason == flow.DisabledGone }},
			{"taken away", func() { w.must(w.service.RemoveEndpoint(t.Context(), project, e.ID)) }, func(is flow.Endpoint) bool { return !is.DeletedAt.IsZero() }},
		} {
			w.later(time.Second)
			step.do()
			if is := w.endpointIs(e.ID); !step.want(is) {
				t.Errorf("%s, it is %+v", step.what, is)
			}
			for _, was := range []flow.Endpoint{failing, disabled} {
				if is := w.endpointIs(was.ID); !reflect.DeepEqual(is, was) {
					t.Errorf("the first was %s, and another was %+v and is %+v", step.what, was, is)
				}
			}
		}
	})
}
