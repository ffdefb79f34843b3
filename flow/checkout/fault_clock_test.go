package checkout_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// jumps are by how much the clock moves, either way.
func jumps() []time.Duration { return []time.Duration{time.Second, time.Hour, 24 * time.Hour} }

// homes are when a world begins: today, just before seconds no longer fit into 31
// bits, and just before a century that is no leap year ends its February.
func homes() []time.Time {
	return []time.Time{
		time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC), time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC), time.Date(2100, 2, 28, 23, 59, 59, 0, time.UTC),
	}
}

// Wherever the clock jumps, also while things are being delivered under a lease,
// nothing ends before it was that late, nobody is told anything twice, and money is
// booked once. TILL_FAULT_CLOCK is how many seeds are tried.
func TestNoClockEndsOrSendsTooMuch(t *testing.T) {
	t.Parallel()
	n := often(t, "TILL_FAULT_CLOCK", 4)
	began := time.Now()
	moved := 0
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, storetest.SQLite(t, store.Checkout))
			w.setClock(homes()[seed%len(homes())])
			w.start(true)
			moved += w.jumpy(rand.New(rand.NewPCG(uint64(seed), 7)))
		})
		if t.Failed() {
			t.Fatalf("seed %d fails: TILL_FAULT_CLOCK=%d go test ./flow/checkout -run 'NoClockEnds.*/%d$'", seed, max(4, seed+1), seed)
		}
	}
	t.Logf("%d seeds, %d jumps: nothing early, nothing twice; %s", n, moved, time.Since(began).Round(time.Millisecond))
}

// jumpy lives a few days of a shop under a clock that jumps.
func (w *world) jumpy(draw *rand.Rand) (moved int) {
	t := w.t
	t.Helper()
	e := w.endpoint("https://shop.test", flow.SessionCreated, flow.ChargeSuccess)
	latest := w.clock()
	var sessions []flow.SessionID
	move := func() {
		all := jumps()
		w.pass(all[draw.IntN(len(all))] * time.Duration(1-2*draw.IntN(2)))
		moved++
		if now := w.clock(); now.After(latest) {
			latest = now
		}
	}
	for range 6 {
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
