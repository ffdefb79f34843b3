package crash

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"till/cmd/till/tilltest"
	"till/flow/await"
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
	untaken  int // notices of the bank that were not taken, and had to come again
}

// holds says of a disk that took nothing that all were told so, each time.
func (r starved) holds(w *world, s space) {
	if r.refused != r.rounds || r.notReady != r.rounds || r.untaken != r.rounds {
		w.wrong("other", "%s: of %d times that there was no room %d calls and %d notices were refused, and readyz said so %d times", s.name, r.rounds, r.refused, r.untaken, r.notReady)
	}
}

// guest is somebody to whom it happens while there is no room: money comes that the
// bank tells of, and a payer writes.
type guest struct {
	one     sale
	account string
	p       *payer
	opens   string // what the payer writes first
}

// invited is a guest for whom all is prepared while there is room.
func (w *world) invited(name string) (g guest, err error) {
	over, end := context.WithCancel(context.Background())
	end()
	g.one = sale{reference: name + "-paid", amount: 500_000}
	g.account = w.sell(&g.one)
	r, err := w.surely(name+"-chat", sessionsPath, object{"amount": 500_000, "customerEmail": "bola@example.com", "mode": "chat"})
	if err != nil {
		return g, err
	}
	link, err := url.Parse(r.text("checkoutUrl"))
	if err != nil {
		return g, err
	}
	g.opens = link.Query().Get("text")
	g.p, err = newPayer(over, w)
	return g, err
}

// comes has the bank tell of money and the payer write, and says whether the bank has
// to come again. What it need not tell again must be kept by then.
func (w *world) comes(g *guest, bank *sql.DB) (again bool, err error) {
	if err := g.p.says(g.opens); err != nil {
		return false, err
	}
	if err := w.transfer(&g.one, g.account, g.one.amount); err != nil {
		return false, err
	}
	owed := "SELECT COUNT(*) FROM notices n JOIN movements m ON m.seq = n.movement WHERE m.account = '" + g.account + "' AND n.state = 'owed'"
	w.until("the bank tells of money", func() bool { return w.number(bank, owed+" AND n.tries = 0") == 0 })
	if w.number(bank, owed) > 0 {
		return true, nil
	}
	if is := w.status(g.one.session); is != "PAID" {
		w.wrong("lost", "%s: the notice of its money was taken, and it is %q", g.one.reference, is)
	}
	return false, nil
}

// served holds that all came to what a guest came for, once there is room.
func (w *world) served(g guest) {
	if !await.Within(drained, func() bool { return w.status(g.one.session) == "PAID" }) { // the bank waits longer from try to try
		w.wrong("lost", "%s was paid for and is %q", g.one.reference, w.status(g.one.session))
	}
	if _, err := g.p.hears(`1 Bank transfer`); err != nil {
		w.wrong("lost", "%s: %v", g.one.reference, err)
	}
	if n, err := g.p.times(`1 Bank transfer`); err != nil || n > 1 {
		w.wrong("doubled", "%s: a payer who wrote once was answered %d times (%v)", g.one.reference, n, err)
	}
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
	bank := w.books("bank")
	defer bank.Close()
	var guests []guest
	for round := range rounds {
		g, err := w.invited(fmt.Sprintf("%s-%d", s.name, round))
		must(w.tb, err)
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
		again, err := w.comes(&g, bank)
		must(w.tb, err)
		if guests = append(guests, g); again {
			out.untaken++
		}
		must(w.tb, s.give())
		w.until("there is room again", w.ready)
		if r, err := open(fmt.Sprintf("%s-%d-again", s.name, round)); err != nil || r.status != http.StatusCreated {
			w.wrong("lost", "%s: there is room again, and: %d %s (%v)", s.name, r.status, r.body, err)
		}
	}
	each(guests, w.served)
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
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput(); err != nil {
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
	s := limited(w)
	out := starve(w, s, 3, rand.New(rand.NewPCG(1, 2)))
	out.holds(w, s)
	w.verdict()
}

// BenchmarkFaultDisk takes the disk away fifty times in each way; a small disk of
// its own needs root.
func BenchmarkFaultDisk(b *testing.B) {
	const rounds = 50
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "way\trounds\tacknowledged\t503\tnot ready\tnotices not taken\tlost\tother\t")
	tell := func(w *world, s space) {
		r := starve(w, s, rounds, random)
		r.holds(w, s)
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", s.name, r.rounds, r.kept, r.refused, r.notReady, r.untaken, w.count("lost"), w.count("other")+w.count("ledger"))
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
