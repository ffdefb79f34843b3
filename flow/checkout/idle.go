package checkout

import (
	"context"
	"time"
)

// Wake makes the service look at once for what is due: for when its clock was
// moved.
func (s *Service) Wake() { s.worker.wake() }

// Idle says whether nothing that is due is left undone and nothing is at work.
// While Run does not run, nobody knows.
func (s *Service) Idle(ctx context.Context) (bool, error) {
	// What an update has committed is handed to the worker a moment later, when
	// nobody can see that it is due.
	if s.worker.busy() || s.ticks.busy() || s.cfg.DB.UnderWay() > 0 {
		return false, nil
	}
	now := s.cfg.Now()
	next, err := s.cfg.DB.Next(ctx)
	if err != nil {
		return false, err
	}
	for _, at := range []time.Time{next.Tasks(), next.Deliveries()} {
		if !at.IsZero() && !at.After(now) {
			return false, nil
		}
	}
	return s.cfg.DB.UnderWay() == 0 && !s.worker.busy(), nil // what was claimed meanwhile looked as if it were not due
}

// busy says whether something is at work, or may be.
func (k *worker) busy() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.closed || k.claiming || len(k.at) > 0 || k.posts.keeps > 0 || k.posts.queued > 0
}
