package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"till/flow"
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
	var hangs atomic.Int32
	release := make(chan bool)
	w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
		if d.Endpoint != quiet.ID {
			hangs.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	for range 40 {
		w.session(flow.Headless)
	}
	w.until("a quarter of the places to be taken", func() bool { return hangs.Load() >= 128 })
	opens()
	w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) == 1 })
	w.until("one project to take a quarter of the places, and the other none any more", func() bool { return w.service.Deliveries().Sending == 128 })
	close(release)
	w.rest()
	if n := w.count("state = 'delivered'"); n != all*64+1 {
		t.Errorf("%d are delivered", n)
	}
}
