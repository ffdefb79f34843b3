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

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// failing has a system call of Till fail with EIO from the Nth that a thread makes
// on, for N = 1, 2, 3 and so on.
func failing(w *world, calls string) space {
	w.tb.Helper()
	strace := tilltest.Need(w.tb, "strace", "strace")
	n := 0
	var p *tilltest.Process
	return space{
		name: strings.Fields(strings.ReplaceAll(calls, ",", " "))[0],
		take: func(*rand.Rand) error {
			n++
			p = tilltest.StartOther(w.tb, w.outside, nil, strace, "-f", "-p", strconv.Itoa(w.p.PID()), "-o", os.DevNull,
				"-e", "trace="+calls, "-e", fmt.Sprintf("inject=%s:error=EIO:when=%d+", calls, n))
			if !await.Within(tilltest.Patience, func() bool { return strings.Contains(p.Said(), "attached") }) {
				return fmt.Errorf("strace does not look on: %s", p.Said())
			}
			return nil
		},
		give: func() error {
			p.End(syscall.SIGINT)
			return nil
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
