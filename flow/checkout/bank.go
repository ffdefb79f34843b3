package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"till/flow"
	"till/rail"
)

// The bounds of what is kept for a merchant.
const (
	maxEndpoints    = 20
	idempotencyKept = 24 * time.Hour
)

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
	a, change, err := flow.Begin(session, attempts, ask, w.s.cfg.Rail.Methods(), w.now)
	if err != nil || len(change.Attempts) == 0 {
		return a, false, err
	}
	if err := w.save(change, session); err != nil {
		return flow.Attempt{}, false, err
	}
	if err := w.log(id, "rail.call", map[string]any{"operation": "start", "attempt": a.ID, "method": a.Method, "reference": a.Reference}); err != nil {
		return flow.Attempt{}, false, err
	}
	due := w.now
	if !hand {
		due = w.now.Add(lease) // the caller does it; this is for when it dies
	}
	if err := w.owe(flow.TaskStart, string(a.ID), due); err != nil {
		return flow.Attempt{}, false, err
	}
	return a, true, w.owe(flow.TaskExpireAttempt, string(a.ID), a.ExpiresAt)
}

// Instruct opens a method of a session for its merchant and waits for the
// bank's instructions. Asked again while they are live, it gives the same ones.
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
	if attempt.Instructions == nil {
		if err := s.start(ctx, attempt.ID, fresh); err != nil {
			return View{}, flow.Attempt{}, fmt.Errorf("open %s: %w", ask.Method, err)
		}
	}
	view, err := s.View(ctx, project, id)
	if err != nil {
		return View{}, flow.Attempt{}, err
	}
	for _, a := range view.Attempts {
		if a.ID == attempt.ID && a.Instructions != nil {
			return view, a, nil
		}
	}
	return View{}, flow.Attempt{}, flow.Refuse(flow.CodeRailTimeout, "The bank has not answered yet. Ask again: nothing is made twice.")
}

// start calls the rail for an attempt and saves its answer. However many ask at
// once, one call is made; fresh says that no earlier one can have been.
func (s *Service) start(ctx context.Context, id flow.AttemptID, fresh bool) error {
	_, err, _ := s.starting.Do(string(id), func() (any, error) { return nil, s.startOnce(ctx, id, fresh) })
	return err
}

func (s *Service) startOnce(ctx context.Context, id flow.AttemptID, fresh bool) error {
	a, err := s.cfg.DB.Attempt(ctx, id)
	if err != nil {
		return err
	}
	if a.Instructions != nil {
		return nil
	}
	if a.Status != flow.AttemptActive {
		return flow.Refuse(flow.CodeRailRejected, "The bank did not open this method (%s).", a.Reason)
	}
	session, err := s.cfg.DB.Session(ctx, a.Session)
	if err != nil {
		return err
	}
	began := s.cfg.Now()
	ins, err := s.cfg.Rail.Start(ctx, flow.Order{
		Reference: a.Reference, Session: session.ID, Method: a.Method, Amount: a.Amount, AccountName: session.Merchant + "/CHECKOUT",
		CustomerName: session.CustomerName, CustomerEmail: session.CustomerEmail, ExpiresAt: a.ExpiresAt, Again: !fresh || a.Tries > 0,
	})
	took := s.cfg.Now().Sub(began)
	// The answer is saved even if whoever asked has gone.
	return s.started(context.WithoutCancel(ctx), a, ins, err, took)
}

// started saves what the rail answered to an attempt.
func (s *Service) started(ctx context.Context, a flow.Attempt, ins flow.Instructions, failure error, took time.Duration) error {
	err := s.update(ctx, func(w *saving) error {
		now, err := w.tx.Attempt(ctx, a.ID)
		if err != nil {
			return err
		}
		session, err := w.tx.Session(ctx, now.Session)
		if err != nil {
			return err
		}
		answer := map[string]any{"attempt": a.ID, "ms": took.Milliseconds(), "outcome": "ok"}
		if failure != nil {
			answer["outcome"] = failure.Error()
		}
		if err := w.log(session.ID, "rail.answer", answer); err != nil {
			return err
		}
		change, err := w.startedChange(session, now, ins, failure)
		if err != nil {
			return err
		}
		return w.save(change, session)
	})
	if err != nil {
		return err
	}
	switch {
	case failure == nil:
		return nil
	case errors.Is(failure, rail.ErrRejected):
		return &flow.Error{Code: flow.CodeRailRejected, Message: "The bank refused to open this method. Try another one.", Err: failure}
	case errors.Is(failure, rail.ErrUnavailable):
		return &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank cannot be reached right now. Nothing was made; try again.", Err: failure}
	}
	return &flow.Error{Code: flow.CodeRailTimeout, Message: "The bank has not answered in time. Ask again: nothing is made twice.", Err: failure}
}

