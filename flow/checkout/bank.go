package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"till/flow"
)

// maxEndpoints is how many webhook endpoints a project may have.
const maxEndpoints = 20

// begin opens a method of a session inside a transaction. fresh is true when an
// attempt was made: nobody called the rail for it yet, and the task that would
// is kept with it. hand gives that task to the worker at once; a caller who
// waits for the answer keeps it for itself.
func (w *saving) begin(id flow.SessionID, ask flow.Ask, hand bool) (a flow.Attempt, fresh bool, err error) {
	session, err := w.tx.Session(w.ctx, id)
	if err != nil {
		return flow.Attempt{}, false, err
	}
	attempts, err := w.tx.Attempts(w.ctx, id)
	if err != nil {
		return flow.Attempt{}, false, err
	}
	attempt, err := w.s.ids.New(flow.PrefixAttempt)
	if err != nil {
		return flow.Attempt{}, false, err
	}
	ask.ID = flow.AttemptID(attempt)
	if ask.Reference, err = w.s.ids.New(flow.PrefixReference); err != nil {
		return flow.Attempt{}, false, err
	}
	a, change, err := flow.Begin(session, attempts, ask, w.s.served(session.Project), w.now)
	if err != nil { // where the merchant is stopped, all but the instructions that are out
		return a, false, cmp.Or(w.s.admitted(session.Project), err)
	}
	if len(change.Attempts) == 0 {
		return a, false, nil
	}
	if err := w.save(change, session); err != nil {
		return flow.Attempt{}, false, err
	}
	if a.ID != ask.ID { // it was made before: it is taken up, and nobody is called
		return a, false, w.owe(flow.TaskExpireAttempt, string(a.ID), a.ExpiresAt)
	}
	if err := w.log(id, "rail.call", map[string]any{"operation": "start", "attempt": a.ID, "method": a.Method, "reference": a.Reference}); err != nil {
		return flow.Attempt{}, false, err
	}
	due := w.now
	if !hand {
		due = w.now.Add(lease) // the caller does it; this is for when it dies
	}
	if err := w.oweWork(flow.Task{Kind: flow.TaskStart, Subject: string(a.ID), Due: due}, true); err != nil {
		return flow.Attempt{}, false, err
	}
	return a, true, w.owe(flow.TaskExpireAttempt, string(a.ID), a.ExpiresAt)
}

// Instruct opens a method of a session for its merchant and waits for the
// bank's instructions. Asked again while they are live, it gives the same ones.
// Those of a session that was paid or ended while the bank made them are nobody's
// to pay any more; where a part came or went meanwhile, others are asked for.
// Errors: session_expired, session_paid, session_cancelled,
// method_not_allowed_for_session, rail_rejected, rail_unavailable, rail_timeout.
func (s *Service) Instruct(ctx context.Context, project flow.ProjectID, id flow.SessionID, ask Ask) (View, flow.Attempt, error) {
	var attempt flow.Attempt
	var fresh bool
	err := s.update(ctx, func(w *saving) error {
		if _, err := w.owned(project, id); err != nil {
			return err
		}
		var err error
		attempt, fresh, err = w.begin(id, flow.Ask{Method: ask.Method, Lasts: ask.Lasts}, false)
		return err
	})
	if err != nil {
		return View{}, flow.Attempt{}, fmt.Errorf("open %s: %w", ask.Method, err)
	}
	var started error
	if attempt.Instructions == nil {
		if started = s.start(ctx, attempt.ID, fresh); started != nil && !errors.Is(started, errOver) {
			return View{}, flow.Attempt{}, fmt.Errorf("open %s: %w", ask.Method, started)
		}
	}
	view, err := s.View(ctx, project, id)
	if err == nil {
		err = cmp.Or(view.Session.Closed(), started)
	}
	if err != nil {
		return View{}, flow.Attempt{}, fmt.Errorf("open %s: %w", ask.Method, err)
	}
	for _, a := range view.Attempts {
		switch {
		case a.ID != attempt.ID || a.Instructions == nil:
		case a.Amount != view.Session.Outstanding(): // each time by money that moved: this ends
			return s.Instruct(ctx, project, id, ask)
		default:
			return view, a, nil
		}
	}
	return View{}, flow.Attempt{}, flow.Refuse(flow.CodeRailTimeout, "The bank has not answered yet. Ask again: nothing is made twice.")
}
