package hooks

import (
	"context"
	"errors"
	"fmt"
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
		WordUnreachable: {dial(syscall.ENETUNREACH), dial(syscall.EHOSTUNREACH)},
		WordTimeout:     {dial(syscall.ETIMEDOUT), context.DeadlineExceeded, os.ErrDeadlineExceeded},
		WordDNS:         {&net.DNSError{IsTimeout: true}, &net.DNSError{IsNotFound: true}},
		WordReset:       {dial(syscall.ECONNABORTED), dial(syscall.EPIPE)},
		WordTLS:         {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}},
		WordGuard:       {&net.OpError{Op: "dial", Err: fmt.Errorf("x: %w", ErrAddress)}},
		WordBadResponse: {errors.New("malformed HTTP response")},
	} {
		for _, err := range errs {
			if got := word(t.Context(), err, false); got != want {
				t.Errorf("%v: %s, want %s", err, got, want)
			}
		}
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
