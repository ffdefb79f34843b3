package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
)

// ahead is a day on which what comes today is due, whatever day it is.
func (s *shop) ahead() string { return string(flow.DateOf(s.now()).Plus(14)) }

// run is the run of a project's settlement.
func (d *desk) run(key, date string) reply {
	d.t.Helper()
	body := `{}`
	if date != "" {
		body = `{"date":"` + date + `"}`
	}
	r := d.call("POST", "/v1/test/settlements/run", key, body)
	d.want(r, http.StatusOK, nil)
	return r
}

// payout is a settlement of one payment.
func (d *desk) payout(key string) string {
	d.t.Helper()
	d.bought()
	return d.run(key, d.ahead()).text("data.items.0.id")
}

// becomes waits until a settlement stands somewhere.
func (d *desk) becomes(id string, status flow.SettlementStatus) reply {
	d.t.Helper()
	var r reply
	await.Until(d.t, id+" is "+string(status), func() bool {
		r = d.call("GET", settlementsPath+"/"+id, d.key, "")
		return r.text("data.status") == string(status)
	})
	return r
}

func TestAMerchantTriesOutBeingPaid(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	today := string(d.tomorrow())
	d.listens()
	for range 3 {
		d.bought()
	}
	d.want(d.run(d.key, ""), http.StatusOK, map[string]string{"data.items": "[]", "data.blockedReason": "", "data.date": today})
	d.want(d.call("GET", "/v1/balance", d.key, ""), http.StatusOK, map[string]string{"data.pendingMinor": "1447500", "data.blockedReason": ""})
	made := d.run(d.key, d.ahead())
	id := made.text("data.items.0.id")
	d.want(made, http.StatusOK, map[string]string{
		"data.items.0.amountMinor": "1447500", "data.items.0.transactionCount": "3", "data.items.0.settlesOn": d.ahead(), "data.items.0.carriedMinor": "0",
		"data.items.0.bankAccount.accountNumberMasked": "******0001", "data.items.0.bankAccount.bankName": "Till Test Bank",
	})
	if again := d.run(d.key, d.ahead()).text("data.items.0.id"); again != id {
		t.Errorf("one day was paid out as %s and as %s", id, again)
	}
	paid := d.becomes(id, flow.SettlementSucceeded)
	if paid.text("data.railTransactionId") == "" || paid.text("data.paidAt") == "" {
		t.Errorf("%s", paid.body)
	}
	var sum int
	var seen []string
	cursor := ""
	for {
		page := d.call("GET", settlementsPath+"/"+id+"/transactions?limit=2&cursor="+cursor, d.key, "")
		d.want(page, http.StatusOK, nil)
		for i := range 2 {
			at := "data.items." + strconv.Itoa(i) + "."
			if page.text(at+"paymentId") == "" {
				break
			}
			net, err := strconv.Atoi(page.text(at + "netMinor"))
			if err != nil || page.text(at+"type") != "payment" || page.text(at+"feeMinor") != "17500" {
				t.Errorf("%s", page.body)
			}
			sum += net
			seen = append(seen, page.text(at+"paymentId"))
		}
		if cursor = page.text("data.nextCursor"); cursor == "" {
			break
		}
	}
	slices.Sort(seen)
	if sum != 1_447_500 || len(slices.Compact(seen)) != 3 {
		t.Errorf("the transactions are %v and come to %d", seen, sum)
	}
	d.want(d.call("GET", settlementsPath+"?status=SUCCEEDED", d.key, ""), http.StatusOK, map[string]string{"data.items.0.id": id})
	d.want(d.call("GET", settlementsPath+"?status=FAILED", d.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	d.want(d.call("GET", settlementsPath+"?createdAfter=2020-01-01T00:00:00Z", d.key, ""), http.StatusOK, map[string]string{"data.items.0.id": id})
	d.want(d.call("GET", settlementsPath+"?createdBefore=2020-01-01T00:00:00Z", d.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	await.Until(t, "the merchant hears of it", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.ContainsFunc(d.heard, func(body string) bool {
			return strings.Contains(body, `"event":"settlement.success","reference":"`+id+`"`) && strings.Contains(body, `"amountMinor":"1447500"`)
		})
	})
}

// Whoever keeps the books finds for an order the payouts that its money is in, and for a
// payout the orders.
func TestAnOrderAndItsPayoutAreFoundByEachOther(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.bought() // has none of their own reference
	charge := d.call("POST", chargesPath, d.key, strings.Replace(good, "{", `{"reference":"order-7",`, 1))
	session := charge.text("data.sessionId")
	d.want(d.call("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+charge.text("data.virtualAccount.accountNumber")+`"}`), http.StatusOK, nil)
	d.until(session, "PAID")
	of := settlementsPath + "?sessionId=" + session
	d.want(d.call("GET", of, d.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	first := d.run(d.key, d.ahead()).text("data.items.0.id")
	d.want(d.call("GET", of, d.key, ""), http.StatusOK, map[string]string{"data.items.0.id": first, "data.items.1.id": ""})
	d.want(d.call("GET", settlementsPath+"/"+first+"/transactions", d.key, ""), http.StatusOK, map[string]string{
		"data.items.0.reference": "", "data.items.1.sessionId": session, "data.items.1.reference": "order-7",
	})
	d.becomes(first, flow.SettlementSucceeded)
	told := d.call("GET", chargesPath+"/"+charge.text("data.id")+"/timeline", d.key, "")
	if !strings.Contains(told.body, "+₦4,825 in settlement "+first) || !strings.Contains(told.body, "settlement "+first+" was paid out") {
		t.Errorf("its story: %s", told.body)
	}
	d.want(d.call("GET", settlementsPath+"?sessionId=wsp_sess_01k9z3m5x8v2c7n4b6t1q0w9ef", d.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	d.want(d.call("GET", settlementsPath+"?sessionId=order-7", d.key, ""), http.StatusBadRequest, nil)
}

func TestAPayoutThatFailsIsToldAndMadeAgain(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	d.listens()
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{"payouts":"fail"}`), http.StatusOK, nil)
	id := d.payout(d.key)
	failed := d.becomes(id, flow.SettlementFailed)
	if failed.text("data.failureReason") == "" || failed.text("data.paidAt") != "" {
		t.Errorf("%s", failed.body)
	}
	await.Until(t, "the merchant hears of it", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.ContainsFunc(d.heard, func(body string) bool {
			return strings.Contains(body, `"event":"settlement.failed","reference":"`+id+`"`)
		})
	})
	d.want(d.call("PUT", "/v1/test/bank/conditions", d.key, `{}`), http.StatusOK, nil)
	next := d.run(d.key, string(flow.Date(d.ahead()).Plus(1)))
	d.want(next, http.StatusOK, map[string]string{
		"data.items.0.amountMinor": "482500", "data.items.0.carriedMinor": "482500", "data.items.0.transactionCount": "0",
	})
	d.becomes(next.text("data.items.0.id"), flow.SettlementSucceeded)
}

func TestADayThatCannotBePaidOutForIsRefused(t *testing.T) {
	t.Parallel()
	d := openDesk(t)
	today := d.tomorrow()
	for _, date := range []string{`"tomorrow"`, `"2026-02-30"`, `"1999-12-31"`, `"` + string(today.Plus(32)) + `"`, `20261123`, `null`, `"2026-11-23T00:00:00Z"`} {
		d.want(d.call("POST", "/v1/test/settlements/run", d.key, `{"date":`+date+`}`), http.StatusBadRequest, map[string]string{"error.fields.0.field": "date"})
	}
	d.want(d.call("POST", "/v1/test/settlements/run", d.key, `{"date":"2026-11-23T00:00:00Z"}`), http.StatusBadRequest, map[string]string{
		"error.message": "date must be a day such as " + string(today) + ", at most 31 days ahead.",
	})
	d.want(d.run(d.key, string(today.Plus(31))), http.StatusOK, map[string]string{"data.items": "[]"})
	for _, cursor := range []string{"x", cursorText("1/payment"), cursorText("x/payment/y"), cursorText("-1/payment/y"), cursorText("1//y"), cursorText("1/a b/y")} {
		d.want(d.call("GET", settlementsPath+"/"+d.settledOnce()+"/transactions?cursor="+cursor, d.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_cursor"})
	}
	d.want(d.call("GET", settlementsPath+"?status=paid", d.key, ""), http.StatusBadRequest, map[string]string{"error.fields.0.field": "status"})
}

// settledOnce is the one settlement of this desk.
func (d *desk) settledOnce() string {
	d.t.Helper()
	if id := d.call("GET", settlementsPath, d.key, "").text("data.items.0.id"); id != "" {
		return id
	}
	return d.payout(d.key)
}

func cursorText(text string) string { return *cursorOf(text) }

func TestAMerchantSaysWhereItIsPaidOutTo(t *testing.T) {
	t.Parallel()
	d := openHastyDesk(t, 2*time.Second)
	d.run(d.key, "") // the desk is ready
	token := d.tokenFor(d.project)
	path := projectsPath + "/" + string(d.project.ID) + "/settlement-account"
	standard := map[string]string{"data.standard": "true", "data.bankCode": "999", "data.accountNumberMasked": "******0001", "data.updatedAt": ""}
	d.want(d.call("GET", path, token, ""), http.StatusOK, standard)
	d.want(d.call("GET", path+"?environment=live", token, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.call("GET", path+"?environment=both", token, ""), http.StatusBadRequest, map[string]string{"error.fields.0.field": "environment"})

	for body, code := range map[string]string{
		`{"bankCode":"999","accountNumber":"0000000002"}`:                      "account_not_resolved",
		`{"bankCode":"000","accountNumber":"0000000001"}`:                      "bank_not_supported",
		`{"bankCode":"999","accountNumber":"1"}`:                               "invalid_field",
		`{"bankCode":"999"}`:                                                   "missing_field",
		`{"bankCode":"999","accountNumber":"0000000001","environment":"prod"}`: "invalid_field",
		`{"bankCode":"999","accountNumber":"0000000001","environment":"live"}`: "bank_not_supported",
		`{"bankCode":"058","accountNumber":"0000000001","environment":"live"}`: "rail_unavailable",
	} {
		if got := d.call("PUT", path, token, body); got.code() != code {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	d.want(d.call("GET", path, token, ""), http.StatusOK, standard)

	d.want(d.call("PUT", path, token, `{"bankCode":"999","accountNumber":"0000000004"}`), http.StatusServiceUnavailable, nil) // its bank is slower than we wait
	put := d.call("PUT", path, token, `{"bankCode":"058","accountNumber":"0123456789"}`)
	if put.status != http.StatusOK {
		put = d.call("PUT", path, token, `{"bankCode":"999","accountNumber":"0000000001"}`)
	}
	d.want(put, http.StatusOK, map[string]string{"data.standard": "false", "data.environment": "test"})
	got := d.call("GET", path, token, "")
	d.want(got, http.StatusOK, map[string]string{"data.accountName": put.text("data.accountName"), "data.accountNumberMasked": put.text("data.accountNumberMasked")})
	if got.text("data.accountName") == "" || strings.Contains(got.body, "0123456789") || strings.Contains(put.body, "0123456789") {
		t.Errorf("%s", got.body)
	}
	d.want(d.call("GET", settlementsPath+"/"+d.payout(d.key), d.key, ""), http.StatusOK, map[string]string{"data.bankAccount.accountName": put.text("data.accountName")})
}
