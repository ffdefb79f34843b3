package checkout

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/rail"
)

// This file tells the bank of settlements and takes in what it says of them.

// How often it is looked whether a stopped project may be paid out again, and
// whether money that is held may go.
const (
	stoppedAgain = 10 * time.Minute
	heldAgain    = time.Minute
)

// sendPayout tells the bank of a settlement, or asks what became of it. One that
// the bank may have been told of before is asked about first, so that nothing is
// sent twice even by a bank that forgets what it was asked for.
func (s *Service) sendPayout(ctx context.Context, id flow.SettlementID) error {
	b, err := s.cfg.DB.Settlement(ctx, id)
	if err != nil || b.Status == flow.SettlementSucceeded || b.CreatedAt.IsZero() {
		return err
	}
	if wait := s.pace.place(s.cfg.Now()); wait > 0 {
		return &NotYetError{Wait: wait}
	}
	defer s.pace.left()
	if b.Tries > 0 {
		began := s.cfg.Now()
		d, err := s.askedOut(ctx, string(id))
		if !errors.Is(err, rail.ErrNotFound) {
			failure := s.payoutAnswer(ctx, b, d, err, s.cfg.Now().Sub(began), false)
			if failure == nil && err != nil && b.Status == flow.SettlementFailed { // the bank says that it sent it after all
				return &NotYetError{Wait: refusedAgain}
			}
			return failure
		}
	}
	if b.Status == flow.SettlementFailed {
		return nil
	}
	if s.cfg.Board.Barred(b.Project) { // since it was gathered, and the bank knows nothing of it
		return &NotYetError{Wait: stoppedAgain}
	}
	if s.cfg.Board.Held() {
		return &NotYetError{Wait: heldAgain}
	}
	b, begun, err := s.beginPayout(ctx, b)
	if err != nil || !begun {
		return err
	}
	crashpoint.At(crashpoint.PayoutBegun)
	began := s.cfg.Now()
	d, err := s.bank.Disburse(ctx, b.Order())
	crashpoint.At(crashpoint.PayoutOrdered)
	return s.payoutAnswer(ctx, b, d, err, s.cfg.Now().Sub(began), true)
}

// beginPayout keeps that the bank is about to be told of a settlement. begun is
// false where it must not be told any more.
func (s *Service) beginPayout(ctx context.Context, asked flow.Settlement) (b flow.Settlement, begun bool, err error) {
	err = s.update(ctx, func(w *saving) error {
		begun = false
		if b, err = w.tx.Settlement(w.ctx, asked.ID); err != nil {
			return err
		}
		if b.Status != asked.Status || b.Tries != asked.Tries {
			return overtaken(!b.Final())
		}
		change, err := b.Send(w.now)
		if err != nil {
			return err
		}
		b, begun = *change.Settlement, true
		return w.keepSettlement(change)
	})
	return b, begun, wrap("send a settlement", err)
}

// no is a bank's refusal as a sentence for merchants: in its own words, without what
// we were doing.
func no(refused error) string {
	why := bankWords(refused.Error())
	if code, words, ok := strings.Cut(why, ": "); ok && code != "" && strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") == "" {
		why = words + " (" + code + ")"
	}
	if why == "" {
		return "The bank refused it."
	}
	return "The bank refused it: " + why + "."
}

