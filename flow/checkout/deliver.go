package checkout

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"till/flow"
)

// The bounds of deliveries.
const (
	maxPosts   = 128  // at work at once
	maxToOne   = 32   // at work at once for one endpoint
	maxToSick  = 2    // the same, for one whose last try failed
	maxWaiting = 64   // waiting for an endpoint whose last try failed
	maxQueued  = 8192 // waiting in memory
	fewQueued  = 2048 // while there are no more, more are looked for
	maxSick    = 10_000
	// postPatience is more than a post takes: none is begun with less of its
	// lease left, so that two never carry the same delivery at once.
	postPatience = 20 * time.Second
)

// queued is a delivery that waits for a place, and until when it may begin.
type queued struct {
	flow.Delivery

	until time.Time
}

// posting is what is on its way to endpoints; the worker's lock guards it. What
// does not fit is found again when its lease is over.
type posting struct {
	count   int                      // at work
	toOne   map[flow.EndpointID]int  // of them for each endpoint
	ids     map[string]bool          // of deliveries at work
	queue   []queued                 // waiting for a place
	waiting map[flow.EndpointID]int  // of them for each endpoint
	sick    map[flow.EndpointID]bool // endpoints whose last try failed: they get few places
}

func newPosting() posting {
	return posting{
		toOne: map[flow.EndpointID]int{}, ids: map[string]bool{}, waiting: map[flow.EndpointID]int{}, sick: map[flow.EndpointID]bool{},
	}
}

// takesPosts says whether deliveries that are handed over now would be taken.
func (k *worker) takesPosts() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.closed && len(k.posts.queue) < fewQueued
}

// post sends a delivery now, or as soon as there is a place.
func (k *worker) post(d queued) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &k.posts
	if k.closed || p.ids[d.ID] || len(p.queue) >= maxQueued || p.sick[d.Endpoint] && p.waiting[d.Endpoint] >= maxWaiting {
		return
	}
	p.queue = append(p.queue, d)
	p.waiting[d.Endpoint]++
	k.fill()
}

// fill starts what can start: a slow endpoint holds few places, a sick one very
// few. The caller holds the lock.
func (k *worker) fill() {
	p := &k.posts
	if p.count >= maxPosts {
		return
	}
	kept := p.queue[:0]
	now := k.s.cfg.Now()
	for _, d := range p.queue {
		most := maxToOne
		if p.sick[d.Endpoint] {
			most = maxToSick
		}
		late := now.After(d.until) || p.ids[d.ID] // then it is claimed again, or was already
		if !late && (p.count >= maxPosts || p.toOne[d.Endpoint] >= most) {
			kept = append(kept, d)
			continue
		}
		if p.waiting[d.Endpoint]--; p.waiting[d.Endpoint] == 0 {
			delete(p.waiting, d.Endpoint)
		}
		if late {
			continue
		}
		p.count++
		p.toOne[d.Endpoint]++
		p.ids[d.ID] = true
		k.wg.Go(func() { k.send(d.Delivery) })
	}
	clear(p.queue[len(kept):]) // their bodies are not to be kept
	p.queue = kept
}

// send makes one try to deliver and gives its place to the next.
func (k *worker) send(d flow.Delivery) {
	v, err := k.s.try(k.ctx, d)
	if err != nil {
		k.s.cfg.Log.LogAttrs(k.ctx, slog.LevelError, "keep what became of a delivery", slog.String("delivery", d.ID), slog.String("error", err.Error()))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &k.posts
	p.count--
	delete(p.ids, d.ID)
	if p.toOne[d.Endpoint]--; p.toOne[d.Endpoint] == 0 {
		delete(p.toOne, d.Endpoint)
	}
	switch {
	case v.OK:
		delete(p.sick, d.Endpoint)
	case len(p.sick) < maxSick:
		p.sick[d.Endpoint] = true
	}
	if v.Gone {
		p.queue = slices.DeleteFunc(p.queue, func(q queued) bool { return q.Endpoint == d.Endpoint })
		delete(p.waiting, d.Endpoint)
	}
	if !k.closed && k.ctx.Err() == nil {
		k.fill()
	}
	k.wake()
}

// try posts a delivery once and keeps the verdict.
func (s *Service) try(ctx context.Context, d flow.Delivery) (flow.Verdict, error) {
	v, wait, again := s.posted(ctx, d)
	state, next := "delivered", time.Time{}
	if !v.OK {
		state, next = "pending", s.cfg.Now().Add(wait)
		if ctx.Err() != nil && !v.Gone {
			v.Reason, next, again = "shutdown", s.cfg.Now(), true
		}
		if !again || v.Gone {
			state = "dead"
		}
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "delivery", slog.String("delivery", d.ID), slog.String("event", string(d.Event)),
		slog.String("endpoint", string(d.Endpoint)), slog.String("state", state), slog.Int("status", v.Status), slog.String("reason", v.Reason),
		slog.Int("attempt", d.Attempts+1), slog.Int64("ms", v.Duration.Milliseconds()))
	keep := context.WithoutCancel(ctx)
	return v, s.update(keep, func(w *saving) error {
		if err := w.tx.EndTry(keep, d, v, state, w.now, next); err != nil || !v.Gone {
			return err
		}
		return w.tx.DisableEndpoint(keep, d.Endpoint)
	})
}

// posted is one post, and when there is to be another. A panic in it is a failed
// try that is made again after a while.
func (s *Service) posted(ctx context.Context, d flow.Delivery) (v flow.Verdict, wait time.Duration, again bool) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in a delivery", slog.String("delivery", d.ID), slog.String("stack", fmt.Sprintf("%v\n%s", r, debug.Stack())))
			v, wait, again = flow.Verdict{Reason: "panic"}, time.Hour, d.Attempts < maxTries
		}
	}()
	if v = s.cfg.Post(ctx, d); !v.OK {
		wait, again = s.cfg.Next(d, v)
	}
	return v, wait, again
}
