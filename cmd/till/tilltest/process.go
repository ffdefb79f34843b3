package tilltest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// saidMost is how much of what a process says is kept, from its end.
	saidMost = 4 << 20
	// unread is how many lines wait for somebody who asks for one; later ones are
	// only kept.
	unread = 1000
)

// Process is a program that runs until it is ended; it never outlives its test.
type Process struct {
	tb    testing.TB
	name  string
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}

	mu   sync.Mutex
	seen []byte
}

// Start starts a command of the program in a directory, with more settings.
func Start(tb testing.TB, dir string, env []string, args ...string) *Process {
	tb.Helper()
	return StartOther(tb, dir, env, append([]string{Program(tb)}, args...)...)
}

// StartOther starts any command.
func StartOther(tb testing.TB, dir string, env []string, command ...string) *Process {
	tb.Helper()
	p := &Process{
		tb: tb, name: strings.Join(append([]string{filepath.Base(command[0])}, command[1:]...), " "),
		cmd: exec.CommandContext(context.Background(), command[0], command[1:]...), lines: make(chan string, unread), ended: make(chan struct{}), //nolint:gosec // the command of a test
	}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	diesWithUs(p.cmd)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stderr = (*listener)(p)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.keep(append(scan.Bytes(), '\n'))
			select {
			case p.lines <- scan.Text():
			default: // nobody asks any more
			}
		}
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("%s said:\n%s", p.name, p.Said())
		}
	})
	return p
}

// listener keeps what a process says on stderr.
type listener Process

// Write keeps a piece of it.
func (l *listener) Write(b []byte) (int, error) {
	(*Process)(l).keep(b)
	return len(b), nil
}

func (p *Process) keep(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen = append(p.seen, b...); len(p.seen) > 2*saidMost {
		p.seen = append([]byte(nil), p.seen[len(p.seen)-saidMost:]...)
	}
}

// Said is all that it has said, or the last megabytes of it.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.seen)
}

// Line waits for a line of stdout that matches, and returns what matched.
func (p *Process) Line(pattern string) []string {
	p.tb.Helper()
	re, late := regexp.MustCompile(pattern), time.After(Patience)
	for {
		select {
		case l := <-p.lines:
			if m := re.FindStringSubmatch(l); m != nil {
				return m
			}
		case <-p.ended: // all that it said is there by now
			for len(p.lines) > 0 {
				if m := re.FindStringSubmatch(<-p.lines); m != nil {
					return m
				}
			}
			p.tb.Fatalf("%s ended before it said %q:\n%s", p.name, pattern, p.Said())
		case <-late:
			p.tb.Fatalf("%s never said %q:\n%s", p.name, pattern, p.Said())
		}
	}
}

// Kill ends it as a power cut would. It may be called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// End sends it a signal, as an operator does, and waits until it has ended.
func (p *Process) End(signal os.Signal) {
	p.tb.Helper()
	_ = p.cmd.Process.Signal(signal)
	p.ends()
}

// EndsWell waits until it has ended by itself, without an error.
func (p *Process) EndsWell() {
	p.tb.Helper()
	p.ends()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.tb.Fatalf("%s ended with %d:\n%s", p.name, code, p.Said())
	}
}

// ends waits until it has ended.
func (p *Process) ends() {
	p.tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		p.tb.Fatalf("%s does not end:\n%s", p.name, p.Said())
	}
}

// Signal sends it a signal.
func (p *Process) Signal(signal os.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.tb.Fatalf("%s: %v", p.name, err)
	}
}

// Ended is closed when it has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Beside runs a command of the program to its end, beside this one or after it, in
// its directory and with its settings.
func (p *Process) Beside(args ...string) (string, error) {
	return output(p.tb.Context(), p.cmd.Dir, p.cmd.Env, args)
}

// Output runs a command of the program to its end, and returns what it said.
func Output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return output(ctx, dir, append(os.Environ(), env...), args)
}

func output(ctx context.Context, dir string, env, args []string) (string, error) {
	bin, err := program()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, bin, args...) //nolint:gosec // the program under test
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
