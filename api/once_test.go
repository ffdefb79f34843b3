package api

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Every POST that a key can call takes an Idempotency-Key: the same request
// again is answered with the same bytes, another one under the key is refused.
func TestEveryPostIsDoneOnce(t *testing.T) {
	s := open(t)
	session := s.session("")
	charge := s.ask("POST", "/v1/charges", s.key, good)
	account := charge.text("data.virtualAccount.accountNumber")
	for path, body := range map[string]string{
		sessions + "/" + session + "/pay/bank-transfer":      ``,
		sessions + "/" + session + "/pay/ussd":               `{}`,
		sessions + "/" + session + "/pay/card":               ``,
		"/v1/charges/" + charge.text("data.id") + "/requery": ``,
		"/v1/test/bank/transfers":                            `{"accountNumber":"` + account + `","amount":100}`,
		"/v1/test/phones":                                    `{"pushName":"Ada"}`,
		"/v1/test/clock":                                     `{"advanceSeconds":60}`,
		"/v1/webhook-endpoints":                              `{"url":"http://127.0.0.1:9/hook"}`,
	} {
		once := http.Header{"Idempotency-Key": {"of " + path}}
		first := s.ask("POST", path, s.key, body, once)
		again := s.ask("POST", path, s.key, body, once)
		if first.status >= 300 || again.status != first.status || again.body != first.body {
			t.Errorf("%s: %d %s\nagain: %d %s", path, first.status, first.body, again.status, again.body)
		}
		if first.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: replayed %q, then %q", path, first.header.Get("Idempotent-Replayed"), again.header.Get("Idempotent-Replayed"))
		}
		s.want(s.ask("POST", sessions, s.key, good, once), http.StatusUnprocessableEntity, map[string]string{"error.code": "idempotency_key_reused"})
	}
	var paid int
	for p := range strings.SplitSeq(s.ask("GET", "/v1/charges/"+charge.text("data.id")+"/timeline", s.key, "").body, `"who":"ledger"`) {
		if strings.Contains(p, "rail_clearing") {
			paid++
		}
	}
	if paid != 1 {
		t.Errorf("a transfer that was asked for twice with one key was booked %d times", paid)
	}
}

// What was refused before anything began may be asked for again, mended, under
// the same key; what was refused by the session itself is an answer.
func TestAKeyOfARefusedRequestIsFree(t *testing.T) {
	s := open(t)
	session := s.session("")
	path, once := sessions+"/"+session+"/pay/bank-transfer", http.Header{"Idempotency-Key": {"k1"}}
	s.want(s.ask("POST", path, s.key, `{"expiresInMinutes":1}`, once), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})
	s.want(s.ask("POST", path, s.key, `{"expiresInMinutes":10}`, once), http.StatusOK, nil)
	s.want(s.ask("POST", sessions+"/"+session+"/cancel", s.key, ""), http.StatusOK, nil)
	over := http.Header{"Idempotency-Key": {"k2"}}
	first, again := s.ask("POST", path, s.key, ``, over), s.ask("POST", path, s.key, ``, over)
	if first.code() != "session_cancelled" || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s\n%v %s", first.body, again.header, again.body)
	}
}

// After a day a key is forgotten.
func TestAKeyIsForgottenAfterADay(t *testing.T) {
	s := open(t)
	once := http.Header{"Idempotency-Key": {"a key"}}
	first := s.ask("POST", sessions, s.key, good, once)
	s.pass(25 * time.Hour)
	if again := s.ask("POST", sessions, s.key, good, once); again.status != http.StatusCreated || again.text("data.id") == first.text("data.id") {
		t.Errorf("%d %s", again.status, again.body)
	}
}

func TestChargesAreListedFoundAndAskedAbout(t *testing.T) {
	s := open(t)
	s.session("") // no charge: not in the list
	mine := s.ask("POST", "/v1/charges", s.key, with(`"reference":"order.77"`))
	other := s.ask("POST", "/v1/charges", s.key, good)
	list := s.ask("GET", "/v1/charges?limit=1", s.key, "")
	s.want(list, http.StatusOK, map[string]string{"data.items.0.id": other.text("data.id"), "data.hasMore": "true"})
	next := s.ask("GET", "/v1/charges?limit=1&cursor="+list.text("data.nextCursor"), s.key, "")
	s.want(next, http.StatusOK, map[string]string{"data.items.0.id": mine.text("data.id"), "data.hasMore": "false"})
	for _, reference := range []string{"order.77", mine.text("data.reference")} {
		s.want(s.ask("GET", "/v1/charges/by-reference/"+reference, s.key, ""), http.StatusOK, map[string]string{"data.id": mine.text("data.id")})
	}
	_, _, stranger := s.merchant("Bola Stores")
	for _, path := range []string{"/by-reference/order.77", "/by-reference/" + mine.text("data.reference"), "/" + mine.text("data.id") + "/timeline"} {
		s.want(s.ask("GET", "/v1/charges"+path, stranger, ""), http.StatusNotFound, map[string]string{"error.code": "resource_not_found"})
	}
	s.want(s.ask("POST", "/v1/charges/"+mine.text("data.id")+"/requery", stranger, ""), http.StatusNotFound, nil)
	s.want(s.ask("GET", "/v1/charges?status=SUCCEEDED", s.key, ""), http.StatusOK, map[string]string{"data.items": "[]"})
	s.want(s.ask("GET", "/v1/charges?status=PAID", s.key, ""), http.StatusBadRequest, map[string]string{"error.code": "invalid_field"})

	// The bank's notice was lost: asking finds the money, once in ten seconds.
	s.want(s.ask("POST", "/v1/test/bank/transfers", s.key, `{"accountNumber":"`+mine.text("data.virtualAccount.accountNumber")+`","drop":true}`), http.StatusOK, nil)
	requery := "/v1/charges/" + mine.text("data.id") + "/requery"
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, map[string]string{"data.status": "SUCCEEDED"})
	limited := s.ask("POST", requery, s.key, "")
	s.want(limited, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited"})
	if limited.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After is %q", limited.header.Get("Retry-After"))
	}
	s.pass(11 * time.Second)
	s.want(s.ask("POST", requery, s.key, ""), http.StatusOK, nil)
	story := s.ask("GET", "/v1/charges/"+mine.text("data.id")+"/timeline", s.key, "")
	for _, want := range []string{"opened", "rail.call", "credit", "merchant_pending", "charge.success"} {
		if !strings.Contains(story.body, want) {
			t.Errorf("the timeline does not tell of %s: %s", want, story.body)
		}
	}
}

// pass lets time pass for the shop.
func (s *shop) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance += d
}
