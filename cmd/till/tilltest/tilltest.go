// Package tilltest runs the built program as its users do, for tests: it starts
// commands of it, waits for what they say, and ends them as an operator or a power
// cut would. It must not know what a command does, and no program imports it.
package tilltest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long one step of a process may take on a busy machine.
const Patience = 30 * time.Second

// built is the program of this run.
var built struct { // one build for all tests of a run
	once sync.Once
	dir  string
	bin  string
	err  error
}

// Program is the path of the program under test: what TILL_BIN names, or what is
// built once for this run. Clean takes that away again.
func Program(tb testing.TB) string {
	tb.Helper()
	bin, err := program()
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

func program() (string, error) {
	built.once.Do(func() {
		if bin := os.Getenv("TILL_BIN"); bin != "" {
			built.bin, built.err = filepath.Abs(bin)
			if dir := os.Getenv("TILL_COUNTED"); dir != "" && built.err == nil { // go test gives its own programs another place
				built.err = os.Setenv("GOCOVERDIR", dir)
			}
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "till-test-"); built.err != nil {
			return
		}
		built.bin = filepath.Join(built.dir, "till")
		cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", built.bin, "till/cmd/till") //nolint:gosec // a place of our own
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the program: %w\n%s", err, out)
		}
	})
	return built.bin, built.err
}

// Clean removes what Program built. It is called once, when no test runs any more.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Need is the path of a program that a test cannot do without. Where it is not
// installed the test is skipped, or fails if TILL_TEST_REQUIRE names the service.
func Need(tb testing.TB, service, program string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if strings.Contains(os.Getenv("TILL_TEST_REQUIRE"), service) {
		tb.Fatalf("%s is required here and not installed", service)
	}
	tb.Skipf("skipped: %s is not installed (%s)", service, program)
	return ""
}

// The ports that tests are given: below those that the system takes for whoever
// listens on any, and for its own end of each connection.
const (
	firstPort = 10_000
	portsHeld = 22_000
)

// FreePort is an address of this machine, with a port, that nobody listens on now. It
// is this test's until it ends, also while nothing listens there, as between a kill and
// a start: a socket of UDP on the same port, which nobody uses, keeps it from others
// who ask here, in other processes too.
func FreePort(tb testing.TB) string {
	tb.Helper()
	var of net.ListenConfig
	for i := range portsHeld {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+(os.Getpid()*31+i)%portsHeld))
		claim, err := of.ListenPacket(tb.Context(), "udp", addr)
		if err != nil {
			continue
		}
		ln, err := of.Listen(tb.Context(), "tcp", addr)
		if err != nil {
			_ = claim.Close()
			continue
		}
		_ = ln.Close()
		tb.Cleanup(func() { _ = claim.Close() })
		return addr
	}
	tb.Fatal("no port is free")
	return ""
}
