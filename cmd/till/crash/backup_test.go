package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// backedUp makes so many backups beside a server that works, and has each prove
// itself: every file, page, ledger and row. It returns how many calls were
// acknowledged meanwhile.
func backedUp(w *world, backups int) (acks int, longest time.Duration) {
	w.tb.Helper()
	s := &shop{w: w, sales: map[string]sale{}}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	work := s.work(ctx, 1)
	for n := range backups {
		file := filepath.Join(w.outside, fmt.Sprintf("backup-%d.tar.gz", n))
		began := time.Now()
		short, cancel := context.WithTimeout(context.Background(), 2*tilltest.Patience)
		if out, err := tilltest.Output(short, w.dir, w.env, "backup", file); err != nil {
			w.wrong("other", "backup %d: %v\n%s", n, err, out)
		}
		longest = max(longest, time.Since(began))
		if out, err := tilltest.Output(short, w.dir, w.env, "verify", file); err != nil {
			w.wrong("lost", "backup %d does not hold: %v\n%s", n, err, out)
		}
		cancel()
		_ = os.Remove(file)
	}
	stop()
	<-work
	return len(w.journal.all), longest
}

func TestABackupUnderLoadHolds(t *testing.T) {
	w := newWorld(t)
	backedUp(w, 2)
	w.verdict()
}

// BenchmarkFaultBackup backs up fifty times.
func BenchmarkFaultBackup(b *testing.B) {
	const backups = 50
	w := newWorld(b)
	acks, longest := backedUp(w, backups)
	fmt.Printf("%d backups beside %d acknowledged calls, the longest in %s: %d do not hold, %d failed\n", backups, acks, ms(longest), w.count("lost"), w.count("other"))
	w.verdict()
}
