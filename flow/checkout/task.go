package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till/flow"
	"till/flow/store"
)

// expireRetries bounds how long an unreachable bank keeps instructions alive.
const expireRetries = 3

// errEnded says that a task is done and that this is kept already, in the
// transaction of its last step.
var errEnded = errors.New("checkout: the task has ended")

// do does one task.
func (s *Service) do(ctx context.Context, j job) error {
	w := j.Work
	if byTheClock(w.Kind) && s.cfg.Syncing != nil && s.cfg.Syncing() {
		return &NotYetError{Wait: syncingWait}
	}
	switch w.Kind {
	case flow.TaskStart:
		err := s.start(ctx, flow.AttemptID(w.Subject), w.Fresh)
		if code := flow.CodeOf(err); code == flow.CodeRailRejected || code == flow.CodeRailUnavailable {
			return nil // decided: the attempt failed and its chats were told
		}
		return err
	case flow.TaskCheck:
		return s.checked(ctx, w)
	case flow.TaskSay:
		return s.say(ctx, j)
	case flow.TaskSlow:
		return s.slow(ctx, flow.AttemptID(w.Subject))
	case flow.TaskTimer:
		return s.timer(ctx, flow.ChatID(w.Subject))
	case flow.TaskExpireAttempt:
		return s.lapse(ctx, w)
	case flow.TaskExpireSession:
		return s.expire(ctx, w)
	case flow.TaskReturn:
		return s.returnOverdue(ctx, flow.PaymentID(w.Subject))
	case flow.TaskRefund:
		return s.sendRefund(ctx, flow.RefundID(w.Subject))
	case flow.TaskStatement:
		return s.walkStatement(ctx, w.Subject)
	case flow.TaskPayday:
		return s.payday(ctx)
	case flow.TaskSettle:
		return s.settleLast(ctx, flow.ProjectID(w.Subject))
	case flow.TaskPayout:
		return s.sendPayout(ctx, flow.SettlementID(w.Subject))
	case flow.TaskRetention:
		return s.retention(ctx)
	}
	return fmt.Errorf("nobody does tasks of kind %q", w.Kind)
}

// syncingWait is how long what is told by the clock waits for what payers wrote
// while we were away.
const syncingWait = 2 * time.Second

// byTheClock says whether a task tells payers something because time passed.
func byTheClock(kind flow.TaskKind) bool {
	return kind == flow.TaskTimer || kind == flow.TaskExpireAttempt || kind == flow.TaskExpireSession || kind == flow.TaskReturn
}

// checkLast asks the bank what came before something ends. One that does not answer
// however often it is asked does not keep it from ending.
func (s *Service) checkLast(ctx context.Context, id flow.SessionID, task store.Work) error {
	err := s.check(ctx, id, checkPatience, asksInTurn(task))
	if notYet(err) || task.Attempts < expireRetries {
		return err
	}
	return nil
}

// slow says "one moment" to chats that still wait for instructions.
func (s *Service) slow(ctx context.Context, id flow.AttemptID) error {
	return s.update(ctx, func(w *saving) error {
		a, err := w.tx.Attempt(ctx, id)
		if err != nil || a.Instructions != nil || a.Status != flow.AttemptActive {
			return err
		}
		return w.spread(a.Session, flow.News{Kind: flow.NewsSlow, Attempt: id})
	})
}

// lapse ends instructions whose time is over, after asking the bank once more.
func (s *Service) lapse(ctx context.Context, task store.Work) error {
	id := flow.AttemptID(task.Subject)
	a, err := s.cfg.DB.Attempt(ctx, id)
	if err != nil || a.Status != flow.AttemptActive && a.Status != flow.AttemptSuperseded { // as of most: they are paid by then
		return err
	}
	if others, err := s.cfg.DB.Attempts(ctx, a.Session); err != nil || !a.Awaited(others) {
		return err
	}
	if err := s.checkLast(ctx, a.Session, task); err != nil {
		return err
	}
	return s.update(ctx, func(w *saving) error {
		now, session, err := w.attemptWith(id)
		if err != nil {
			return err
		}
		others, err := w.tx.Attempts(ctx, now.Session)
		if err != nil {
			return err
		}
		if !w.now.Before(session.ExpiresAt) || !session.Open() {
			return nil // the session itself is over: that is told, and ends the attempt
		}
		if now.Awaited(others) && w.now.Before(now.ExpiresAt) { // the clock went back since this was due
			return w.owe(flow.TaskExpireAttempt, string(id), now.ExpiresAt)
		}
		change, err := flow.Lapse(now, others, w.now)
		if err != nil {
			return err
		}
		return w.save(change, session)
	})
}

// attemptWith is an attempt with its session, as both are now.
func (w *saving) attemptWith(id flow.AttemptID) (a flow.Attempt, session flow.Session, err error) {
	if a, err = w.tx.Attempt(w.ctx, id); err == nil {
		session, err = w.tx.Session(w.ctx, a.Session)
	}
	return a, session, err
}

// expire ends a session whose time is over, after asking the bank once more. One
// that money is on its way to is looked at again, until flow.Expire ends it too.
func (s *Service) expire(ctx context.Context, task store.Work) error {
	id := flow.SessionID(task.Subject)
	if session, err := s.cfg.DB.Session(ctx, id); err != nil || !session.Open() {
		return err
	}
	if err := s.checkLast(ctx, id, task); err != nil {
		return err
	}
	return s.update(ctx, func(w *saving) error {
		session, err := w.tx.Session(ctx, id)
		if err != nil {
			return err
		}
		if session.Status == flow.SessionPending && w.now.Before(session.ExpiresAt) { // the clock went back since this was due
			return w.owe(flow.TaskExpireSession, string(id), session.ExpiresAt)
		}
		closed, err := w.close(session, flow.Expire)
		if err != nil {
			return err
		}
		if closed {
			return w.log(id, expired, expiredBy{By: flow.ByClock, Until: flow.Stamp(session.ExpiresAt)})
		}
		if session.Status != flow.SessionProcessing {
			return nil
		}
		return w.owe(flow.TaskExpireSession, string(id), w.now.Add(flow.ComingAgain))
	})
}
