package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// The log never grows beyond its files, and the newest line is always there.
func TestTheLogIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := under(under(dir, logsDir), logName)
	lines := &logTee{out: io.Discard}
	file := &logFile{path: path}
	lines.keep(file)
	long := strings.Repeat("x", 256<<10)
	for i := range 300 { // 75 MiB
		fmt.Fprintf(lines, `{"n":%d,"text":"%s"}`+"\n", i, long)
	}
	must(t, file.close())
	entries, err := os.ReadDir(under(dir, logsDir))
	if err != nil || len(entries) != maxFiles {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() > maxLog || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info, err)
		}
	}
	newest, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(newest), `{"n":299,`) {
		t.Errorf("the newest line is not in the newest file: %v", err)
	}
}

// A place that cannot be written to loses the lines there alone, and that is said once.
func TestALogThatCannotBeKeptIsStillTold(t *testing.T) {
	var out strings.Builder
	lines := &logTee{out: &out}
	taken := under(t.TempDir(), "file")
	must(t, os.WriteFile(taken, nil, 0o600))
	lines.keep(&logFile{path: under(taken, logName)})
	for _, line := range []string{"a line\n", "another\n"} {
		if _, err := io.WriteString(lines, line); err != nil {
			t.Error(err)
		}
	}
	said, all, _ := strings.Cut(out.String(), "\n")
	if !strings.Contains(said, "the log is not kept in the data dir") || !strings.Contains(said, "not a directory") || all != "a line\nanother\n" {
		t.Errorf("it says %q", &out)
	}
}

// Whoever reads the log and stops holds nobody up: what is more than waits for them is
// in the file alone, and they are told how much that was.
func TestAReaderWhoStopsHoldsNobodyUp(t *testing.T) {
	dir, lines := t.TempDir(), 2*maxUnread
	in, out := io.Pipe()
	tee := &logTee{out: out}
	file := &logFile{path: under(dir, logName)}
	tee.keep(file)
	end := tee.loosen()
	for n := range lines {
		if _, err := fmt.Fprintf(tee, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file.path); err != nil || strings.Count(string(kept), "\n") != lines {
		t.Errorf("not all is in the file: %v", err)
	}
	read := bufio.NewScanner(in)
	seen := 0
	for ; seen < maxUnread && read.Scan(); seen++ {
		if read.Text() != fmt.Sprintf("line %d", seen) {
			t.Fatalf("line %d reads %q", seen, read.Text())
		}
	}
	told := make(chan string, 1)
	go func() {
		var rest strings.Builder
		for read.Scan() {
			rest.WriteString(read.Text() + "\n")
		}
		told <- rest.String()
	}()
	if _, err := io.WriteString(tee, "and on\n"); err != nil {
		t.Error(err)
	}
	end()
	_ = out.Close()
	if rest := <-told; !strings.Contains(rest, "lines of the log were told to nobody") || !strings.HasSuffix(rest, "and on\n") {
		t.Errorf("it goes on with %q", rest)
	}
	if err := file.close(); err != nil {
		t.Error(err)
	}
}

// Who follows the log reads every line once, in order, also those around the
// turn of its file.
func TestTheLogIsFollowedOverItsTurns(t *testing.T) {
	dir := t.TempDir()
	file := &logFile{path: under(under(dir, logsDir), logName)}
	lines := &logTee{out: io.Discard}
	lines.keep(file)
	write := func(n int) {
		fmt.Fprintf(lines, `{"time":"2026-11-22T12:00:00Z","level":"WARN","msg":"line %d","session":"wsp_sess_%d"}`+"\n", n, n%2)
	}
	write(1)
	ctx, stop := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, []string{"logs", "-f", "--data-dir", dir, "--session", "wsp_sess_1"}, out, io.Discard)
		_ = out.Close()
		ended <- code
	}()
	seen := bufio.NewScanner(in)
	for n := 1; n <= 9; n += 2 { // those of the session alone
		if !seen.Scan() || !strings.HasPrefix(seen.Text(), "2026-11-22 12:00:00.000  WARN   line "+fmt.Sprint(n)+"  session=wsp_sess_1") {
			t.Fatalf("line %d reads %q", n, seen.Text())
		}
		write(n + 1)
		if n == 5 {
			lines.mu.Lock()
			file.turn()
			lines.mu.Unlock()
		}
		write(n + 2)
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, in) }() // the line behind the last
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("it ended with %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// What is appended while the end of the log is read is read next.
func TestNoLineIsSkippedThatIsWrittenWhileTheLogIsRead(t *testing.T) {
	const most = 20_000
	path := under(t.TempDir(), logName)
	to, err := os.Create(path)
	must(t, err)
	at, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(to.Close(), at.Close()) })
	written := make(chan error, 1)
	go func() {
		var failed error
		for n := range most {
			_, err := fmt.Fprintln(to, n)
			failed = errors.Join(failed, err)
		}
		written <- failed
	}()
	seen := 0
	read := func() {
		must(t, (&logsCmd{Level: "debug"}).each(at, func(line []byte) error {
			if string(line) != fmt.Sprint(seen) {
				return fmt.Errorf("%q is read behind %d lines", line, seen)
			}
			seen++
			return nil
		}))
	}
	for over := false; !over; read() {
		select {
		case err := <-written:
			if over = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
	}
	if seen != most {
		t.Errorf("%d lines of %d are read", seen, most)
	}
}
