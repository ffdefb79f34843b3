package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
)

// refundBecomes waits until a refund stands somewhere.
func (d *desk) refundBecomes(id string, status flow.RefundStatus) reply {
	d.t.Helper()
	var r reply
	await.Until(d.t, "the refund is "+string(status), func() bool {
		r = d.ask("GET", refundsPath+"/"+id, d.key, "")
		return r.text("data.status") == string(status)
	})
	return r
}

func TestAMerchantRefundsWhatWasPaid(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.RefundPendingKind, flow.RefundProcessedKind, flow.RefundFailedKind, flow.RefundAttentionKind)
	charge := d.bought()
	once := http.Header{"Idempotency-Key": {"refund-1"}}
	body := `{"chargeId":"` + charge + `","amount":200000,"reason":"One shirt came back"}`
	made := d.ask("POST", refundsPath, d.key, body, once)
	id, payment := made.text("data.id"), made.text("data.paymentId")
	d.want(made, http.StatusCreated, map[string]string{
		"data.status": "PENDING", "data.amountMinor": "200000", "data.origin": "MERCHANT", "data.chargeId": charge, "data.reason": "One shirt came back",
	})
	if at := made.header.Get("Location"); at != refundsPath+"/"+id {
		t.Errorf("it is at %q", at)
	}
	again := d.ask("POST", refundsPath, d.key, body, once)
	if again.body != made.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("asked again: %s", again.body)
	}
	done := d.refundBecomes(id, flow.RefundProcessed)
	if done.text("data.railTransactionId") == "" || done.text("data.processedAt") == "" {
		t.Errorf("done is %s", done.body)
	}
	for _, kind := range []flow.EventKind{flow.RefundPendingKind, flow.RefundProcessedKind} {
		told := d.told(`"event":"` + string(kind) + `"`)
		d.want(reply{status: http.StatusOK, body: told.body}, http.StatusOK, map[string]string{"data.id": id, "data.paymentId": payment, "data.amountMinor": "200000"})
	}
	d.want(d.ask("GET", chargesPath+"/"+charge, d.key, ""), http.StatusOK, map[string]string{
		"data.status": "SUCCEEDED", "data.amountPaidMinor": "500000", "data.refundedMinor": "200000",
	})
	story := d.ask("GET", chargesPath+"/"+charge+"/timeline?limit=100", d.key, "").body
	for _, want := range []string{id, "refunds_payable", "disburse", "paid_out"} {
		if !strings.Contains(story, want) {
			t.Errorf("the story does not tell of %s: %s", want, story)
		}
	}
	more := d.ask("POST", refundsPath, d.key, `{"paymentId":"`+payment+`","amount":300001}`)
	d.want(more, http.StatusConflict, map[string]string{"error.code": "refund_exceeds_payment", "error.details.refundableMinor": "300000", "error.fields.0.field": "amount", "error.fields.0.code": "refund_exceeds_payment"})
	d.want(d.ask("POST", refundsPath+"/"+id+"/retry", d.key, ""), http.StatusConflict, map[string]string{"error.code": "refund_not_retryable"})
	rest := d.ask("POST", refundsPath, d.key, `{"paymentId":"`+payment+`"}`)
	d.want(rest, http.StatusCreated, map[string]string{"data.amountMinor": "300000", "data.reason": ""})
	d.want(d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`"}`), http.StatusConflict, map[string]string{"error.details.refundableMinor": "0"})
	d.refundBecomes(rest.text("data.id"), flow.RefundProcessed)
}

