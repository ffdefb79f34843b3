package checkout

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"till/flow/store"
)

// The bounds of the ticks that wait to be kept.
const (
	maxTicks = 1024
	// tickPause is how long ticks are gathered: they come one or two for each
	// message, nobody waits for them, and each alone would cost a transaction.
	tickPause = 25 * time.Millisecond
)

// ticking are the ticks that wait to be kept together.
type ticking struct {
	come chan struct{} // there is one

	mu      sync.Mutex // guards all below
	open    bool       // somebody will keep what waits
	waiting []Tick
	keeping bool
}

func newTicking() *ticking { return &ticking{come: make(chan struct{}, 1)} }

// put lets a tick wait; false means that it does not, for want of room or of
// somebody who would keep it.
func (k *ticking) put(t Tick) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open || len(k.waiting) >= maxTicks {
		return false
	}
	k.waiting = append(k.waiting, t)
	select {
	case k.come <- struct{}{}:
	default:
	}
	return true
}

// take is all that waits.
func (k *ticking) take() []Tick {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.waiting
	k.waiting, k.keeping = nil, len(list) > 0
	return list
}

func (k *ticking) set(change func(k *ticking)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(k)
}

func (k *ticking) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keeping || len(k.waiting) > 0
}

// Tick takes in what became of a message of ours. Ticks of messages that are
// not ours are no error: the number may be used by a person too. While Run runs
// a tick is kept a moment later, together with others; what a crash takes with
// it is not told again.
func (s *Service) Tick(ctx context.Context, t Tick) error {
	if s.ticks.put(t) {
		return nil
	}
	return wrap("take a tick in", s.keepTicks(ctx, []Tick{t}))
}

// tick keeps ticks until ctx ends, and those that came before.
func (s *Service) tick(ctx context.Context) error {
	s.ticks.set(func(k *ticking) { k.open = true })
	pause := time.NewTimer(0)
	defer pause.Stop()
	for ctx.Err() == nil {
		select {
		case <-s.ticks.come:
		case <-ctx.Done():
		}
		pause.Reset(tickPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
		s.keepWaiting(ctx)
	}
	s.ticks.set(func(k *ticking) { k.open = false })
	s.keepWaiting(ctx)
	return ctx.Err()
}

// keepWaiting keeps what waits.
func (s *Service) keepWaiting(ctx context.Context) {
	keep := context.WithoutCancel(ctx)
	if err := s.keepTicks(keep, s.ticks.take()); err != nil {
		s.cfg.Log.LogAttrs(keep, slog.LevelWarn, "ticks were not kept", slog.String("error", err.Error()))
	}
	s.ticks.set(func(k *ticking) { k.keeping = false })
}

// keepTicks keeps ticks in one transaction, which writes nothing where no message
// is ours.
func (s *Service) keepTicks(ctx context.Context, list []Tick) error {
	if len(list) == 0 {
		return nil
	}
	return s.update(store.Soon(ctx), func(w *saving) error {
		for _, t := range list {
			said, found, err := w.tx.Said(ctx, t.Message)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			moved, err := w.tx.MarkSaid(ctx, said.ID, t.State)
			if err != nil {
				return err
			}
			if !moved {
				continue
			}
			if err := w.said(said, t.State, ""); err != nil {
				return err
			}
		}
		return nil
	})
}
