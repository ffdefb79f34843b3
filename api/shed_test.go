package api

import (
	"net/http"
	"testing"
)

// More than can be answered soon is refused at once, so that those who are let in
// need not wait for it; facts and questions about how things stand are not. Nobody
// is kept out for longer than that lasts.
func TestWhatIsTooMuchAtOnceIsRefusedAtOnce(t *testing.T) {
	s := open(t)
	s.server.atWork.Store(maxAtWork)
	r := s.ask("POST", sessions, s.key, good)
	s.want(r, http.StatusServiceUnavailable, map[string]string{"error.code": "storage_unavailable", "error.retryable": "true"})
	if r.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", r.header.Get("Retry-After"))
	}
	s.want(s.ask("GET", "/livez", "", ""), http.StatusOK, nil)
	if r := s.ask("POST", "/v1/rails/sandbox/notifications", "", "{}"); r.status == http.StatusServiceUnavailable {
		t.Error("a notice of the bank is refused because merchants ask too much")
	}
	s.server.atWork.Store(0)
	s.want(s.ask("POST", sessions, s.key, good), http.StatusCreated, nil)
	if n := s.server.atWork.Load(); n != 0 {
		t.Errorf("%d requests are under way after all were answered", n)
	}
}
