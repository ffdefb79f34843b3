package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"till/flow"
	"till/flow/store"
)

// The bounds of the worker.
const (
	maxTasks      = 64  // at work at once
	maxPosts      = 128 // at work at once
	maxToOne      = 32  // at work at once for one endpoint
	claimAtOnce   = 64
	idle          = time.Second
	taskPatience  = 45 * time.Second // less than the lease
	expireRetries = 3                // an unreachable bank does not keep instructions alive
)

// worker is the only one who calls the outside. Work comes to it from the
// commit that owes it, at once; it looks for the rest when it is due.
type worker struct {
	s       *Service
	woken   chan struct{}
	stopped chan struct{}
	ctx     context.Context //nolint:containedctx // of Run; work handed over by a commit belongs to it
	wg      sync.WaitGroup
	slots   chan struct{}

	mu       sync.Mutex
	closed   bool
	at       map[string]*busy        // subjects that are being worked on
	posts    int                     // deliveries at work
	toOne    map[flow.EndpointID]int // of them for each endpoint
	queue    []queued                // waiting for a place; at most maxQueued
	claims   int64                   // counts claims: each is a lease of its own
	claiming bool                    // what was claimed may not be at work yet
}

// busy is a subject at work, and the newest work asked for meanwhile.
type busy struct {
	again *store.Work
}

func newWorker(s *Service) *worker {
	return &worker{
		s: s, woken: make(chan struct{}, 1), stopped: make(chan struct{}), slots: make(chan struct{}, maxTasks), at: map[string]*busy{},
		toOne: map[flow.EndpointID]int{}, closed: true,
	}
}

// wake makes the worker look for what is due.
func (k *worker) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// run does what is owed until ctx ends, and waits for what is at work then.
func (k *worker) run(ctx context.Context) error {
	if k.s.cfg.Alone {
		if err := k.s.update(ctx, func(w *saving) error { return w.tx.FreeLeases(ctx, w.now) }); err != nil {
			return fmt.Errorf("take up what was left: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	k.mu.Lock()
	k.ctx, k.closed = ctx, false
	k.mu.Unlock()
	group.Go(func() error { return k.loop(ctx) })
	err := group.Wait()
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.wg.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// loop claims what is due, again and again.
func (k *worker) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.woken:
		case <-timer.C:
		}
		if err := k.claim(ctx); err != nil && ctx.Err() == nil {
			k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "look for work", slog.String("error", err.Error()))
		}
		timer.Reset(k.nap(ctx))
	}
}

// nap is how long there is nothing to do, at most a second: another process may
// owe something too.
func (k *worker) nap(ctx context.Context) time.Duration {
	next := idle
	now := k.s.cfg.Now()
	for _, due := range []func(context.Context) (time.Time, bool, error){k.s.cfg.DB.NextTask, k.s.cfg.DB.NextDelivery} {
		if at, ok, err := due(ctx); err == nil && ok {
			next = min(next, max(at.Sub(now), time.Millisecond))
		}
	}
	return next
}

// claim takes what is due. It writes only when there is something.
func (k *worker) claim(ctx context.Context) error { // only the loop calls it
	k.mu.Lock()
	k.claiming = true
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.claiming = false
	}()
	now := k.s.cfg.Now()
	k.claims++
	claim := fmt.Sprintf("%s/%d", k.s.token, k.claims)
	if at, ok, err := k.s.cfg.DB.NextTask(ctx); err != nil {
		return err
	} else if ok && !at.After(now) {
		var works []store.Work
		err := k.s.update(ctx, func(w *saving) error {
			var err error
			works, err = w.tx.ClaimTasks(ctx, claim, now, now.Add(lease), claimAtOnce)
			return err
		})
		if err != nil {
			return err
		}
		for _, w := range works {
			k.submit(w)
		}
	}
	at, ok, err := k.s.cfg.DB.NextDelivery(ctx)
	if err != nil || !ok || at.After(now) {
		return err
	}
	var list []flow.Delivery
	err = k.s.update(ctx, func(w *saving) error {
		var err error
		list, err = w.tx.ClaimDeliveries(ctx, claim, now, now.Add(lease), claimAtOnce)
		return err
	})
	for _, d := range list {
		k.post(d)
	}
	return err
}

// submit starts work, one at a time for each subject: what is asked for while
// its subject is at work is done afterwards.
func (k *worker) submit(w store.Work) {
	key := string(w.Kind) + "/" + w.Subject
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return // its lease runs out, and it is found again
	}
	if b, ok := k.at[key]; ok {
		b.again = &w
		return
	}
	k.at[key] = &busy{}
	k.wg.Go(func() { k.work(key, w) })
}

// work does a task and what was asked for of its subject meanwhile.
func (k *worker) work(key string, w store.Work) {
	select {
	case k.slots <- struct{}{}:
	case <-k.ctx.Done(): // the process ends: its lease runs out, and it is found again
		k.mu.Lock()
		delete(k.at, key)
		k.mu.Unlock()
		return
	}
	defer func() { <-k.slots }()
	for {
		k.once(w)
		k.mu.Lock()
		again := k.at[key].again
		if again == nil || k.ctx.Err() != nil {
			delete(k.at, key)
			k.mu.Unlock()
			return
		}
		k.at[key].again = nil
		k.mu.Unlock()
		w = *again
	}
}

