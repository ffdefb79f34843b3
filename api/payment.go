package api

import (
	"net/http"
	"slices"
	"strings"

	"till/flow"
	"till/flow/checkout"
)

// paymentID is the payment of the path.
func (c *call) paymentID() (flow.PaymentID, error) {
	return pathID[flow.PaymentID](c, flow.PrefixPayment, "payment")
}

// readPayment is GET /v1/payments/{id}.
func (*Server) readPayment(c *call) error {
	id, err := c.paymentID()
	if err != nil {
		return err
	}
	p, err := c.service.Payment(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, flow.RecordPayment(p))
}

// listPayments is GET /v1/payments, newest first.
func (*Server) listPayments(c *call) error {
	q := c.query()
	filter := checkout.PaymentFilter{
		Match: flow.MatchStatus(q.text("matchStatus", 20)), Session: flow.SessionID(q.id("sessionId", flow.PrefixSession, "session")),
		CreatedAfter: q.moment("createdAfter"), CreatedBefore: q.moment("createdBefore"), Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	cursor := q.text("cursor", 200)
	if outcomes := flow.MatchStatuses(); filter.Match != "" && !slices.Contains(outcomes, filter.Match) {
		names := make([]string, len(outcomes))
		for i, outcome := range outcomes {
			names[i] = string(outcome)
		}
		q.form.fail("matchStatus", flow.CodeInvalidField, "matchStatus must be one of: %s.", strings.Join(names, ", "))
	}
	if err := q.done(); err != nil {
		return err
	}
	var err error
	if filter.Before, err = readCursor(cursor, func(at string) bool { return isID(at, flow.PrefixPayment) }); err != nil {
		return err
	}
	payments, more, err := c.service.Payments(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	records := make([]flow.PaymentRecord, len(payments))
	for i, p := range payments {
		records[i] = flow.RecordPayment(p)
	}
	out := page{Items: records, HasMore: more}
	if more {
		out.NextCursor = cursorOf(string(payments[len(payments)-1].ID))
	}
	return c.send(http.StatusOK, out)
}

// resolvePayment is POST /v1/payments/{id}/resolve: the merchant takes money that
// was set aside, or sends it back.
func (*Server) resolvePayment(c *call) error {
	id, err := c.paymentID()
	if err != nil {
		return err
	}
	f, err := c.form(decodeRules{})
	if err != nil {
		return err
	}
	action := f.oneOf("action", flow.CodeInvalidField, "accept", "refund")
	if !f.has("action") { // nothing is decided by leaving it out
		f.fail("action", flow.CodeMissingField, "action is required: accept or refund.")
	}
	n := checkout.NewResolution{Accept: action == "accept", Key: c.key.ID, Reason: f.text("reason", text{most: maxDescription})}
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusOK, func(m checkout.Made) any { return flow.RecordPayment(m.Payment) }, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Resolve(c.ctx, id, n, once)
	})
}