// payoutAnswer takes in what the bank answered about a settlement, and plans when
// it is asked next; told says that it was told of it, and not asked.
func (s *Service) payoutAnswer(ctx context.Context, asked flow.Settlement, d flow.Disbursed, failure error, took time.Duration, told bool) error {
	outcome := string(d.Status)
	if failure != nil {
		outcome = failure.Error()
	}
	s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "payout", slog.String("settlement", string(asked.ID)), slog.String("project", string(asked.Project)),
		slog.Int64("amount_minor", int64(asked.Amount)), slog.String("outcome", outcome), slog.Int("tries", asked.Tries), slog.Int64("ms", took.Milliseconds()))
	if errors.Is(failure, rail.ErrRejected) {
		d = flow.Disbursed{Status: flow.DisbursementFailed, Reason: no(failure)}
	}
	// The answer is saved even if the process is about to end.
	return wrap("take in a payout's answer", s.update(context.WithoutCancel(ctx), func(w *saving) error {
		b, err := w.tx.Settlement(w.ctx, asked.ID)
		if err != nil {
			return err
		}
		says, err := w.newOfPayout(b, d.Outcomes())
		if err != nil || len(says) == 0 {
			return err
		}
		change, err := b.HeardAll(says, w.now)
		if err != nil {
			return err
		}
		if change.Settlement != nil {
			return w.keepSettlement(change)
		}
		if b.Final() {
			return nil
		}
		if told && failure == nil && b.Tries > 1 {
			change := b.TakenOn(w.now)
			if err := w.keepSettlement(change); err != nil {
				return err
			}
			b = *change.Settlement
		}
		next, ok := b.NextAsk(w.now, told && b.Tries == 1, heard(failure))
		if !ok { // it is asked on, once a day: over a weekend the next payday is too far
			w.tx.After(func() {
				w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelError, "a bank does not say what became of a payout; ask the bank", slog.String("settlement", string(b.ID)))
			})
			next = w.now.Add(payoutSeldom)
		}
		return w.owe(flow.TaskPayout, string(b.ID), next)
	}))
}

// payoutSeldom is how often a bank is asked about a payout that it has said nothing
// of for a day.
const payoutSeldom = 24 * time.Hour

// isPayout says whether a reference of money sent out is a settlement's.
func isPayout(reference string) bool { return strings.HasPrefix(reference, flow.PrefixSettlement) }

// settledOut takes in a notice about a settlement.
func (w *saving) settledOut(n flow.Notice) error {
	b, err := w.tx.Settlement(w.ctx, flow.SettlementID(n.Reference))
	switch {
	case notFound(err), err == nil && b.Tries == 0:
		w.odd(n, "a bank tells of a payout that nobody ordered")
		return nil
	case err != nil:
		return err
	case n.Amount != b.Amount:
		w.odd(n, "a bank tells of a payout of another amount than was ordered; what was ordered stands")
	}
	if n.Kind == flow.PayoutFailed && n.Reverses == "" {
		// Told again after it was sent after all, that nothing was does not say that it came back.
		if known, err := w.tx.Posted(w.ctx, flow.EntrySettleFailed, string(b.ID)); err != nil || known {
			return err
		}
		if b.Status == flow.SettlementSucceeded {
			w.odd(n, "it had said that it sent this payout, and does not say that it came back")
		}
	}
	says, err := w.newOfPayout(b, n.Outcomes())
	if err != nil || len(says) == 0 {
		return err
	}
	if b.Status == flow.SettlementFailed {
		// It was told in the wrong order, or the bank changed its mind: it is asked.
		return w.owe(flow.TaskPayout, string(b.ID), w.now)
	}
	change, err := b.HeardAll(says, w.now)
	if err != nil {
		return err
	}
	if b.Status == flow.SettlementSucceeded && n.Kind == flow.PaidOut && change.Settlement != nil {
		w.odd(n, "the payout was sent besides: money left twice")
	}
	return w.keepSettlement(change)
}

// newOfPayout is what of all that a bank says of a settlement is not booked already.
func (w *saving) newOfPayout(b flow.Settlement, all []flow.Disbursed) (says []flow.Disbursed, err error) {
	for _, d := range all {
		known, err := w.knownPayout(b, d)
		if err != nil {
			return nil, err
		}
		if !known {
			says = append(says, d)
		}
	}
	return says, nil
}

// knownPayout says whether something that a bank says of a settlement is booked
// already. It may be sent, and come back, more than once: each time by a name of its own.
func (w *saving) knownPayout(b flow.Settlement, d flow.Disbursed) (bool, error) {
	switch {
	case d.CameBack() && b.Final():
		return w.tx.Posted(w.ctx, flow.EntrySettleReturned, d.RailTransactionID)
	case d.Status == flow.DisbursementDone && (b.Returned || b.Status == flow.SettlementSucceeded):
		return w.tx.Moved(w.ctx, d.RailTransactionID)
	}
	return false, nil
}
