package crash

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long one step may take on a busy machine.
const patience = 30 * time.Second

// saidMost is how much of what a process says is kept, from its end.
const saidMost = 64 << 10

// process is one running till.
type process struct {
	tb    testing.TB
	cmd   *exec.Cmd
	lines chan string
	dead  chan struct{}
	mu    sync.Mutex
	seen  []byte
}

// start runs a command of the program in a directory of its own.
func start(tb testing.TB, dir string, env []string, args ...string) *process {
	tb.Helper()
	bin, err := program()
	if err != nil {
		tb.Fatal(err)
	}
	return startAs(tb, dir, env, append([]string{bin}, args...)...)
}

// startAs runs any command.
func startAs(tb testing.TB, dir string, env []string, command ...string) *process {
	tb.Helper()
	p := &process{tb: tb, cmd: exec.Command(command[0], command[1:]...), lines: make(chan string, 200), dead: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(append(os.Environ(), "TILL_LOG_LEVEL=warn", "TILL_RATE_LIMIT_TEST=1000000"), env...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stderr = p
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		scan := bufio.NewScanner(out)
		for scan.Scan() {
			_, _ = p.Write(append(scan.Bytes(), '\n'))
			select {
			case p.lines <- scan.Text():
			default:
			}
		}
		_ = p.cmd.Wait()
		close(p.dead)
	}()
	tb.Cleanup(p.kill)
	return p
}

// Write keeps what a process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, b...)
	if len(p.seen) > 2*saidMost {
		p.seen = append([]byte(nil), p.seen[len(p.seen)-saidMost:]...)
	}
	return len(b), nil
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.seen)
}

// kill ends the process with signal 9.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.dead
}

// line waits for a line of stdout that matches.
func (p *process) line(pattern string) []string {
	p.tb.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		select {
		case l := <-p.lines:
			if m := re.FindStringSubmatch(l); m != nil {
				return m
			}
		case <-p.dead:
			p.tb.Fatalf("the process ended before it said %q:\n%s", pattern, p.said())
		case <-deadline:
			p.tb.Fatalf("the process never said %q:\n%s", pattern, p.said())
		}
	}
}

// command runs a command of the program to its end.
func command(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	bin, err := program()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// freePort is an address of this machine that nobody listens on now.
func freePort(tb testing.TB) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// keptKey reads the secret key that the first start left.
func keptKey(tb testing.TB, dir string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(dir, ".env.till"))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if key, ok := strings.CutPrefix(line, "TILL_SECRET_KEY="); ok {
			return key
		}
	}
	tb.Fatal("the first start left no secret key")
	return ""
}
