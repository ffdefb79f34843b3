package api

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// limited is a shop that counts, on a clock that stands still.
func limited(t *testing.T) (*shop, *dial) {
	t.Helper()
	s, d := open(t), newDial()
	s.server.cfg.Limits = limiter(t, nil, d.now)
	return s, d
}

func (s *shop) wantLimit(r reply, left, reset string) {
	s.t.Helper()
	s.wantQuota(r, "key", "10", left, reset)
}

// wantQuota holds an answer's headers against how a bucket stands that fills in
// two seconds.
func (s *shop) wantQuota(r reply, policy, quota, left, reset string) {
	s.t.Helper()
	for name, want := range map[string]string{
		"RateLimit-Policy": `"` + policy + `";q=` + quota + ";w=2", "RateLimit": `"` + policy + `";r=` + left + ";t=" + reset,
		"RateLimit-Limit": quota, "RateLimit-Remaining": left, "RateLimit-Reset": reset,
	} {
		if got := r.header.Get(name); got != want {
			s.t.Errorf("%s: want %q, got %q", name, want, got)
		}
	}
}

func TestEveryKeyHasItsOwnBucket(t *testing.T) {
	s, d := limited(t)
	r := s.ask("POST", sessions, s.key, good)
	s.want(r, http.StatusCreated, nil)
	s.wantLimit(r, "9", "1")
	// Refusals are calls too, and say how things stand.
	r = s.ask("GET", sessions+"/nothing", s.key, "")
	s.want(r, http.StatusNotFound, nil)
	s.wantLimit(r, "8", "1")
	r = s.ask("POST", sessions, s.key, "{")
	s.want(r, http.StatusBadRequest, nil)
	s.wantLimit(r, "7", "1")
	for range 7 {
		r = s.ask("GET", sessions, s.key, "")
		s.want(r, http.StatusOK, nil)
	}
	s.wantLimit(r, "0", "2")

	once := http.Header{"Idempotency-Key": {"limited"}}
	r = s.ask("POST", sessions, s.key, good, once)
	s.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited", "error.type": "rate_limit", "error.retryable": "true"})
	s.wantLimit(r, "0", "2")
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
	}
	_, _, stranger := s.merchant("Bola Stores")
	r = s.ask("GET", sessions, stranger, "")
	s.want(r, http.StatusOK, nil)
	s.wantLimit(r, "9", "1")

	d.turn(200 * time.Millisecond)
	r = s.ask("POST", sessions, s.key, good, once) // a 429 is not kept
	s.want(r, http.StatusCreated, nil)
	if r.header.Get("Idempotent-Replayed") != "" {
		t.Error("a refusal for too many calls was kept with its key")
	}
	s.want(s.ask("GET", sessions, s.key, ""), http.StatusTooManyRequests, nil)
}

func TestCallsWithoutAKeyCountAgainstTheirAddress(t *testing.T) {
	s, d := limited(t)
	codes := map[int]int{}
	for i := range 15 {
		key := "" // none, one that is none, one that nobody has
		if i%3 == 1 {
			key = "sk_test_nonsense"
		}
		if i%3 == 2 {
			key = s.newKey(flow.Test, flow.SecretKey)
		}
		codes[s.ask("GET", sessions, key, "").status]++
	}
	if codes[http.StatusUnauthorized] != 10 || codes[http.StatusTooManyRequests] != 5 {
		t.Errorf("want ten 401 and five 429, got %v", codes)
	}
	r := s.ask("POST", "/v1/auth/signup", "", `{"email":"owner@example.com","password":"correct horse battery","businessName":"Ada Stores"}`)
	s.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited"})
	s.want(s.ask("GET", sessions, s.key, ""), http.StatusOK, nil) // somebody else at the same address
	for range 30 {
		r := s.ask("GET", "/livez", "", "")
		s.want(r, http.StatusOK, nil)
		if r.header.Get("RateLimit-Limit") != "" {
			t.Fatal("a probe is counted")
		}
	}
	d.turn(time.Second)
	s.want(s.ask("POST", "/v1/auth/signup", "", `{}`), http.StatusBadRequest, nil)
}

