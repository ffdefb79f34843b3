//go:build linux

package load

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a process may take to do what it always does.
const patience = 30 * time.Second

// progress says what is being done: a run takes long.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// program is the binary that is measured: TILL_BIN, or built once.
var program = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // one build for all
	if bin := os.Getenv("TILL_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	dir, err := os.MkdirTemp("", "till-load-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "till")
	cmd := exec.Command("go", "build", "-trimpath", "-o", bin, "till/cmd/till")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return bin, nil
})

// process is a program that runs until it is stopped; it never outlives us.
type process struct {
	name  string
	cmd   *exec.Cmd
	lines chan string
	ended chan struct{}
	once  sync.Once
}

// start starts a command in a directory, with more settings.
func start(tb testing.TB, dir, bin string, env []string, args ...string) *process {
	tb.Helper()
	p := &process{name: filepath.Base(bin) + " " + strings.Join(args, " "), cmd: exec.Command(bin, args...), lines: make(chan string, 1000), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "stderr"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		for scan := bufio.NewScanner(out); scan.Scan(); {
			select {
			case p.lines <- scan.Text():
			default: // nobody waits for lines any more
			}
		}
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	tb.Cleanup(p.kill)
	return p
}

// kill ends it as a power cut would.
func (p *process) kill() {
	p.once.Do(func() { _ = p.cmd.Process.Kill() })
	<-p.ended
}

// stop ends it as an operator would.
func (p *process) stop(tb testing.TB) {
	tb.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		tb.Fatalf("%s does not end", p.name)
	}
}

// alive says whether it still runs.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// line waits for a line of its output.
func (p *process) line(tb testing.TB, pattern string) string {
	tb.Helper()
	re, late := regexp.MustCompile(pattern), time.After(patience)
	for {
		select {
		case l := <-p.lines:
			if m := re.FindStringSubmatch(l); m != nil {
				return m[1]
			}
		case <-p.ended:
			log, _ := os.ReadFile(filepath.Join(p.cmd.Dir, "stderr"))
			tb.Fatalf("%s ended before it said %q:\n%s", p.name, pattern, log)
		case <-late:
			tb.Fatalf("%s never said %q", p.name, pattern)
		}
	}
}

// rss is the memory that it holds, in MiB.
func (p *process) rss() float64 { return p.status("VmRSS:") / 1024 }

// heap is the part of it that is no file's, in MiB.
func (p *process) heap() float64 { return p.status("RssAnon:") / 1024 }

// peak is the most that it ever held, in MiB.
func (p *process) peak() float64 { return p.status("VmHWM:") / 1024 }

func (p *process) status(name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == name {
			n, _ := strconv.ParseFloat(fields[1], 64)
			return n
		}
	}
	return 0
}

// cpu is the time that it has spent working, in steps of 10 ms.
func (p *process) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// descriptors is how many files and connections it has open.
func (p *process) descriptors() int {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(list)
}

// free is an address of this machine that nobody listens on now.
func free(tb testing.TB) string {
	tb.Helper()
	ln, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// until asks again and again.
func until(tb testing.TB, what string, lasts time.Duration, so func() bool) {
	tb.Helper()
	for end := time.Now().Add(lasts); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("in vain waited until %s", what)
		}
	}
}
