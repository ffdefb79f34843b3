package hooks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The words for what cannot be provoked on one machine.
func TestWord(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", err)} }
	for want, errs := range map[string][]error{
		WordUnreachable: {dial(syscall.ENETUNREACH), dial(syscall.EHOSTUNREACH), dial(syscall.EMFILE)},
		WordTimeout:     {dial(syscall.ETIMEDOUT), context.DeadlineExceeded, os.ErrDeadlineExceeded},
		WordDNS:         {&net.DNSError{IsTimeout: true}, &net.DNSError{IsNotFound: true}},
		WordReset:       {syscall.ECONNABORTED, os.NewSyscallError("write", syscall.EPIPE), io.ErrUnexpectedEOF},
		WordTLS:         {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}},
		WordGuard:       {&net.OpError{Op: "dial", Err: fmt.Errorf("x: %w", ErrAddress)}},
		WordBadResponse: {answerError{errors.New("malformed HTTP response")}},
	} {
		for _, err := range errs {
			if got := word(t.Context(), err); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
	}
}

// Before a byte of an answer is here, nothing can be wrong with it: the transport
// has an error without a type for a kept connection that the endpoint closed.
func TestWordWithoutAnswer(t *testing.T) {
	if got := word(t.Context(), errors.New("http: server closed idle connection")); got != WordReset {
		t.Errorf("%s, want %s", got, WordReset)
	}
}

// The dialer's check says of each address in the table what Refused says. It is
// asked directly; nothing is dialled.
func TestGuard(t *testing.T) {
	text, err := os.ReadFile("testdata/addresses.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		class, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		a, err := netip.ParseAddr(value)
		if err != nil {
			continue // a comment
		}
		network := "tcp6"
		if a.Is4() {
			network = "tcp4"
		}
		for _, loopback := range []bool{false, true} {
			err := guard(Allow{Loopback: loopback})(network, netip.AddrPortFrom(a, 443).String(), nil)
			if want := class == "open" || class == "loop" && loopback; (err == nil) != want {
				t.Errorf("%s %s, loopback allowed %t: %v", network, a, loopback, err)
			}
		}
	}
	for _, c := range [][2]string{
		{"udp4", "8.8.8.8:443"},
		{"unix", "/run/docker.sock"},
		{"tcp4", "8.8.8.8"},
		{"tcp4", "example.com:443"},
		{"tcp4", ""},
	} {
		if err := guard(Allow{Loopback: true})(c[0], c[1], nil); !errors.Is(err, ErrAddress) {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
}

// localhost leads to this machine or nowhere, whoever answers for the name.
func TestLocalhostLeadsHere(t *testing.T) {
	check := guard(Allow{Loopback: true})
	for _, c := range []struct {
		host, to string
		ok       bool
	}{
		{"localhost:80", "127.0.0.1:80", true},
		{"LocalHost:80", "127.1.2.3:80", true},
		{"localhost:80", "8.8.8.8:80", false},
		{"LOCALHOST:80", "8.8.8.8:80", false},
		{"localhost:80", "10.0.0.1:80", false},
		{"localhost:80", "", false},
		{"localhost.example.com:443", "8.8.8.8:443", true},
		{"hook.example.com:443", "127.0.0.1:443", true},
		{"hook.example.com:443", "10.0.0.1:443", false},
		{"8.8.8.8:443", "8.8.8.8:443", true},
	} {
		if err := checkOf(c.host, check)("tcp4", c.to, nil); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("%s leads to %q: %v", c.host, c.to, err)
		}
	}
	if err := checkOf("localhost:80", guard(Allow{}))("tcp4", "127.0.0.1:80", nil); !errors.Is(err, ErrAddress) {
		t.Errorf("where loopback is not allowed: %v", err)
	}
}