func TestWhatTheBankWillNotSendIsToldAndMayBeAskedAgain(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.RefundFailedKind, flow.RefundAttentionKind, flow.RefundProcessedKind)
	for fate, kind := range map[string]flow.EventKind{"fail": flow.RefundFailedKind, "reject": flow.RefundFailedKind} {
		d.want(d.ask("PUT", "/v1/test/bank/conditions", d.key, `{"refunds":"`+fate+`"}`), http.StatusOK, nil)
		id := d.refund().text("data.id")
		d.refundBecomes(id, flow.RefundFailed)
		if told := d.told(id + `","paymentId"`); !strings.Contains(told.body, string(kind)) || told.text("data.failureReason") == "" {
			t.Errorf("%s: told %s", fate, told.body)
		}
	}
	d.want(d.ask("PUT", "/v1/test/bank/conditions", d.key, `{}`), http.StatusOK, nil)
	refused := d.ask("GET", refundsPath+"?status=FAILED&limit=1", d.key, "").text("data.items.0.id")
	d.want(d.ask("POST", refundsPath+"/"+refused+"/retry", d.key, ""), http.StatusOK, map[string]string{"data.id": refused, "data.status": "PENDING", "data.failureReason": ""})
	d.refundBecomes(refused, flow.RefundProcessed)
	bounced := d.bounced()
	d.told(`"event":"refund.needs_attention"`)
	d.want(d.ask("POST", refundsPath+"/"+bounced+"/retry", d.key, ""), http.StatusOK, map[string]string{"data.id": bounced, "data.status": "PENDING", "data.failureReason": ""})
	d.refundBecomes(bounced, flow.RefundProcessed)
}

func TestWhatWasPaidOutIsNotRefunded(t *testing.T) {
	d := openDesk(t)
	charge := d.bought()
	d.payout(d.key)
	more := d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`"}`)
	d.want(more, http.StatusConflict, map[string]string{"error.code": "refund_exceeds_balance", "error.details.neededMinor": "500000", "error.details.coveredMinor": "0", "error.fields": "[]"})
	other := d.bought() // which pays for it
	d.want(d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`"}`), http.StatusConflict, map[string]string{"error.details.coveredMinor": "482500"})
	d.want(d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`","amount":482500}`), http.StatusCreated, map[string]string{"data.amountMinor": "482500"})
	// Nothing is left: the fee that a whole refund of the other may owe covers no part of it.
	d.want(d.ask("POST", refundsPath, d.key, `{"chargeId":"`+other+`"}`), http.StatusConflict, map[string]string{"error.details.coveredMinor": "0"})
	d.want(d.ask("POST", refundsPath, d.key, `{"chargeId":"`+other+`","amount":1}`), http.StatusConflict, map[string]string{"error.details.coveredMinor": "0", "error.fields.0.field": "amount", "error.fields.0.code": "refund_exceeds_balance"})
}

