package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/crashpoint"
)

// The bounds of the days that a shop is paid out for, counted from today: what is
// paid today is due after the next working day at the earliest, and nobody is paid
// out for a day that is further ahead.
const (
	firstPayday = 6
	lastPayday  = 30
)

// BenchmarkCrashPoints kills Till at each of the points, as often as
// TILL_CRASH_POINT_KILLS says, and prints a line for each.
func BenchmarkCrashPoints(b *testing.B) {
	kills := asked(b, "TILL_CRASH_POINT_KILLS", 20, 1, lastPayday-firstPayday+1)
	seed := uint64(time.Now().UnixNano())
	progress("%d kills at each of %d points, seed %d", kills, len(crashpoint.Points()), seed)
	var rows []sweep
	for _, p := range crashpoint.Points() {
		b.Run(string(p), func(b *testing.B) { // so that all that it started has ended before the next
			var env []string
			if kind(p) == "pipe" { // PostgreSQL alone has it
				env = []string{"TILL_DATABASE_URL=" + ownDatabase(b, strings.ReplaceAll(string(p), "-", "_"))}
			}
			rows = append(rows, swept(b, string(p), kills, seed, killAt(p), env...))
		})
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "point\tkills\tacknowledged\tsessions\tmovements\tlost\tdoubled\tother\tslowest ready\t")
	for _, r := range rows {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", r.on, r.kills, r.acks, r.sessions, r.money, r.lost, r.doubled, r.other, at(r.ready, 100))
	}
	_ = out.Flush()
}

// killAt kills at a point, each time at another passing of it as far as it is
// passed often enough for that.
func killAt(p crashpoint.Point) killing {
	return func(s *shop, n int, _ *rand.Rand, _ *sweep) {
		passing, payday := int64(3*n+1), false
		switch kind(p) {
		case "batch", "pipe": // some while it starts, most amid all that it does
			passing = int64(10*n + 1)
		case "turn":
			passing = int64(n + 1)
		case "refund", "work":
			passing = int64(n%3 + 1)
		case "settlement", "payout":
			passing, payday = 1, true
		}
		s.w.p.Kill()
		s.w.start(fmt.Sprintf("%s=%s:%d", crashpoint.Variable, p, passing))
		if payday {
			s.paydays <- time.Now().AddDate(0, 0, firstPayday+n).Format(time.DateOnly)
		}
		if why := unreached(s.w.p, p, passing, tilltest.Patience); why != "" {
			s.w.tb.Fatalf("kill %d at %s: %s; Till said:\n%s", n+1, p, why, s.w.p.Said())
		}
	}
}

// kind is what a point is about: the first word of its name.
func kind(p crashpoint.Point) string {
	word, _, _ := strings.Cut(string(p), "-")
	return word
}

// unreached waits for a process to be killed at a point, and says what is wrong
// where it is not.
func unreached(p *tilltest.Process, at crashpoint.Point, passing int64, most time.Duration) string {
	select {
	case <-p.Ended():
	case <-time.After(most):
		return fmt.Sprintf("it was not passed %d times within %s", passing, most)
	}
	if !strings.Contains(p.Said(), crashpoint.Last(at, passing)+"\n") {
		return "it ended elsewhere"
	}
	return ""
}

// A point that is never reached, or a process that ends without it, must not count.
func TestAKillAtAPointIsOneAtThatPoint(t *testing.T) {
	t.Parallel()
	const p = crashpoint.Reply
	says := "echo '" + crashpoint.Last(p, 2) + "' >&2; "
	for script, reached := range map[string]bool{
		"exec sleep 60":        false,
		"kill -9 $$":           false,
		says + "exec sleep 60": false,
		says + "kill -9 $$":    true,
	} {
		process := tilltest.StartOther(t, t.TempDir(), nil, "sh", "-c", script)
		if why := unreached(process, p, 2, 2*time.Second); (why == "") != reached {
			t.Errorf("%s: %q", script, why)
		}
	}
}
