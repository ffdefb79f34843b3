package api

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
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
	for name, want := range map[string]string{"RateLimit-Limit": "10", "RateLimit-Policy": "10;w=2", "RateLimit-Remaining": left, "RateLimit-Reset": reset} {
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

// The whole of it over a real connection, with Redis going away in between.
func TestTooManyCallsOverTheWire(t *testing.T) {
	r := startRedis(t)
	s := open(t)
	s.server.cfg.Limits = limiter(t, r, time.Now)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.server.app.Listener(ln) }()
	t.Cleanup(func() { _ = s.server.app.Shutdown() })
	for _, redis := range []string{"with Redis", "without Redis"} {
		if redis == "without Redis" {
			_ = r.cmd.Process.Kill()
			time.Sleep(2 * time.Second) // the bucket fills
		}
		codes := map[int]int{}
		began := time.Now()
		for range 40 {
			q := httptest.NewRequest(http.MethodGet, "http://"+ln.Addr().String()+sessions, nil)
			q.RequestURI = ""
			q.Header.Set("Authorization", "Bearer "+s.key)
			answer, err := http.DefaultClient.Do(q)
			if err != nil {
				t.Fatal(err)
			}
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
