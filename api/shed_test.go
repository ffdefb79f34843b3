package api

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
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

// Who finds no place is refused unread. Nothing of that stays in memory, however often it
// happens: a crowd may knock for days.
func TestConnectionsThatAreRefusedUnreadAreForgotten(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	seen := &watched{Listener: ln}
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}, Concurrency: 1, Logger: silent{slog.New(slog.DiscardHandler)}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(seen) }()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first := dial() // has the one place
	_, err = io.WriteString(first, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, err)
	_, err = first.Read(make([]byte, 1))
	must(t, err)
	for range 3 {
		if said, err := io.ReadAll(dial()); err != nil || len(said) == 0 {
			t.Fatalf("it was not refused: %q, %v", said, err)
		}
	}
	_ = first.Close()
	must(t, server.Shutdown())
	must(t, <-ended)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if n := len(seen.unused); n != 0 {
		t.Errorf("%d connections that are closed are still remembered", n)
	}
}
