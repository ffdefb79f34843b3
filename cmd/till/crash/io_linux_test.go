package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
)

// failing has a system call of Till fail with EIO from the Nth that a thread makes
// on, for N = 1, 2, 3 and so on.
func failing(w *world, calls string) space {
	w.tb.Helper()
	strace := need(w.tb, "strace", "strace")
	n := 0
	var p *process
	return space{
		name: strings.Fields(strings.ReplaceAll(calls, ",", " "))[0],
		take: func(*rand.Rand) error {
			n++
			p = startAs(w.tb, w.outside, nil, strace, "-f", "-p", strconv.Itoa(w.p.cmd.Process.Pid), "-o", os.DevNull,
				"-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:error=EIO:when=%d+", calls, n))
			if !waits(patience, func() bool { return strings.Contains(p.said(), "attached") }) {
				return fmt.Errorf("strace does not look on: %s", p.said())
			}
			return nil
		},
		give: func() error {
			err := p.cmd.Process.Signal(syscall.SIGINT)
			<-p.dead
			return err
		},
	}
}

// failures are the system calls by which SQLite writes and syncs.
func failures() []string { return []string{"pwrite64", "fsync,fdatasync"} }

func TestADiskThatFailsLosesNothing(t *testing.T) {
	w := newWorld(t)
	for _, call := range failures() {
		if out := starve(w, failing(w, call), 2, rand.New(rand.NewPCG(1, 2))); out.refused != out.rounds {
			t.Errorf("%s: %+v", call, out)
		}
	}
	w.verdict()
}

// BenchmarkFaultIO has the disk fail from the Nth write on, and from the Nth sync,
// for the first fifty of each.
func BenchmarkFaultIO(b *testing.B) {
	const most = 50
	w := newWorld(b)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "EIO from the Nth\tN\tacknowledged\t503\tnot ready\tlost\tother\t")
	for _, call := range failures() {
		r := starve(w, failing(w, call), most, rand.New(rand.NewPCG(1, 2)))
		fmt.Fprintf(out, "%s\t1 to %d\t%d\t%d\t%d\t%d\t%d\t\n", call, r.rounds, r.kept, r.refused, r.notReady, w.count("lost"), w.count("other")+w.count("ledger"))
	}
	_ = out.Flush()
	w.verdict()
}
