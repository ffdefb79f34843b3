package checkout

import (
	"context"
	"log/slog"
	"time"

	"till/flow"
)

// Cancel ends a session that is still open. The bank is asked first what came for
// it. Errors: resource_not_found, session_not_cancellable.
func (s *Service) Cancel(ctx context.Context, id flow.SessionID, c Call) (Answer, error) {
	if err := s.askBeforeCancel(ctx, id, c); err != nil {
		return Answer{}, err
	}
	return s.effect(ctx, c, "cancel a session", func(w *saving) (Answer, error) {
		session, err := w.owned(c.Project, id)
		if err != nil {
			return Answer{}, err
		}
		if _, err := w.close(session, flow.Cancel); err != nil {
			return Answer{}, err
		}
		if c.By != "" { // an event is only kept where somebody wants it
			if err := w.log(session.ID, cancelled, cancelledBy{c.By}); err != nil {
				return Answer{}, err
			}
		}
		return w.answer(session, c)
	})
}

// cancelled and expired are the kinds of the lines of the log that say who cancelled a
// session, and what ended its time.
const (
	cancelled = "session.cancelled"
	expired   = "session.expired"
)

type cancelledBy struct {
	By string `json:"by"`
}

// expiredBy is what ended a session's time: flow.ByClock, or the id of who did.
type expiredBy struct {
	By    string `json:"by"`
	Until string `json:"until"`
}

// askBeforeCancel takes in what a bank knows of a session that a call is about to
// cancel, so that money which came before does not go back as late. A bank that
// does not answer does not keep it from being cancelled. What was answered before,
// or is not open any more, asks no bank.
func (s *Service) askBeforeCancel(ctx context.Context, id flow.SessionID, c Call) error {
	kept, err := s.calls.begun(ctx, s.cfg.DB.Reader, c)
	if err != nil || kept != nil {
		return nil //nolint:nilerr // the call itself says so
	}
	session, err := owned(ctx, s.cfg.DB.Reader, c.Project, id)
	if err != nil || !session.Open() {
		return nil //nolint:nilerr // as above
	}
	err = s.check(ctx, id, cancelPatience, false)
	if flow.CodeOf(err) == flow.CodeStorage { // there may be money that is not kept
		return err
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "the bank could not say what came for a session that is cancelled", slog.String("session", string(id)), slog.Any("error", err))
	}
	return nil
}

// EndNow ends the time of a session at once, after asking the bank what came, as
// it is done when that time is over by itself. by is the id of who wants it. Errors:
// resource_not_found, session_not_cancellable, rail_unavailable.
func (s *Service) EndNow(ctx context.Context, project flow.ProjectID, id flow.SessionID, by string) error {
	if _, err := owned(ctx, s.cfg.DB.Reader, project, id); err != nil {
		return err
	}
	if err := s.check(ctx, id, checkPatience, false); err != nil {
		return &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank cannot say now whether money came, so that the session stays open. Try again.", Err: err}
	}
	return wrap("end a session's time", s.update(ctx, func(w *saving) error {
		session, err := w.owned(project, id)
		if err != nil {
			return err
		}
		if _, err = w.close(session, flow.EndNow); err != nil {
			return err
		}
		return w.log(id, expired, expiredBy{By: by, Until: flow.Stamp(w.now)})
	}))
}

// ending is one of the ways in which a session ends: flow.Cancel, flow.EndNow or
// flow.Expire.
type ending func(flow.Session, []flow.Attempt, []flow.Payment, time.Time) (flow.Change, error)

// close ends a session, and says whether there was anything to end.
func (w *saving) close(session flow.Session, how ending) (bool, error) {
	attempts, err := w.tx.Attempts(w.ctx, session.ID)
	if err != nil {
		return false, err
	}
	payments, err := w.tx.Payments(w.ctx, session.ID)
	if err != nil {
		return false, err
	}
	change, err := how(session, attempts, payments, w.now)
	if err != nil {
		return false, err
	}
	return change.Session != nil, w.save(change, session)
}
