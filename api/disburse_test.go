package api

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// A merchant sets what becomes of money that the bank is ordered to send, and
// sees the orders about his own money among the bank's calls.
func TestWhatBecomesOfMoneySentOut(t *testing.T) {
	s := open(t)
	s.meetSandbox()
	set := func(body string, want map[string]string) {
		t.Helper()
		s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, body), http.StatusOK, want)
	}
	set(`{"refunds":"fail"}`, map[string]string{"data.refunds": "fail", "data.payouts": "ok"})
	set(`{"payouts":"bounce"}`, map[string]string{"data.refunds": "ok", "data.payouts": "bounce"})
	s.want(s.ask("PUT", "/v1/test/bank/conditions", s.key, `{"payouts":"burn"}`), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	set(`{}`, map[string]string{"data.refunds": "ok", "data.payouts": "ok"})

	// Money for an account that nobody asked for is the project's whose key
	// played it.
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"0123456789","amount":500000}`), http.StatusOK, nil)
	wire, ok := s.server.cfg.TestBank.(rail.Rail)
	if !ok {
		t.Fatal("the pretend bank is no rail")
	}
	lines, err := wire.Statement(t.Context(), s.now().Add(-time.Hour), s.now().Add(time.Hour))
	if err != nil || len(lines) != 1 || lines[0].Collects == "" || lines[0].AccountNumber != "0123456789" || lines[0].Reference != "" {
		t.Fatalf("statement %+v, %v", lines, err)
	}
	mine := lines[0].Collects
	to := flow.BankAccount{BankCode: rail.TestBankCode, Number: "0123456789"}
	for _, d := range []flow.Disbursement{
		{Kind: flow.DisburseRefund, Reference: "rf_mine", Amount: 1_000, Credit: lines[0].RailTransactionID},
		{Kind: flow.DisbursePayout, Reference: "set_mine", Amount: 1_000, To: to, Project: mine},
		{Kind: flow.DisbursePayout, Reference: "set_other", Amount: 1_000, To: to, Project: mine + "x"},
		{Kind: flow.DisbursePayout, Reference: "set_nobody", Amount: 1_000, To: to},
	} {
		if _, err := wire.Disburse(t.Context(), d); err != nil {
			t.Fatalf("%s: Disburse = %v", d.Reference, err)
		}
	}
	if _, err := wire.Disbursed(t.Context(), "set_mine"); err != nil {
		t.Fatal(err)
	}
	var got []string
	calls := s.ask("GET", "/v1/test/bank/calls", s.key, "")
	s.want(calls, http.StatusOK, map[string]string{"data.items.0.sessionId": ""})
	for i := range 3 {
		got = append(got, calls.text("data.items."+string(rune('0'+i))+".operation")+" "+calls.text("data.items."+string(rune('0'+i))+".reference"))
	}
	if want := []string{"disburse rf_mine", "disburse set_mine", "find_disbursement set_mine"}; !slices.Equal(got, want) || calls.text("data.items.3.operation") != "" {
		t.Errorf("calls %s; want %q", calls.body, want)
	}
}
