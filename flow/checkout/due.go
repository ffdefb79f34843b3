package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of looking for deliveries.
const (
	lookAtOnce      = 512 // deliveries
	endpointsMost   = 128 // endpoints, where there are more deliveries than that
	wakesAtOnce     = 64
	releaseAtOnce   = 500
	releaseAgain    = 200 * time.Millisecond
	lookForgotten   = 30 * time.Second
	forgottenAtOnce = 100
	lookFailures    = 3 // in a row: then the others are left for the next time
)

// claimDeliveries takes what is due and what there is room for, and looks at
// endpoints that are held back. What goes wrong with an endpoint that is held back
// keeps no other from what is due.
func (k *worker) claimDeliveries(ctx context.Context, name string, now time.Time) error {
	looked := k.look(ctx, name, now)
	err := k.claimDue(ctx, name, now)
	k.stuck = k.stuck || err != nil
	failed := errors.Join(looked, err)
	if looked != nil {
		k.left = true // that endpoint is due still: it is not looked at again without a pause
	}
	return failed
}

// claimDue takes what is due and what there is room for.
func (k *worker) claimDue(ctx context.Context, name string, now time.Time) error {
	ids, full, err := k.choose(ctx, now)
	if err != nil || len(ids) == 0 {
		return err
	}
	var list []flow.Delivery
	rows := rowwise(ctx)
	err = k.s.update(rows, func(w *saving) error {
		var err error
		list, err = w.tx.ClaimDeliveries(rows, name, ids, now, now.Add(lease))
		return err
	})
	if err != nil {
		return err
	}
	jobs := make([]queued, len(list))
	for i, d := range list {
		jobs[i] = queued{Delivery: d, until: now.Add(lease - postPatience), read: now}
	}
	k.post(jobs...)
	if full {
		k.wake() // there is more, and maybe room for it
	}
	return nil
}

// choose finds deliveries that are due, as many as their endpoints have room for:
// first those that somebody waits for.
func (k *worker) choose(ctx context.Context, now time.Time) (ids []string, full bool, err error) {
	awaited, err := k.s.cfg.DB.DueAwaited(ctx, now, maxAwaitedQueue)
	if err != nil {
		return nil, false, err
	}
	first := k.fitting(awaited, true)
	ids, full, err = k.chooseOthers(ctx, now)
	k.left = k.left || len(first) < len(awaited)
	return append(first, ids...), full, err
}

// chooseOthers finds deliveries that are due and nobody waits for. Where there are more
// due than it reads, every endpoint gets its share of what is read, so that none waits
// behind what another is owed.
func (k *worker) chooseOthers(ctx context.Context, now time.Time) (ids []string, full bool, err error) {
	due, err := k.s.cfg.DB.DueDeliveries(ctx, now, lookAtOnce)
	if err != nil {
		return nil, false, err
	}
	if len(due) < lookAtOnce {
		ids = k.fitting(due, false)
		k.left = len(ids) < len(due)
		return ids, false, nil
	}
	k.left = true
	there, err := k.s.cfg.DB.DueEndpoints(ctx, k.after, now, endpointsMost)
	if err != nil {
		return nil, false, err
	}
	if len(there) < endpointsMost { // from the beginning next time
		k.after = ""
	} else {
		k.after = there[len(there)-1]
		k.wake()
	}
	share := max(lookAtOnce/max(len(there), 1), 1)
	var all []store.Due
	for _, id := range there {
		if k.roomFor(id, false) <= 0 {
			continue
		}
		some, err := k.s.cfg.DB.DueThere(ctx, id, now, share)
		if err != nil {
			return nil, false, err
		}
		all = append(all, some...)
	}
	return k.fitting(all, false), true, nil
}

// roomFor is how many more deliveries of an endpoint may be in memory. An
// endpoint without room is looked for once it has some.
func (k *worker) roomFor(id flow.EndpointID, awaited bool) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	room := k.posts.roomFor(id, awaited, k.s.cfg.Now())
	if room <= 0 {
		k.posts.lane(id).more = true
	}
	return room
}

// fitting are those that there is room for.
func (k *worker) fitting(due []store.Due, awaited bool) []string {
	room := map[flow.EndpointID]int{}
	var ids []string
	for _, d := range due {
		left, ok := room[d.Endpoint]
		if !ok {
			left = k.roomFor(d.Endpoint, awaited)
		}
		if left > 0 {
			ids = append(ids, d.ID)
		} else if ok {
			k.moreFor(d.Endpoint)
		}
		room[d.Endpoint] = left - 1
	}
	return ids
}

// moreFor lets an endpoint be looked for once it has room.
func (k *worker) moreFor(id flow.EndpointID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.posts.lane(id).more = true
}

// look probes endpoints that are held back, and lets go what is held for those
// that answer again. One that this fails for keeps the next from nothing; where
// it fails again and again, it is not that one's fault.
func (k *worker) look(ctx context.Context, name string, now time.Time) error {
	wakes, err := k.s.cfg.DB.DueWakes(ctx, now, wakesAtOnce)
	if err != nil || len(wakes) == 0 {
		return err
	}
	rows := rowwise(ctx)
	var failed []error
	inARow := 0
	for _, one := range wakes {
		if one.Open {
			err = k.probe(rows, one.Endpoint, name, now)
		} else {
			err = k.release(rows, one.Endpoint, now)
		}
		if err == nil {
			inARow = 0
			continue
		}
		failed = append(failed, fmt.Errorf("look at endpoint %s: %w", one.Endpoint, err))
		if inARow++; inARow == lookFailures {
			break
		}
	}
	return errors.Join(failed...)
}

// probe tries to deliver one of those that are held for an endpoint.
func (k *worker) probe(ctx context.Context, id flow.EndpointID, name string, now time.Time) error {
	var d flow.Delivery
	var found bool
	err := k.s.update(ctx, func(w *saving) error {
		var err error
		d, found, err = w.tx.Probe(ctx, id, name, now, now.Add(lease))
		return err
	})
	if err == nil && found {
		k.post(queued{Delivery: d, until: now.Add(lease - postPatience), read: now})
	}
	return err
}

// release makes due what is held for an endpoint that answers again, a part at a
// time.
func (k *worker) release(ctx context.Context, id flow.EndpointID, now time.Time) error {
	n := 0
	err := k.s.update(ctx, func(w *saving) error {
		var err error
		n, err = w.tx.Release(ctx, id, now, now.Add(releaseAgain), releaseAtOnce)
		return err
	})
	if err == nil && n > 0 {
		k.s.counts.released.Add(int64(n))
		k.s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "deliveries released", slog.String("endpoint", string(id)), slog.Int("deliveries", n))
	}
	return err
}

// remember looks now and then for what is held and nobody would look at.
func (k *worker) remember(ctx context.Context, now time.Time) error {
	if now.Sub(k.remembered).Abs() < max(lookForgotten, k.s.cfg.Look) {
		return nil
	}
	ids, err := k.s.cfg.DB.ForgottenEndpoints(ctx, forgottenAtOnce)
	if err != nil {
		return err
	}
	k.remembered = now
	if len(ids) == 0 {
		return nil
	}
	rows := rowwise(ctx)
	return k.s.update(rows, func(w *saving) error {
		for _, id := range ids {
			if err := w.tx.WakeEndpoint(rows, id, w.now); err != nil {
				return err
			}
		}
		return nil
	})
}
