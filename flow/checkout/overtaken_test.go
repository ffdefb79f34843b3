package checkout_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// The lease of a post under way is over by the clock, and its delivery is claimed in
// the same commit that keeps that it was taken. It is not posted again.
func TestWhatIsTakenWhileItIsClaimedIsNotPostedAgain(t *testing.T) {
	t.Parallel()
	w := one(t) // where commits that wait are made as one
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	for range 10 { // which of the two hears of the commit first is luck
		began, over := make(chan struct{}), make(chan struct{})
		var first sync.Once
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			first.Do(func() { close(began) })
			<-over
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.session(flow.Headless)
		<-began
		held, free, wrote := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			wrote <- w.db.Update(t.Context(), func(*store.Tx) error {
				close(held)
				<-free
				return nil
			})
		}()
		<-held
		w.pass(2 * time.Minute)
		w.until("the claim to wait", func() bool { return w.db.UnderWay() == 2 })
		close(over)
		w.until("what came of the post to wait", func() bool { return w.db.UnderWay() == 3 })
		close(free)
		w.must(<-wrote)
		w.rest()
	}
	seen := map[flow.EventID]int{}
	for _, d := range w.deliveries(flow.SessionCreated) {
		if seen[d.Event]++; d.Endpoint == e.ID && seen[d.Event] > 1 {
			t.Errorf("event %s was posted %d times to an endpoint that took it", d.Event, seen[d.Event])
		}
	}
}

// A part that the bank took back before it was heard of leaves its payer with all of it to
// pay, and their account asks for that.
func TestAnAccountAsksForAllOfItWhereAPartWasTakenBackBeforeItsCredit(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(reversal("R1", "T1", a, 200_000, w.clock())))
	w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock())))
	w.rest()
	if a, s := w.attempts(session.ID)[0], w.read(session.ID); a.Amount != 500_000 || s.AmountPaid != 0 || s.Outstanding() != 500_000 {
		t.Errorf("of %+v, %+v asks for %d", s, a, a.Amount)
	}
}
