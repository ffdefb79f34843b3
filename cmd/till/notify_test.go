package main

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// systemd hears when requests are answered, that they still are, and when that
// ends.
func TestSystemdIsToldHowWeAre(t *testing.T) {
	dir, err := os.MkdirTemp("", "till") //nolint:usetesting // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	ln, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	hear := func(want string) {
		t.Helper()
		text := make([]byte, 64)
		for {
			n, err := ln.Read(text)
			if err != nil {
				t.Fatalf("it never said %s: %v", want, err)
			}
			if got := string(text[:n]); got == want {
				return
			} else if got != "WATCHDOG=1" {
				t.Fatalf("it said %s instead of %s", got, want)
			}
		}
	}
	_, p, _ := devServerWith(t, []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=100000"})
	if err := ln.SetReadDeadline(time.Now().Add(tilltest.Patience)); err != nil {
		t.Fatal(err)
	}
	hear("READY=1")
	hear("WATCHDOG=1")
	hear("WATCHDOG=1")
	p.Signal(syscall.SIGTERM)
	hear("STOPPING=1")
}
