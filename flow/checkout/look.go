package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till/flow/crashpoint"
	"till/flow/store"
)

// How long the loop waits after a store that refused: twice as long each time.
const (
	firstLookAgain = 100 * time.Millisecond
	maxLookAgain   = 5 * time.Second
)

// loop claims what is due, again and again. What could not be claimed is due still:
// a store that reads and does not write, as on a full disk, would keep the loop
// turning. So it waits then, whoever wakes it.
func (k *worker) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	woken, wait := k.woken, time.Duration(0)
	var away time.Time // since when nothing can be claimed, zero where it can
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-woken:
		case <-timer.C:
		}
		k.rests(time.Time{})
		known, err := k.claim(ctx)
		if now := k.s.cfg.Real(); (err != nil) == away.IsZero() && ctx.Err() == nil { // one line for each change
			if err != nil {
				away = now
				k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "look for work", slog.String("error", err.Error()))
			} else {
				k.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "work is found again", slog.Duration("after", now.Sub(away)))
				away = time.Time{}
			}
		}
		nap := k.nap(ctx, known)
		woken, wait = k.woken, 2*wait
		if k.stuck {
			wait = min(max(wait, firstLookAgain), maxLookAgain)
			woken, nap = nil, wait
		} else {
			wait = 0
		}
		timer.Reset(nap)
	}
}

// rests keeps when the loop looks next by itself; zero: it is awake.
func (k *worker) rests(until time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looks = until
}

// due lets the loop know of what was committed and is due later: it is woken
// where it would look too late, where it may have looked already, and where its
// clock was moved meanwhile.
func (k *worker) due(at time.Time) {
	now := k.s.cfg.Now()
	k.mu.Lock()
	late := k.looks.IsZero() || at.Before(k.looks) || now.After(k.looks)
	k.mu.Unlock()
	if late {
		k.wake()
	}
}

// nap is how long there is nothing to do, at most Config.Look: another process may
// owe something too. What there is no room for is not waited for: whoever makes
// room wakes the loop. What is known was read while nothing was claimed.
func (k *worker) nap(ctx context.Context, known *store.Next) time.Duration {
	if known == nil {
		next, err := k.s.cfg.DB.Next(ctx)
		if err != nil { // it looks again soon enough
			next = store.Next{}
		}
		known = &next
	}
	nap, now := k.s.cfg.Look, k.s.cfg.Now() // read after that: however long it took, nothing is slept over
	until := func(at time.Time, waits bool) {
		if waits && !at.IsZero() {
			nap = min(nap, max(at.Sub(now), time.Millisecond))
		}
	}
	until(known.Tasks(), k.room() > 0)
	until(known.Deliveries(), !k.left)
	k.mu.Lock()
	defer k.mu.Unlock()
	until(k.posts.rested(now), true)
	k.fill()
	k.looks = now.Add(nap)
	return nap
}

// claim takes what is due and what there is room for. It writes only when there
// is something, and where there was nothing it says what is due next.
func (k *worker) claim(ctx context.Context) (*store.Next, error) { // only the loop calls it
	k.mu.Lock()
	k.claiming = true
	k.claims++
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.claiming = false
		clear(k.posts.over)
	}()
	k.left, k.stuck = false, false
	now := k.s.cfg.Now()
	failed := k.remember(ctx, now)
	next, err := k.s.cfg.DB.Next(ctx)
	if err != nil {
		k.stuck = true
		return nil, errors.Join(failed, err)
	}
	isDue := func(at time.Time) bool { return !at.IsZero() && !at.After(now) }
	tasks, deliveries := isDue(next.Tasks()), isDue(next.Deliveries())
	if !tasks && !deliveries {
		return &next, failed
	}
	name := fmt.Sprintf("%s/%d", k.s.token, k.claims)
	var known *store.Next
	if tasks {
		known, err = k.claimTasks(ctx, name, now, isDue(next.Over))
		k.stuck = err != nil
		failed = errors.Join(failed, err)
	}
	if deliveries {
		failed = errors.Join(failed, k.claimDeliveries(ctx, name, now))
		known = nil
	}
	return known, failed
}

// claimTasks takes tasks that are due, and sessions that are over, and says what
// is due after them where that is known.
func (k *worker) claimTasks(ctx context.Context, name string, now time.Time, over bool) (*store.Next, error) {
	room := min(k.room(), claimAtOnce)
	if room <= 0 {
		return nil, nil // it was not looked
	}
	var works []store.Work
	var after store.Next
	var known bool
	err := k.s.update(ctx, func(w *saving) error {
		if over {
			if err := w.tx.Sweep(ctx, now, room); err != nil {
				return err
			}
		}
		var err error
		if works, err = w.tx.ClaimTasks(ctx, name, now, now.Add(lease), room); err != nil {
			return err
		}
		after, known, err = w.tx.Then(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	crashpoint.At(crashpoint.WorkClaimed)
	for _, w := range works {
		k.submit(job{Work: w, ends: now.Add(lease)})
	}
	if !known {
		return nil, nil // as above
	}
	return &after, nil
}
