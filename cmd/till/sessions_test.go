package main

import (
	"encoding/json"
	"net/http"
	"testing"
)

// What is exported of a session that nobody has paid yet holds its charge and its
// story: no event names the charge then.
func TestAnExportHasTheChargeThatNobodyPaid(t *testing.T) {
	m, p, _ := devServer(t)
	var exported struct {
		Charge   struct{ ID string }
		Timeline []json.RawMessage
	}
	export := func(session string) {
		t.Helper()
		out, err := p.Beside("sessions", "export", session)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		exported.Charge.ID, exported.Timeline = "", nil
		must(t, json.Unmarshal([]byte(out), &exported))
	}
	asked := object{"amount": 500_000, "customerEmail": "ada+shop@example.com"}
	m.call(http.MethodPost, "/v1/charges", asked)
	charge := m.call(http.MethodPost, "/v1/charges", asked)
	export(charge["sessionId"].(string))
	if exported.Charge.ID != charge["id"] || len(exported.Timeline) == 0 {
		t.Errorf("it has charge %q and a story of %d lines, not charge %v", exported.Charge.ID, len(exported.Timeline), charge["id"])
	}
	export(m.call(http.MethodPost, sessionsPath, asked)["id"].(string))
	if exported.Charge.ID != "" {
		t.Errorf("a session without a charge has %q", exported.Charge.ID)
	}
}

// What is exported of a session holds its refunds, as they stand.
func TestAnExportHasTheRefunds(t *testing.T) {
	m, p, _ := devServer(t)
	session := m.call(http.MethodPost, sessionsPath, object{"amount": 500_000, "customerEmail": "ada@example.com"})["id"].(string)
	if out, err := p.Beside("pay", session); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var exported struct {
		Payments []struct{ ID string }
		Refunds  []struct{ ID, PaymentID, AmountMinor string }
	}
	export := func() {
		t.Helper()
		out, err := p.Beside("sessions", "export", session)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		exported.Refunds = nil
		must(t, json.Unmarshal([]byte(out), &exported))
	}
	export()
	if len(exported.Payments) != 1 || exported.Refunds == nil || len(exported.Refunds) != 0 {
		t.Fatalf("exported is %+v", exported)
	}
	paid := exported.Payments[0].ID
	refund := m.call(http.MethodPost, refundsPath, object{"paymentId": paid, "amount": 100_000})["id"]
	export()
	if list := exported.Refunds; len(list) != 1 || list[0].ID != refund || list[0].PaymentID != paid || list[0].AmountMinor != "100000" {
		t.Errorf("the refunds are %+v", list)
	}
}
