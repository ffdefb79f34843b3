package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
)

const reconciliationPath = "/v1/reconciliation"

// total is what a reconciled day says of a kind of movement: the bank's, the
// ledger's and the events' count and kobo.
func (d *desk) total(day reply, kind flow.MovementKind) string {
	d.t.Helper()
	for i, k := range flow.MovementKinds() {
		if k == kind {
			at := "data.totals." + string(rune('0'+i))
			if got := day.text(at + ".movement"); got != string(kind) {
				d.t.Fatalf("%s stands where %s should: %s", got, kind, day.body)
			}
			var parts []string
			for _, who := range []string{"rail", "ledger", "events"} {
				parts = append(parts, day.text(at+"."+who+".count")+" "+day.text(at+"."+who+".amountMinor"))
			}
			return strings.Join(parts, ", ")
		}
	}
	return ""
}

// A day on which money was paid, paid twice, sent back, meant for nobody and not
// told of: what was not told of is named, page by page, until it is found. Then
// the day is balanced, and it is nobody else's.
func TestAMerchantReconcilesADay(t *testing.T) {
	d := openDesk(t)
	tomorrow := d.tomorrow()
	date := reconciliationPath + "?date=" + string(tomorrow)
	transfer := func(account, more string) string {
		t.Helper()
		r := d.ask("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`"`+more+`}`)
		d.want(r, http.StatusOK, nil)
		return r.text("data.railTransactionId")
	}
	matched := func(status string) {
		t.Helper()
		await.Until(t, "money is "+status, func() bool {
			return d.ask("GET", paymentsPath+"?matchStatus="+status, d.key, "").text("data.items.0.id") != ""
		})
	}

	charge := d.bought()
	transfer(d.ask("GET", chargesPath+"/"+charge, d.key, "").text("data.virtualAccount.accountNumber"), "")
	matched("DUPLICATE")
	transfer("9990000001", `,"amount":12345`)
	matched("UNMATCHED")
	refund := d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`","amount":100000}`)
	d.refundBecomes(refund.text("data.id"), flow.RefundProcessed)
	lost := map[string]string{}
	for range 2 {
		c := d.ask("POST", chargesPath, d.key, good)
		lost[transfer(c.text("data.virtualAccount.accountNumber"), `,"drop":true`)] = c.text("data.sessionId")
	}

	// What the bank did not tell of is named.
	url := date + "&limit=1"
	for len(lost) > 0 {
		page := d.ask("GET", url, d.key, "")
		id := page.text("data.differences.0.railTransactionId")
		d.want(page, http.StatusOK, map[string]string{
			"data.balanced": "false", "data.differences.0.kind": "missing_in_ledger", "data.differences.0.movement": "payment",
			"data.differences.0.sessionId": lost[id], "data.differences.0.railAmountMinor": "500000", "data.differences.1.kind": "",
		})
		delete(lost, id)
		if more := page.text("data.hasMore") == "true"; more != (len(lost) > 0) {
			t.Fatalf("after %d more: %s", len(lost), page.body)
		}
		url = date + "&limit=1&cursor=" + page.text("data.nextCursor")
	}

	// It is found when the bank is asked, and then all agree.
	var day reply
	await.Until(t, "the day is balanced", func() bool {
		d.pass(time.Minute)
		day = d.ask("GET", date, d.key, "")
		return day.text("data.balanced") == "true"
	})
	d.want(day, http.StatusOK, map[string]string{"data.date": string(tomorrow), "data.complete": "false", "data.hasMore": "false", "data.differences.0.kind": ""})
	for kind, want := range map[flow.MovementKind]string{
		flow.MovePayment: "5 2012345, 5 2012345, 5 2012345", flow.MoveRefund: "1 -100000, 1 -100000, 1 -100000", flow.MoveReversal: "0 0, 0 0, 0 0",
	} {
		if got := d.total(day, kind); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
	}

	_, public, stranger := d.merchant("Bola Stores")
	theirs := d.ask("GET", date, stranger, "")
	d.want(theirs, http.StatusOK, map[string]string{"data.balanced": "true", "data.differences.0.kind": ""})
	if got := d.total(theirs, flow.MovePayment); got != "0 0, 0 0, 0 0" {
		t.Errorf("another project sees %s", got)
	}
	d.want(d.ask("GET", date, public, ""), http.StatusForbidden, map[string]string{"error.code": "secret_key_required"})

	// The day itself is over once what was sent before midnight has landed.
	for after, complete := range []string{"false", "true"} {
		d.pass(tomorrow.Plus(1).Start().Add(time.Minute + time.Duration(after)*30*time.Minute).Sub(d.now()))
		d.want(d.ask("GET", date, d.key, ""), http.StatusOK, map[string]string{"data.complete": complete, "data.balanced": "true"})
	}
}

// Within a minute a day is compared with the same statement, and what came since stands in
// none of the sums: each answer says when the bank was asked.
func TestAReconciledDaySaysWhenTheBankWasAsked(t *testing.T) {
	d := openDesk(t)
	tomorrow := d.tomorrow()
	date := reconciliationPath + "?date=" + string(tomorrow)
	compared := func(payments string) time.Time {
		t.Helper()
		day := d.ask("GET", date, d.key, "")
		d.want(day, http.StatusOK, map[string]string{"data.balanced": "true", "data.complete": "false"})
		if got := d.total(day, flow.MovePayment); got != payments {
			t.Errorf("payments are %s, not %s", got, payments)
		}
		at, err := time.Parse(time.RFC3339, day.text("data.statementAt"))
		if must(t, err); at.After(d.now()) || d.now().Sub(at) >= time.Minute {
			t.Errorf("at %s the bank was asked at %s", d.now(), at)
		}
		return at
	}
	first := compared("0 0, 0 0, 0 0")
	d.want(d.ask("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"9990000001","amount":12345}`), http.StatusOK, nil)
	await.Until(t, "it is booked", func() bool {
		return d.ask("GET", paymentsPath+"?matchStatus=UNMATCHED", d.key, "").text("data.items.0.id") != ""
	})
	if again := compared("0 0, 0 0, 0 0"); !again.Equal(first) {
		t.Errorf("the statement of %s is said to be of %s", first, again)
	}
	d.pass(time.Minute)
	if later := compared("1 12345, 1 12345, 1 12345"); later.Before(first.Add(time.Minute)) {
		t.Errorf("a minute after %s the bank was asked at %s", first, later)
	}
}

// What is booked between one page of differences and the next keeps none of the others from
// being listed.
func TestADifferenceThatEndsTakesNoOtherFromTheNextPage(t *testing.T) {
	d := openDesk(t)
	tomorrow := d.tomorrow()
	var charges, lost []string
	for n := range 3 {
		c := d.ask("POST", chargesPath, d.key, good)
		charges = append(charges, c.text("data.id"))
		sent := d.ask("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+c.text("data.virtualAccount.accountNumber")+`","drop":true,"valueTime":"`+flow.Stamp(d.now().Add(time.Duration(n)*time.Millisecond))+`"}`)
		d.want(sent, http.StatusOK, nil)
		lost = append(lost, sent.text("data.railTransactionId"))
	}
	url := reconciliationPath + "?date=" + string(tomorrow) + "&limit=1"
	page := d.ask("GET", url, d.key, "")
	d.want(page, http.StatusOK, map[string]string{"data.differences.0.railTransactionId": lost[0], "data.hasMore": "true"})
	d.want(d.ask("POST", chargesPath+"/"+charges[0]+"/requery", d.key, ""), http.StatusOK, nil)
	await.Until(t, "the first is booked", func() bool {
		return d.ask("GET", chargesPath+"/"+charges[0], d.key, "").text("data.status") == "SUCCEEDED"
	})
	for _, id := range lost[1:] {
		page = d.ask("GET", url+"&cursor="+page.text("data.nextCursor"), d.key, "")
		d.want(page, http.StatusOK, map[string]string{"data.differences.0.railTransactionId": id})
	}
	d.want(page, http.StatusOK, map[string]string{"data.hasMore": "false"})
}

func TestADayThatCannotBeReconciledIsRefused(t *testing.T) {
	d := openDesk(t)
	tomorrow := flow.DateOf(d.now().Add(time.Hour)).Plus(1)
	for query, code := range map[string]string{
		"": "missing_field", "?date=": "missing_field", "?date=2026-02-30": "invalid_field", "?date=yesterday": "invalid_field", "?date=0001-01-01": "invalid_field", "?date=1999-12-31": "invalid_field",
		"?date=" + string(tomorrow): "invalid_field", "?date=2026-02-03&cursor=x": "invalid_cursor", "?date=2026-02-03&limit=101": "invalid_field",
	} {
		if got := d.ask("GET", reconciliationPath+query, d.key, ""); got.status != http.StatusBadRequest || !strings.Contains(got.body, `"`+code+`"`) {
			t.Errorf("%s: %d %s, want %s", query, got.status, got.body, code)
		}
	}
	for query, says := range map[string]string{ // once, and not that it is missing
		"?date=2026-02-03T09:30:00Z": "date must be a day in Lagos, like 2026-11-21.", "?date=2026-02-03&date=2026-02-04": "date must be given once.",
	} {
		d.want(d.ask("GET", reconciliationPath+query, d.key, ""), http.StatusBadRequest, map[string]string{"error.message": says, "error.fields.1.field": ""})
	}
	d.want(d.ask("GET", reconciliationPath+"?date=2026-02-03", d.key, ""), http.StatusOK, map[string]string{"data.complete": "true", "data.balanced": "true"})
}

// However often a day is asked about, the bank is asked for it once a minute; and
// for no more than a few days.
func TestTheBankIsSparedThoseWhoReconcile(t *testing.T) {
	d := openDesk(t)
	statements := func() (n int) {
		t.Helper()
		list, err := d.wire.Calls(t.Context(), 0, 100)
		must(t, err)
		for _, c := range list {
			if c.Operation == "statement" {
				n++
			}
		}
		return n
	}
	before := statements()
	for range 5 {
		d.want(d.ask("GET", reconciliationPath+"?date=2026-02-03", d.key, ""), http.StatusOK, nil)
	}
	if got := statements() - before; got != 1 {
		t.Errorf("the bank was asked %d times in a minute", got)
	}
	d.pass(2 * time.Minute)
	d.want(d.ask("GET", reconciliationPath+"?date=2026-02-03", d.key, ""), http.StatusOK, nil)
	if got := statements() - before; got != 2 {
		t.Errorf("the bank was asked %d times in three minutes", got)
	}
	limited := 0
	for day := flow.Date("2026-03-01"); day < "2026-03-21"; day = day.Plus(1) {
		if d.ask("GET", reconciliationPath+"?date="+string(day), d.key, "").code() == "rate_limited" {
			limited++
		}
	}
	if limited == 0 || statements()-before > 12 {
		t.Errorf("of twenty days in a minute %d were refused, and the bank was asked %d times", limited, statements()-before)
	}
	d.want(d.ask("PUT", "/v1/test/bank/conditions", d.key, `{"up":false}`), http.StatusOK, nil)
	d.pass(2 * time.Minute)
	d.want(d.ask("GET", reconciliationPath+"?date=2026-02-03", d.key, ""), http.StatusServiceUnavailable, map[string]string{"error.code": "rail_unavailable"})
}
