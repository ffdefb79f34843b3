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
	maxTasks  = 64  // at work at once
	maxAtWork = 256 // subjects at work or waiting for a place
	// maxHandedOver bounds what commits that were under way when it was full may
	// still hand over.
	maxHandedOver = 2048
	claimAtOnce   = 64
	idle          = time.Second
	taskPatience  = 45 * time.Second // less than the lease
	// maxTries is how often a task may fail through a fault of our own before it
	// is given up: with the waits in between, more than two hours, and some minutes
	// where a payer waits for instructions.
	maxTries = 25
)

// worker is the only one who calls the outside. Work comes to it from the
// commit that owes it, at once; it looks for the rest when it is due.
type worker struct {
	s     *Service
	woken chan struct{}
	ctx   context.Context //nolint:containedctx // of Run; work handed over by a commit belongs to it
	wg    sync.WaitGroup
	slots chan struct{}

	mu       sync.Mutex
	closed   bool
	at       map[string]*job // subjects that are being worked on, with the newest work asked for meanwhile
	posts    posting
	claims   int64     // counts claims: each is a lease of its own
	claiming bool      // what was claimed may not be at work yet
	looks    time.Time // when the loop looks next by itself, zero while it is awake

	postCtx    context.Context //nolint:containedctx // of posts: it outlives ctx by a little
	outcomes   chan outcome    // what became of posts
	left       bool            // deliveries are due that there is no room for
	stuck      bool            // what is due could not be claimed
	after      flow.EndpointID // the last endpoint that deliveries were looked for, in a round of them
	remembered time.Time       // when what nobody would look at was last looked for
}

// job is work and when its lease ends.
type job struct {
	store.Work

	ends time.Time
	owed *owed // what is to be said, as the commit that owes it knows; nil: to be looked up

	trace flow.Trace // of what owed it, where it is done right after that
}

// step is the work's place in the trace of what owed it, or in one of its own.
func (j job) step() flow.Trace {
	name := string(j.Kind) + " " + j.Subject
	if j.trace.Zero() {
		return flow.NewTrace(name)
	}
	return j.trace.Then(name)
}

func newWorker(s *Service) *worker {
	return &worker{
		s: s, woken: make(chan struct{}, 1), slots: make(chan struct{}, maxTasks), at: map[string]*job{}, posts: newPosting(), closed: true,
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
		err := k.s.update(ctx, func(w *saving) error { return w.tx.FreeLeases(ctx, w.now) })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("take up what was left: %w", err)
		}
	}
	if err := k.s.update(ctx, func(w *saving) error { return w.plansWalk() }); err != nil && ctx.Err() == nil {
		return fmt.Errorf("plan to read the bank's statement: %w", err)
	}
	if err := errors.Join(k.s.keepPayday(ctx), k.s.keepRetention(ctx)); err != nil && ctx.Err() == nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx = store.Unhurried(ctx)
	posts, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	k.mu.Lock()
	k.ctx, k.postCtx, k.outcomes, k.closed = ctx, posts, make(chan outcome, maxOutcomes), false
	k.mu.Unlock()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		k.keepOutcomes(ctx)
	}()
	group.Go(func() error { return k.loop(ctx) })
	group.Go(func() error { return k.s.tick(ctx) })
	group.Go(func() error {
		return k.s.calls.tidy(ctx, func(err error) {
			k.s.cfg.Log.LogAttrs(ctx, slog.LevelError, "tidy the idempotent calls", slog.String("error", err.Error()))
		})
	})
	err := group.Wait()
	k.mu.Lock()
	k.closed = true
	var back []queued
	for id := range k.posts.lanes {
		back = append(back, k.posts.drop(id)...)
	}
	k.mu.Unlock()
	timer := time.AfterFunc(k.s.cfg.Drain, hangUp)
	k.giveBack(back)
	k.wg.Wait()
	timer.Stop()
	close(k.outcomes)
	<-kept
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// room is how many more subjects may be at work.
func (k *worker) room() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maxAtWork - len(k.at)
}

// takes says whether work that is handed over now would be taken.
func (k *worker) takes() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.closed && k.ctx.Err() == nil && len(k.at) < maxAtWork
}

// submit starts work, one at a time for each subject: what is asked for while
// its subject is at work is done afterwards.
func (k *worker) submit(j job) {
	if !k.enter(j) {
		k.drop(j)
	}
}

// enter finds work a place; false where it has none any more.
func (k *worker) enter(j job) bool {
	key := string(j.Kind) + "/" + j.Subject
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	if _, ok := k.at[key]; ok {
		j.owed = nil // by then it is said, or not, by what is at work now
		k.at[key] = &j
		return true
	}
	if len(k.at) >= maxHandedOver {
		return true // its lease runs out, and it is found again
	}
	k.at[key] = nil
	k.wg.Go(func() { k.work(key, j) })
	return true
}

