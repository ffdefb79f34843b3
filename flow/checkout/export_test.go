package checkout

import (
	"context"
	"slices"

	"till/flow"
)

// Waiting is how many wait for the call to the rail for an attempt.
func (s *Service) Waiting(id flow.AttemptID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ok := s.starting[id]; ok {
		return call.waiting
	}
	return 0
}

// Redo owes an event of a session to an endpoint once more.
func (s *Service) Redo(ctx context.Context, session flow.SessionID, event flow.EventID, to flow.EndpointID, cause string) error {
	events, err := s.cfg.DB.Events(ctx, session)
	if err != nil {
		return err
	}
	e := events[slices.IndexFunc(events, func(e flow.Event) bool { return e.ID == event })]
	return s.update(ctx, func(w *saving) error {
		endpoint, err := w.tx.EndpointByID(ctx, to)
		if err != nil {
			return err
		}
		return w.redo(e, endpoint, cause)
	})
}

// Ending says that Run has begun to end.
func (s *Service) Ending() bool {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.worker.closed
}