// A public key is in every payer's page: what one of them does, or who only knows
// the key, leaves the others their calls.
func TestNoPayerKeepsTheOthersOut(t *testing.T) {
	s, d := limited(t)
	first, second := s.session(""), s.session("")
	d.turn(2 * time.Second)
	pay := func(id, secret string) reply {
		return s.ask("GET", sessions+"/"+id, s.public, "", http.Header{"X-Client-Secret": {secret}})
	}
	r := pay(first, "cs_"+first)
	s.want(r, http.StatusOK, nil)
	s.wantQuota(r, "session", "2", "1", "1")
	s.want(pay(first, "cs_"+first), http.StatusOK, nil)
	for range 20 {
		r = pay(first, "cs_"+first)
		s.want(r, http.StatusTooManyRequests, map[string]string{"error.code": "rate_limited"})
		s.wantQuota(r, "session", "2", "0", "2")
	}
	for i := range 30 { // the key alone, a wrong secret, a route that is not for pages
		var r reply
		switch i % 3 {
		case 0:
			r = s.ask("GET", "/v1/verification/banks", s.public, "")
		case 1:
			r = pay(second, "cs_"+first)
		default:
			r = s.ask("GET", sessions, s.public, "")
		}
		if i >= 10 {
			s.want(r, http.StatusTooManyRequests, nil)
		}
		if want := fmt.Sprint(max(9-i, 0)); r.header.Get("RateLimit-Remaining") != want || !strings.HasPrefix(r.header.Get("RateLimit"), `"address"`) {
			t.Errorf("%d: want %s left to the address, got %v", i, want, r.header)
		}
	}
	s.want(pay(second, "cs_"+second), http.StatusOK, nil)
	s.want(s.ask("GET", sessions, s.key, ""), http.StatusOK, nil)
}

// What the payers of a public key do together counts against the key.
func TestPayersTogetherHaveTheirKeysLimit(t *testing.T) {
	s, d := limited(t)
	var ids []string
	for range 12 {
		ids = append(ids, s.session(""))
		d.turn(2 * time.Second)
	}
	for i, id := range ids {
		r := s.ask("GET", sessions+"/"+id, s.public, "", http.Header{"X-Client-Secret": {"cs_" + id}})
		if i < 10 {
			s.want(r, http.StatusOK, nil)
			continue
		}
		s.want(r, http.StatusTooManyRequests, nil)
		s.wantLimit(r, "0", "2")
	}
}

// The whole of it over a real connection, with Redis going away in between.
func TestTooManyCallsOverTheWire(t *testing.T) {
	r := startRedis(t)
	s := open(t)
	d, began := newDial(), time.Now()
	clock := func() time.Time { return d.now().Add(time.Since(began)) } // goes on, and is turned
	s.server.cfg.Limits = limiter(t, r, clock)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	go func() { _ = s.server.app.Listener(ln) }()
	t.Cleanup(func() { _ = s.server.app.Shutdown() })
	for _, redis := range []string{"with Redis", "without Redis"} {
		if redis == "without Redis" {
			r.at.Kill()
			d.turn(2 * time.Second) // the bucket fills
		}
		codes := map[int]int{}
		began := time.Now()
		for range 40 {
			q := httptest.NewRequest(http.MethodGet, "http://"+ln.Addr().String()+sessions, nil)
			q.RequestURI = ""
			q.Header.Set("Authorization", "Bearer "+s.key)
			answer, err := http.DefaultClient.Do(q)
			must(t, err)
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			codes[answer.StatusCode]++
			if answer.StatusCode == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
				t.Error("a 429 does not say when to come back")
			}
		}
		atMost(t, int64(codes[http.StatusOK]), time.Since(began), PerSecond(5))
		if codes[http.StatusOK] < 10 || codes[http.StatusTooManyRequests] == 0 || len(codes) != 2 {
			t.Errorf("%s: %v", redis, codes)
		}
	}
}

// What is asked with the token of a login is counted too, by its account, and the
// document says so of each such call.
func TestCallsOfALoginSayHowTheyAreCounted(t *testing.T) {
	s, d := limited(t)
	own, token := s.belongings(), s.tokenFor(s.project)
	for _, r := range Routes() {
		if r.Key != KeyDashboard || r.Path == logoutPath {
			continue
		}
		d.turn(2 * time.Second)
		got := s.ask(r.Method, own.fill(r.Path), token, "")
		s.wantQuota(got, "account", "10", "9", "1")
	}
}
