package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// However many endpoints of one project hang, others find a place at once.
func TestOneProjectDoesNotTakeAllPlaces(t *testing.T) {
	t.Parallel()
	w := one(t)
	const all = 16
	for i := range all {
		w.endpoint(fmt.Sprintf("https://slow%d.test", i), flow.SessionCreated)
	}
	quiet, opens := w.elsewhere("https://quiet.test")
	w.oneByOne(24) // all is well: each has as many places as one may have
	var hung atomic.Int32
	release := make(chan bool)
	w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
		if d.Endpoint != quiet.ID {
			hung.Add(1)
			hangs(ctx, release)
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	for range 40 {
		w.session(flow.Headless)
	}
	w.until("a quarter of the places to be taken", func() bool { return hung.Load() >= 128 })
	opens()
	w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) == 1 })
	w.until("one project to take a quarter of the places, and the other none any more", func() bool { return w.service.Deliveries().Sending == 128 })
	close(release)
	w.rest()
	if n := w.count("state = 'delivered'"); n != all*64+1 {
		t.Errorf("%d are delivered", n)
	}
}

// However many merchants' servers do not answer, together they take a quarter of the
// places, and who is well finds one at once.
func TestThoseThatFailTakeAQuarterOfThePlacesTogether(t *testing.T) {
	t.Parallel()
	w := one(t)
	const all = 140
	var shops []checkout.Call // of twenty servers each, which are told of each session
	for i := range all {
		if i%20 == 0 {
			shop := call("", "", nil)
			shop.Project = flow.ProjectID(fmt.Sprintf("wsp_prj_sick%d", i))
			shops = append(shops, shop)
		}
		_, err := w.service.AddEndpoint(t.Context(), flow.Endpoint{URL: fmt.Sprintf("https://sick%d.test", i), Events: []flow.EventKind{flow.SessionCreated}, Secrets: []string{"whsec_y"}}, shops[len(shops)-1])
		w.must(err)
	}
	well, opensWell := w.elsewhere("https://well.test")
	w.posting(func(context.Context, flow.Delivery) flow.Verdict {
		return flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
	})
	for _, shop := range shops {
		_, err := w.service.Open(t.Context(), newSession(flow.Headless), shop)
		w.must(err)
	}
	w.rest()
	release := make(chan bool)
	w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
		if d.Endpoint != well.ID {
			hangs(ctx, release)
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	w.pass(time.Minute)
	w.until("a quarter of the places to be taken, and the others to wait", func() bool {
		d := w.service.Deliveries()
		return d.Sending == 128 && d.Queued == all-128
	})
	opensWell()
	w.until("who is well to be told", func() bool { return w.to(well.ID) == 1 })
	close(release)
	w.rest()
	if n := w.count("state = 'delivered'"); n != all+1 {
		t.Errorf("%d are delivered", n)
	}
}
