package checkout

import (
	"cmp"
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

// asked is what came of asking the bank about a session.
type asked struct {
	session flow.Session // as it was then
	unsaid  bool         // it is not worth a line
	coming  bool         // money is on its way, as far as the bank answered
	failure error        // of those attempts that it could not answer for
}

// ask asks the bank about a session, which has until patience ends to answer. What is
// asked in turn waits for its turn (NotYetError) where there is anything to ask.
func (s *Service) ask(ctx context.Context, id flow.SessionID, patience time.Duration, inTurn bool) (asked, error) {
	session, err := s.cfg.DB.Session(ctx, id)
	if err != nil {
		return asked{}, err
	}
	attempts, err := s.cfg.DB.Attempts(ctx, id)
	if err != nil {
		return asked{}, err
	}
	attempts = slices.DeleteFunc(attempts, func(a flow.Attempt) bool { return a.Instructions == nil }) // nobody could pay it
	if len(attempts) == 0 && session.Status != flow.SessionProcessing {
		return asked{session: session, unsaid: true}, nil
	}
	if inTurn && len(attempts) > 0 {
		if wait := s.pace.turn(len(attempts), s.cfg.Now()); wait > 0 {
			return asked{}, &NotYetError{Wait: wait}
		}
		defer s.pace.over()
	}
	out := asked{session: session, unsaid: inTurn && session.Status == flow.SessionPaid} // afterwards only money is worth a line
	out.coming, out.failure = s.askAbout(ctx, attempts, patience)
	return out, nil
}

// check asks the bank about a session, as ask does, for who plans no question: while
// money is on its way it is asked again.
func (s *Service) check(ctx context.Context, id flow.SessionID, patience time.Duration, inTurn bool) error {
	a, err := s.ask(ctx, id, patience, inTurn)
	if err != nil || a.unsaid {
		return errors.Join(err, a.failure)
	}
	kept := s.update(ctx, func(w *saving) error {
		session, coming, err := w.bankAnswered(a)
		if err != nil || !coming || session.Status != flow.SessionProcessing {
			return err
		}
		return w.owe(flow.TaskCheck, string(id), w.now.Add(flow.ComingAgain))
	})
	return errors.Join(a.failure, kept)
}

// askAbout asks the bank about attempts of a session, and takes in what it says. One
// that it cannot answer for does not hide the others' money.
func (s *Service) askAbout(ctx context.Context, attempts []flow.Attempt, patience time.Duration) (coming bool, failures error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, a := range attempts {
		notices, err := s.bank.Check(patient, a.Reference)
		if err != nil {
			failures = errors.Join(failures, fmt.Errorf("ask the bank about %s: %w", a.Reference, err))
			if errors.Is(err, rail.ErrUnavailable) || patient.Err() != nil {
				return coming, failures // the others would not be answered either
			}
		}
		for _, n := range notices {
			n.Reference = cmp.Or(n.Reference, a.Reference) // it was asked about this one
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

// bankAnswered keeps that the bank was asked about a session, and what came of it. It
// gives back the session as it is now, and whether money is on its way to it.
func (w *saving) bankAnswered(a asked) (session flow.Session, coming bool, err error) {
	session, err = w.tx.Session(w.ctx, a.session.ID)
	if err != nil || a.unsaid {
		return session, a.coming, err
	}
	outcome := "ok"
	switch {
	case a.coming:
		outcome, coming = "pending", true
	case a.failure != nil:
		outcome = a.failure.Error()
	default:
		if session, err = w.resume(a.session, session); err != nil {
			return session, false, err
		}
		if coming = session.Status == flow.SessionProcessing; coming { // the bank told of it while it was asked
			outcome = "pending"
		}
	}
	return session, coming, w.log(session.ID, "bank.asked", map[string]string{"outcome": outcome})
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
	a, err := s.ask(ctx, id, checkPatience, asksInTurn(task))
	if err != nil {
		return err
	}
	err = s.update(ctx, func(w *saving) error {
		session, coming, err := w.bankAnswered(a)
		if err != nil {
			return err
		}
		kind := flow.NewsNothing
		switch {
		case coming:
			kind = flow.NewsComing
		case a.failure != nil:
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
