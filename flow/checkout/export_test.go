package checkout

import "till/flow"

// Waiting is how many wait for the call to the rail for an attempt.
func (s *Service) Waiting(id flow.AttemptID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ok := s.starting[id]; ok {
		return call.waiting
	}
	return 0
}
