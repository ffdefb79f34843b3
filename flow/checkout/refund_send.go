package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/planted"
	"till/rail"
)

// This file tells the bank of refunds and takes in what it says of them.

// sendRefund tells the bank of a refund, or asks what became of it. One that the
// bank may have been told of before is asked about first, so that nothing is sent
// twice even by a bank that forgets what it was asked for.
func (s *Service) sendRefund(ctx context.Context, id flow.RefundID) error {
	r, err := s.cfg.DB.Refund(ctx, id)
	if err != nil || r.Status == flow.RefundProcessed || r.Status == flow.RefundAttention && !r.PutBack {
		return err
	}
	if wait := s.pace.place(s.cfg.Now()); wait > 0 {
		return &NotYetError{Wait: wait}
	}
	defer s.pace.left()
	anew := planted.RefundTwice && r.Tries > 0
	if !anew && (r.Tries > 0 || r.PutBack) {
		began := s.cfg.Now()
		d, err := s.askedOut(ctx, r.Reference)
		// What was given to be sent again, and is known not to be sent under its name.
		anew = err == nil && d.Status == flow.DisbursementFailed && !d.CameBack() && (r.Status == flow.RefundPending || r.Refused && !r.PutBack)
		if !anew && !errors.Is(err, rail.ErrNotFound) {
			failure := s.refundAnswer(ctx, r, d, err, s.cfg.Now().Sub(began), false)
			if failure == nil && err != nil && r.PutBack { // the bank says that it sent it after all
				return &NotYetError{Wait: refusedAgain}
			}
			return failure
		}
	}
	if r.PutBack {
		return nil
	}
	if s.cfg.Board.Held() {
		return &NotYetError{Wait: heldAgain}
	}
	r, begun, err := s.beginRefund(ctx, r, anew)
	if err != nil || !begun {
		return err
	}
	crashpoint.At(crashpoint.RefundBegun)
	began := s.cfg.Now()
	d, err := s.bank.Disburse(ctx, r.Order())
	crashpoint.At(crashpoint.RefundOrdered)
	return s.refundAnswer(ctx, r, d, err, s.cfg.Now().Sub(began), true)
}

// refusedAgain is when a bank is asked again about a refund that it refused, and
// that it said something else of since.
const refusedAgain = time.Minute

// errNotTaken says that a bank answers, and not what it was asked.
var errNotTaken = fmt.Errorf("%w: it does not take the question", rail.ErrUnknown)

// askedOut asks the bank what became of money that is to be sent. A bank that
// refuses the question has said nothing of the money.
func (s *Service) askedOut(ctx context.Context, reference string) (flow.Disbursed, error) {
	d, err := s.bank.Disbursed(ctx, reference)
	if errors.Is(err, rail.ErrRejected) {
		err = fmt.Errorf("%w: %s", errNotTaken, err.Error())
	}
	return d, err
}

// beginRefund keeps that the bank is about to be told of a refund, under its next
// name where it is sent anew. begun is false where it must not be told any more.
func (s *Service) beginRefund(ctx context.Context, asked flow.Refund, anew bool) (r flow.Refund, begun bool, err error) {
	err = s.update(ctx, func(w *saving) error {
		begun = false
		if r, err = w.tx.Refund(w.ctx, asked.ID); err != nil {
			return err
		}
		if r.Status != asked.Status || r.Reference != asked.Reference || r.Tries != asked.Tries {
			return overtaken(r.Open())
		}
		if anew {
			r = r.Anew()
		}
		session, p, err := w.around(r)
		if err != nil {
			return err
		}
		change, err := r.Send(session, p, w.now)
		if err != nil {
			return err
		}
		r, begun = *change.Refund, change.Refund.Status == flow.RefundProcessing
		if begun && session.ID != "" {
			call := map[string]any{"operation": "disburse", "refund": r.ID, "reference": r.Reference, "amountMinor": r.Amount.Minor()}
			if err := w.log(session.ID, "rail.call", call); err != nil {
				return err
			}
		}
		return w.endRefund(change, session)
	})
	return r, begun, wrap("send a refund", err)
}

