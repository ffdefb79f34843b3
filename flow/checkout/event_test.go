package checkout_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
)

// An event is made of what its transaction knew. It must say what whoever asks for
// the charge right after reads, to the byte: of money that fits, that comes in
// parts, that is too much, late, or comes again.
func TestAnEventSaysOfAChargeWhatIsReadRightAfterIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for name, c := range map[string]struct {
			amounts []flow.Kobo // of each payment; the session asks for 500,000
			wait    time.Duration
			policy  func(*flow.Policy)
			last    flow.EventKind
		}{
			"fits":  {amounts: []flow.Kobo{500_000}, last: flow.ChargeSuccess},
			"parts": {amounts: []flow.Kobo{100_000, 150_000, 250_000}, last: flow.ChargeSuccess},
			"more":  {amounts: []flow.Kobo{500_001}, last: flow.ChargeSuccess},
			"part":  {amounts: []flow.Kobo{499_999}, last: flow.ChargeUnderpaid},
			"late":  {amounts: []flow.Kobo{500_000}, wait: 25 * time.Hour, last: flow.ChargeLate},
			"again": {amounts: []flow.Kobo{500_000, 500_000}, last: flow.ChargeDuplicate},

			"part goes back": {amounts: []flow.Kobo{100_000}, policy: func(p *flow.Policy) { p.Underpayment = "refund" }, last: flow.ChargeUnderpaid},
			"more goes back": {amounts: []flow.Kobo{600_000}, policy: func(p *flow.Policy) { p.Overpayment = "refund_excess" }, last: flow.ChargeSuccess},
			"late goes back": {amounts: []flow.Kobo{500_000}, wait: 25 * time.Hour, policy: func(p *flow.Policy) { p.LatePayment = "refund" }, last: flow.ChargeLate},
		} {
			if c.policy == nil {
				c.policy = func(*flow.Policy) {}
			}
			w.pass(time.Minute) // or one payer would write more in a minute than is answered
			session := w.payingUnder(c.policy)
			a := w.attempts(session.ID)[0]
			if c.wait > 0 {
				w.pass(c.wait)
				await.Until(t, "the session has ended", func() bool { return w.read(session.ID).Status == flow.SessionExpired })
			}
			for i, amount := range c.amounts {
				w.must(w.tell(credit(name+string(rune('a'+i)), a.Reference, amount, w.clock().Add(-1234567*time.Nanosecond))))
			}
			events, err := w.db.Events(t.Context(), session.ID)
			w.must(err)
			events = slices.DeleteFunc(events, func(e flow.Event) bool { return strings.HasPrefix(string(e.Kind), "refund.") })
			if len(events) == 0 || events[len(events)-1].Kind != c.last {
				t.Fatalf("%s: the events are %v", name, w.events(session.ID))
			}
			var event struct{ Data map[string]any }
			w.must(json.Unmarshal(events[len(events)-1].Body, &event))
			payments, err := w.db.Payments(t.Context(), session.ID)
			w.must(err)
			text, err := json.Marshal(w.service.RecordCharge(checkout.View{Session: w.read(session.ID), Attempts: w.attempts(session.ID), Payments: payments}))
			w.must(err)
			var charge map[string]any
			w.must(json.Unmarshal(text, &charge))
			for field, want := range charge {
				is, there := event.Data[field]
				got, err := json.Marshal(is)
				w.must(err)
				if expected, _ := json.Marshal(want); (!there || string(got) != string(expected)) && field != "reference" && want != "" {
					t.Errorf("%s: the event says that %s is %s, who reads the charge is told %s", name, field, got, expected)
				}
			}
		}
	})
}

// What is only sent on request is kept for as long as an endpoint asks for it, also
// while nothing is sent there: a replay brings it once there is.
func TestWhatAStoppedEndpointAskedForIsKeptUntilItIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for name, stop := range map[string]func(flow.Endpoint){
			"requested": func(e flow.Endpoint) { w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointDisabled}) },
			"gone": func(flow.Endpoint) {
				w.posting(func(context.Context, flow.Delivery) flow.Verdict {
					return flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}
				})
				w.session(flow.Headless)
				w.rest()
				w.posting(nil)
			},
		} {
			e := w.endpoint("https://"+name+".test", flow.SessionCreated)
			stop(e)
			if is := w.endpointIs(e.ID); is.DisabledReason != name {
				t.Fatalf("%s: it is %s for %q", name, is.Status, is.DisabledReason)
			}
			w.pass(time.Second)
			before := w.to(e.ID)
			missed := w.session(flow.Headless)
			w.rest()
			if n := w.events(missed.ID)[flow.SessionCreated]; n != 1 || w.to(e.ID) != before {
				t.Errorf("%s: %d events were kept, and %d sent", name, n, w.to(e.ID)-before)
			}
			w.changed(e.ID, checkout.EndpointChange{Status: flow.EndpointEnabled})
			w.rest()
			if n := w.to(e.ID) - before; name == "requested" && n != 0 {
				t.Errorf("%s: %d were queued for it meanwhile", name, n)
			}
			before = w.to(e.ID)
			var made checkout.Made
			_, err := w.service.Replay(t.Context(), checkout.Replay{Endpoint: e.ID, From: w.clock(), To: w.clock().Add(time.Second)}, call("", "", &made))
			w.must(err)
			w.rest()
			if made.Replay.Count != 1 || w.to(e.ID) != before+1 {
				t.Errorf("%s: a replay queued %d, and %d were sent", name, made.Replay.Count, w.to(e.ID)-before)
			}
			w.must(w.service.RemoveEndpoint(t.Context(), project, e.ID))
		}
		if n := w.events(w.session(flow.Headless).ID)[flow.SessionCreated]; n != 0 {
			t.Errorf("%d events were kept for nobody", n)
		}
	})
}
