package api

import (
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// paymentID is the payment of the path.
func (c *call) paymentID() (flow.PaymentID, error) {
	return pathID[flow.PaymentID](c, flow.PrefixPayment, "payment")
}

// readPayment is GET /v1/payments/{id}.
func (*Server) readPayment(c *call) error {
	return sendOne(c, c.paymentID, c.service.Payment, flow.RecordPayment)
}

// listPayments is GET /v1/payments, newest first.
func (*Server) listPayments(c *call) error {
	q := c.query()
	filter := checkout.PaymentFilter{
		Match: flow.MatchStatus(q.text("matchStatus", 20)), Session: flow.SessionID(q.id("sessionId", flow.PrefixSession, "session")),
		Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	filter.CreatedAfter, filter.CreatedBefore = q.made()
	filter.Before = q.cursor(func(at string) bool { return isID(at, flow.PrefixPayment) })
	among(q, "matchStatus", filter.Match, flow.MatchStatuses())
	if err := q.done(); err != nil {
		return err
	}
	payments, more, err := c.service.Payments(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	return sendPage(c, payments, more, flow.RecordPayment, func(p flow.Payment) string { return string(p.ID) })
}

// resolvePayment is POST /v1/payments/{id}/resolve: the merchant takes money that
// was set aside, or sends it back.
func (*Server) resolvePayment(c *call) error {
	id, err := c.paymentID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	f.required("action") // nothing is decided by leaving it out
	action := f.oneOf("action", flow.CodeInvalidField, "accept", "refund")
	n := checkout.NewResolution{Accept: action == "accept", Key: c.key.ID, Reason: f.text("reason", text{most: maxDescription, said: true})}
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, func(m checkout.Made) any { return flow.RecordPayment(m.Payment) }, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Resolve(c.ctx, id, n, once)
	})
}