// overtaken is what comes of a task about money to be sent out that is not any more
// what it was asked about. Another may be telling the bank of it just now, or was cut
// off in that: while it is open somebody has to come back to it.
func overtaken(open bool) error {
	if open {
		return &NotYetError{Wait: time.Second}
	}
	return nil
}

// refundAnswer takes in what the bank answered about a refund, and plans when it
// is asked next; told says that it was told of it, and not asked.
func (s *Service) refundAnswer(ctx context.Context, asked flow.Refund, d flow.Disbursed, failure error, took time.Duration, told bool) error {
	if errors.Is(failure, rail.ErrRejected) {
		d = flow.Disbursed{Status: flow.DisbursementFailed, Reason: no(failure)}
	}
	// The answer is saved even if the process is about to end.
	return wrap("take in a refund's answer", s.update(context.WithoutCancel(ctx), func(w *saving) error {
		r, err := w.tx.Refund(w.ctx, asked.ID)
		if err != nil {
			return err
		}
		if r.Reference != asked.Reference {
			return overtaken(r.Open())
		}
		session, p, err := w.around(r)
		if err != nil {
			return err
		}
		if Forgotten(p.Payer.Name) { // the bank's words may name them
			d.Reason, failure = "", unworded(failure)
		}
		if session.ID != "" {
			outcome := string(d.Status)
			if failure != nil {
				outcome = failure.Error()
			}
			if err := w.log(session.ID, "rail.answer", map[string]any{"refund": r.ID, "asked": !told, "ms": took.Milliseconds(), "outcome": outcome}); err != nil {
				return err
			}
		}
		booked, err := w.booked(r)
		if err != nil {
			return err
		}
		if d.Status == flow.DisbursementDone && !booked {
			if p, session, err = w.sentBefore(r, p, session); err != nil {
				return err
			}
		}
		change, err := r.HeardAnswer(session, p, d, booked, w.now)
		if err != nil {
			return err
		}
		if change.Refund != nil {
			return w.endRefund(change, session)
		}
		if asked.Status != flow.RefundPending && r.Status == flow.RefundPending { // it was given to be sent again meanwhile
			return w.owe(flow.TaskRefund, string(r.ID), w.now)
		}
		if failure == nil && r.Status == flow.RefundProcessing {
			if change := r.TakenOn(told, w.now); change.Refund != nil {
				if err := w.keepRefund(change, session); err != nil {
					return err
				}
				r = *change.Refund
			}
		}
		return w.askAgain(r, session, told && r.Tries == 1, heard(failure))
	}))
}

// unworded is why a bank did not do what it was asked, without its own words.
func unworded(failure error) error {
	for _, kind := range []error{errNotTaken, rail.ErrRejected, rail.ErrUnavailable, rail.ErrUnknown} {
		if errors.Is(failure, kind) {
			return kind
		}
	}
	return failure
}

// heard says whether a bank answered at all that was told of money to be sent, or asked
// about it.
func heard(failure error) bool {
	return failure == nil || errors.Is(failure, rail.ErrRejected) || errors.Is(failure, errNotTaken)
}

// askAgain plans when the bank is asked about a refund next, or gives the asking
// up. first and heard are as NextAsk takes them.
func (w *saving) askAgain(r flow.Refund, session flow.Session, first, heard bool) error {
	if r.Status == flow.RefundPending { // it was asked about before it is sent again, in vain
		change, err := r.Wait(w.now)
		if err != nil {
			return err
		}
		if err := w.keepRefund(change, session); err != nil {
			return err
		}
		r = *change.Refund
	}
	if r.Status != flow.RefundProcessing {
		return nil
	}
	if next, ok := r.NextAsk(w.now, first, heard); ok {
		return w.owe(flow.TaskRefund, string(r.ID), next)
	}
	change, err := r.Doubt(session)
	if err != nil {
		return err
	}
	return w.keepRefund(change, session)
}

