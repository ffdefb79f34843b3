package hooks_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
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

// What an endpoint that answers early has not read yet stays what it was: none ever
// reads what is sent to another.
func TestSendShowsNobodyWhatOthersAreSent(t *testing.T) {
	early, other := make(chan net.Conn, 1), make(chan net.Conn, 1)
	se := hooks.NewDialing(settings(), func(_ context.Context, _, address string) (net.Conn, error) {
		here, there := net.Pipe()
		if address == "127.0.0.1:8080" {
			early <- there
		} else {
			other <- there
		}
		return here, nil
	})
	t.Cleanup(se.Close)
	long := func(url, fill string) hooks.Request {
		r := to(t, url)
		r.Body = []byte(strings.Repeat(fill, 12<<10))
		return r
	}
	verdict := make(chan hooks.Verdict, 1)
	go func() { verdict <- se.Send(t.Context(), long("http://127.0.0.1:8080/", "a")) }()
	there := <-early
	in := bufio.NewReaderSize(there, 1024)
	r, err := http.ReadRequest(in)
	if err == nil {
		_, err = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c := <-other
		b, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = io.Copy(io.Discard, b.Body)
		}
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
		}
	}()
	if v := se.Send(t.Context(), long("http://127.0.0.1:8081/", "b")); !v.OK {
		t.Errorf("the other: verdict %+v", v)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || strings.Trim(string(body), "a") != "" {
		t.Errorf("%d bytes are another's, %v", len(strings.Trim(string(body), "a")), err)
	}
	_, _ = io.WriteString(there, "done")
	if v := <-verdict; !v.OK || string(v.Body) != "done" {
		t.Errorf("verdict %+v", v)
	}
}
