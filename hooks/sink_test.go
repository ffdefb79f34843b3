package hooks_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"till/hooks"
)

// sender is a Sender that may call this machine and is patient for a short
// time only; change may alter that.
func sender(t *testing.T, change func(*hooks.Config)) *hooks.Sender {
	t.Helper()
	c := hooks.Config{
		AllowLoopback:  true,
		Now:            time.Now,
		Timeout:        3 * time.Second,
		ConnectTimeout: 300 * time.Millisecond,
		DrainTimeout:   200 * time.Millisecond,
	}
	if change != nil {
		change(&c)
	}
	s := hooks.New(c)
	t.Cleanup(s.Close)
	return s
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
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// sentinel is an address that nobody may call. It fails the test if it is.
func sentinel(t *testing.T) netip.AddrPort {
	t.Helper()
	var hits atomic.Int32
	addr := raw(t, func(net.Conn) { hits.Add(1) })
	t.Cleanup(func() { // before raw's own
		// A connection that was made is accepted by now or waits before this one.
		c, err := net.Dial("tcp4", addr)
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
	return netip.MustParseAddrPort(addr)
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

// names answers for every name: the first question gets the first address, the
// second the second, the last is repeated. Without addresses no name exists.
// It is a real name server, reached through a pipe.
func names(addresses ...string) (resolver *net.Resolver, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	answer := func(q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
		if len(addresses) == 0 {
			return nil, dnsmessage.RCodeNameError
		}
		if q.Type != dnsmessage.TypeA {
			return nil, dnsmessage.RCodeSuccess
		}
		n := min(int(asked.Add(1)), len(addresses))
		return []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addresses[n-1]).As4()},
		}}, dnsmessage.RCodeSuccess
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer ours.Close()
			for serveName(ours, answer) == nil {
			}
		}()
		return theirs, nil
	}}, asked
}

// serveName answers one question in the framing of DNS over TCP.
func serveName(c net.Conn, answer func(dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode)) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	packet := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, packet); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		return err
	}
	if len(m.Questions) != 1 {
		return fmt.Errorf("%d questions", len(m.Questions))
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	m.Answers, m.RCode = answer(m.Questions[0])
	packed, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...))
	return err
}
