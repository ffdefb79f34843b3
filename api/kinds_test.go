package api

import (
	"net/http"
	"slices"
	"testing"

	"till/flow"
)

// invoice is a charge and the account that it is paid to.
type invoice struct{ session, account string }

// charged makes a charge, with more fields.
func (d *desk) charged(fields string) invoice {
	d.t.Helper()
	r := d.call("POST", chargesPath, d.key, with(fields))
	d.want(r, http.StatusCreated, nil)
	return invoice{r.text("data.sessionId"), r.text("data.virtualAccount.accountNumber")}
}

// transfer pays into an account, with more fields, and returns the answer.
func (d *desk) transfer(account, fields string) reply {
	d.t.Helper()
	r := d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`"`+fields+`}`)
	d.want(r, http.StatusOK, nil)
	return r
}

// weather sets what the bank does.
func (d *desk) weather(conditions string) {
	d.t.Helper()
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, conditions), http.StatusOK, nil)
}

// provocation is what merchants do, and the kinds of event that it makes.
type provocation struct {
	kinds []flow.EventKind
	do    func(d *desk)
}

// provocations make every kind of event through the public doors.
func provocations() []provocation {
	kinds := func(all ...flow.EventKind) []flow.EventKind { return all }
	return []provocation{
		{kinds(flow.SessionCreated, flow.InstructionsIssued, flow.ChargeSuccess), func(d *desk) { d.bought() }},
		{kinds(flow.ChargeFailed), func(d *desk) {
			attempt := d.call("POST", sessions+"/"+d.session("")+"/pay/card", d.key, "").text("data.attemptId")
			d.want(d.call("POST", "/v1/test/cards/"+attempt+"/complete", d.key, `{"outcome":"declined"}`), http.StatusOK, nil)
		}},
		{kinds(flow.ChargeCancelled, flow.SessionCancelKind), func(d *desk) {
			d.want(d.call("POST", sessions+"/"+d.charged(`"metadata":{}`).session+"/cancel", d.key, ""), http.StatusOK, nil)
		}},
		{kinds(flow.ChargeUnderpaid), func(d *desk) { d.transfer(d.charged(`"metadata":{}`).account, `,"amount":300000`) }},
		{kinds(flow.ChargeDuplicate), func(d *desk) {
			c := d.charged(`"metadata":{}`)
			d.transfer(c.account, "")
			d.until(c.session, "PAID")
			d.transfer(c.account, "")
		}},
		{kinds(flow.ChargeReversed), func(d *desk) {
			c := d.charged(`"metadata":{}`)
			paid := d.transfer(c.account, "").text("data.railTransactionId")
			d.until(c.session, "PAID")
			d.want(d.call("POST", "/v1/test/bank/reversals", d.key, `{"railTransactionId":"`+paid+`"}`), http.StatusOK, nil)
		}},
		{kinds(flow.PaymentUnmatched), func(d *desk) { d.transfer("0123456789", `,"amount":500000`) }},
		{kinds(flow.PaymentReversed), func(d *desk) {
			id := d.comes("0123456789", "410000", "UNMATCHED")
			d.want(d.ask("POST", paymentsPath+"/"+id+"/resolve", d.key, `{"action":"accept"}`), http.StatusOK, nil)
			rail := d.ask("GET", paymentsPath+"/"+id, d.key, "").text("data.railTransactionId")
			d.want(d.call("POST", "/v1/test/bank/reversals", d.key, `{"railTransactionId":"`+rail+`"}`), http.StatusOK, nil)
		}},
		{kinds(flow.RefundPendingKind, flow.RefundProcessedKind), func(d *desk) { d.refund() }},
		{kinds(flow.RefundFailedKind), func(d *desk) {
			d.weather(`{"refunds":"fail"}`)
			d.refundBecomes(d.refund().text("data.id"), flow.RefundFailed)
			d.weather(`{}`)
		}},
		{kinds(flow.RefundAttentionKind), func(d *desk) { d.bounced() }},
		{kinds(flow.SettlementFailedKind, flow.SettlementSuccessKind), func(d *desk) {
			d.weather(`{"payouts":"fail"}`)
			d.becomes(d.payout(d.key), flow.SettlementFailed)
			d.weather(`{}`)
			d.run(d.key, string(flow.Date(d.ahead()).Plus(1)))
		}},
		{kinds(flow.IdentityVerified), func(d *desk) {
			d.want(d.call("POST", identitiesURL, d.key, person("22222222221", "")), http.StatusAccepted, nil)
		}},
		{kinds(flow.IdentityFailed), func(d *desk) {
			d.want(d.call("POST", identitiesURL, d.key, person("22222222223", "")), http.StatusAccepted, nil)
		}},
		{kinds(flow.Ping), func(d *desk) {
			d.ping(d.call("GET", endpointsPath+"?limit=1", d.key, "").text("data.items.0.id"))
		}},
		{kinds(flow.EndpointDisabledKind), func(d *desk) {
			gone := d.catches()
			gone.answers(http.StatusGone, "")
			d.ping(d.endpoint(d.key, gone.url).text("data.id"))
		}},
		{kinds(flow.ChargeExpired, flow.SessionExpiredKind, flow.ChargeLate), func(d *desk) { // last: it moves the clock
			c := d.charged(`"expiresInMinutes":5`)
			d.want(d.call("POST", "/v1/test/clock", d.key, `{"advanceSeconds":3600}`), http.StatusOK, nil)
			d.until(c.session, "EXPIRED")
			d.transfer(c.account, "")
		}},
	}
}

// Each kind of event is made by what a merchant can do, and reaches an endpoint
// with a body that is as the document has it: listens holds it against that.
func TestEveryKindOfEventIsProvokedAndTold(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.listens(flow.EventKinds()...)
	left := flow.EventKinds()
	for _, p := range provocations() {
		p.do(d)
		for _, kind := range p.kinds {
			told := d.told(`"event":"` + string(kind) + `"`)
			event := d.call("GET", eventsPath+"/"+told.text("id"), d.key, "")
			d.want(event, http.StatusOK, map[string]string{"data.event": string(kind), "data.body": told.body})
			left = slices.DeleteFunc(left, func(k flow.EventKind) bool { return k == kind })
		}
	}
	if len(left) > 0 {
		t.Errorf("nobody provoked %v", left)
	}
}