// startedChange is what an answer of the rail comes to. An unknown outcome
// leaves the attempt open under the same reference.
func (w *saving) startedChange(session flow.Session, a flow.Attempt, ins flow.Instructions, failure error) (flow.Change, error) {
	if failure == nil {
		if next, ok := flow.NextCheck(a, w.now); ok {
			if err := w.owe(flow.TaskCheck, string(session.ID), next); err != nil {
				return flow.Change{}, err
			}
		}
		return flow.Started(session, a, ins), nil
	}
	if errors.Is(failure, rail.ErrRejected) || errors.Is(failure, rail.ErrUnavailable) {
		return flow.Refused(a, failure.Error())
	}
	a.Tries++
	change := flow.Change{Attempts: []flow.Attempt{a}}
	if a.Tries == flow.MaxStartTries {
		change.News = []flow.News{{Kind: flow.NewsRefused, Attempt: a.ID}}
	}
	return change, nil
}

// Notice takes in a message from the bank. Only when it returns nil is
// everything in the message kept, and only then may the bank be told so.
// Errors: rail.ErrForged, or whatever kept it from being saved.
func (s *Service) Notice(ctx context.Context, h http.Header, body []byte) error {
	notices, err := s.cfg.Rail.Parse(h, body)
	if err != nil {
		return fmt.Errorf("read the bank's notice: %w", err)
	}
	for _, n := range notices {
		if err := s.settle(ctx, n, "notice"); err != nil {
			return err
		}
	}
	return nil
}

// settle takes in one thing that a bank said; from tells how it came to us.
// What was known already changes nothing.
func (s *Service) settle(ctx context.Context, n flow.Notice, from string) error {
	err := s.update(ctx, func(w *saving) error {
		if n.Kind == flow.Credit {
			if _, known, err := w.tx.PaymentByTransaction(ctx, n.RailTransactionID); known || err != nil {
				return err
			}
		}
		attempt, session, err := w.belongs(n)
		if err != nil {
			return err
		}
		if session.ID != "" {
			if err := w.log(session.ID, "bank."+from, n); err != nil {
				return err
			}
		}
		switch n.Kind {
		case flow.Declined:
			return w.declined(session, attempt, n)
		case flow.Reversal:
			s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a bank took money back; nothing is booked for it yet", slog.String("session", string(session.ID)))
			return nil
		case flow.Credit:
		}
		return w.credit(session, attempt, n)
	})
	return wrap("settle what the bank said", err)
}

// belongs finds whose money a notice is about; zero values for nobody's.
func (w *saving) belongs(n flow.Notice) (flow.Attempt, flow.Session, error) {
	attempt, err := w.tx.AttemptByReference(w.ctx, n.Reference)
	if notFound(err) {
		attempt, err = w.tx.AttemptByAccount(w.ctx, n.AccountNumber)
	}
	if notFound(err) {
		return flow.Attempt{}, flow.Session{}, nil
	}
	if err != nil {
		return flow.Attempt{}, flow.Session{}, err
	}
	session, err := w.tx.Session(w.ctx, attempt.Session)
	return attempt, session, err
}

func (w *saving) declined(session flow.Session, a flow.Attempt, n flow.Notice) error {
	if session.ID == "" {
		return nil
	}
	change, err := flow.Decline(session, a, n)
	if err != nil {
		return err
	}
	return w.save(change, session)
}

func (w *saving) credit(session flow.Session, a flow.Attempt, n flow.Notice) error {
	payments, err := w.tx.Payments(w.ctx, session.ID)
	if err != nil {
		return err
	}
	others, err := w.tx.Attempts(w.ctx, session.ID)
	if err != nil {
		return err
	}
	id, err := w.s.ids.New(flow.PrefixPayment)
	if err != nil {
		return err
	}
	charge, err := w.s.ids.New(flow.PrefixCharge)
	if err != nil {
		return err
	}
	change, err := flow.Settle(flow.Money{
		Notice: n, Session: session, Attempt: a, Others: others, Payments: payments, Payment: flow.PaymentID(id), Charge: flow.ChargeID(charge), Now: w.now,
	})
	if err != nil {
		return err
	}
	return w.save(change, session)
}

// check asks the bank about every attempt of a session that it may know money
// for, and takes in what it says.
func (s *Service) check(ctx context.Context, id flow.SessionID) error {
	attempts, err := s.cfg.DB.Attempts(ctx, id)
	if err != nil {
		return err
	}
	for _, a := range attempts {
		if a.Instructions == nil && a.Tries == 0 {
			continue
		}
		notices, err := s.cfg.Rail.Check(ctx, a.Reference)
		if err != nil {
			return fmt.Errorf("ask the bank about %s: %w", a.Reference, err)
		}
		for _, n := range notices {
			if err := s.settle(ctx, n, "answer"); err != nil {
				return err
			}
		}
	}
	return nil
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
		if err := w.log(id, "bank.asked", map[string]string{"outcome": outcome}); err != nil {
			return err
		}
		if err := w.waiting(id, kind); err != nil {
			return err
		}
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
		session, err := w.tx.Session(ctx, id)
		if err != nil || next.IsZero() || session.Status == flow.SessionPaid {
			return err
		}
		return w.owe(flow.TaskCheck, string(id), next)
	})
}
