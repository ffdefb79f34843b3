package main

import (
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// supervisor is systemd's end of the socket.
type supervisor struct {
	t      *testing.T
	socket string
	ln     *net.UnixConn
}

func newSupervisor(t *testing.T) supervisor {
	t.Helper()
	dir, err := os.MkdirTemp("", "till") //nolint:usetesting // the name of a socket is short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	ln, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	return supervisor{t, socket, ln}
}

// hears waits for a state, with nothing but repetitions of another before it.
func (s supervisor) hears(want, repeated string) {
	s.t.Helper()
	must(s.t, s.ln.SetReadDeadline(time.Now().Add(tilltest.Patience)))
	text := make([]byte, 64)
	for {
		n, err := s.ln.Read(text)
		if err != nil {
			s.t.Fatalf("it never said %s: %v", want, err)
		}
		if got := string(text[:n]); got == want {
			return
		} else if got != repeated {
			s.t.Fatalf("it said %s instead of %s", got, want)
		}
	}
}

// moreTime is what a start says while it opens what is kept.
const moreTime = "EXTEND_TIMEOUT_USEC=30000000"

// systemd hears when requests are answered, that they still are, and when that
// ends.
func TestSystemdIsToldHowWeAre(t *testing.T) {
	s := newSupervisor(t)
	_, p, _ := devServerWith(t, []string{"NOTIFY_SOCKET=" + s.socket, "WATCHDOG_USEC=100000"})
	s.hears("READY=1", moreTime)
	s.hears("WATCHDOG=1", "")
	s.hears("WATCHDOG=1", "")
	p.Signal(syscall.SIGTERM)
	s.hears("STOPPING=1", "WATCHDOG=1")
}

// A start that has to wait for a database, or migrates a large one, goes on asking
// for time, and has it.
func TestSystemdWaitsWhileDatabasesAreOpened(t *testing.T) {
	k := newKeeper(t, "data")
	s := newSupervisor(t)
	db, err := sql.Open("sqlite", "file:"+k.at("data/test.db")+"?mode=rw&_txlock=immediate")
	k.must(err)
	defer db.Close()
	held, err := db.BeginTx(t.Context(), nil)
	k.must(err)
	p := start(t, k.dir, []string{"NOTIFY_SOCKET=" + s.socket}, "dev", "--http-addr", tilltest.FreePort(t))
	for range 3 {
		s.hears(moreTime, "")
	}
	k.must(held.Rollback())
	s.hears("READY=1", moreTime)
	p.Line(`/phone$`)
}
