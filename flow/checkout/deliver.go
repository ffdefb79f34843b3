package checkout

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"till/flow"
)

// maxQueued bounds the deliveries that wait in memory; what does not fit is
// found again when its lease is over.
const maxQueued = 8192

// postPatience is more than a post takes: none is begun with less of its lease
// left, so that two never carry the same delivery at once.
const postPatience = 20 * time.Second

// queued is a delivery that waits for a place, and until when it may begin.
type queued struct {
	flow.Delivery

	until time.Time
}

// post sends a delivery now, or as soon as there is a place: a slow endpoint
// holds at most maxToOne of them.
func (k *worker) post(d flow.Delivery) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || len(k.queue) >= maxQueued {
		return
	}
	k.queue = append(k.queue, queued{d, k.s.cfg.Now().Add(lease - postPatience)})
	k.fill()
}

// fill starts what can start. The caller holds the lock.
func (k *worker) fill() {
	kept := k.queue[:0]
	now := k.s.cfg.Now()
	for _, d := range k.queue {
		if now.After(d.until) {
			continue // its lease is nearly over: it is claimed again
		}
		if k.posts >= maxPosts || k.toOne[d.Endpoint] >= maxToOne {
			kept = append(kept, d)
			continue
		}
		k.posts++
		k.toOne[d.Endpoint]++
		k.wg.Go(func() { k.send(d.Delivery) })
	}
	k.queue = kept
}

// send makes one try to deliver and gives its place to the next.
func (k *worker) send(d flow.Delivery) {
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.posts--
		if k.toOne[d.Endpoint]--; k.toOne[d.Endpoint] == 0 {
			delete(k.toOne, d.Endpoint)
		}
		if !k.closed && k.ctx.Err() == nil {
			k.fill()
		}
	}()
	if err := k.s.try(k.ctx, d); err != nil {
		k.s.cfg.Log.LogAttrs(k.ctx, slog.LevelError, "keep what became of a delivery", slog.String("delivery", d.ID), slog.String("error", err.Error()))
	}
}

// try posts a delivery once and keeps the verdict.
func (s *Service) try(ctx context.Context, d flow.Delivery) error {
	v := s.posted(ctx, d)
	if ctx.Err() != nil && !v.OK {
		v.Reason = "shutdown"
	}
	state := "delivered"
	var next time.Time
	if !v.OK {
		wait, again := s.cfg.Next(d, v)
		state, next = "pending", s.cfg.Now().Add(wait)
		if v.Reason == "shutdown" {
			next, again = s.cfg.Now(), true
		}
		if !again || v.Gone {
			state = "dead"
		}
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "delivery", slog.String("delivery", d.ID), slog.String("event", string(d.Event)),
		slog.String("endpoint", string(d.Endpoint)), slog.String("state", state), slog.Int("status", v.Status), slog.String("reason", v.Reason),
		slog.Int("attempt", d.Attempts+1), slog.Int64("ms", v.Duration.Milliseconds()))
	defer s.worker.wake()
	keep := context.WithoutCancel(ctx)
	return s.update(keep, func(w *saving) error {
		if err := w.tx.EndTry(keep, d, v, state, w.now, next); err != nil || !v.Gone {
			return err
		}
		return w.tx.DisableEndpoint(keep, d.Endpoint)
	})
}

// posted is one post; a panic in it is a failed try.
func (s *Service) posted(ctx context.Context, d flow.Delivery) (v flow.Verdict) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelError, "panic in a delivery", slog.String("delivery", d.ID), slog.String("stack", fmt.Sprintf("%v\n%s", r, debug.Stack())))
			v = flow.Verdict{Reason: "panic"}
		}
	}()
	return s.cfg.Post(ctx, d)
}
