package checkout_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
)

func TestAHangingEndpointHoldsNoOtherBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		sick, well := w.endpoint("https://sick.test", flow.SessionCreated), w.endpoint("https://well.test", flow.SessionCreated)
		var mu sync.Mutex
		now, most := 0, 0
		release := make(chan bool)
		w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
			if d.Endpoint == well.ID {
				return flow.Verdict{OK: true, Status: http.StatusOK}
			}
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			hangs(ctx, release)
			mu.Lock()
			now--
			mu.Unlock()
			return flow.Verdict{Reason: "timeout"}
		})
		const events = 100
		for range events {
			w.session(flow.Headless)
		}
		count := func(id flow.EndpointID) int {
			n := 0
			for _, d := range w.deliveries(flow.SessionCreated) {
				if d.Endpoint == id {
					n++
				}
			}
			return n
		}
		w.until("the healthy endpoint to have everything", func() bool { return count(well.ID) == events })
		mu.Lock()
		if most != 8 {
			t.Errorf("the hanging endpoint, of which nothing was known, held %d places", most)
		}
		mu.Unlock()
		// Once it is known to be sick, it gets one.
		for range 8 {
			release <- true
		}
		w.until("the places to be given back", func() bool { mu.Lock(); defer mu.Unlock(); return now == 1 })
		mu.Lock()
		most = 0
		mu.Unlock()
		for range 5 {
			release <- true
		}
		w.until("five more tries", func() bool { return count(sick.ID) >= 14 })
		mu.Lock()
		defer mu.Unlock()
		if most > 1 {
			t.Errorf("a sick endpoint held %d places", most)
		}
	})
}

func TestAnEndpointThatIsGoneIsNotPostedToAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://gone.test", flow.SessionCreated)
		release := make(chan bool)
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			<-release
			return flow.Verdict{Gone: true, Status: http.StatusGone, Reason: "gone"}
		})
		for range 80 {
			w.session(flow.Headless)
		}
		release <- true
		w.until("the endpoint to be disabled", func() bool {
			list, err := w.service.Endpoints(t.Context(), project)
			w.must(err)
			return list[0].Status == flow.EndpointDisabled
		})
		close(release)
		w.rest()
		posts := len(w.deliveries(flow.SessionCreated))
		if posts > 33 { // 32 were under way, and one may have got the first place that was free
			t.Errorf("it was posted to %d times", posts)
		}
		w.session(flow.Headless)
		w.passes(10, time.Hour)
		if n := len(w.deliveries(flow.SessionCreated)); n != posts {
			t.Errorf("a disabled endpoint was posted to %d times more", n-posts)
		}
		if n := w.logged("endpoint disabled"); n != 1 {
			t.Errorf("the log tells of it %d times", n)
		}
	})
}

func TestADeliveryThatFailsIsTriedByItsScheduleAndThenIsDead(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test", flow.SessionCreated)
		w.posting(func(context.Context, flow.Delivery) flow.Verdict { return flow.Verdict{Status: 500, Reason: "status"} })
		w.session(flow.Headless)
		w.rest()
		for i := range 20 {
			w.later(59 * time.Second)
			if n := len(w.deliveries(flow.SessionCreated)); n != min(i+1, 10) {
				t.Fatalf("before its time it was tried %d times", n)
			}
			w.later(time.Second)
		}
		if n := len(w.deliveries(flow.SessionCreated)); n != 10 {
			t.Errorf("it was tried %d times", n)
		}
	})
}

func TestAPanicInAPostIsAFailedTry(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.endpoint("https://shop.test", flow.SessionCreated)
	first := true
	w.posting(func(context.Context, flow.Delivery) flow.Verdict {
		if first {
			first = false
			panic("a bug")
		}
		return flow.Verdict{OK: true}
	})
	w.session(flow.Headless)
	w.rest()
	w.later(time.Hour)
	if n := len(w.deliveries(flow.SessionCreated)); n != 2 {
		t.Errorf("it was tried %d times", n)
	}
}

func TestAPostThatAShutdownCutsShortIsMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test", flow.SessionCreated)
		begun := make(chan bool)
		w.posting(func(ctx context.Context, _ flow.Delivery) flow.Verdict {
			begun <- true
			<-ctx.Done()
			return flow.Verdict{Reason: "cancelled"}
		})
		session := w.session(flow.Headless)
		<-begun
		w.end()
		w.posting(nil)
		w.start(false)
		w.rest()
		if n := len(w.deliveries(flow.SessionCreated)); n != 2 {
			t.Errorf("it was posted %d times", n)
		}
		tries, err := w.db.Tries(t.Context(), session.ID, 100)
		w.must(err)
		if len(tries) != 2 || tries[0].Reason != "shutdown" || tries[1].Status != http.StatusOK {
			t.Errorf("its record is %+v", tries)
		}
		if w.count("attempts = 1") != 1 {
			t.Error("what was cut short spent a try of its schedule")
		}
	})
}

// Whoever logs warnings alone, as is the default, is told of an endpoint that
// fails, and of each no more than once in ten minutes however much it is owed.
func TestAnEndpointThatFailsIsToldOfNowAndThen(t *testing.T) {
	t.Parallel()
	w := one(t)
	one, other := w.endpoint("https://shop.test", flow.SessionCreated), w.endpoint("https://other.test", flow.SessionCreated)
	w.posting(func(context.Context, flow.Delivery) flow.Verdict { return flow.Verdict{Status: 500, Reason: "status"} })
	tellings := func(id flow.EndpointID) int {
		n := 0
		for line := range strings.Lines(w.logs.String()) {
			if strings.Contains(line, "level=WARN msg=delivery ") && strings.Contains(line, "endpoint="+string(id)) && strings.Contains(line, "reason=status") {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		minutes, want int
	}{{0, 1}, {5, 1}, {6, 2}} {
		w.pass(time.Duration(c.minutes) * time.Minute)
		for range 10 {
			w.session(flow.Headless)
		}
		w.rest()
		for _, id := range []flow.EndpointID{one.ID, other.ID} {
			if n := tellings(id); n != c.want {
				t.Errorf("after %d minutes more an operator was told of %s %d times, want %d", c.minutes, id, n, c.want)
			}
		}
	}
	if n := w.logged("msg=delivery "); n < 20 {
		t.Errorf("only %d tries were logged at all", n)
	}
}
