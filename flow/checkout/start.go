package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/rail"
)

// maxLoggedTries bounds the lines that the log gets of a bank which does not
// say what became of an attempt; the program's own log has all of them.
const maxLoggedTries = 10

// errOver says that an attempt was over before its call to the rail was made: its
// session was paid or ended meanwhile, or somebody else's call came to nothing.
var errOver = errors.New("checkout: the attempt is over")

// starting is a call to the rail that is under way for an attempt.
type starting struct {
	waiting int // who waits for it; the call is cut short when nobody does
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // once done is closed
}

// start calls the rail for an attempt and saves its answer. However many ask at
// once, one call is made, and it goes on while one of them still waits; fresh
// says that no earlier one can have been.
func (s *Service) start(ctx context.Context, id flow.AttemptID, fresh bool) error {
	for {
		call, joined := s.board(ctx, id, fresh)
		select {
		case <-call.done:
			if joined {
				return call.err
			}
			continue // that one was being cut short
		case <-ctx.Done():
		}
		if joined && s.leave(call) {
			<-call.done // what is known of it by now is saved
			return call.err
		}
		return &flow.Error{Code: flow.CodeRailTimeout, Message: "The bank has not answered in time. Ask again: nothing is made twice.", Err: ctx.Err()}
	}
}

// board finds the call of an attempt or makes it. joined is false for one that
// is being cut short.
func (s *Service) board(ctx context.Context, id flow.AttemptID, fresh bool) (call *starting, joined bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ok := s.starting[id]; ok {
		if call.waiting == 0 {
			return call, false
		}
		call.waiting++
		return call, true
	}
	// The call belongs to all who wait for it, not to the one who came first.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), taskPatience)
	call = &starting{waiting: 1, cancel: cancel, done: make(chan struct{})}
	s.starting[id] = call
	go func() {
		defer cancel()
		call.err = guarded(func() error { return s.startOnce(ctx, id, fresh) })
		s.mu.Lock()
		delete(s.starting, id)
		s.mu.Unlock()
		close(call.done)
	}()
	return call, true
}

// leave stops waiting for a call and says whether it was the last who did.
func (s *Service) leave(call *starting) (last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call.waiting--; call.waiting == 0 {
		call.cancel()
		return true
	}
	return false
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
		return &flow.Error{Code: flow.CodeRailUnavailable, Message: "This method was ended before the bank was asked for it. Nothing was made there; ask again.", Err: errOver}
	}
	session, err := s.cfg.DB.Session(ctx, a.Session)
	if err != nil {
		return err
	}
	order := flow.Order{
		Reference: a.Reference, Session: session.ID, Method: a.Method, Amount: a.Amount, AccountName: flow.AccountName(session.Merchant),
		CustomerName: session.CustomerName, CustomerEmail: session.CustomerEmail, ExpiresAt: a.ExpiresAt, Again: !fresh || a.Tries > 0,
	}
	began := s.cfg.Now()
	crashpoint.At(crashpoint.BankAsk)
	ins, err := s.bank.Start(ctx, order)
	crashpoint.At(crashpoint.BankAnswer)
	if errors.Is(err, rail.ErrUnavailable) && (order.Again || ctx.Err() != nil) {
		// That this call did not get through says nothing of an earlier one,
		// and a call that we cut short says nothing of the bank.
		err = fmt.Errorf("%w: %v", rail.ErrUnknown, err) //nolint:errorlint // on purpose: see above
	}
	took := s.cfg.Now().Sub(began)
	// The answer is saved even if whoever asked has gone.
	return s.started(context.WithoutCancel(ctx), a, ins, err, took)
}

// started saves what the rail answered to an attempt.
func (s *Service) started(ctx context.Context, a flow.Attempt, ins flow.Instructions, failure error, took time.Duration) error {
	err := s.update(ctx, func(w *saving) error {
		now, session, err := w.attemptWith(a.ID)
		if err != nil {
			return err
		}
		answer := map[string]any{"attempt": a.ID, "ms": took.Milliseconds(), "outcome": "ok"}
		if failure != nil {
			answer["outcome"] = failure.Error()
		}
		if failure == nil || now.Tries < maxLoggedTries {
			if err := w.log(session.ID, "rail.answer", answer); err != nil {
				return err
			}
		}
		change, err := w.startedChange(session, now, ins, failure)
		if err != nil {
			return err
		}
		if err := w.save(change, session); err != nil {
			return err
		}
		return w.givenUp(change)
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
		return &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank cannot be reached right now. Nothing was made there; ask again.", Err: failure}
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
		change := flow.Started(session, a, ins)
		for _, now := range change.Attempts {
			if now.ExpiresAt.Before(a.ExpiresAt) { // the bank gives less time than was asked for
				if err := w.owe(flow.TaskExpireAttempt, string(a.ID), now.ExpiresAt); err != nil {
					return flow.Change{}, err
				}
			}
		}
		return change, nil
	}
	if errors.Is(failure, rail.ErrRejected) || errors.Is(failure, rail.ErrUnavailable) {
		return flow.Refused(a, failure.Error())
	}
	a.Tries++
	return flow.Change{Attempts: []flow.Attempt{a}}, nil
}

// givenUp tells the chats that wait for instructions whose outcome stays
// unknown that they need not. Those who ask for the method again hear it again.
func (w *saving) givenUp(c flow.Change) error {
	for _, a := range c.Attempts {
		if a.Status == flow.AttemptActive && a.Instructions == nil && a.Tries >= flow.MaxStartTries {
			if err := w.waiting(a.Session, flow.Opening, flow.News{Kind: flow.NewsRefused, Attempt: a.ID}); err != nil {
				return err
			}
		}
	}
	return nil
}
