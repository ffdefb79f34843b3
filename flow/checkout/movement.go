package checkout

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"till/flow"
	"till/flow/store"
)

// This file takes in what a bank says beside "it came" and "it was refused".

// arrived says whether a movement is known as money already: banks may still
// tell of it as on its way.
func arrived(ctx context.Context, r store.Reader, n flow.Notice) (bool, error) {
	if n.RailTransactionID == "" {
		return false, nil
	}
	id, _, err := r.BookedAs(ctx, n.RailTransactionID)
	return id != "", err
}

// coming takes in that money is on its way. Banks tell of it as often as they
// are asked: only the first time is logged.
func (w *saving) coming(session flow.Session, n flow.Notice, from string) error {
	if known, err := arrived(w.ctx, w.tx.Reader, n); known || err != nil || session.ID == "" {
		return err
	}
	change, err := flow.Coming(session)
	if err != nil {
		return err
	}
	if change.Session != nil {
		if err := w.bankSaid(session, n, from); err != nil {
			return err
		}
		if err := w.save(change, session); err != nil {
			return err
		}
	} else if session.Status != flow.SessionProcessing {
		return nil
	}
	w.tx.After(func() { w.s.answered(session.ID, flow.NewsComing, w.now) })
	if from == fromAnswer {
		return nil // the next question is planned with the answer to this one
	}
	return w.owe(flow.TaskCheck, string(session.ID), w.now.Add(flow.ComingAgain))
}

// resume ends the wait for money that the bank knows of no more. It was asked
// about the session as it was then: what it said since stands.
func (w *saving) resume(asked, session flow.Session) (flow.Session, error) {
	if session.Version != asked.Version {
		return session, nil
	}
	change, err := flow.Resume(session)
	if err != nil || change.Session == nil {
		return session, err
	}
	if err := w.save(change, session); err != nil {
		return session, err
	}
	return *change.Session, w.overdue(session)
}

// landed sees to a session that money was on its way to, once some came that was
// not all of it: perhaps more is on its way, and perhaps its time is over.
func (w *saving) landed(before flow.Session, c flow.Change) error {
	if before.Status != flow.SessionProcessing || c.Session == nil || c.Session.Status != flow.SessionPending {
		return nil
	}
	if err := w.owe(flow.TaskCheck, string(before.ID), w.now); err != nil {
		return err
	}
	return w.overdue(before)
}

// overdue ends a session whose time was over while money was on its way to it.
func (w *saving) overdue(session flow.Session) error {
	if w.now.Before(session.ExpiresAt) {
		return nil
	}
	return w.owe(flow.TaskExpireSession, string(session.ID), w.now)
}

// sentBack takes in that the bank returned money by itself, once for each time.
func (w *saving) sentBack(session flow.Session, a flow.Attempt, n flow.Notice, from string) error {
	if session.ID == "" {
		w.tx.After(func() {
			w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelWarn, "a bank sent money back that was for no session", movement(n)...)
		})
		return nil
	}
	if told, err := w.toldBefore(session.ID, n); told || err != nil {
		return err
	}
	change, err := flow.SentBack(session, a, n)
	if err != nil {
		return err
	}
	if err := w.bankSaid(session, n, from); err != nil {
		return err
	}
	if err := w.save(change, session); err != nil {
		return err
	}
	return w.landed(session, change)
}

// toldBefore says whether the story of a session holds a movement already.
func (w *saving) toldBefore(session flow.SessionID, n flow.Notice) (bool, error) {
	lines, err := w.tx.SessionLines(w.ctx, session)
	return slices.ContainsFunc(lines, func(l store.Line) bool {
		var before flow.Notice
		return strings.HasPrefix(l.Kind, "bank.") && json.Unmarshal(l.Data, &before) == nil &&
			before.Kind == n.Kind && before.RailTransactionID == n.RailTransactionID
	}), err
}

// reversed takes in that money was taken back, once for each time it was. One
// whose credit we have not heard of is kept until we do.
func (w *saving) reversed(session flow.Session, n flow.Notice, from string) error {
	b, known, err := w.tx.TakenBack(w.ctx, n.RailTransactionID)
	if err != nil || b.Payment != "" {
		return err
	}
	if !known {
		w.tx.After(func() {
			w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelWarn, "a bank took money back", append(movement(n), slog.String("session", string(session.ID)))...)
		})
		b = flow.TakenBack{
			RailTransactionID: n.RailTransactionID, Reverses: n.Reverses, Project: session.Project, Session: session.ID, Amount: n.Amount,
			At: n.PaidAt, ReceivedAt: w.now,
		}
	}
	p, found, err := w.taken(b)
	if err != nil {
		return err
	}
	if !found {
		if known { // it waits on
			return nil
		}
		if err := w.bankSaid(session, n, from); err != nil {
			return err
		}
		return w.save(flow.Change{TakenBack: &b}, session)
	}
	n = unnamed(n, p.Payer.Name)
	if session = (flow.Session{}); p.Session != "" { // the payment knows better whose it is
		if session, err = w.tx.Session(w.ctx, p.Session); err != nil {
			return err
		}
	}
	if p, session, err = w.calledOff(p, session, b.Amount, "The bank took the payment back before the refund was sent."); err != nil {
		return err
	}
	attempts, err := w.tx.Attempts(w.ctx, p.Session) // which may ask for more now
	if err != nil {
		return err
	}
	booked, err := w.tx.Booked(w.ctx, p.ID)
	if err != nil {
		return err
	}
	if !known {
		if err := w.bankSaid(session, n, from); err != nil {
			return err
		}
	}
	if err := w.save(flow.TakeBack(session, flow.Asking(attempts), p, booked, b), session); err != nil || p.Project == "" {
		return err
	}
	return w.endOvertaken(p.ID)
}

