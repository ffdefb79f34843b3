package api

import (
	"cmp"
	"net/http"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

const settlementsPath = "/v1/settlements"

// settlesAhead is how far ahead a settlement may be tried out, in days.
const settlesAhead = 31

// settlementRunRecord is what a run made: at most one settlement, for a project
// has one for each day.
type settlementRunRecord struct {
	Date          flow.Date               `json:"date"`
	Items         []flow.SettlementRecord `json:"items"`
	BlockedReason *string                 `json:"blockedReason"`
}

// settlementAccountRecord is where a project is paid out to.
type settlementAccountRecord struct {
	Environment flow.Environment `json:"environment"`
	flow.BankAccountRecord

	Standard  bool    `json:"standard"`
	UpdatedAt *string `json:"updatedAt"`
}

// settlementID is the settlement of the path.
func (c *call) settlementID() (flow.SettlementID, error) {
	return pathID[flow.SettlementID](c, flow.PrefixSettlement, "settlement")
}

// listSettlements is GET /v1/settlements, newest first.
func (*Server) listSettlements(c *call) error {
	q := c.query()
	filter := checkout.SettlementFilter{
		Status: flow.SettlementStatus(q.text("status", 20)), Session: flow.SessionID(q.id("sessionId", flow.PrefixSession, "session")),
		Limit: q.whole("limit", 1, maxPage, usualPage),
	}
	filter.CreatedAfter, filter.CreatedBefore = q.made()
	filter.Before = q.cursor(func(at string) bool { return isID(at, flow.PrefixSettlement) })
	among(q, "status", filter.Status, flow.SettlementStatuses())
	if err := q.done(); err != nil {
		return err
	}
	list, more, err := c.service.Settlements(c.ctx, c.project.ID, filter)
	if err != nil {
		return err
	}
	return sendPage(c, list, more, c.service.RecordSettlement, func(b flow.Settlement) string { return string(b.ID) })
}

// readSettlement is GET /v1/settlements/{id}.
func (*Server) readSettlement(c *call) error {
	return sendOne(c, c.settlementID, c.service.Settlement, c.service.RecordSettlement)
}

// listSettlementLines is GET /v1/settlements/{id}/transactions, oldest first.
func (*Server) listSettlementLines(c *call) error {
	id, err := c.settlementID()
	if err != nil {
		return err
	}
	q := c.query()
	limit := q.whole("limit", 1, maxPage, usualPage)
	var after store.LinePlace
	q.cursor(func(at string) (ok bool) { after, ok = store.ReadLinePlace(at); return ok })
	if err := q.done(); err != nil {
		return err
	}
	lines, more, err := c.service.SettlementLines(c.ctx, c.project.ID, id, after, limit)
	if err != nil {
		return err
	}
	return sendPage(c, lines, more, flow.RecordSettlementLine, func(last flow.SettlementLine) string { return store.PlaceOf(last).String() })
}

// runSettlements is POST /v1/test/settlements/run: the project is paid out for a
// day without waiting for it.
func (*Server) runSettlements(c *call) error {
	f := c.form(decodeRules{optional: true})
	on := f.settlementDay("date", flow.DateOf(c.service.Now()))
	if err := f.done(); err != nil {
		return err
	}
	c.began = true
	b, made, blocked, err := c.service.SettleNow(c.ctx, c.project.ID, on)
	if err != nil {
		return err
	}
	out := settlementRunRecord{Date: on, Items: []flow.SettlementRecord{}, BlockedReason: flow.OrNull(blocked)}
	if made {
		out.Items = append(out.Items, c.service.RecordSettlement(b))
	}
	return c.send(http.StatusOK, out)
}

// settlementDay takes the day to pay out for: today, unless it is said.
func (f *form) settlementDay(name string, today flow.Date) flow.Date {
	text := f.text(name, text{most: maxDate})
	if text == "" {
		return today
	}
	on, err := flow.ParseDate(text)
	if err != nil || on < "2000-01-01" || on > today.Plus(settlesAhead) {
		f.fail(name, flow.CodeInvalidField, "%s must be a day such as %s, at most %d days ahead.", name, today, settlesAhead)
		return today
	}
	return on
}

// putSettlementAccount is PUT /v1/projects/{id}/settlement-account: where the
// project is paid out to. Its bank says whose the account is.
func (s *Server) putSettlementAccount(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	f := c.form(decodeRules{})
	env := flow.Environment(f.oneOf("environment", flow.CodeInvalidField, string(flow.Test), string(flow.Live)))
	account := f.account(env)
	if err := f.done(); err != nil {
		return err
	}
	if err := c.audit(env, "payee.set", string(c.project.ID), account.Told()); err != nil {
		return err
	}
	v, err := s.verifications(env)
	if err != nil {
		return err
	}
	name, err := v.ResolveAccount(c.ctx, account)
	if err != nil {
		return err
	}
	kept, err := s.cfg.Accounts.SetSettlementAccount(c.ctx, c.project.ID, env, flow.BankAccount{BankCode: account.BankCode, Number: account.Number, Name: name})
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, recordSettlementAccount(env, kept))
}

// readSettlementAccount is GET /v1/projects/{id}/settlement-account.
func (s *Server) readSettlementAccount(c *call) error {
	if err := s.ownProject(c); err != nil {
		return err
	}
	q := c.query()
	env := cmp.Or(flow.Environment(q.text("environment", 10)), flow.Test)
	among(q, "environment", env, []flow.Environment{flow.Test, flow.Live})
	if err := q.done(); err != nil {
		return err
	}
	kept, found, err := s.cfg.Accounts.SettlementAccount(c.ctx, c.project.ID, env)
	if err == nil && !found {
		err = flow.Refuse(flow.CodeNotFound, "This project has no settlement account in %s. PUT one: until then nobody is paid out.", env)
	}
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, recordSettlementAccount(env, kept))
}

func recordSettlementAccount(env flow.Environment, a flow.SettlementAccount) settlementAccountRecord {
	bank, _ := rail.BankByCode(a.BankCode)
	return settlementAccountRecord{env, flow.RecordBankAccount(a.BankAccount, bank.Name), a.Standard, flow.StampOrNull(a.UpdatedAt)}
}
