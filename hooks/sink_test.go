package hooks_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till/hooks"
)

// sender is a Sender with those settings; change may alter them.
func sender(t *testing.T, change func(*hooks.Config)) *hooks.Sender {
	t.Helper()
	c := settings()
	if change != nil {
		change(&c)
	}
	s := hooks.New(c)
	t.Cleanup(s.Close)
	return s
}

// settings allow this machine, and are patient: who lets an endpoint hang says for how
// short a time only.
func settings() hooks.Config {
	return hooks.Config{
		AllowLoopback:  true,
		Now:            time.Now,
		Timeout:        time.Minute,
		ConnectTimeout: time.Minute,
		DrainTimeout:   time.Minute,
	}
}

// to is a delivery to a URL.
func to(t *testing.T, url string) hooks.Request {
	t.Helper()
	return hooks.Request{
		URL:     url,
		ID:      "evt_1",
		Body:    []byte(`{"id":"evt_1"}`),
		Secrets: []string{secret(t, 1)},
		At:      time.Now(),
	}
}

// sink is an endpoint on this machine.
func sink(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// raw is an endpoint that takes a connection and does as it likes with it.
func raw(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	return serveOn(t, listen(t), serve)
}

// listen listens on this machine.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serveOn serves all connections of a listener, and waits for them at the end.
func serveOn(t *testing.T, l net.Listener, serve func(net.Conn)) string {
	t.Helper()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// sentinel is an address that nobody may call, on 127.0.0.1 and, where there is
// IPv6, on ::1. It fails the test if it is called.
func sentinel(t *testing.T) netip.AddrPort {
	t.Helper()
	four := listen(t)
	at := netip.MustParseAddrPort(four.Addr().String())
	watched(t, four)
	if six, err := net.Listen("tcp", netip.AddrPortFrom(netip.IPv6Loopback(), at.Port()).String()); err == nil {
		watched(t, six)
	} else if !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Fatal(err)
	}
	return at
}

// watched fails the test if anybody connects to a listener.
func watched(t *testing.T, l net.Listener) {
	t.Helper()
	var hits atomic.Int32
	addr := serveOn(t, l, func(net.Conn) { hits.Add(1) })
	t.Cleanup(func() { // before serveOn's own
		// A connection that was made is accepted by now or waits before this one.
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, c)
		c.Close()
		if n := hits.Load(); n != 1 {
			t.Errorf("the sentinel was called %d times", n-1)
		}
	})
}

// drained reads a request up to its body's end, so that an answer written
// afterwards is not lost to a reset.
func drained(c net.Conn) {
	buf := make([]byte, 64<<10)
	for n := 0; ; {
		m, err := c.Read(buf[n:])
		n += m
		if err != nil || n > 1 && buf[n-1] == '}' {
			return
		}
	}
}
