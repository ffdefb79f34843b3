//go:build unix

package checkout_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
)

// The sizes of the parts.
const (
	hookPace    = 50  // events a second, for latency
	hookPaced   = 100 // events of a round
	hookBeside  = 100 // events a second beside an endpoint that hangs
	hookHeld    = 100_000
	hookClaims  = 20
	hookClaimed = 100
	// hookPatience is how long an endpoint may hang: short, so that a round sees
	// what follows from it.
	hookPatience = time.Second
)

// hookAsked is how often the bare client posts in a round, one after the other.
const hookAsked = 500

// stored keeps n events and their deliveries, which are due.
func (r *hookRig) stored(b *testing.B, n int, to func(i int) flow.Endpoint, body []byte) {
	b.Helper()
	const together = 1000
	for first := 0; first < n; first += together {
		err := r.db.Update(b.Context(), func(tx *store.Tx) error {
			for i := first; i < min(n, first+together); i++ {
				if err := r.store(b.Context(), tx, to(i), body); err != nil {
					return err
				}
			}
			return nil
		})
		must(b, err)
	}
}

func (r *hookRig) store(ctx context.Context, tx *store.Tx, to flow.Endpoint, body []byte) error {
	now := r.ids.Now()
	event, err := r.ids.New(flow.PrefixEvent)
	if err != nil {
		return err
	}
	delivery, err := r.ids.New(flow.PrefixDelivery)
	if err != nil {
		return err
	}
	e := flow.Event{ID: flow.EventID(event), Kind: flow.ChargeSuccess, Project: to.Project, Session: flow.SessionID(event), Sequence: 1, Body: body, CreatedAt: now}
	if err := tx.AddEvent(ctx, e); err != nil {
		return err
	}
	return tx.AddDelivery(ctx, flow.Delivery{ID: delivery, Event: e.ID, Endpoint: to.ID}, now, now)
}

// hookBacklog is how many rounds' events are left in a backlog, so that working it
// off takes much longer than starting.
const hookBacklog = 10

// drains measures how fast what was left is worked off, once Till starts.
func (h *hookBench) drains(b *testing.B) {
	b.Helper()
	for _, e := range h.engines {
		h.add(h.drain(b, newHookRig(b, e.place(), time.Now, 0), hookBacklog*e.n), "%s drain", e.name)
	}
	if h.river != nil {
		h.add(h.river.order(b, 0, h.river.n), "River drain")
	}
}

// drain stores a backlog, starts Till and ends it when all is delivered.
func (h *hookBench) drain(b *testing.B, r *hookRig, n int) float64 {
	b.Helper()
	var to [hookDoors]flow.Endpoint
	for i := range to {
		to[i] = r.endpoint(b, hookProject(toldOfMoney, i), h.sink.hook(i))
	}
	r.stored(b, n, func(i int) flow.Endpoint { return to[i%hookDoors] }, h.bare.body)
	h.sink.forget(b)
	runtime.GC()
	r.expect(n)
	began := time.Now()
	r.run(b).all(b)
	spent := time.Since(began)
	h.complete(b, n)
	r.end()
	return float64(n) / spent.Seconds()
}

// paced does something at a steady pace, whatever becomes of it meanwhile.
func paced(b *testing.B, perSecond, n int, do func(i int) error) {
	b.Helper()
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	var wg sync.WaitGroup
	faults := make(chan error, n)
	for i := range n {
		<-tick.C
		wg.Go(func() {
			if err := do(i); err != nil {
				faults <- err
			}
		})
	}
	wg.Wait()
	select {
	case err := <-faults:
		b.Fatal(err)
	default:
	}
}

// delays are how long after its commit each event of n commands was delivered. A
// command returns when it is committed, and what it is.
func (r *hookRig) delays(b *testing.B, perSecond, n int, do func(i int) (flow.SessionID, error)) []time.Duration {
	b.Helper()
	r.timed.Store(true)
	defer func() { r.timed.Store(false); r.seen.Clear() }()
	sessions, committed := make([]flow.SessionID, n), make([]time.Time, n)
	paced(b, perSecond, n, func(i int) (err error) {
		sessions[i], err = do(i)
		committed[i] = time.Now()
		return err
	})
	took := make([]time.Duration, n)
	for i, session := range sessions {
		var at any
		await.Until(b, "the event of a session is delivered", func() (ok bool) {
			at, ok = r.seen.Load(session)
			return ok
		})
		if at, ok := at.(time.Time); ok {
			took[i] = max(at.Sub(committed[i]), 0)
		}
	}
	return took
}

