package checkout

import (
	"context"

	"till/flow"
	"till/flow/store"
)

// Once does a call whose effect is not one transaction of its own: it calls a
// bank, or plays with the sandbox. do is run unless the call was answered
// before; what it answers is kept and given again byte for byte.
//
// A call that was cut off, or failed because the bank or the store did, is run
// again when it is asked for again: do must be one that a repeat does not harm.
// A call that was refused is forgotten: its key may be used for a better one.
// Errors: idempotency_key_reused, idempotency_in_progress, and those of do.
func (s *Service) Once(ctx context.Context, c Call, do func() (Answer, error)) (Answer, error) {
	free, done := s.running1(string(c.Project) + "/" + c.Key)
	if !free {
		return Answer{}, flow.Refuse(flow.CodeIdempotencyRunning, "The first request with this Idempotency-Key is still running.")
	}
	defer done()
	var answer Answer
	err := s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil && kept.Status != 0 {
			answer = answeredBefore(kept)
			return err
		}
		answer = Answer{}
		return w.tx.SaveCall(w.ctx, c.Project, c.Key, store.KeptCall{Hash: c.Hash, At: w.now})
	})
	if err != nil || answer.Replayed {
		return answer, wrap("do a call once", err)
	}
	answer, err = do()
	keep := context.WithoutCancel(ctx)
	if err != nil {
		if resumed(flow.CodeOf(err)) {
			return Answer{}, err
		}
		if forgotten := s.update(keep, func(w *saving) error { return w.tx.ForgetCall(w.ctx, c.Project, c.Key) }); forgotten != nil {
			return Answer{}, wrap("forget a refused call", forgotten)
		}
		return Answer{}, err
	}
	err = s.update(keep, func(w *saving) error {
		return w.tx.SaveCall(w.ctx, c.Project, c.Key, store.KeptCall{
			Hash: c.Hash, Made: answer.Location, Status: answer.Status, Body: answer.Body, At: w.now,
		})
	})
	return answer, wrap("keep a call's answer", err)
}

// resumed says whether a call that ended with a code may have had an effect, so
// that the same call again goes on with it.
func resumed(code flow.Code) bool {
	switch code { //nolint:exhaustive // the others had none
	case flow.CodeInternal, flow.CodeStorage, flow.CodeRailTimeout, flow.CodeRailUnavailable, flow.CodeRailRejected:
		return true
	default:
		return false
	}
}

// begun looks up what is known of an idempotent call; nil for a new one.
func (w *saving) begun(c Call) (*store.KeptCall, error) {
	if c.Key == "" {
		return nil, nil //nolint:nilnil // a call without a key is always new
	}
	kept, found, err := w.tx.Call(w.ctx, c.Project, c.Key)
	if err != nil || !found {
		return nil, err
	}
	if w.now.Sub(kept.At) > idempotencyKept {
		return nil, nil //nolint:nilnil // forgotten
	}
	if kept.Hash != c.Hash {
		return nil, flow.Refuse(flow.CodeIdempotencyReused, "This Idempotency-Key was used for another request. Use a new key.")
	}
	return &kept, nil
}

// answeredBefore is the answer that is kept with a key.
func answeredBefore(kept *store.KeptCall) Answer {
	if kept == nil {
		return Answer{}
	}
	return Answer{Status: kept.Status, Body: kept.Body, Location: kept.Made, Replayed: true}
}

// rendered makes a call's answer and keeps it with the call's key.
func (w *saving) rendered(c Call, id string, made Made) (a Answer, err error) {
	a.Location = id
	if a.Status, a.Body, err = c.Render(made); err != nil || c.Key == "" {
		return a, err
	}
	return a, w.tx.SaveCall(w.ctx, c.Project, c.Key, store.KeptCall{Hash: c.Hash, Made: id, Status: a.Status, Body: a.Body, At: w.now})
}

// running1 lets one call with a key run at a time in this process.
func (s *Service) running1(key string) (free bool, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[key] {
		return false, nil
	}
	s.running[key] = true
	return true, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, key)
	}
}