// sentOut takes in a notice about money that we ordered to be sent out. What
// nobody ordered is only logged: it is no money of ours.
func (w *saving) sentOut(n flow.Notice, from string) error {
	r, err := w.tx.Refund(w.ctx, flow.RefundOf(n.Reference))
	switch {
	case notFound(err):
		w.odd(n, "nobody ordered it")
		return nil
	case err != nil:
		return err
	case n.Amount != r.Amount:
		w.odd(n, "another amount was ordered, which stands")
	}
	if n.Kind == flow.PaidOut { // somebody who saw it at the bank may have said so before
		if known, err := w.tx.Moved(w.ctx, n.RailTransactionID); err != nil || known {
			return err
		}
	}
	if n.Kind == flow.PayoutFailed && n.RailTransactionID != "" {
		if known, err := w.tx.Posted(w.ctx, flow.EntryRefundReturned, n.RailTransactionID); err != nil || known {
			return err
		}
	}
	p, err := w.tx.Payment(w.ctx, r.Payment)
	if err != nil {
		return err
	}
	n = unnamed(n, p.Payer.Name)
	if other, err := w.sentUnder(r, p, n, from); err != nil || other {
		return err
	}
	if whole := n.Kind == flow.PayoutFailed && n.Reverses != ""; r.PutBack && (!whole || p.Refundable() < r.Amount) {
		// It was told in the wrong order, or the bank changed its mind: it is asked.
		return w.owe(flow.TaskRefund, string(r.ID), w.now)
	}
	session, err := w.sessionOf(r.Session)
	if err != nil {
		return err
	}
	booked, err := w.booked(r)
	if err != nil {
		return err
	}
	if n.Kind == flow.PayoutFailed && n.Reverses == "" && r.Status == flow.RefundProcessed && !r.Refused {
		w.odd(n, "it had said that it sent this refund, and does not say that it came back")
	}
	change, err := r.HeardNotice(session, p, n, booked, w.now)
	if err != nil || change.Refund == nil {
		return err
	}
	if err := w.bankSaid(session, n, from); err != nil {
		return err
	}
	return w.endRefund(change, session)
}

// booked says of a refund whose money was put back whether the books know it as sent
// under its name all the same.
func (w *saving) booked(r flow.Refund) (bool, error) {
	if !r.PutBack {
		return false, nil
	}
	return w.tx.Posted(w.ctx, flow.EntryRefundPaid, r.Reference)
}

// sentUnder takes in a notice about a refund that is known by another name by now,
// or was paid under another or before, and says whether it is one. The bank may have
// sent what it had refused to send, or once more what it had sent: then money left twice.
func (w *saving) sentUnder(r flow.Refund, p flow.Payment, n flow.Notice, from string) (other bool, err error) {
	paid, err := w.tx.Posted(w.ctx, flow.EntryRefundPaid, n.Reference)
	if err != nil || n.Reference == r.Reference && (paid && !r.SentBesides(n) || r.Status != flow.RefundProcessed) {
		return false, err
	}
	session, err := w.sessionOf(r.Session)
	if err != nil {
		return true, err
	}
	for _, d := range n.Outcomes() {
		var change flow.Change
		name, known := n.Reference, paid
		if paid && d.RailTransactionID != "" {
			name = flow.OnceMore(name, d)
			if known, err = w.tx.Moved(w.ctx, d.RailTransactionID); err != nil {
				return true, err
			}
		}
		switch {
		case d.Status == flow.DisbursementDone && !known:
			if n.Kind == flow.PaidOut {
				if p, session, err = w.sentBefore(r, p, session); err != nil {
					return true, err
				}
			}
			change, err = r.SentUnder(name, session, p, d, w.now)
		case d.CameBack(): // that it was sent stands before it
			change, err = r.BackUnder(session, d, w.now)
		}
		if err != nil {
			return true, err
		}
		if change.Refund == nil {
			continue
		}
		if change.Refund.Overpaid > r.Overpaid {
			w.odd(n, "the refund was sent besides: money left twice")
		}
		if err := w.bankSaid(session, n, from); err != nil {
			return true, err
		}
		if err := w.endRefund(change, session); err != nil {
			return true, err
		}
		r = *change.Refund
		if session, err = w.sessionOf(r.Session); err != nil {
			return true, err
		}
	}
	return true, nil
}

// odd logs a notice about money sent out that fits nothing.
func (w *saving) odd(n flow.Notice, why string) {
	w.tx.After(func() {
		w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelError, "a bank tells of money sent out that fits nothing",
			append(movement(n), slog.String("kind", string(n.Kind)), slog.String("why", why))...)
	})
}