// latencies measures the time from a commit to its delivery, at a pace that
// leaves everybody time, beside a bare post.
func (h *hookBench) latencies(b *testing.B) {
	b.Helper()
	_, took := h.bare.rate(b, 1, hookAsked)
	h.note(took, "bare")
	took = make([]time.Duration, hookPaced)
	paced(b, hookPace, hookPaced, func(i int) error {
		began := time.Now()
		err := h.bare.post(b.Context())
		took[i] = time.Since(began)
		return err
	})
	h.note(took, "bare paced")
	for _, e := range h.engines {
		e.rig.prepare(b, toldOfMoney, hookPaced)
		money := e.rig.take(toldOfMoney, hookPaced)
		names := make(map[string]flow.SessionID, len(money))
		for _, n := range money {
			a, err := e.rig.db.AttemptByReference(b.Context(), n.Reference)
			must(b, err)
			names[n.Reference] = a.Session
		}
		h.note(e.rig.delays(b, hookPace, hookPaced, func(i int) (flow.SessionID, error) {
			return names[money[i].Reference], e.rig.settle(b.Context(), money[i])
		}), "%s paced", e.name)
	}
}

// hangs measures a healthy endpoint alone, and beside one that never answers.
func (h *hookBench) hangs(b *testing.B) {
	b.Helper()
	for _, e := range h.engines {
		if e.alone == nil {
			e.alone, e.beside = newHookRig(b, e.place(), time.Now, hookPatience), newHookRig(b, e.place(), time.Now, hookPatience)
			for _, r := range []*hookRig{e.alone, e.beside} {
				r.endpoint(b, hookProject(toldOfSessions, 0), h.sink.hook(1), flow.SessionCreated)
			}
			e.beside.endpoint(b, hookProject(toldOfSessions, 0), h.sink.hang(), flow.SessionCreated)
			e.alone.run(b)
			e.beside.run(b)
			e.alone.rest(b)
			e.beside.rest(b)
		}
		for _, at := range []struct {
			name string
			rig  *hookRig
			n    int
		}{{"alone", e.alone, hookBeside}, {"beside", e.beside, 2 * hookBeside}} {
			took := at.rig.delays(b, hookBeside, at.n, func(int) (flow.SessionID, error) { return at.rig.open(b.Context(), toldOfSessions, 0) })
			h.note(took, "%s %s", e.name, at.name)
		}
	}
}

// holds measures what the rows of a dead endpoint, held back, cost the others.
func (h *hookBench) holds(b *testing.B) {
	b.Helper()
	for _, e := range h.engines {
		rigs := map[string]*hookRig{"none held": newHookRig(b, e.place(), time.Now, 0), "many held": newHookRig(b, e.place(), time.Now, 0)}
		to := map[string]flow.Endpoint{}
		for name, r := range rigs {
			to[name] = r.endpoint(b, hookProject(toldOfSessions, 0), h.sink.hook(0), flow.SessionCreated)
		}
		many := rigs["many held"]
		dead := many.endpoint(b, hookProject(toldOfSessions, 1), h.sink.hook(1))
		many.stored(b, hookHeld, func(int) flow.Endpoint { return dead }, []byte("{}"))
		err := many.db.Update(b.Context(), func(tx *store.Tx) error {
			if _, err := tx.DisableEndpoint(b.Context(), dead.ID, flow.DisabledGone, time.Now()); err != nil {
				return err
			}
			_, err := tx.HoldDeliveries(b.Context(), dead.ID, time.Now(), hookHeld)
			return err
		})
		must(b, err)
		for i := range hookClaims {
			for name, r := range rigs {
				r.stored(b, hookClaimed, func(int) flow.Endpoint { return to[name] }, h.bare.body)
				h.note([]time.Duration{r.claim(b, i)}, "%s %s", e.name, name)
			}
		}
		for _, r := range rigs {
			r.run(b).rest(b)
		}
		for range 2 {
			for name, r := range rigs {
				took := r.delays(b, hookPace, hookPaced, func(int) (flow.SessionID, error) { return r.open(b.Context(), toldOfSessions, 0) })
				h.note(took, "%s %s, delivered", e.name, name)
			}
		}
		for _, r := range rigs {
			r.end()
		}
	}
}

// claim takes what is due, as the worker does, and says how long that took.
func (r *hookRig) claim(b *testing.B, i int) time.Duration {
	b.Helper()
	now := time.Now()
	due, err := r.db.DueDeliveries(b.Context(), now, hookClaimed)
	must(b, err)
	ids := make([]string, len(due))
	for i, d := range due {
		ids[i] = d.ID
	}
	ctx := store.Rowwise(b.Context())
	err = r.db.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.ClaimDeliveries(ctx, fmt.Sprintf("bench/%d", i), ids, now, now.Add(time.Hour))
		if err == nil && len(list) != hookClaimed {
			err = fmt.Errorf("%d deliveries were claimed", len(list))
		}
		return err
	})
	must(b, err)
	return time.Since(now)
}
