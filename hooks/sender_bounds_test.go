package hooks_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"till/hooks"
)

// Whatever an endpoint leaves hanging, by default it costs no more than merchants
// are told of. No time passes here but that of the test.
func TestAnEndpointThatHangsCostsNoMoreThanIsSaid(t *testing.T) {
	takes := func(there net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(there)) }
	for name, c := range map[string]struct {
		url   string
		there func(net.Conn) // nil: nothing is done at all
		want  hooks.Verdict
	}{
		"a handshake": {"https://shop.test/", nil, hooks.Verdict{Err: hooks.WordTimeout, Duration: 5 * time.Second}},
		"an answer":   {"http://127.0.0.1:8080/", takes, hooks.Verdict{Err: hooks.WordTimeout, Duration: 15 * time.Second}},
		"a header": {"http://127.0.0.1:8080/", func(there net.Conn) {
			takes(there)
			_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-")
		}, hooks.Verdict{Err: hooks.WordTimeout, Duration: 15 * time.Second}},
		"a body": {"http://127.0.0.1:8080/", func(there net.Conn) {
			takes(there)
			_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall")
		}, hooks.Verdict{OK: true, Status: 200, Duration: 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := net.Pipe()
				if c.there == nil {
					c.there = func(net.Conn) { _, _ = io.Copy(io.Discard, there) }
				}
				go c.there(there)
				s := hooks.NewDialing(hooks.Config{AllowLoopback: true, Now: time.Now},
					func(context.Context, string, string) (net.Conn, error) { return here, nil })
				v := s.Send(t.Context(), to(t, c.url))
				if v.OK != c.want.OK || v.Err != c.want.Err || v.Status != c.want.Status || v.Duration != c.want.Duration {
					t.Errorf("the verdict is %+v, want %+v", v, c.want)
				}
				s.Close()
				_ = there.Close()
			})
		})
	}
}

// A name that nobody answers for costs no more than a connection that nobody takes.
func TestANameThatNobodyAnswersForCostsFiveSeconds(t *testing.T) {
	silent := func() *net.Resolver {
		return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
	}
	// What package net keeps for all look-ups must not be made inside of a bubble: no
	// other test could look anything up.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := silent().LookupHost(over, "shop.example"); err == nil {
		t.Fatal("somebody answered")
	}
	synctest.Test(t, func(t *testing.T) {
		s := hooks.New(hooks.Config{Now: time.Now, Resolver: silent()})
		if v := s.Send(t.Context(), to(t, "https://shop.example/")); v.OK || v.Duration != 5*time.Second {
			t.Errorf("the verdict is %+v", v)
		}
		s.Close()
	})
}
