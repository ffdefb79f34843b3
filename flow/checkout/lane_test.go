package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// to says how many posts an endpoint got.
func (w *world) to(id flow.EndpointID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, d := range w.posted {
		if d.Endpoint == id {
			n++
		}
	}
	return n
}

// oneByOne opens sessions, each once what the one before is owed was tried.
func (w *world) oneByOne(count int) {
	w.t.Helper()
	for range count {
		w.session(flow.Headless)
		w.rest()
	}
}

// elsewhere is an endpoint of another merchant, whose sessions it is told of.
func (w *world) elsewhere(url string) (flow.Endpoint, func() flow.Session) {
	w.t.Helper()
	other := call("", "", nil)
	other.Project = "wsp_prj_2"
	_, err := w.service.AddEndpoint(w.t.Context(), flow.Endpoint{URL: url, Events: []flow.EventKind{flow.SessionCreated}, Secrets: []string{"whsec_y"}}, other)
	w.must(err)
	list, err := w.service.Endpoints(w.t.Context(), other.Project)
	w.must(err)
	return list[0], func() flow.Session {
		w.t.Helper()
		_, err := w.service.Open(w.t.Context(), newSession(flow.Headless), other)
		w.must(err)
		return flow.Session{}
	}
}

// stoppedOwing is a world that is stopped and owes so many deliveries to an endpoint.
func (w *world) stoppedOwing(n int) flow.Endpoint {
	w.t.Helper()
	w.end()
	w.open(true)
	e := w.endpoint("https://shop.test", flow.SessionCreated)
	w.backlog(e, "a", n)
	return e
}

// backlog keeps events that are due for an endpoint, as another process left them.
func (w *world) backlog(to flow.Endpoint, name string, count int) {
	w.t.Helper()
	w.must(w.db.Update(w.t.Context(), func(tx *store.Tx) error {
		for i := range count {
			e := flow.Event{
				ID: flow.EventID(fmt.Sprintf("evt_%s%05d", name, i)), Kind: flow.SessionCreated, Project: to.Project,
				CreatedAt: w.clock(),
			}
			var err error
			if e.Body, err = flow.ComposeEvent(e, "", nil, false); err != nil {
				return err
			}
			if err := tx.AddEvent(w.t.Context(), e); err != nil {
				return err
			}
			d := flow.Delivery{ID: fmt.Sprintf("dlv_%s%05d", name, i), Event: e.ID, Endpoint: to.ID}
			if err := tx.AddDelivery(w.t.Context(), d, w.clock(), w.clock()); err != nil {
				return err
			}
		}
		return nil
	}))
}

func TestNobodyWaitsBehindWhatAnotherMerchantIsOwed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		busy := w.endpoint("https://busy.test", flow.SessionCreated)
		quiet, opens := w.elsewhere("https://quiet.test")
		release := make(chan bool)
		w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
			if d.Endpoint == busy.ID {
				hangs(ctx, release)
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		for range 500 {
			w.session(flow.Headless)
		}
		opens()
		w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) == 1 })
		if n := w.to(busy.ID); n != 8 {
			t.Errorf("%d posts to the busy one had begun", n)
		}
		close(release)
		w.rest()
		if n := w.to(busy.ID); n != 500 {
			t.Errorf("the busy one got %d", n)
		}
	})
}

// hangBut has every endpoint but one hang until what it returns is closed.
func (w *world) hangBut(answers flow.Endpoint) (release chan bool) {
	release = make(chan bool)
	w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
		if d.Endpoint != answers.ID {
			hangs(ctx, release)
		}
		return flow.Verdict{OK: true, Status: http.StatusOK}
	})
	return release
}

// However many endpoints a merchant has whose servers hang, half of the memory for what
// waits is left to the others.
func TestOneMerchantTakesHalfOfWhatWaitsInMemoryAtMost(t *testing.T) {
	t.Parallel()
	const half, atOnce = 8192 / 2, 512 // what is taken at once goes to many, and is counted once it is there
	w := one(t)
	w.end()
	w.open(true)
	for i := range 14 {
		w.backlog(w.endpoint(fmt.Sprintf("https://slow-%d.test", i), flow.SessionCreated), fmt.Sprintf("s%d", i), 600)
	}
	quiet, opens := w.elsewhere("https://quiet.test")
	defer close(w.hangBut(quiet))
	w.run()
	w.until("the merchant has what they may have", func() bool { return w.service.Deliveries().Queued >= half })
	for n := range 20 { // meanwhile more would be taken, were there room
		opens()
		w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) == n+1 })
	}
	if n := w.service.Deliveries().Queued; n > half+atOnce {
		t.Errorf("%d wait in memory for one merchant", n)
	}
}

// Whoever makes many projects with many endpoints that hang, none of which ever took
// anything, leaves places to those that did.
func TestNewEndpointsThatHangLeavePlacesToThoseThatAnswer(t *testing.T) {
	t.Parallel()
	w := one(t)
	known, opens := w.elsewhere("https://known.test")
	opens()
	w.rest()
	defer close(w.hangBut(known))
	for of := range 4 {
		many := call("", "", nil)
		many.Project = flow.ProjectID(fmt.Sprintf("wsp_prj_1%d", of))
		for i := range 16 {
			_, err := w.service.AddEndpoint(t.Context(), flow.Endpoint{URL: fmt.Sprintf("https://hangs-%d.test", i), Events: []flow.EventKind{flow.SessionCreated}, Secrets: []string{"whsec_z"}}, many)
			w.must(err)
		}
		for range 9 {
			_, err := w.service.Open(t.Context(), newSession(flow.Headless), many)
			w.must(err)
		}
	}
	w.until("all that they may have is at work", func() bool { return w.service.Deliveries().Sending >= 256 })
	opens()
	w.until("who answers is told", func() bool { return w.to(known.ID) == 2 })
	if n := w.service.Deliveries().Sending; n > 257 {
		t.Errorf("%d are at work", n)
	}
}

func TestABacklogOfOneHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.end()
		w.open(true)
		busy := w.endpoint("https://busy.test", flow.SessionCreated)
		quiet, _ := w.elsewhere("https://quiet.test")
		w.backlog(busy, "a", 3000)
		w.pass(time.Second)
		w.backlog(quiet, "b", 1) // due last of all
		release := make(chan bool)
		w.posting(func(ctx context.Context, d flow.Delivery) flow.Verdict {
			if d.Endpoint == busy.ID {
				hangs(ctx, release)
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.run()
		w.until("the other merchant to be told", func() bool { return w.to(quiet.ID) == 1 })
		close(release)
		w.rest()
		if n := w.to(busy.ID); n != 3000 {
			t.Errorf("the busy one got %d", n)
		}
	})
}

func TestAnEndpointThatAsksToBeSparedIsAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		tired, well := w.endpoint("https://tired.test", flow.SessionCreated), w.endpoint("https://well.test", flow.SessionCreated)
		var on atomic.Bool
		on.Store(true)
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			if d.Endpoint == tired.ID && on.Load() {
				return flow.Verdict{Status: http.StatusTooManyRequests, Reason: "status", RetryAfter: 10 * time.Second}
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.session(flow.Headless)
		w.until("it to be asked", func() bool { return w.to(tired.ID) == 1 })
		w.rest()
		for range 5 {
			w.session(flow.Headless)
		}
		w.until("the other one to have all", func() bool { return w.to(well.ID) == 6 })
		if n := w.to(tired.ID); n != 1 {
			t.Errorf("it was sent %d within ten seconds", n)
		}
		on.Store(false)
		w.pass(10 * time.Second)
		w.until("it to be sent all that it missed", func() bool { return w.to(tired.ID) == 6 })
		w.later(time.Minute)
		if n := w.to(tired.ID); n != 7 { // and the one that it turned away
			t.Errorf("it was sent %d", n)
		}
	})
}

func TestAnEndpointThatDoesNotAnswerIsHeldBackProbedAndGetsEverythingOnceItDoes(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.end()
		w.open(true)
		sick := w.endpoint("https://sick.test", flow.SessionCreated)
		w.backlog(sick, "a", 2000)
		var well atomic.Bool
		var mu sync.Mutex
		got := map[flow.EventID]int{}
		w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
			if !well.Load() {
				return flow.Verdict{Status: 500, Reason: "status"}
			}
			mu.Lock()
			defer mu.Unlock()
			got[d.Event]++
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		w.run()
		w.rest()
		tried := w.to(sick.ID)
		if tried < 20 || tried > 40 {
			t.Errorf("it was tried %d times before it was held back", tried)
		}
		if d := w.service.Deliveries(); d.HeldBack != 1 || d.Held < 1900 || d.Queued != 0 {
			t.Errorf("the counters say %+v", d)
		}
		w.session(flow.Headless) // also what comes now waits
		w.rest()
		probes := 0
		for range 100 {
			w.later(time.Second)
			if n := w.to(sick.ID) - tried - probes; n > 1 {
				t.Fatalf("%d probes at once", n)
			}
			probes = w.to(sick.ID) - tried
		}
		if probes != 2 { // after 5 s, and 30 s later
			t.Errorf("%d probes in a hundred seconds", probes)
		}
		// A restart changes nothing of that.
		w.end()
		w.start(true)
		w.rest()
		if n := w.to(sick.ID); n != tried+probes {
			t.Errorf("after a restart it was tried %d times", n-tried-probes)
		}
		well.Store(true)
		w.passes(40, time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 2001 {
			t.Errorf("it got %d events", len(got))
		}
		for id, n := range got {
			if n != 1 {
				t.Errorf("it got %s %d times", id, n)
			}
		}
	})
}

func TestWhatWaitedTooLongForAnEndpointThatIsSparedKeepsNothingElseFromIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		tired := w.endpoint("https://tired.test", flow.SessionCreated)
		var well atomic.Bool
		w.posting(func(context.Context, flow.Delivery) flow.Verdict {
			if !well.Load() {
				return flow.Verdict{Status: http.StatusServiceUnavailable, Reason: "status"}
			}
			return flow.Verdict{OK: true, Status: http.StatusOK}
		})
		tries := func(n int) {
			w.until(fmt.Sprintf("%d tries to be kept and learnt from", n), func() bool { // it rests from when that is learnt on
				d := w.service.Deliveries()
				return w.to(tired.ID) == n && d.NotYetKept == 0 && d.Sending == 0
			})
		}
		w.session(flow.Headless)
		tries(1)
		for range 30 {
			w.session(flow.Headless)
		}
		for i, rest := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
			w.pass(rest)
			tries(i + 2)
		}
		well.Store(true)
		w.pass(30 * time.Second) // what waits in memory may not be sent any more as it stands there
		w.until("it to have all that was not turned away", func() bool {
			return w.to(tired.ID) >= 6+25 && w.service.Deliveries().NotYetKept == 0 // what is not kept in a minute is sent again
		})
		w.later(time.Minute)
		if n := w.to(tired.ID); n != 6+31 {
			t.Errorf("it was sent %d", n)
		}
	})
}
