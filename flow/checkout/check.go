package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till/flow"
	"till/rail"
)

// check asks the bank about every attempt of a session that it may know money
// for, and takes in what it says. An attempt that it cannot answer for does not
// hide the others' money.
func (s *Service) check(ctx context.Context, id flow.SessionID) error {
	attempts, err := s.cfg.DB.Attempts(ctx, id)
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	var failures error
	for _, a := range attempts {
		if a.Instructions == nil && a.Tries == 0 {
			continue
		}
		notices, err := s.cfg.Rail.Check(patient, a.Reference)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("ask the bank about %s: %w", a.Reference, err))
			if errors.Is(err, rail.ErrUnavailable) || patient.Err() != nil {
				return failures // the others would not be answered either
			}
		}
		for _, n := range notices {
			if n.Reference == "" {
				n.Reference = a.Reference // it was asked about this one
			}
			failures = errors.Join(failures, s.settle(ctx, n, "answer"))
		}
	}
	return failures
}

// checked asks the bank, tells the chats that wait for it and plans the next
// question.
func (s *Service) checked(ctx context.Context, id flow.SessionID) error {
	failure := s.check(ctx, id)
	return s.update(ctx, func(w *saving) error {
		outcome, kind := "ok", flow.NewsNothing
		if failure != nil {
			outcome, kind = failure.Error(), flow.NewsBankDown
		}
		session, err := w.tx.Session(ctx, id)
		if err != nil {
			return err
		}
		if session.Status != flow.SessionPaid { // afterwards only money would be worth a line
			if err := w.log(id, "bank.asked", map[string]string{"outcome": outcome}); err != nil {
				return err
			}
		}
		if err := w.waiting(id, flow.Verifying, flow.News{Kind: kind}); err != nil {
			return err
		}
		w.tx.After(func() { s.answered(id, kind, w.now) })
		attempts, err := w.tx.Attempts(ctx, id)
		if err != nil {
			return err
		}
		var next time.Time
		for _, a := range attempts {
			if at, ok := flow.NextCheck(a, w.now); ok && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
		if next.IsZero() {
			return nil
		}
		return w.owe(flow.TaskCheck, string(id), next)
	})
}
