//go:build linux

package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// progress says what is being done: a run takes long.
func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func TestMain(m *testing.M) {
	code := m.Run()
	tilltest.Clean()
	os.Exit(code)
}

// process is a program that is looked at.
type process struct{ *tilltest.Process }

// watched starts a command of the program.
func watched(tb testing.TB, dir string, env []string, args ...string) process {
	tb.Helper()
	return process{tilltest.Start(tb, dir, env, args...)}
}

// rss is the memory that it holds, in MiB.
func (p process) rss() float64 { return p.status("VmRSS:") / 1024 }

// heap is the part of it that is no file's, in MiB.
func (p process) heap() float64 { return p.status("RssAnon:") / 1024 }

// peak is the most that it ever held, in MiB.
func (p process) peak() float64 { return p.status("VmHWM:") / 1024 }

func (p process) status(name string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
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
func (p process) cpu() time.Duration { return tilltest.CPU(p.PID()) }

// descriptors is how many files and connections it has open.
func (p process) descriptors() int {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))
	return len(list)
}

// until asks again and again.
func until(tb testing.TB, what string, lasts time.Duration, so func() bool) {
	tb.Helper()
	if !await.Within(lasts, so) {
		tb.Fatalf("in vain waited until %s", what)
	}
}
