package checkout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of what is kept of idempotent calls.
const (
	idempotencyKept = 24 * time.Hour
	// tidyEvery is how often the clock is looked at, which may be moved, and
	// forgetCallsEvery how often what is too old is looked for.
	tidyEvery        = time.Second
	forgetCallsEvery = 10 * time.Minute
	// forgetCallsAtOnce is how many calls are dropped in one transaction, so that
	// nobody else waits for long.
	forgetCallsAtOnce = 500
)

// calls are the idempotent calls that one database keeps.
type calls struct {
	db     *store.DB
	now    func() time.Time
	random io.Reader
	look   time.Duration // how long nobody looks at least, 0 for the usual

	mu      sync.Mutex
	running map[string]bool // in this process
}

func newCalls(db *store.DB, now func() time.Time, random io.Reader) *calls {
	return &calls{db: db, now: now, random: random, running: map[string]bool{}}
}

// alone lets one call with a key run at a time in this process. Errors:
// idempotency_in_progress.
func (k *calls) alone(c Call) (done func(), err error) {
	if c.Key == "" {
		return func() {}, nil
	}
	name := c.name()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running[name] {
		return nil, flow.Refuse(flow.CodeIdempotencyRunning, "The first request with this Idempotency-Key is still running.")
	}
	k.running[name] = true
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.running, name)
	}, nil
}

// begun looks up what is known of a call, its answer unsealed; nil for a new
// one. Errors: idempotency_key_reused.
func (k *calls) begun(ctx context.Context, r store.Reader, c Call) (*store.KeptCall, error) {
	if c.Key == "" {
		return nil, nil // a call without a key is always new
	}
	kept, found, err := r.Call(ctx, c.scope(), c.name())
	if err != nil || !found {
		return nil, err
	}
	if k.now().Sub(kept.At) > idempotencyKept {
		return nil, nil // forgotten
	}
	if kept.Hash != c.Hash {
		return nil, flow.Refuse(flow.CodeIdempotencyReused, "This Idempotency-Key was used for another request. Use a new key.")
	}
	if kept.Status == 0 {
		return &kept, nil
	}
	if kept.Body, err = c.unseal(kept.Body); errors.Is(err, errSealed) {
		// The hash is the same: what differs is what it was asked for with.
		err = flow.Refuse(flow.CodeIdempotencyReused, "This Idempotency-Key was used for another request, or by another login. Use a new key.")
	}
	return &kept, err
}

// answered says whether a call has an answer.
func (k *calls) answered(ctx context.Context, c Call) (bool, error) {
	kept, err := k.begun(ctx, k.db.Reader, c)
	return kept != nil && kept.Status != 0, err
}

// begin keeps that a call runs, and what it made so far.
func (k *calls) begin(ctx context.Context, tx *store.Tx, c Call, made string) error {
	return tx.SaveCall(ctx, c.scope(), c.name(), store.KeptCall{Hash: c.Hash, Made: made, At: k.now()})
}

// keep keeps a call's answer.
func (k *calls) keep(ctx context.Context, tx *store.Tx, c Call, a Answer) error {
	kept, err := k.sealed(c, a)
	if err != nil {
		return err
	}
	return k.save(ctx, tx, c, kept)
}

// sealed is what is kept of a call's answer. It needs no transaction.
func (k *calls) sealed(c Call, a Answer) (store.KeptCall, error) {
	if c.Key == "" {
		return store.KeptCall{}, nil
	}
	body, err := c.seal(k.random, a.Body)
	return store.KeptCall{Hash: c.Hash, Made: a.Location, Status: a.Status, Body: body, At: k.now()}, err
}

// save keeps what sealed made.
func (*calls) save(ctx context.Context, tx *store.Tx, c Call, kept store.KeptCall) error {
	if c.Key == "" {
		return nil
	}
	return tx.SaveCall(ctx, c.scope(), c.name(), kept)
}

// drafted makes the answer of a call whose effect is yet to be kept, and what is
// to be kept of it then.
func (k *calls) drafted(c Call, id string, made Made) (a Answer, kept store.KeptCall, err error) {
	a.Location = id
	if a.Status, a.Body, err = c.Render(made); err == nil {
		kept, err = k.sealed(c, a)
	}
	return a, kept, err
}

// rendered makes a call's answer and keeps it with the call's key.
func (k *calls) rendered(ctx context.Context, tx *store.Tx, c Call, id string, made Made) (Answer, error) {
	a, kept, err := k.drafted(c, id, made)
	if err != nil {
		return a, err
	}
	return a, k.save(ctx, tx, c, kept)
}

// refused keeps a refusal that is an answer like any other. What was refused has
// no effect, so that this needs no part of another transaction: a call that is
// cut off before it is refused anew.
func (k *calls) refused(ctx context.Context, c Call, refusal error) (Answer, error) {
	if c.Key == "" || c.Refuse == nil {
		return Answer{}, refusal
	}
	told, final := c.Refuse(refusal)
	if !final {
		return Answer{}, refusal
	}
	var answer Answer
	keep := context.WithoutCancel(ctx)
	err := k.db.Update(keep, func(tx *store.Tx) error {
		kept, err := k.begun(keep, tx.Reader, c)
		if err != nil || kept != nil && kept.Status != 0 { // the same call elsewhere was faster
			answer = answeredBefore(kept)
			return err
		}
		answer = told
		return k.keep(keep, tx, c, told)
	})
	return answer, wrap("keep a refusal", err)
}

// answeredBefore is the answer that is kept with a key.
func answeredBefore(kept *store.KeptCall) Answer {
	if kept == nil {
		return Answer{}
	}
	return Answer{Status: kept.Status, Body: kept.Body, Location: kept.Made, Replayed: true}
}

// tidy drops calls that were kept long enough, until ctx ends. failed hears of
// what it could not do; it is tried again.
func (k *calls) tidy(ctx context.Context, failed func(error)) error {
	ticker := time.NewTicker(max(k.look, tidyEvery))
	defer ticker.Stop()
	var next time.Time
	for {
		if now := k.now(); !now.Before(next) {
			all, err := k.forget(ctx, now)
			switch {
			case err != nil && ctx.Err() == nil:
				failed(err)
			case all:
				next = now.Add(forgetCallsEvery)
			case err == nil: // there is more
				continue
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// forget drops some calls that are too old, and says whether those were all. It
// writes only where there are some.
func (k *calls) forget(ctx context.Context, now time.Time) (all bool, err error) {
	oldest, there, err := k.db.OldestCall(ctx)
	before := now.Add(-idempotencyKept)
	if err != nil || !there || !oldest.Before(before) {
		return err == nil, err
	}
	var n int64
	err = k.db.Update(ctx, func(tx *store.Tx) error {
		n, err = tx.ForgetCalls(ctx, before, forgetCallsAtOnce)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("forget old calls: %w", err)
	}
	return n < forgetCallsAtOnce, nil
}
