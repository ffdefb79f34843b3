package checkout

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// NewRefund is what a merchant asks to be refunded: a payment, or what paid a
// charge. One of the two is set.
type NewRefund struct {
	Charge  flow.ChargeID
	Payment flow.PaymentID
	Amount  flow.Kobo // 0: all that is left
	Reason  string
	Key     string // id of the API key
}

// Refund sends money of a payment back to who paid it. The bank is told of it
// right after. Errors: project_suspended, resource_not_found,
// refund_exceeds_payment, refund_exceeds_balance, idempotency_key_reused.
func (s *Service) Refund(ctx context.Context, n NewRefund, c Call) (Answer, error) {
	return s.refundCall(ctx, c, "refund a payment", func(w *saving) (flow.Refund, error) {
		p, amount, err := w.refunded(n, c.Project)
		if err != nil {
			return flow.Refund{}, n.tooMuch(err)
		}
		aside := min(p.Unapplied, amount)
		r, err := w.refund(p.ID, flow.RefundAsk{Amount: amount, Aside: aside, Origin: flow.OriginMerchant, Reason: n.Reason, By: n.Key})
		if err != nil {
			return flow.Refund{}, n.tooMuch(err)
		}
		return r, n.tooMuch(w.afforded(p, amount-aside))
	})
}

// tooMuch says of a refusal of more than is left that it is the amount which is wrong,
// where one was given.
func (n NewRefund) tooMuch(err error) error {
	refusal, ok := errors.AsType[*flow.Error](err)
	if ok && n.Amount > 0 && (refusal.Code == flow.CodeRefundExceeds || refusal.Code == flow.CodeRefundOverBalance) {
		_ = refusal.At("amount")
	}
	return err
}

// afforded refuses what was just taken from a merchant for a refund of a payment,
// in kobo, where its balance does not cover that. Error: refund_exceeds_balance.
func (w *saving) afforded(p flow.Payment, taken flow.Kobo) error {
	if taken <= 0 {
		return nil
	}
	balance, err := w.tx.Owned(w.ctx, p.Project)
	if err != nil || balance >= 0 {
		return err
	}
	over, err := w.tx.Overdraft(w.ctx, p.Project, p.ID)
	if err != nil {
		return err
	}
	return flow.Afford(p, taken, balance, over)
}

// RetryRefund sends a refund again that failed or needs attention; key is the id
// of the API key that asks for it. Errors: project_suspended, resource_not_found,
// refund_not_retryable, refund_exceeds_payment, refund_exceeds_balance,
// idempotency_key_reused.
func (s *Service) RetryRefund(ctx context.Context, id flow.RefundID, key string, c Call) (Answer, error) {
	return s.refundCall(ctx, c, "retry a refund", func(w *saving) (flow.Refund, error) { return w.retryRefund(c.Project, id, key) })
}

// retryRefund is RetryRefund inside a transaction.
func (w *saving) retryRefund(project flow.ProjectID, id flow.RefundID, key string) (flow.Refund, error) {
	r, session, p, err := w.refundWith(project, id)
	if err != nil {
		return flow.Refund{}, err
	}
	change, err := r.Retry(session, p, flow.Ruled{By: key, At: w.now, Reason: r.Reason})
	if err != nil {
		return flow.Refund{}, err
	}
	if err := w.keepRefund(change, session); err != nil {
		return flow.Refund{}, err
	}
	if r.PutBack {
		if err := w.afforded(p, r.Amount-change.Refund.Aside); err != nil {
			return flow.Refund{}, err
		}
	}
	return *change.Refund, w.owe(flow.TaskRefund, string(r.ID), w.now)
}

// refundCall runs a call that makes or changes a refund, and keeps its answer
// with that.
func (s *Service) refundCall(ctx context.Context, c Call, doing string, do func(*saving) (flow.Refund, error)) (Answer, error) {
	return s.effect(ctx, c, doing, func(w *saving) (Answer, error) {
		if err := s.admitted(c.Project); err != nil {
			return Answer{}, err
		}
		r, err := do(w)
		if err != nil {
			return Answer{}, err
		}
		return w.rendered(c, string(r.ID), Made{Refund: r})
	})
}

// refunded is the payment that a merchant wants money of to go back, and how
// much.
func (w *saving) refunded(n NewRefund, project flow.ProjectID) (flow.Payment, flow.Kobo, error) {
	if n.Charge != "" {
		return w.refundedOfCharge(n, project)
	}
	p, err := w.tx.PaymentOf(w.ctx, project, n.Payment)
	if err != nil {
		return flow.Payment{}, 0, err
	}
	if n.Amount == 0 {
		if n.Amount = p.Refundable(); n.Amount == 0 {
			return p, 0, nothingLeft(string(p.ID))
		}
	}
	return p, n.Amount, nil
}

