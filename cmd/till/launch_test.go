package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// A server whose terminal is closed, so that nobody reads what it says and its log,
// ends as one that is told to; under nohup it takes money as before.
func TestAServerThatNobodyListensToServes(t *testing.T) {
	closed := make(chan os.Signal, 1)
	signal.Notify(closed, syscall.SIGHUP) // so that no program that we begin ignores it, as we may
	defer signal.Stop(closed)
	for _, nohup := range []bool{false, true} {
		dir, addr := t.TempDir(), tilltest.FreePort(t)
		key := shopIn(t, dir).SecretKey
		in, out, err := os.Pipe()
		must(t, err)
		must(t, in.Close())
		args := []string{tilltest.Program(t), "dev", "--data-dir", dir, "--http-addr", addr, "--metrics-addr", "off", "--log-level", "debug"}
		if nohup {
			args = append([]string{"nohup"}, args...)
		}
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
		cmd.Env = append(os.Environ(), "TILL_RATE_LIMIT_TEST=100000") // it is asked again and again
		must(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		m := &merchant{t: t, base: "http://" + addr, key: key}
		await.Until(t, "it answers", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("it ended: %v", err)
			default:
			}
			_, _, err := m.try(http.MethodGet, "/readyz", nil)
			return err == nil
		})
		m.paid()
		logged, err := os.ReadFile(filepath.Join(dir, logsDir, logName))
		if err != nil || len(logged) == 0 {
			t.Errorf("nothing is in the file of the log: %v", err)
		}
		must(t, cmd.Process.Signal(syscall.SIGHUP))
		if nohup {
			m.paid()
			must(t, cmd.Process.Signal(syscall.SIGTERM))
		}
		await.Until(t, "it ends", func() bool {
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("nohup %v: it ended with %v", nohup, err)
				}
				return true
			default:
				return false
			}
		})
	}
}

// Who stops a server in the middle of its start is told of no fault: there is none.
func TestAServerThatIsStoppedWhileItStartsEndsWell(t *testing.T) {
	redis, err := net.Listen("tcp", "127.0.0.1:0") // takes who comes, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = redis.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		if conn, err := redis.Accept(); err == nil {
			defer func() { _ = conn.Close() }()
			stop()
			<-t.Context().Done()
		}
	}()
	var said bytes.Buffer
	code := run(ctx, []string{
		"serve", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off", "--data-dir", t.TempDir(), "--redis-url", "redis://" + redis.Addr().String(),
		"--bank-url", "http://127.0.0.1:1", "--whatsapp-dial", "127.0.0.1:1", "--whatsapp-root-key", strings.Repeat("0", 64),
	}, io.Discard, &said)
	if code != exitOK || said.Len() > 0 {
		t.Errorf("it ended with %d and said:\n%s", code, &said)
	}
}
