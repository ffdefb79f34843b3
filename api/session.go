package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// The bounds of a session's life and of a page of a list.
const (
	minSessionMinutes = flow.MinSessionMinutes
	maxSessionMinutes = flow.MaxSessionMinutes
	maxPage           = 100
	usualPage         = 20
)

// openSession is POST …/sessions. No bank is called for it.
func (s *Server) openSession(c *call) error {
	f := c.form(decodeRules{})
	n := c.newSession(f)
	n.Mode = flow.Mode(f.oneOf("mode", flow.CodeInvalidMode, string(flow.Headless), string(flow.InChat)))
	if err := f.done(); err != nil {
		return err
	}
	return c.effect(http.StatusCreated, c.recordSession, sessionsPath, func(once checkout.Call) (checkout.Answer, error) {
		a, err := c.service.Open(c.ctx, n, once)
		if err == nil && a.Status < http.StatusBadRequest {
			c.noted.session = flow.SessionID(a.Location)
		}
		return a, err
	})
}

// newSession takes the fields of a session that every way of making one has.
func (c *call) newSession(f *form) checkout.NewSession {
	set := c.project.Settings
	policy := set.Policy()
	n := checkout.NewSession{
		Merchant:      c.project.Shown(),
		Amount:        f.amount(true, flow.MinAmount, flow.MaxAmount),
		CustomerEmail: f.email("customerEmail"),
		CustomerPhone: f.phone("customerPhone"),
		CustomerName:  f.text("customerName", text{most: maxName, said: true}),
		Reference:     f.reference("reference"),
		Description:   f.text("description", text{most: maxDescription, said: true}),
		Metadata:      f.metadata("metadata"),
		CallbackURL:   f.callback("callbackUrl", c.key.Environment),
		ExpiresIn:     time.Duration(f.whole("expiresInMinutes", minSessionMinutes, maxSessionMinutes, set.Minutes())) * time.Minute,
		Policy: flow.Policy{
			Underpayment: f.oneOf("underpayment", flow.CodeInvalidField, first(policy.Underpayment, flow.Underpayments)...),
			Overpayment:  f.oneOf("overpayment", flow.CodeInvalidField, first(policy.Overpayment, flow.Overpayments)...),
			LatePayment:  f.oneOf("latePayment", flow.CodeInvalidField, first(policy.LatePayment, flow.LatePayments)...),
			Lang:         policy.Lang, Brand: policy.Brand,
		},
		AllowedMethods: flow.Methods(),
	}
	f.oneOf("currency", flow.CodeCurrency, flow.Currency)
	if chosen := f.some("allowedMethods", methodNames(), leftOut); chosen != nil {
		n.AllowedMethods = nil
		for _, name := range chosen {
			n.AllowedMethods = append(n.AllowedMethods, flow.Method(name))
		}
	}
	return n
}

// first is a list with one of its values in front: what holds where nobody says.
func first(value string, all []string) []string {
	return append([]string{value}, slices.DeleteFunc(slices.Clone(all), func(v string) bool { return v == value })...)
}

func methodNames() []string {
	var out []string
	for _, m := range flow.Methods() {
		out = append(out, string(m))
	}
	return out
}

// recordSession is the answer of a call about a session.
func (c *call) recordSession(m checkout.Made) any { return c.service.Record(m.View) }

// readSession is GET …/sessions/{id}.
func (*Server) readSession(c *call) error {
	return sendOne(c, c.sessionID, c.service.View, c.service.Record)
}

// listSessions is GET …/sessions, newest first.
func (*Server) listSessions(c *call) error {
	return list(c, false, func(v checkout.View) any { return c.service.Record(v) })
}

// list answers a page of sessions, or of their charges, newest first.
func list(c *call, charges bool, record func(checkout.View) any) error {
	q := c.query()
	filter := checkout.Filter{
		Status: flow.SessionStatus(q.text("status", 20)), Reference: q.text("reference", maxReference), CustomerEmail: q.email("customerEmail"),
		Charges: charges, Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	filter.CreatedAfter, filter.CreatedBefore = q.made()
	of := "" // what a cursor of sessions names by its id alone, one of charges has to say
	if charges {
		of = "charges/"
	}
	filter.Before = strings.TrimPrefix(q.cursor(func(at string) bool {
		id, own := strings.CutPrefix(at, of)
		return own && isID(id, flow.PrefixSession)
	}), of)
	states := []flow.SessionStatus{"PENDING", "PROCESSING", "PAID", "EXPIRED", "CANCELLED"}
	if charges { // a charge says SUCCEEDED where its session says PAID; none is FAILED yet, and to ask for those is no fault
		states = []flow.SessionStatus{"PENDING", "PROCESSING", "SUCCEEDED", "FAILED", "EXPIRED", "CANCELLED"}
	}
	among(q, "status", filter.Status, states)
	if filter.Status == flow.SessionStatus(flow.ChargeSucceeded) {
		filter.Status = flow.SessionPaid
	}
	if err := q.done(); err != nil {
		return err
	}
	views, more, err := c.service.List(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	return sendPage(c, views, more, record, func(v checkout.View) string { return of + string(v.Session.ID) })
}

// cancelSession is POST …/sessions/{id}/cancel.
func (*Server) cancelSession(c *call) error {
	id, err := alone(c, c.sessionID)
	if err != nil {
		return err
	}
	return c.effect(http.StatusOK, c.recordSession, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Cancel(c.ctx, id, once)
	})
}
