package checkout

import (
	"context"
	"net/http"
	"slices"

	"till/flow"
	"till/flow/crashpoint"
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
	done, err := s.calls.alone(c)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	var answer Answer
	var inDoubt bool
	err = s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil && kept.Status != 0 {
			answer = answeredBefore(kept)
			return err
		}
		answer, inDoubt = Answer{}, kept != nil
		return s.calls.begin(w.ctx, w.tx, c, "")
	})
	if err != nil || answer.Replayed {
		return answer, wrap("do a call once", err)
	}
	crashpoint.At(crashpoint.CallBegun)
	answer, err = do()
	crashpoint.At(crashpoint.CallDone)
	keep := context.WithoutCancel(ctx)
	if err != nil {
		if inDoubt || resumed(flow.CodeOf(err)) {
			return Answer{}, err
		}
		if forgotten := s.update(keep, func(w *saving) error { return w.tx.ForgetCall(w.ctx, c.scope(), c.name()) }); forgotten != nil {
			return Answer{}, wrap("forget a refused call", forgotten)
		}
		return Answer{}, err
	}
	return s.effect(keep, c, "keep a call's answer", func(w *saving) (Answer, error) { // unless another process was faster
		return answer, s.calls.keep(w.ctx, w.tx, c, answer)
	})
}

// Answered says whether a call was done before, so that it is not done again.
func (s *Service) Answered(ctx context.Context, c Call) (bool, error) {
	return s.calls.answered(ctx, c)
}

// Answered is as that of a Service, of what is done about an account.
func (a *Accounts) Answered(ctx context.Context, c Call) (bool, error) {
	return a.calls.answered(ctx, c)
}

// effect does a call that is one transaction: do's effect and the answer that it
// made of it are kept together, or neither is.
func (s *Service) effect(ctx context.Context, c Call, doing string, do func(*saving) (Answer, error)) (answer Answer, err error) {
	err = s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil && kept.Status != 0 {
			answer = answeredBefore(kept)
			return err
		}
		answer, err = do(w)
		return err
	})
	if err != nil {
		return s.calls.refused(ctx, c, wrap(doing, err))
	}
	return answer, nil
}

// plain is effect of a call that is answered with nothing but that it is done.
func (s *Service) plain(ctx context.Context, c Call, doing string, do func(*saving) error) error {
	_, err := s.effect(ctx, c, doing, func(w *saving) (Answer, error) {
		done := Answer{Status: http.StatusOK}
		if err := do(w); err != nil {
			return done, err
		}
		return done, s.calls.keep(w.ctx, w.tx, c, done)
	})
	return err
}

// resumed says whether a call that ended with a code may have had an effect, so
// that the same call again goes on with it.
func resumed(code flow.Code) bool {
	return slices.Contains([]flow.Code{
		flow.CodeInternal, flow.CodeStorage, flow.CodeRailTimeout, flow.CodeRailUnavailable, flow.CodeRailRejected,
	}, code)
}

// begun is calls.begun in a transaction.
func (w *saving) begun(c Call) (*store.KeptCall, error) {
	return w.s.calls.begun(w.ctx, w.tx.Reader, c)
}

// rendered is calls.rendered in a transaction.
func (w *saving) rendered(c Call, id string, made Made) (Answer, error) {
	return w.s.calls.rendered(w.ctx, w.tx, c, id, made)
}
