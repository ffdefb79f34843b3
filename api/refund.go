package api

import (
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// The bounds of what can be sent back, in kobo: no payment is larger than what a
// number of JSON can say exactly, and of each no more goes back than came.
const (
	minRefund flow.Kobo = 1
	maxRefund flow.Kobo = maxExact
)

// openRefund is POST /v1/refunds: money of a payment goes back to who paid it.
func (*Server) openRefund(c *call) error {
	f := c.form(decodeRules{})
	n := checkout.NewRefund{
		Payment: flow.PaymentID(f.id("paymentId", flow.PrefixPayment, "payment")), Charge: flow.ChargeID(f.id("chargeId", flow.PrefixCharge, "charge")),
		Amount: f.amount(false, minRefund, maxRefund), Reason: f.text("reason", text{most: maxDescription, said: true}),
		Key: c.key.ID,
	}
	switch both := f.has("paymentId") && f.has("chargeId"); {
	case both:
		f.fail("chargeId", flow.CodeInvalidField, "Send paymentId or chargeId, not both.")
	case !f.has("paymentId") && !f.has("chargeId"):
		f.fail("paymentId", flow.CodeMissingField, "paymentId or chargeId is required.")
	}
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusCreated, c.recordRefund, refundsPath, func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Refund(c.ctx, n, once)
	})
}

// id takes a field that names one of our things, "" where it is missing.
func (f *form) id(name, prefix, what string) string {
	if !f.has(name) {
		f.known = append(f.known, name)
		return ""
	}
	id := f.text(name, text{most: maxName})
	if id != "" && !isID(id, prefix) {
		f.fail(name, flow.CodeInvalidField, "%s must be the id of a %s: %s….", name, what, prefix)
	}
	return id
}

// recordRefund is the answer of a call about a refund.
func (c *call) recordRefund(m checkout.Made) any { return c.service.RecordRefund(m.Refund) }

// refundID is the refund of the path.
func (c *call) refundID() (flow.RefundID, error) {
	return pathID[flow.RefundID](c, flow.PrefixRefund, "refund")
}

// readRefund is GET /v1/refunds/{id}.
func (*Server) readRefund(c *call) error {
	return sendOne(c, c.refundID, c.service.ViewRefund, c.service.RecordRefund)
}

// listRefunds is GET /v1/refunds, newest first.
func (*Server) listRefunds(c *call) error {
	q := c.query()
	filter := checkout.RefundFilter{
		Status: flow.RefundStatus(q.text("status", 20)), Payment: flow.PaymentID(q.id("paymentId", flow.PrefixPayment, "payment")),
		Charge: flow.ChargeID(q.id("chargeId", flow.PrefixCharge, "charge")), Session: flow.SessionID(q.id("sessionId", flow.PrefixSession, "session")),
		Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	filter.CreatedAfter, filter.CreatedBefore = q.made()
	filter.Before = q.cursor(func(at string) bool { return isID(at, flow.PrefixRefund) })
	among(q, "status", filter.Status, flow.RefundStatuses())
	if err := q.done(); err != nil {
		return err
	}
	refunds, more, err := c.service.Refunds(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	return sendPage(c, refunds, more, c.service.RecordRefund, func(r flow.Refund) string { return string(r.ID) })
}

// id takes a parameter that names one of our things, "" where it is missing.
func (q *query) id(name, prefix, what string) string {
	id := q.text(name, maxName)
	if id != "" && !isID(id, prefix) {
		q.form.fail(name, flow.CodeInvalidField, "%s must be the id of a %s: %s….", name, what, prefix)
	}
	return id
}

// retryRefund is POST /v1/refunds/{id}/retry: one that failed or needs attention is
// sent again.
func (*Server) retryRefund(c *call) error {
	id, err := alone(c, c.refundID)
	if err != nil {
		return err
	}
	return c.effect(http.StatusOK, c.recordRefund, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.RetryRefund(c.ctx, id, c.key.ID, once)
	})
}