// A charge's story is read a page at a time, and nothing of it is left out.
func TestAChargesStoryIsReadInPages(t *testing.T) {
	d := openDesk(t)
	path := chargesPath + "/" + d.bought() + "/timeline"
	items := func(r reply) (list []string) {
		for i := 0; r.text(fmt.Sprintf("data.items.%d.at", i)) != ""; i++ {
			at := fmt.Sprintf("data.items.%d.", i)
			list = append(list, r.text(at+"at")+r.text(at+"who")+r.text(at+"what")+r.text(at+"why"))
		}
		return list
	}
	var whole, paged []string
	await.Until(t, "the story to be whole", func() bool { // webhooks and messages go out after it
		whole, paged = items(d.ask("GET", path+"?limit=100", d.key, "")), nil
		for cursor := ""; ; {
			r := d.ask("GET", path+"?limit=3&cursor="+cursor, d.key, "")
			d.want(r, http.StatusOK, nil)
			paged = append(paged, items(r)...)
			if cursor = r.text("data.nextCursor"); cursor == "" {
				break
			}
		}
		return slices.Equal(whole, paged)
	})
	if len(paged) < 7 {
		t.Errorf("there is little to tell: %v", paged)
	}
	for _, bad := range []string{"MTIz", "x", "LTEvMA"} {
		d.want(d.ask("GET", path+"?cursor="+bad, d.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_cursor"})
	}
	d.want(d.ask("GET", path+"?limit=101", d.key, ""), http.StatusBadRequest, map[string]string{"error.fields.0.field": "limit"})
}

func TestRefundsAreListed(t *testing.T) {
	d := openDesk(t)
	charge := d.bought()
	var ids []string
	payment := ""
	for range 3 {
		r := d.ask("POST", refundsPath, d.key, `{"chargeId":"`+charge+`","amount":1000}`)
		ids, payment = append(ids, r.text("data.id")), r.text("data.paymentId")
	}
	other := d.refund()
	for _, id := range append(ids, other.text("data.id")) {
		d.refundBecomes(id, flow.RefundProcessed)
	}
	session := d.ask("GET", chargesPath+"/"+charge, d.key, "").text("data.sessionId")
	for query, n := range map[string]int{
		"?sessionId=" + session: 3, "?sessionId=" + session + "&chargeId=" + charge + "&paymentId=" + payment: 3, "?sessionId=" + other.text("data.sessionId"): 1,
		"?sessionId=" + other.text("data.sessionId") + "&chargeId=" + charge: 0, "?sessionId=" + session + "&status=FAILED": 0,
		"": 4, "?status=PROCESSED": 4, "?createdAfter=2020-01-01T00:00:00Z": 4, "?createdBefore=2020-01-01T00:00:00Z": 0, "?status=FAILED": 0, "?chargeId=" + charge: 3, "?paymentId=" + payment: 3, "?paymentId=" + other.text("data.paymentId"): 1,
		"?chargeId=" + charge + "&status=PENDING": 0, "?chargeId=" + strings.Replace(exampleCharge, "1", "2", 1): 0,
	} {
		r := d.ask("GET", refundsPath+query, d.key, "")
		d.want(r, http.StatusOK, map[string]string{"data.hasMore": "false"})
		if got := strings.Count(r.body, `"id":"wsp_rfd_`); got != n {
			t.Errorf("%q lists %d, not %d", query, got, n)
		}
	}
	var seen []string
	next := ""
	for range 5 {
		r := d.ask("GET", refundsPath+"?limit=2&chargeId="+charge+"&cursor="+next, d.key, "")
		for i := range 2 {
			if id := r.text("data.items." + string(rune('0'+i)) + ".id"); id != "" {
				seen = append(seen, id)
			}
		}
		if next = r.text("data.nextCursor"); next == "" {
			break
		}
	}
	if len(seen) != 3 || seen[0] <= seen[1] || seen[1] <= seen[2] {
		t.Errorf("page by page: %v", seen)
	}
	for query, field := range map[string]string{"?status=DONE": "status", "?chargeId=x": "chargeId", "?paymentId=wsp_rfd_1": "paymentId", "?sessionId=wsp_chg_1": "sessionId", "?limit=0": "limit", "?createdAfter=yesterday": "createdAfter"} {
		d.want(d.ask("GET", refundsPath+query, d.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field", "error.fields.0.field": field})
	}
	d.want(d.ask("GET", refundsPath+"?cursor="+*cursorOf("wsp_sess_1"), d.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_cursor"})
	_, _, stranger := d.merchant("Bola Stores")
	for _, query := range []string{"?chargeId=" + charge, "?sessionId=" + session} {
		d.want(d.ask("GET", refundsPath+query, stranger, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	}
	d.want(d.ask("POST", refundsPath, stranger, `{"paymentId":"`+payment+`"}`), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	d.want(d.ask("POST", refundsPath, stranger, `{"chargeId":"`+charge+`"}`), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	for body, code := range map[string]string{
		`{}`: "missing_field", `{"amount":1}`: "missing_field", `{"paymentId":"` + payment + `","chargeId":"` + charge + `"}`: "invalid_field",
		`{"paymentId":"` + payment + `","amount":0}`: "amount_below_minimum", `{"paymentId":"` + payment + `","amount":"5"}`: "amount_must_be_integer",
	} {
		d.want(d.ask("POST", refundsPath, d.key, body), http.StatusBadRequest, map[string]string{"error.code": code})
	}
}