// once does a task and keeps what became of it.
func (k *worker) once(w store.Work) {
	ctx, cancel := context.WithTimeout(k.ctx, taskPatience)
	defer cancel()
	began := k.s.cfg.Now()
	err := k.guarded(ctx, w)
	keep := context.WithoutCancel(ctx)
	saved := k.s.update(keep, func(sv *saving) error {
		switch {
		case err == nil:
			return sv.tx.EndTask(keep, w)
		case k.ctx.Err() != nil: // the process ends: the next one takes it up at once
			return sv.tx.PutOffTask(keep, w, sv.now, false)
		}
		w.Attempts++
		return sv.tx.PutOffTask(keep, w, sv.now.Add(w.Retry()), true)
	})
	level := slog.LevelDebug
	if err != nil || saved != nil {
		level = slog.LevelWarn
	}
	k.s.cfg.Log.LogAttrs(keep, level, "task", slog.String("kind", string(w.Kind)), slog.String("subject", w.Subject),
		slog.Int("attempts", w.Attempts), slog.Int64("ms", k.s.cfg.Now().Sub(began).Milliseconds()), slog.Any("error", errors.Join(err, saved)))
	if err != nil {
		k.wake()
	}
}

// guarded does a task; a panic is an error with its stack.
func (k *worker) guarded(ctx context.Context, w store.Work) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return k.s.do(ctx, w)
}

// do does one task.
func (s *Service) do(ctx context.Context, w store.Work) error {
	switch w.Kind {
	case flow.TaskStart:
		err := s.start(ctx, flow.AttemptID(w.Subject), w.Fresh)
		if code := flow.CodeOf(err); code == flow.CodeRailRejected || code == flow.CodeRailUnavailable {
			return nil // decided: the attempt failed and its chats were told
		}
		return err
	case flow.TaskCheck:
		return s.checked(ctx, flow.SessionID(w.Subject))
	case flow.TaskSay:
		return s.say(ctx, flow.ChatID(w.Subject))
	case flow.TaskSlow:
		return s.slow(ctx, flow.AttemptID(w.Subject))
	case flow.TaskExpireAttempt:
		return s.lapse(ctx, flow.AttemptID(w.Subject), w.Attempts)
	case flow.TaskExpireSession:
		return s.expire(ctx, flow.SessionID(w.Subject), w.Attempts)
	}
	return fmt.Errorf("nobody does tasks of kind %q", w.Kind)
}

// slow says "one moment" to chats that still wait for instructions.
func (s *Service) slow(ctx context.Context, id flow.AttemptID) error {
	return s.update(ctx, func(w *saving) error {
		a, err := w.tx.Attempt(ctx, id)
		if err != nil || a.Instructions != nil || a.Status != flow.AttemptActive {
			return err
		}
		return w.spread(a.Session, flow.News{Kind: flow.NewsSlow, Attempt: id})
	})
}

// lapse ends instructions whose time is over, after asking the bank once more.
func (s *Service) lapse(ctx context.Context, id flow.AttemptID, tries int) error {
	a, err := s.cfg.DB.Attempt(ctx, id)
	if err != nil || a.Status != flow.AttemptActive {
		return err
	}
	if err := s.check(ctx, a.Session); err != nil && tries < expireRetries {
		return err
	}
	return s.update(ctx, func(w *saving) error {
		now, err := w.tx.Attempt(ctx, id)
		if err != nil {
			return err
		}
		session, err := w.tx.Session(ctx, now.Session)
		if err != nil {
			return err
		}
		if !w.now.Before(session.ExpiresAt) {
			return nil // the session itself is over: that is told, and ends the attempt
		}
		change, err := flow.Lapse(now, w.now)
		if err != nil {
			return err
		}
		return w.save(change, session)
	})
}

// expire ends a session whose time is over, after asking the bank once more.
func (s *Service) expire(ctx context.Context, id flow.SessionID, tries int) error {
	if err := s.check(ctx, id); err != nil && tries < expireRetries {
		return err
	}
	return s.update(ctx, func(w *saving) error {
		session, err := w.tx.Session(ctx, id)
		if err != nil {
			return err
		}
		attempts, err := w.tx.Attempts(ctx, id)
		if err != nil {
			return err
		}
		change, err := flow.Expire(session, attempts, w.now)
		if err != nil {
			return err
		}
		return w.save(change, session)
	})
}

// Wake makes the service look at once for what is due: for when its clock was
// moved.
func (s *Service) Wake() { s.worker.wake() }

// Idle says whether nothing that is due is left undone and nothing is at work.
func (s *Service) Idle(ctx context.Context) (bool, error) {
	k := s.worker
	k.mu.Lock()
	busy := k.claiming || len(k.at) > 0 || k.posts > 0 || len(k.queue) > 0
	k.mu.Unlock()
	if busy {
		return false, nil
	}
	now := s.cfg.Now()
	for _, next := range []func(context.Context) (time.Time, bool, error){s.cfg.DB.NextTask, s.cfg.DB.NextDelivery} {
		at, owed, err := next(ctx)
		if err != nil {
			return false, err
		}
		if owed && !at.After(now) {
			return false, nil
		}
	}
	return true, nil
}