// drop makes work that was taken and not begun due for anybody, as the process ends.
func (k *worker) drop(j job) {
	ctx := store.Unhurried(context.WithoutCancel(k.ctx))
	err := k.s.update(ctx, func(sv *saving) error { return sv.tx.PutOffTask(ctx, j.Work, sv.now, false) })
	if err != nil { // its lease runs out
		k.s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "give work back", append(k.s.concerns(ctx, j.Task), slog.String("error", err.Error()))...)
	}
}

// work does a task and what was asked for of its subject meanwhile.
func (k *worker) work(key string, j job) {
	select {
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-k.ctx.Done(): // the process ends
	}
	for k.ctx.Err() == nil {
		if k.s.cfg.Before != nil {
			k.s.cfg.Before(j.Task)
		}
		k.once(j)
		again := k.next(key)
		if again == nil {
			return
		}
		j = *again
	}
	k.mu.Lock()
	if newer := k.at[key]; newer != nil {
		j = *newer
	}
	delete(k.at, key)
	k.mu.Unlock()
	k.drop(j)
}

// next is what was asked for of a subject meanwhile; nil ends the work on it.
func (k *worker) next(key string) *job {
	k.mu.Lock()
	defer k.mu.Unlock()
	again := k.at[key]
	k.at[key] = nil
	if again == nil {
		if len(k.at) >= maxAtWork {
			k.wake() // there is room again
		}
		delete(k.at, key)
	}
	return again
}

// once does a task and keeps what became of it.
func (k *worker) once(j job) {
	w := j.Work
	ctx, cancel := context.WithTimeout(flow.WithTrace(k.ctx, j.step()), taskPatience)
	defer cancel()
	keep := context.WithoutCancel(ctx)
	began := k.s.cfg.Now()
	if began.Add(taskPatience).After(j.ends) {
		k.late(keep, j, began)
		return
	}
	if began.Sub(j.ends.Add(-lease)) > owedLasts {
		j.owed = nil
	}
	err := guarded(func() error { return k.s.do(ctx, j) })
	ended := errors.Is(err, errEnded)
	if ended {
		err = nil
	}
	later, tooEarly := errors.AsType[*NotYetError](err)
	cut := err != nil && k.ctx.Err() != nil // the process ends: the next one takes it up at once
	giveUp := err != nil && !cut && ours(w, err) && w.Attempts+1 >= maxTries
	save := func(sv *saving) error {
		switch {
		case err == nil:
			return sv.tx.EndTask(keep, w)
		case cut:
			return sv.tx.PutOffTask(keep, w, sv.now, false)
		case tooEarly:
			return sv.tx.PutOffTask(keep, w, sv.now.Add(later.Wait), false)
		case giveUp:
			return sv.tx.PutOffTask(keep, w, store.GivenUp, true)
		}
		tried := w.Task
		tried.Attempts++
		return sv.tx.PutOffTask(keep, w, sv.now.Add(tried.Retry()), true)
	}
	var saved error
	if !ended {
		saved = k.s.update(keep, save)
	}
	level := slog.LevelDebug
	doubled := w.Attempts&(w.Attempts-1) == 0 // the 1st, 2nd, 3rd, 5th, 9th try: what fails for a night fills no log
	if err != nil && !tooEarly && (!cut && doubled || errors.Is(err, errPanic)) || saved != nil {
		level = slog.LevelWarn
	}
	if giveUp {
		level = slog.LevelError
	}
	if took := k.s.cfg.Now().Sub(began); k.s.cfg.Log.Enabled(keep, level) {
		k.s.cfg.Log.LogAttrs(keep, level, "task", append(k.s.concerns(keep, w.Task), slog.Bool("given_up", giveUp),
			slog.Int("attempts", w.Attempts), slog.Int64("ms", took.Milliseconds()), slog.Any("error", errors.Join(err, saved)))...)
	}
	if err != nil {
		k.wake()
	}
}

// late gives back work that waited so long for its place that its lease could
// end while it is done; then somebody else could do it at the same time.
func (k *worker) late(ctx context.Context, j job, now time.Time) {
	var err error
	if now.Before(j.ends) {
		err = k.s.update(ctx, func(sv *saving) error { return sv.tx.PutOffTask(ctx, j.Work, sv.now, false) })
	}
	k.s.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "a task waited too long for its place", slog.String("kind", string(j.Kind)),
		slog.String("subject", j.Subject), slog.Any("error", err))
	k.wake()
}

// ours says whether a task failed through a fault of our own, which time does
// not mend. Messages that cannot be sent are given up one by one instead.
func ours(w store.Work, err error) bool {
	code := flow.CodeOf(err)
	return code == flow.CodeNotFound || code == flow.CodeInternal && w.Kind != flow.TaskSay && !errors.Is(err, context.DeadlineExceeded)
}

// errPanic is what work met that panicked: a bug of ours.
var errPanic = errors.New("panic")

// guarded does something; a panic is an error with its stack.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, r, debug.Stack())
		}
	}()
	return do()
}