// takenToo takes in what else of a credit was taken back before it was heard of:
// takenBefore adds one to its outcome, and each of the rest is one of its own.
func (w *saving) takenToo(p flow.Payment) error {
	list, err := w.tx.TakenBackBefore(w.ctx, p.RailTransactionID, p.Session)
	if err != nil {
		return err
	}
	for _, b := range list {
		if !b.Of(p) {
			continue
		}
		n := flow.Notice{Kind: flow.Reversal, RailTransactionID: b.RailTransactionID, Reverses: b.Reverses, Amount: b.Amount, PaidAt: b.At}
		if err := w.reversed(flow.Session{}, n, ""); err != nil {
			return err
		}
	}
	return nil
}

// sentBefore calls refunds off that the bank was not told of yet, as far as it sent their
// money already, by a refund that it had refused. It gives back the payment and its
// session as they are then.
func (w *saving) sentBefore(r flow.Refund, p flow.Payment, session flow.Session) (flow.Payment, flow.Session, error) {
	if !r.PutBack {
		return p, session, nil
	}
	return w.calledOff(p, session, r.Amount, "The bank sent the money back by an earlier refund after all, which it had refused.")
}

// calledOff calls refunds off that the bank was not told of yet, as far as back of what
// they would send is gone: the money is set aside again, and goes with the rest. It
// gives back the payment and its session as they are then.
func (w *saving) calledOff(p flow.Payment, session flow.Session, back flow.Kobo, why string) (flow.Payment, flow.Session, error) {
	if p.Refundable() >= back || p.Project == "" {
		return p, session, nil
	}
	waiting, err := w.tx.Refunds(w.ctx, store.RefundFilter{Project: p.Project, Payment: p.ID, Status: flow.RefundPending, Limit: refundsCalledOff})
	if err != nil {
		return p, session, err
	}
	for _, r := range waiting {
		if r.Tries > 0 || p.Refundable() >= back {
			continue
		}
		change, err := r.Heard(session, p, flow.Disbursed{Status: flow.DisbursementFailed, Reason: why}, false, w.now)
		if err != nil {
			return p, session, err
		}
		change.Taking = min(back-p.Refundable(), r.Amount)
		if err := w.keepRefund(change, session); err != nil {
			return p, session, err
		}
		if p, session, err = w.paymentWith(p.ID); err != nil {
			return p, session, err
		}
	}
	return p, session, nil
}

// refundsCalledOff bounds how many refunds of one payment wait to be sent.
const refundsCalledOff = 100

// taken finds the payment that a bank took back.
func (w *saving) taken(b flow.TakenBack) (flow.Payment, bool, error) {
	if b.Reverses != "" {
		return w.tx.PaymentByTransaction(w.ctx, b.Reverses)
	}
	payments, err := w.tx.Payments(w.ctx, b.Session)
	for _, p := range slices.Backward(payments) {
		if b.Of(p) {
			return p, true, err
		}
	}
	return flow.Payment{}, false, err
}

// takenBefore adds to the outcome of a credit that it was taken back, where that
// was heard of first: it comes to the same in whatever order a bank tells. more
// says that it may have been taken back in several parts.
func (w *saving) takenBefore(c flow.Change, attempts []flow.Attempt) (with flow.Change, more bool, err error) {
	list, err := w.tx.TakenBackBefore(w.ctx, c.Payment.RailTransactionID, c.Payment.Session)
	if err != nil {
		return flow.Change{}, false, err
	}
	i := slices.IndexFunc(list, func(b flow.TakenBack) bool { return b.Of(*c.Payment) })
	if i < 0 {
		return c, false, nil
	}
	var session flow.Session
	if c.Session != nil {
		session = *c.Session
	}
	asking := flow.Asking(attempts)
	for _, changed := range c.Attempts {
		if changed.ID == asking.ID {
			asking = changed
		}
	}
	all := *c.Payment
	for _, b := range list { // in the order in which they are taken in
		if b.Of(all) {
			all.Reversed += b.Amount
		}
	}
	c = c.Unsent(all.Reversed)
	return c.Then(flow.TakeBack(session, asking, *c.Payment, c.Postings, list[i])), len(list) > 1, nil
}

// movement is what the program's own log says of money that went away.
func movement(n flow.Notice) []slog.Attr {
	return []slog.Attr{
		slog.String("transaction", n.RailTransactionID), slog.String("reverses", n.Reverses), slog.String("reference", n.Reference),
		slog.Int64("amount_minor", int64(n.Amount)),
	}
}