// refundedOfCharge is refunded for what paid a charge: a refund is of one payment
// and does not spread over several.
func (w *saving) refundedOfCharge(n NewRefund, project flow.ProjectID) (flow.Payment, flow.Kobo, error) {
	session, err := w.tx.SessionByCharge(w.ctx, n.Charge)
	if err == nil && session.Project != project {
		err = flow.Refuse(flow.CodeNotFound, "There is no charge %q.", n.Charge)
	}
	if err != nil {
		return flow.Payment{}, 0, err
	}
	payments, err := w.tx.Payments(w.ctx, session.ID)
	if err != nil {
		return flow.Payment{}, 0, err
	}
	left := refundable(session, payments)
	var most flow.Kobo
	ids := make([]string, len(left))
	for i, p := range left {
		most, ids[i] = max(most, p.Refundable()), string(p.ID)
	}
	switch {
	case len(left) == 0:
		return flow.Payment{}, 0, nothingLeft(string(n.Charge), payments...)
	case len(left) == 1 && n.Amount == 0:
		return left[0], left[0].Refundable(), nil
	case len(left) == 1:
		return left[0], n.Amount, nil
	}
	for _, p := range slices.Backward(left) {
		if n.Amount > 0 && n.Amount <= p.Refundable() {
			return p, n.Amount, nil
		}
	}
	refusal := flow.Refuse(flow.CodeRefundExceeds,
		"Charge %s was paid by %s payments, and a refund is of one: at most %s (%s kobo) at once. Refund each by its paymentId: %s.",
		n.Charge, strconv.Itoa(len(left)), most.Naira(), most.Minor(), strings.Join(ids, ", "))
	refusal.Details = map[string]string{"refundableMinor": most.Minor(), "paymentIds": strings.Join(ids, ",")}
	return flow.Payment{}, 0, refusal
}

// refundable are the payments of a charge that something can be refunded of: of those
// that paid it, or of all where none did. Who asks twice for what paid it must not get
// what came besides.
func refundable(session flow.Session, payments []flow.Payment) []flow.Payment {
	paid := slices.ContainsFunc(payments, func(p flow.Payment) bool { return p.CountsFor(session) })
	var left []flow.Payment
	for _, p := range payments {
		if p.Refundable() > 0 && p.CountsFor(session) == paid {
			left = append(left, p)
		}
	}
	return left
}

// nothingLeft refuses a refund of what has nothing left; besides are payments, of
// which those that have are named.
func nothingLeft(of string, besides ...flow.Payment) error {
	refusal := flow.Refuse(flow.CodeRefundExceeds, "Of %s nothing is left that could be refunded.", of)
	refusal.Details = map[string]string{"refundableMinor": flow.Kobo(0).Minor()}
	var ids []string
	for _, p := range besides {
		if p.Refundable() > 0 {
			ids = append(ids, string(p.ID))
		}
	}
	if len(ids) > 0 {
		refusal.Message += " What came besides what paid it is refunded by its paymentId: " + strings.Join(ids, ", ") + "."
	}
	return refusal
}

// ViewRefund reads a refund of a project; another project's does not exist.
func (s *Service) ViewRefund(ctx context.Context, project flow.ProjectID, id flow.RefundID) (flow.Refund, error) {
	return s.cfg.DB.RefundOf(ctx, project, id)
}

// RefundFilter narrows a list of refunds. Zero fields do not.
type RefundFilter struct {
	Status  flow.RefundStatus
	Payment flow.PaymentID
	Charge  flow.ChargeID
	Session flow.SessionID

	CreatedAfter  time.Time
	CreatedBefore time.Time // exclusive
	Before        string    // the last id of the page before
	Limit         int
}

// Refunds lists a project's refunds, newest first; more says whether older ones
// follow. Of a charge or payment that is not the project's there are none.
func (s *Service) Refunds(ctx context.Context, project flow.ProjectID, f RefundFilter) (list []flow.Refund, more bool, err error) {
	narrow := store.RefundFilter{
		Project: project, Status: f.Status, Payment: f.Payment, Session: f.Session, From: f.CreatedAfter, Until: f.CreatedBefore, Before: f.Before, Limit: f.Limit + 1,
	}
	if f.Charge != "" {
		session, err := s.cfg.DB.SessionByCharge(ctx, f.Charge)
		if notFound(err) || err == nil && f.Session != "" && f.Session != session.ID {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		narrow.Session = session.ID
	}
	list, err = s.cfg.DB.Refunds(ctx, narrow)
	return page(list, f.Limit, err)
}

// RecordRefund is a refund as its merchant reads it.
func (s *Service) RecordRefund(r flow.Refund) flow.RefundRecord {
	return flow.RecordRefund(r, s.cfg.Around)
}
