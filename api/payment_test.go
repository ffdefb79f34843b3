package api

import (
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
)

// comes plays a payer of an account number, and waits until the money is listed.
func (d *desk) comes(account, amount, match string) string {
	d.t.Helper()
	paid := d.ask("POST", "/v1/test/bank/transfers", d.key, `{"accountNumber":"`+account+`","amount":`+amount+`}`)
	d.want(paid, http.StatusOK, nil)
	id := ""
	await.Until(d.t, "the money is listed as "+match, func() bool {
		list := d.ask("GET", paymentsPath+"?limit=1&matchStatus="+match, d.key, "")
		id = list.text("data.items.0.id")
		return list.text("data.items.0.railTransactionId") == paid.text("data.railTransactionId")
	})
	return id
}

func TestAMerchantDecidesAboutMoneyThatDidNotFit(t *testing.T) {
	d := openDesk(t)
	d.listens(flow.PaymentUnmatched, flow.RefundPendingKind, flow.ChargeSuccess)
	charge := d.ask("POST", chargesPath, d.key, good)
	account, session := charge.text("data.virtualAccount.accountNumber"), charge.text("data.sessionId")
	over := d.comes(account, "620000", "EXCESS")
	twice := d.comes(account, "500000", "DUPLICATE")
	stray := d.comes("0123456789", "250000", "UNMATCHED")
	told := d.told(`"event":"payment.unmatched"`)
	if !strings.Contains(told.body, stray) || !strings.Contains(told.body, `"sequence":0`) || !strings.Contains(told.body, `"reference":null`) {
		t.Errorf("told %s", told.body)
	}
	d.want(d.ask("GET", "/v1/balance", d.key, ""), http.StatusOK, map[string]string{
		"data.pendingMinor": "482500", "data.unappliedMinor": "870000", "data.refundsPayableMinor": "0", "data.feesMinor": "17500", "data.currency": "NGN",
	})
	d.want(d.ask("GET", paymentsPath+"?sessionId="+session, d.key, ""), http.StatusOK, map[string]string{"data.items.1.sessionId": session, "data.hasMore": "false"})
	first := d.ask("GET", paymentsPath+"?limit=2", d.key, "")
	rest := d.ask("GET", paymentsPath+"?limit=2&cursor="+first.text("data.nextCursor"), d.key, "")
	if first.text("data.hasMore") != "true" || rest.text("data.hasMore") != "false" || rest.text("data.items.0.id") == "" || rest.text("data.items.1.id") != "" {
		t.Errorf("pages %s and %s", first.body, rest.body)
	}

	_, _, stranger := d.merchant("Bola Stores")
	for _, r := range []reply{
		d.ask("GET", paymentsPath+"/"+stray, stranger, ""), d.ask("POST", paymentsPath+"/"+stray+"/resolve", stranger, `{"action":"accept"}`),
	} {
		d.want(r, http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	}
	d.want(d.ask("GET", paymentsPath, stranger, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	d.want(d.ask("POST", paymentsPath+"/"+stray+"/resolve", d.key, `{}`), http.StatusBadRequest, map[string]string{"error.code": "missing_field"})
	d.want(d.ask("POST", paymentsPath+"/"+stray+"/resolve", d.key, `{"action":"keep"}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	d.want(d.ask("GET", paymentsPath+"?matchStatus=LOST", d.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})

	once := http.Header{"Idempotency-Key": {"resolve-1"}}
	kept := d.ask("POST", paymentsPath+"/"+over+"/resolve", d.key, `{"action":"accept","reason":"A tip"}`, once)
	d.want(kept, http.StatusOK, map[string]string{
		"data.resolution": "ACCEPTED", "data.appliedMinor": "620000", "data.unappliedMinor": "0", "data.feeMinor": flow.Fee(620_000).Minor(), "data.resolveReason": "A tip",
	})
	if by := kept.text("data.resolvedBy"); !strings.HasPrefix(by, flow.PrefixKey) {
		t.Errorf("decided by %q", by)
	}
	if again := d.ask("POST", paymentsPath+"/"+over+"/resolve", d.key, `{"action":"accept","reason":"A tip"}`, once); again.body != kept.body {
		t.Errorf("said again: %s", again.body)
	}
	d.want(d.ask("POST", paymentsPath+"/"+over+"/resolve", d.key, `{"action":"refund"}`), http.StatusConflict, map[string]string{
		"error.code": "payment_not_resolvable", "error.details.resolution": "ACCEPTED",
	})
	d.want(d.ask("POST", paymentsPath+"/"+twice+"/resolve", d.key, `{"action":"refund"}`), http.StatusOK, map[string]string{"data.resolution": "REFUNDED", "data.refundedMinor": "500000"})
	back := d.ask("GET", refundsPath+"?paymentId="+twice, d.key, "")
	d.want(back, http.StatusOK, map[string]string{"data.items.0.origin": "RESOLVE", "data.items.0.amountMinor": "500000"})
	d.refundBecomes(back.text("data.items.0.id"), flow.RefundProcessed)
	d.want(d.ask("POST", paymentsPath+"/"+stray+"/resolve", d.key, `{"action":"accept"}`), http.StatusOK, map[string]string{"data.matchStatus": "UNMATCHED", "data.appliedMinor": "250000"})
	d.want(d.ask("GET", "/v1/balance", d.key, ""), http.StatusOK, map[string]string{"data.unappliedMinor": "0", "data.refundsPayableMinor": "0"})
}

// Whoever looks for what was asked about a session finds it by its id, whatever was asked by.
func TestTheLogNamesTheSessionOfWhatIsAskedByAnotherID(t *testing.T) {
	d := openDesk(t)
	once := http.Header{"Idempotency-Key": {"charge-1"}}
	charge := d.ask("POST", chargesPath, d.key, good, once)
	id, session := charge.text("data.id"), charge.text("data.sessionId")
	over := d.comes(charge.text("data.virtualAccount.accountNumber"), "620000", "EXCESS")
	for _, r := range []reply{
		charge, d.ask("POST", chargesPath, d.key, good, once), d.ask("GET", chargesPath+"/"+id, d.key, ""),
		d.ask("POST", refundsPath, d.key, `{"chargeId":"`+id+`","amount":100000}`),
		d.ask("POST", paymentsPath+"/"+over+"/resolve", d.key, `{"action":"refund"}`),
	} {
		request := r.header.Get("X-Request-Id")
		await.Until(t, "the line of "+request, func() bool { return strings.Contains(d.log.String(), `"request":"`+request+`"`) })
		for line := range strings.Lines(d.log.String()) {
			if strings.Contains(line, `"msg":"request","request":"`+request+`"`) && !strings.Contains(line, `"session":"`+session+`"`) {
				t.Errorf("the session %s is not in %s", session, line)
			}
		}
	}
	// An id that somebody made up is none of ours, and not kept.
	nobodys := flow.PrefixSession + strings.Repeat("7", 26)
	missed := d.ask("GET", sessionsPath+"/"+nobodys, d.key, "")
	d.want(missed, http.StatusNotFound, nil)
	await.Until(t, "the line of what is not there", func() bool { return strings.Contains(d.log.String(), missed.header.Get("X-Request-Id")) })
	if strings.Contains(d.log.String(), nobodys) {
		t.Errorf("%s is in the log", nobodys)
	}
}
