package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// paced is an endpoint that is sent so many a second at most.
func (w *world) paced(url string, perSecond int) flow.Endpoint {
	w.t.Helper()
	var made checkout.Made
	e := flow.Endpoint{URL: url, Events: []flow.EventKind{flow.SessionCreated}, MaxPerSecond: perSecond, Secrets: []string{"whsec_x"}}
	_, err := w.service.AddEndpoint(w.t.Context(), e, call("", "", &made))
	w.must(err)
	return made.Endpoint
}

// pace changes how many a second an endpoint is sent.
func (w *world) pace(e flow.Endpoint, perSecond int) {
	w.t.Helper()
	_, err := w.service.ChangeEndpoint(w.t.Context(), project, e.ID, checkout.EndpointChange{PerSecond: &perSecond})
	w.must(err)
}

// got waits until an endpoint was sent so many, and sees that it was sent no more when
// the service has kept that.
func (w *world) got(e flow.Endpoint, n int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s to be sent %d", e.URL, n), func() bool { return w.to(e.ID) >= n && w.service.Deliveries().NotYetKept == 0 })
	if got := w.to(e.ID); got != n {
		w.t.Fatalf("%s was sent %d, not %d", e.URL, got, n)
	}
}

func TestAnEndpointIsSentNoMoreASecondThanItsMerchantWants(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		slow, well := w.paced("https://slow.test", 2), w.endpoint("https://well.test", flow.SessionCreated)
		for range 6 {
			w.session(flow.Headless)
		}
		w.got(well, 6)
		w.got(slow, 1)
		w.pass(499 * time.Millisecond)
		w.session(flow.Headless) // whose event is sent to the other one after the pass was heard of
		w.got(well, 7)
		w.got(slow, 1)
		w.pass(time.Millisecond)
		w.got(slow, 2)
		// What somebody waits for does not, and takes no turn of another's.
		_, err := w.service.Ping(w.t.Context(), slow.ID, call("", "", nil))
		w.must(err)
		w.got(slow, 3)
		for i := range 2 {
			w.pass(500 * time.Millisecond)
			w.got(slow, 4+i)
		}
		// An hour without anything saves nothing up.
		w.pass(time.Hour)
		w.got(slow, 6)
		w.until("the rest is in memory", func() bool { return w.service.Deliveries().Queued == 2 }) // what is claimed meanwhile keeps to the pace of then
		w.pace(slow, 0)
		w.got(slow, 8)
		w.rest()
	})
}

// What is left of a slow endpoint's in memory is given back when it ends, and goes on
// at its pace after the next start.
func TestAPaceOutlivesARestart(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		slow := w.paced("https://slow.test", 1)
		for range 40 { // many times what it has in memory
			w.session(flow.Headless)
		}
		w.got(slow, 1)
		w.end()
		w.start(true)
		for n := 2; n <= 41; n++ {
			if n > 2 {
				w.pass(time.Second)
			}
			w.got(slow, min(n, 40))
		}
		w.rest()
	})
}

// However much is owed to endpoints that want it slowly, it waits where it takes no place
// of what others are owed.
func TestNobodyWaitsBehindWhatOthersWantSlowly(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.end()
	w.open(true)
	const projects, each, owed = 3, 6, 520 // more than may wait in memory
	for i := range projects * each {
		var made checkout.Made
		c := call("", "", &made)
		c.Project = flow.ProjectID(fmt.Sprintf("wsp_prj_slow%d", i/each))
		e := flow.Endpoint{URL: "https://slow.test", Events: []flow.EventKind{flow.SessionCreated}, MaxPerSecond: flow.MostPerSecond, Secrets: []string{"whsec_x"}}
		_, err := w.service.AddEndpoint(t.Context(), e, c)
		w.must(err)
		w.backlog(made.Endpoint, fmt.Sprintf("s%d", i), owed)
	}
	quiet, opens := w.elsewhere("https://quiet.test")
	w.run()
	for n := range 50 { // by then as much is taken as will be, for no time passes
		w.service.Wake()
		opens()
		w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) > n })
	}
}
