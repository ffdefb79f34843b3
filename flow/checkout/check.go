package checkout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// How we came to hear what a bank said; it names the lines of the log.
const (
	fromNotice = "notice" // it told us
	fromAnswer = "answer" // we asked

	fromStatement = "statement" // it stood on the statement of a day, and nobody had told us
)

// check asks the bank about a session, and keeps what it says. coming says that money
// is on its way, as far as the bank answered, which has until patience ends; then it
// is asked again. What is asked in turn waits for its turn (NotYetError) where there
// is anything to ask.
func (s *Service) check(ctx context.Context, id flow.SessionID, patience time.Duration, inTurn bool) (coming bool, err error) {
	session, err := s.cfg.DB.Session(ctx, id)
	if err != nil {
		return false, err
	}
	attempts, err := s.cfg.DB.Attempts(ctx, id)
	if err != nil {
		return false, err
	}
	attempts = slices.DeleteFunc(attempts, func(a flow.Attempt) bool { return a.Instructions == nil }) // nobody could pay it
	if len(attempts) == 0 && session.Status != flow.SessionProcessing {
		return false, nil
	}
	if inTurn && len(attempts) > 0 {
		if wait := s.pace.turn(len(attempts), s.cfg.Now()); wait > 0 {
			return false, &NotYetError{Wait: wait}
		}
		defer s.pace.over()
	}
	found, failure := s.askAbout(ctx, attempts, patience)
	if inTurn && session.Status == flow.SessionPaid { // afterwards only money is worth a line
		return found, failure
	}
	kept := s.update(ctx, func(w *saving) (err error) {
		coming, err = w.bankAnswered(session, found, failure)
		return err
	})
	return coming, errors.Join(failure, kept)
}

// askAbout asks the bank about attempts of a session, and takes in what it says. One
// that it cannot answer for does not hide the others' money.
func (s *Service) askAbout(ctx context.Context, attempts []flow.Attempt, patience time.Duration) (coming bool, failures error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, a := range attempts {
		notices, err := s.cfg.Rail.Check(patient, a.Reference)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("ask the bank about %s: %w", a.Reference, err))
			if errors.Is(err, rail.ErrUnavailable) || patient.Err() != nil {
				return coming, failures // the others would not be answered either
			}
		}
		for _, n := range notices {
			if n.Reference == "" {
				n.Reference = a.Reference // it was asked about this one
			}
			failures = errors.Join(failures, s.settle(ctx, n, fromAnswer))
			if n.Kind == flow.Pending {
				here, err := arrived(ctx, s.cfg.DB.Reader, n)
				failures = errors.Join(failures, err)
				coming = coming || !here
			}
		}
	}
	return coming, failures
}

// bankAnswered keeps that the bank was asked about a session, as it was then, and what came
// of it: while money is on its way, whoever asked, it is asked again.
func (w *saving) bankAnswered(asked flow.Session, found bool, failure error) (coming bool, err error) {
	session, err := w.tx.Session(w.ctx, asked.ID)
	if err == nil && !found && failure == nil {
		session, err = w.resume(asked, session)
	}
	if err != nil {
		return found, err
	}
	coming = found || failure == nil && session.Status == flow.SessionProcessing // the bank told of it while it was asked
	outcome := "ok"
	switch {
	case coming:
		outcome = "pending"
	case failure != nil:
		outcome = failure.Error()
	}
	if err := w.log(session.ID, "bank.asked", map[string]string{"outcome": outcome}); err != nil {
		return coming, err
	}
	if !coming || session.Status != flow.SessionProcessing {
		return coming, nil
	}
	return coming, w.owe(flow.TaskCheck, string(session.ID), w.now.Add(flow.ComingAgain))
}

// asksInTurn says whether a task waits for its turn before it asks the bank. What
// somebody waits for, and hands over with the commit that asks for it, does not: what
// is found when it is due does not say when that was.
func asksInTurn(task store.Work) bool { return task.Due.IsZero() }

// notYet says whether nothing was asked, because it was not its turn.
func notYet(err error) bool {
	_, ok := errors.AsType[*NotYetError](err)
	return ok
}

// checked asks the bank, tells the chats that wait for it and plans the next
// question, which takes the place of the task that asked this one.
func (s *Service) checked(ctx context.Context, task store.Work) error {
	id := flow.SessionID(task.Subject)
	coming, failure := s.check(ctx, id, checkPatience, asksInTurn(task))
	if notYet(failure) {
		return failure
	}
	err := s.update(ctx, func(w *saving) error {
		session, err := w.tx.Session(ctx, id)
		if err != nil {
			return err
		}
		kind := flow.NewsNothing
		switch {
		case coming:
			kind = flow.NewsComing
		case failure != nil:
			kind = flow.NewsBankDown
		}
		if err := w.waiting(id, flow.Verifying, flow.News{Kind: kind}); err != nil {
			return err
		}
		w.tx.After(func() { s.answered(id, kind, w.now) })
		attempts, err := w.tx.Attempts(ctx, id)
		if err != nil {
			return err
		}
		next, ok := flow.NextQuestion(session, attempts, w.now)
		if !ok {
			return w.tx.EndTask(ctx, task)
		}
		return w.owe(flow.TaskCheck, string(id), next)
	})
	if err == nil {
		err = errEnded
	}
	return err
}
