package crash

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"till/cmd/till/tilltest"
)

// space is a way to take Till's disk away while it runs, and to give it back.
type space struct {
	name string
	take func(random *rand.Rand) error
	give func() error
}

// starved is what it came to that there was no room.
type starved struct {
	rounds   int
	kept     int // acknowledged
	refused  int // with 503, storage_unavailable and Retry-After
	notReady int // rounds in which GET /readyz said so
}

// starve takes the disk away so many times.
func starve(w *world, s space, rounds int, random *rand.Rand) starved {
	w.tb.Helper()
	out := starved{rounds: rounds}
	open := func(key string) (reply, error) {
		text := `{"amount":500000,"customerEmail":"bola@example.com","reference":"` + key + `","description":"` + strings.Repeat("d", 200) + `"}`
		r, err := w.call(http.MethodPost, sessionsPath, key, text)
		if err == nil && r.status == http.StatusCreated {
			err = w.journal.keep(entry{Kind: "call", Key: key, Path: sessionsPath, Body: text, Status: r.status, Reply: r.body})
			out.kept++
		}
		return r, err
	}
	for round := range rounds {
		must(w.tb, s.take(random))
		full := false
		for n := 0; n < 3000 && !full; n++ {
			r, err := open(fmt.Sprintf("%s-%d-%d", s.name, round, n))
			switch {
			case err != nil || r.status != http.StatusCreated && r.status != http.StatusServiceUnavailable:
				w.wrong("other", "%s: %d %s (%v)", s.name, r.status, r.body, err)
				full = true
			case r.status == http.StatusServiceUnavailable:
				if full = true; r.code() != "storage_unavailable" || r.retry == "" {
					w.wrong("other", "%s: %s, Retry-After %q", s.name, r.body, r.retry)
				}
				out.refused++
			}
		}
		if !full {
			w.wrong("other", "%s: there was always room", s.name)
		}
		if !w.ready() {
			out.notReady++
		}
		must(w.tb, s.give())
		w.until("there is room again", w.ready)
		if r, err := open(fmt.Sprintf("%s-%d-again", s.name, round)); err != nil || r.status != http.StatusCreated {
			w.wrong("lost", "%s: there is room again, and: %d %s (%v)", s.name, r.status, r.body, err)
		}
	}
	select {
	case <-w.p.Ended():
		w.wrong("other", "%s: Till ended", s.name)
	default:
	}
	a := &audit{w: w}
	a.replies(w.journal.of("call"))
	w.p.Kill()
	w.start()
	w.until("Till is ready after a kill", w.ready)
	a.replies(w.journal.of("call"))
	a.prove()
	return out
}

// limited bounds the size of the files that Till may write.
func limited(w *world) space {
	w.tb.Helper()
	prlimit := tilltest.Need(w.tb, "prlimit", "prlimit")
	set := func(bytes string) error {
		out, err := exec.Command(prlimit, "--pid", strconv.Itoa(w.p.PID()), "--fsize="+bytes+":").CombinedOutput()
		if err != nil {
			return fmt.Errorf("prlimit: %w: %s", err, out)
		}
		return nil
	}
	return space{
		name: "file-size-limit",
		take: func(random *rand.Rand) error { return set(strconv.Itoa(4096 + random.IntN(256<<10))) },
		give: func() error { return set("unlimited") },
	}
}

// mounted is Till on a small disk of its own, which something else fills.
func mounted(tb testing.TB) (*world, space) {
	tb.Helper()
	dir := tb.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", dir).CombinedOutput(); err != nil {
		tb.Fatalf("mount a small disk: %v: %s", err, out)
	}
	tb.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			tb.Errorf("umount: %v: %s", err, out)
		}
	})
	w := newWorld(tb, "TILL_DATA_DIR="+dir)
	w.data = dir
	filler := filepath.Join(dir, "filler")
	return w, space{
		name: "small-disk",
		take: func(*rand.Rand) error {
			file, err := os.Create(filler)
			if err != nil {
				return err
			}
			for page := make([]byte, 4096); err == nil; { // until there is none
				_, err = file.Write(page)
			}
			return file.Close()
		},
		give: func() error { return os.Remove(filler) },
	}
}

func TestAFullDiskLosesNothing(t *testing.T) {
	w := newWorld(t)
	if out := starve(w, limited(w), 3, rand.New(rand.NewPCG(1, 2))); out.notReady != out.rounds || out.refused < out.rounds {
		t.Errorf("%+v", out)
	}
	w.verdict()
}

// BenchmarkFaultDisk takes the disk away fifty times in each way; a small disk of
// its own needs root.
func BenchmarkFaultDisk(b *testing.B) {
	const rounds = 50
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "way\trounds\tacknowledged\t503\tnot ready\tlost\tother\t")
	tell := func(w *world, s space) {
		r := starve(w, s, rounds, random)
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", s.name, r.rounds, r.kept, r.refused, r.notReady, w.count("lost"), w.count("other")+w.count("ledger"))
	}
	w := newWorld(b)
	tell(w, limited(w))
	worlds := []*world{w}
	if os.Geteuid() == 0 {
		w, s := mounted(b)
		tell(w, s)
		worlds = append(worlds, w)
	} else {
		progress("a small disk of its own is left out: only root can mount one")
	}
	_ = out.Flush()
	for _, w := range worlds {
		w.verdict()
	}
}
