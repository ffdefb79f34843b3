package api

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// outageBody is a body that a route takes, so that it gets as far as the store.
func outageBody(r Route) string {
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		return ""
	case r.Path == sessionsPath || r.Path == chargesPath:
		return good
	case strings.HasSuffix(r.Path, "/refunds"):
		return `{"paymentId":"wsp_pay_01m7y6vm2af084rza2669023pf"}`
	case strings.HasSuffix(r.Path, "/payments/:id/resolve"):
		return `{"action":"refund"}`
	case strings.HasSuffix(r.Path, "/webhook-endpoints"):
		return `{"url":"https://shop.example/hooks"}`
	case strings.HasSuffix(r.Path, "/replay"):
		return `{"from":"2026-11-21T09:00:00Z","to":"2026-11-21T10:00:00Z"}`
	case strings.HasSuffix(r.Path, "/identities"):
		return person("22222222221", "")
	case strings.HasSuffix(r.Path, "/accounts/resolve"):
		return `{"accountNumber":"0000000001","bankCode":"058"}`
	case strings.HasSuffix(r.Path, "/transfers"):
		return `{"accountNumber":"0123456789"}`
	case strings.HasSuffix(r.Path, "/reversals"):
		return `{"railTransactionId":"tx_01k9z3m5x8v2c7n4b6t1q0w9ef"}`
	case strings.HasSuffix(r.Path, "/clock"):
		return `{"advanceSeconds":0}`
	case strings.HasSuffix(r.Path, "/signup"):
		return `{"email":"new@example.com","password":"a long password","businessName":"New Stores"}`
	case strings.HasSuffix(r.Path, "/login"):
		return `{"email":"owner@example.com","password":"a long password"}`
	case r.Path == projectsPath:
		return `{"name":"Second Stores"}`
	case strings.HasSuffix(r.Path, "/keys"):
		return `{"environment":"test","kind":"secret"}`
	case strings.HasSuffix(r.Path, "/kyc"):
		return `{"businessName":"Ada Stores Ltd","registrationNumber":"RC123456","bvn":"22222222221"}`
	}
	return sweepBody(r)
}

// verifying gives a shop look-ups.
func (s *shop) verifying() {
	s.t.Helper()
	cfg := s.parts
	cfg.Rail = &stranger{Rail: s.bank, look: func(context.Context, rail.Person) (flow.Matches, error) { return flow.Matches{}, rail.ErrNotFound }}
	service, err := checkout.New(cfg)
	must(s.t, err)
	verify, err := checkout.NewVerifications(service, "a pepper of sixteen")
	must(s.t, err)
	s.runs(verify.Run)
	front := s.server.cfg
	front.Verifications = map[flow.Environment]*checkout.Verifications{flow.Test: verify}
	if s.server, err = New(front); err != nil {
		s.t.Fatal(err)
	}
}

// While PostgreSQL is away every call that needs it says so, whatever it is
// about, and may be made again; afterwards it works.
func TestEveryRouteSaysThatTheStoreIsAway(t *testing.T) {
	accounts, keysLine := storetest.Through(t, storetest.Postgres(t, store.Accounts))
	checkouts, line := storetest.Through(t, storetest.Postgres(t, store.Checkout))
	s := openOn(t, accounts, checkouts)
	s.verifying()
	own := s.belongings()
	account := s.ask("POST", sessions+"/"+own[sessions]+"/pay/bank-transfer", s.key, "").text("data.accountNumber")
	s.want(s.ask("POST", "/v1/auth/signup", "", `{"email":"owner@example.com","password":"a long password","businessName":"Own Stores"}`), http.StatusCreated, nil)
	login := func() reply {
		return s.ask("POST", "/v1/auth/login", "", `{"email":"owner@example.com","password":"a long password"}`)
	}
	token := login().text("data.token")
	// These need no session, charge or payment.
	apart := map[string]bool{"/v1/project": true, "/v1/verification/banks": true, "/v1/verification/accounts/resolve": true, "/v1/test/bank/conditions": true, "/v1/test/clock": true, "/v1/test/whatsapp/pairing": true}
	away := func(r Route, key string, headers ...http.Header) {
		t.Helper()
		url := own.fill(r.Path)
		if r.Path == reconciliationPath {
			url += "?date=2026-02-03"
		}
		got := s.ask(r.Method, url, key, outageBody(r), headers...)
		if got.status != http.StatusServiceUnavailable || got.code() != "storage_unavailable" || got.text("error.retryable") != "true" || strings.Trim(got.header.Get("Retry-After"), "0") == "" {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, got.status, got.body)
		}
		if strings.Contains(got.body, "127.0.0.1") || strings.Contains(got.body, "SQL") {
			t.Errorf("%s %s tells of the inside: %s", r.Method, r.Path, got.body)
		}
	}
	once := http.Header{"Idempotency-Key": {"an outage"}}
	line.Cut()
	for _, r := range Routes() {
		switch r.Key {
		case KeySecret, KeySession, KeyTest, KeyPublic:
			if !apart[r.Path] {
				away(r, s.key)
			}
			if r.Method == http.MethodPost {
				away(r, s.key, once) // what was answered to the key is in the store too
			}
			if r.Key == KeySession {
				away(r, s.public, http.Header{"X-Client-Secret": {"cs_" + own[sessions]}})
			}
		case KeyNone, KeyDashboard, KeyPhone:
		}
	}
	if _, err := s.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: account}); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a bank's notice that was not kept is answered: %v", err)
	}
	keysLine.Cut()
	s.mu.Lock()
	s.advance += checkout.KeyMemory + time.Second
	s.mu.Unlock()
	for _, r := range Routes() {
		switch r.Key {
		case KeySecret, KeySession, KeyTest, KeyPublic:
			away(r, s.key)
		case KeyDashboard:
			away(r, token)
		case KeyNone:
			if strings.HasPrefix(r.Path, "/v1/auth/") {
				away(r, "")
			}
		case KeyPhone:
		}
	}
	line.Mend()
	keysLine.Mend()
	// Each connection that broke off while it was idle costs one more try.
	for name, try := range map[string]func() reply{
		"read":   func() reply { return s.ask("GET", sessions+"/"+own[sessions], s.key, "") },
		"open":   func() reply { return s.ask("POST", sessions, s.key, good, once) },
		"log in": login,
	} {
		var r reply
		for range 100 {
			if r = try(); r.code() != "storage_unavailable" {
				break
			}
		}
		if r.status >= http.StatusBadRequest {
			t.Errorf("%s after the outage: %d %s", name, r.status, r.body)
		}
	}
}
