package checkout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/benchtest"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// weather is a kind of clock that is not to be trusted.
type weather struct {
	name  string
	home  time.Time
	jumps []time.Duration // either way
	under bool            // also while a webhook is on its way, under its lease
}

// weathers are the kinds: jumps of each size, the end of the seconds that fit into 31
// bits, a century that is no leap year at the end of its February, and jumps under a
// lease.
func weathers() []weather {
	today, all := time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC), []time.Duration{time.Second, time.Hour, 24 * time.Hour}
	return []weather{
		{name: "a second", home: today, jumps: all[:1]},
		{name: "an hour", home: today, jumps: all[1:2]},
		{name: "a day", home: today, jumps: all[2:]},
		{name: "2038", home: time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC), jumps: all},
		{name: "2100", home: time.Date(2100, 2, 28, 23, 59, 59, 0, time.UTC), jumps: all},
		{name: "under a lease", home: today, jumps: all, under: true},
	}
}

// Wherever the clock jumps, also while things are being delivered under a lease,
// nothing ends before it was that late, nobody is told anything twice, and money is
// booked once. TILL_FAULT_CLOCK is how many seeds of each kind are tried.
func TestNoClockEndsOrSendsTooMuch(t *testing.T) {
	t.Parallel()
	n := benchtest.Often(t, "TILL_FAULT_CLOCK", 1)
	for _, k := range weathers() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			began, moved := time.Now(), 0
			for seed := range n {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					w := newWorld(t, storetest.SQLite(t, store.Checkout))
					w.setClock(k.home)
					w.start(true)
					moved += w.jumpy(k, rand.New(rand.NewPCG(uint64(seed), 7)))
				})
				if t.Failed() {
					t.Fatalf("seed %d fails: TILL_FAULT_CLOCK=%d go test ./flow/checkout -run 'NoClockEnds.*/%s/%d$'", seed, seed+1, strings.ReplaceAll(k.name, " ", "_"), seed)
				}
			}
			t.Logf("%s: %d seeds, %d jumps: nothing early, nothing twice; %s", k.name, n, moved, time.Since(began).Round(time.Millisecond))
		})
	}
}

// jumpy lives a few days of a shop under a clock that jumps.
func (w *world) jumpy(k weather, draw *rand.Rand) (moved int) {
	t := w.t
	t.Helper()
	e := w.endpoint("https://shop.test", flow.SessionCreated, flow.ChargeSuccess)
	var other flow.Endpoint
	if k.under {
		other = w.endpoint("https://other.test", flow.SessionCreated)
	}
	latest := w.clock()
	var sessions []flow.SessionID
	move := func() {
		w.pass(k.jumps[draw.IntN(len(k.jumps))] * time.Duration(1-2*draw.IntN(2)))
		moved++
		if now := w.clock(); now.After(latest) {
			latest = now
		}
	}
	for range 6 {
		if k.under {
			w.underLease(e.ID, other.ID, draw.IntN(2) == 0, move)
		}
		s := w.session(flow.Headless)
		sessions = append(sessions, s.ID)
		if draw.IntN(2) == 0 {
			move() // while what was just owed is on its way
		}
		if s := w.read(s.ID); s.Status == flow.SessionPending && w.clock().Before(s.ExpiresAt) {
			n := credit(fmt.Sprintf("T-%s", s.ID), "", 500_000, w.clock())
			if a, ok := w.instructed(s.ID); ok {
				n.Reference = a.Reference
				w.must(w.tell(n))
				w.must(w.tell(n))
			}
		}
		move()
		w.rest()
		for _, id := range sessions {
			if s := w.read(id); s.Status == flow.SessionExpired && latest.Before(s.ExpiresAt) {
				t.Errorf("a session that lasts until %s ended when the clock had never been later than %s", s.ExpiresAt, latest)
			}
		}
	}
	w.later(latest.Sub(w.clock()) + 26*time.Hour) // everything is due
	w.later(time.Minute)
	seen := map[flow.EventID]int{}
	w.mu.Lock()
	for _, d := range w.posted {
		if d.Endpoint == e.ID {
			seen[d.Event]++
		}
	}
	w.mu.Unlock()
	for id, n := range seen {
		if n > 1 {
			t.Errorf("event %s was posted %d times to an endpoint that took it", id, n)
		}
	}
	if len(seen) < len(sessions) {
		t.Errorf("%d events were posted for %d sessions", len(seen), len(sessions))
	}
	return moved
}

// underLease has the clock jump while a webhook is on its way to one endpoint, or in the
// moment in which that has taken it. What another one refused before is posted again
// where it is due by then, which shows that the worker has looked what is.
func (w *world) underLease(one, other flow.EndpointID, asItEnds bool, jump func()) {
	ok := flow.Verdict{OK: true, Status: http.StatusOK}
	var mu sync.Mutex
	var refused flow.EventID
	w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
		mu.Lock()
		defer mu.Unlock()
		if d.Endpoint == one || refused != "" {
			return ok
		}
		refused = d.Event
		return flow.Verdict{Status: http.StatusInternalServerError, Reason: "status"}
	})
	w.session(flow.Headless)
	w.rest()

	began, repeated, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var begin sync.Once
	w.posting(func(_ context.Context, d flow.Delivery) flow.Verdict {
		switch {
		case d.Endpoint == one:
			begin.Do(func() { close(began) })
			<-over
		case d.Endpoint == other && d.Event == refused:
			close(repeated) // it is taken, and never comes again
		}
		return ok
	})
	w.session(flow.Headless)
	<-began
	before := w.clock()
	jump()
	if asItEnds {
		close(over)
	}
	if w.clock().Sub(before) > retries {
		<-repeated
	}
	if !asItEnds {
		close(over)
	}
}

// instructed has an account made for a session, where its time is not over.
func (w *world) instructed(id flow.SessionID) (flow.Attempt, bool) {
	w.t.Helper()
	_, a, err := w.service.Instruct(w.t.Context(), project, id, checkout.Ask{Method: flow.BankTransfer})
	if flow.CodeOf(err) == flow.CodeSessionExpired {
		return a, false
	}
	w.must(err)
	return a, true
}

// What is over by the clock is asked about once more, and the clock goes back while the
// bank answers: then it is not over, and ends when its time comes again.
func TestNothingEndsWhereTheClockGoesBackWhileTheBankAnswers(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	over := map[string]func() bool{
		"the account": func() bool { return w.attempts(session.ID)[0].Status == flow.AttemptExpired },
		"the session": func() bool { return w.read(session.ID).Status == flow.SessionExpired },
	}
	for _, c := range []struct {
		what string
		ends time.Time
	}{{"the account", a.ExpiresAt}, {"the session", session.ExpiresAt}} {
		var back sync.Once
		w.rail.checking(func(ctx context.Context, reference string) ([]flow.Notice, error) {
			if !w.clock().Before(c.ends) {
				back.Do(func() { w.setClock(c.ends.Add(-time.Minute)) })
			}
			return w.bank.Check(ctx, reference)
		})
		w.later(c.ends.Sub(w.clock()))
		if !w.clock().Before(c.ends) || over[c.what]() {
			t.Errorf("%s ended at %s, and would have lasted until %s", c.what, w.clock(), c.ends)
		}
		w.later(c.ends.Sub(w.clock()))
		w.until(c.what+" is over", over[c.what])
	}
}
