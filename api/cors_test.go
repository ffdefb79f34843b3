package api

import (
	"net/http"
	"strings"
	"testing"
)

// What pages may call, pages of any origin may; nothing else says a word to them.
func TestOnlyCallsOfPublicKeysAreForPages(t *testing.T) {
	s := open(t)
	id := s.session("")
	origin := http.Header{"Origin": {"https://shop.example"}}
	asked := http.Header{"Origin": {"https://shop.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,x-client-secret"}}
	for _, r := range Routes() {
		path := strings.NewReplacer(":id", id, ":kid", "x").Replace(r.Path)
		answer := s.ask("OPTIONS", path, "", "", asked)
		open := answer.header.Get("Access-Control-Allow-Origin")
		if r.Key != KeySession && r.Key != KeyPublic {
			if open != "" || answer.status == http.StatusNoContent {
				t.Errorf("a page may call %s %s: %d %q", r.Method, r.Path, answer.status, open)
			}
			continue
		}
		h := answer.header
		if answer.status != http.StatusNoContent || open != "*" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), r.Method) ||
			h.Get("Access-Control-Allow-Headers") != "Authorization, Content-Type, X-Client-Secret, Idempotency-Key" || h.Get("X-Request-Id") == "" {
			t.Errorf("a page may not call %s %s: %d %v", r.Method, r.Path, answer.status, h)
		}
		if h.Get("Access-Control-Allow-Credentials") != "" {
			t.Error("cookies are allowed")
		}
	}
	secret := http.Header{"Origin": {"https://shop.example"}, "X-Client-Secret": {"cs_" + id}}
	for _, c := range []struct {
		method, path, key string
		header            http.Header
		status            int
		open              string
	}{
		{"GET", sessions + "/" + id, s.public, secret, http.StatusOK, "*"},
		{"POST", sessions + "/" + id + "/pay/ussd", s.public, secret, http.StatusOK, "*"},
		{"GET", sessions + "/" + id, s.public, origin, http.StatusForbidden, "*"}, // a page can read why it is refused
		{"GET", sessions + "/" + id, "", origin, http.StatusUnauthorized, "*"},
		{"GET", sessions + "/" + id, s.key, origin, http.StatusOK, ""},
		{"GET", sessions, s.public, origin, http.StatusForbidden, ""},
		{"GET", sessions, s.key, origin, http.StatusOK, ""},
		{"POST", sessions + "/" + id + "/cancel", s.public, secret, http.StatusForbidden, ""},
		{"GET", projectsPath, s.key, origin, http.StatusUnauthorized, ""},
	} {
		r := s.ask(c.method, c.path, c.key, "", c.header)
		exposed := ""
		if c.open != "" {
			exposed = "ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id"
		}
		if r.status != c.status || r.header.Get("Access-Control-Allow-Origin") != c.open || r.header.Get("Access-Control-Expose-Headers") != exposed {
			t.Errorf("%s %s: %d %v", c.method, c.path, r.status, r.header)
		}
	}
}
