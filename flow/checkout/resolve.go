package checkout

import (
	"context"
	"time"

	"till/flow"
	"till/flow/store"
)

// This file decides about money that was set aside: when its merchant says so,
// and when nobody did in time.

// NewResolution is what a merchant decides about set-aside money.
type NewResolution struct {
	Accept bool   // else it goes back
	Key    string // id of the API key
	Reason string
}

// Resolve gives set-aside money of a payment to its merchant, or sends it back.
// Errors: project_suspended, resource_not_found, payment_not_resolvable,
// idempotency_key_reused.
func (s *Service) Resolve(ctx context.Context, id flow.PaymentID, n NewResolution, c Call) (Answer, error) {
	return s.effect(ctx, c, "resolve a payment", func(w *saving) (Answer, error) {
		if err := s.admitted(c.Project); err != nil {
			return Answer{}, err
		}
		p, err := w.tx.PaymentOf(w.ctx, c.Project, id)
		if err != nil {
			return Answer{}, err
		}
		if err := w.resolve(p, n); err != nil {
			return Answer{}, err
		}
		if p, err = w.tx.Payment(w.ctx, id); err != nil {
			return Answer{}, err
		}
		return w.rendered(c, string(id), Made{Payment: p})
	})
}

func (w *saving) resolve(p flow.Payment, n NewResolution) error {
	m, err := w.moneyOf(p)
	if err != nil {
		return err
	}
	change, err := flow.Resolve(m, p, n.Accept, flow.Ruled{By: n.Key, At: w.now, Reason: n.Reason})
	if err != nil {
		return err
	}
	return w.save(change, m.Session)
}

// moneyOf is what is known of where a payment belongs.
func (w *saving) moneyOf(p flow.Payment) (flow.Money, error) {
	m := flow.Money{Now: w.now}
	if p.Session == "" {
		return m, nil
	}
	var err error
	if m.Session, err = w.tx.Session(w.ctx, p.Session); err != nil {
		return m, err
	}
	if m.Attempt, err = w.tx.Attempt(w.ctx, p.Attempt); err != nil {
		return m, err
	}
	if m.Others, err = w.tx.Attempts(w.ctx, p.Session); err != nil {
		return m, err
	}
	if m.Payments, err = w.tx.Payments(w.ctx, p.Session); err != nil {
		return m, err
	}
	charge, err := w.s.ids.New(flow.PrefixCharge)
	m.Charge = flow.ChargeID(charge)
	return m, err
}

// returnOverdue sends set-aside money back that nobody decided about in time.
// Whoever decided first has it: then there is nothing to do.
func (s *Service) returnOverdue(ctx context.Context, id flow.PaymentID) error {
	return wrap("send set-aside money back", s.update(ctx, func(w *saving) error {
		p, session, err := w.paymentWith(id)
		if err != nil {
			return err
		}
		if p, session, err = w.sendAgain(p, session); err != nil {
			return err
		}
		change := flow.Overdue(session, p, w.now)
		if len(change.Payments) == 0 {
			return w.returnLater(p)
		}
		return w.save(change, session)
	}))
}

// decide keeps what was decided about payments, and owes what waits for its time.
func (w *saving) decide(c flow.Change) error {
	for _, p := range c.Payments {
		if err := w.tx.DecidePayment(w.ctx, p); err != nil {
			return err
		}
		if err := w.returnLater(p); err != nil {
			return err
		}
	}
	return nil
}

// returnLater owes that money which waits for a decision goes back when its time
// comes.
func (w *saving) returnLater(p flow.Payment) error {
	if p.ReturnsAt.IsZero() || p.Unapplied <= 0 || !p.ReturnsAt.After(w.now) {
		return nil
	}
	return w.owe(flow.TaskReturn, string(p.ID), p.ReturnsAt)
}

// sendBack orders what a decision sends back.
func (w *saving) sendBack(returns []flow.Return) error {
	for _, r := range returns {
		if _, err := w.refund(r.Payment, flow.RefundAsk{Amount: r.Amount, Aside: r.Amount, Origin: r.Origin, Reason: r.Reason}); err != nil {
			return err
		}
	}
	return nil
}

// Payment reads a payment of a project; another project's does not exist.
func (s *Service) Payment(ctx context.Context, project flow.ProjectID, id flow.PaymentID) (flow.Payment, error) {
	return s.cfg.DB.PaymentOf(ctx, project, id)
}

// PaymentFilter narrows a list of payments. Zero fields do not.
type PaymentFilter struct {
	Match         flow.MatchStatus
	Session       flow.SessionID
	CreatedAfter  time.Time // when it was heard of
	CreatedBefore time.Time
	Before        string // the last id of the page before
	Limit         int
}

// Payments lists a project's payments, newest first; more says whether older ones
// follow. Of a session that is not the project's there are none.
func (s *Service) Payments(ctx context.Context, project flow.ProjectID, f PaymentFilter) (list []flow.Payment, more bool, err error) {
	list, err = s.cfg.DB.PaymentsOf(ctx, store.PaymentFilter{
		Project: project, Match: f.Match, Session: f.Session, From: f.CreatedAfter, Before: f.CreatedBefore, Older: f.Before, Limit: f.Limit + 1,
	})
	return page(list, f.Limit, err)
}

// Balance is what the ledger holds for a project, as its merchant reads it.
func (s *Service) Balance(ctx context.Context, project flow.ProjectID) (flow.BalanceRecord, error) {
	b, err := s.cfg.DB.Balance(ctx, project)
	if err != nil {
		return flow.BalanceRecord{}, err
	}
	blocked, err := s.Blocked(ctx, project)
	return flow.RecordBalance(b, blocked, s.cfg.Around), err
}
