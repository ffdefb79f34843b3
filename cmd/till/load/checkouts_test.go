//go:build linux

package load

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// checkouts measures whole checkouts: create, instructions, transfer, the bank's
// notice, the webhook. The steps below are tried until one is too much; the last
// that can be held for a minute is the figure.
func checkouts(b *testing.B, t *table) {
	b.Helper()
	w := newWorld(b, settings{limit: 1_000_000})
	limit := w.limit(b)
	w.checkouts(50, size(150, 50)) // warm
	held := []float64{25}
	for _, rate := range []float64{50, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800} {
		r := w.checkouts(rate, int(rate)*size(8, 2))
		progress("  %.0f checkouts/s offered: %s", rate, r)
		if !r.sustained() {
			break
		}
		held = append(held, rate)
		if short() && rate >= 150 {
			break
		}
	}
	// What it bears for a moment it may not bear for long: then the next less.
	var best float64
	var r checkout
	var till, bank time.Duration
	for _, best = range slices.Backward(held) {
		till, bank = w.till.cpu(), w.bank.cpu()
		r = w.checkouts(best, int(best)*size(60, 4))
		till, bank = w.till.cpu()-till, w.bank.cpu()-bank
		progress("  %.0f checkouts/s held: %s", best, r)
		if r.sustained() {
			break
		}
	}
	t.Judge(fmt.Sprintf("full checkouts at %.0f/s, open loop: notice → webhook", best), fmt.Sprintf("p50 %s, p99 %s", ms(r.notice.at(0.5)), ms(r.notice.at(0.99))),
		"", "p99 ≤ 1 s", r.notice.at(0.99) <= 1000)
	t.Add("the same, create → webhook, from the moment it was due", fmt.Sprintf("p50 %s, p99 %s", ms(r.whole.Took.at(0.5)), ms(r.whole.Took.at(0.99))), "")
	t.Judge("full checkouts sustained, bank and driver on the same cores", fmt.Sprintf("%.0f/s for a minute", best),
		fmt.Sprintf("%.0f/s bare calls, posts and commits: %.2f of it", limit, best/limit), "≥ 200/s", best >= 200)
	of := func(spent time.Duration) string {
		return fmt.Sprintf("%.1f ms", spent.Seconds()*1000/float64(max(r.whole.Count, 1)))
	}
	t.Add("CPU of one checkout: Till, the sandbox bank", of(till)+", "+of(bank), "")
	t.Promise("of these lost, doubled", fmt.Sprintf("%d, %d of %d", r.whole.failed()+r.whole.Missed, w.relay.twice(), w.paid.Load()), "0, 0",
		r.whole.failed()+r.whole.Missed == 0 && w.relay.twice() == 0)
	text, holds := w.proven()
	t.Promise("ledger against the bank's statement after it", firstLine(text, "I3 rail"), "holds", holds)
	t.Judge("RSS just started; after it, highest", mib(w.began)+"; "+mib(w.till.rss())+", "+mib(w.till.peak()), "", "≤ 60 MiB; –", w.began <= 60)
}

// firstLine is the line of a text that begins so.
func firstLine(text, begins string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, begins) {
			return strings.Join(strings.Fields(line)[2:], " ")
		}
	}
	return strings.TrimSpace(text)
}

// checkout is what a paced run of checkouts came to.
type checkout struct {
	whole  *offered
	notice times
}

// sustained says whether nothing grew: all came, and the last in time.
func (c checkout) sustained() bool {
	return c.whole.failed() == 0 && c.whole.Missed == 0 && c.notice.at(0.99) <= 1000 && c.whole.Took.at(0.99) <= 2000
}

func (c checkout) String() string {
	return fmt.Sprintf("notice → webhook p50 %s p99 %s, whole p99 %s, %d failed, %d missed%s", ms(c.notice.at(0.5)), ms(c.notice.at(0.99)), ms(c.whole.Took.at(0.99)),
		c.whole.failed(), c.whole.Missed, reasons(c.whole.Faults))
}

func reasons(faults map[string]int) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		text += fmt.Sprintf(" [%d × %s]", faults[name], name)
	}
	return text
}

// checkouts offers n checkouts at a rate.
func (w *world) checkouts(rate float64, n int) (c checkout) {
	var mu sync.Mutex
	c.whole = pace(rate, n, 4096, func(i int) error {
		ctx := context.Background()
		session, _, err := w.open(ctx, i, "headless")
		if err != nil {
			return fmt.Errorf("create: %w", err)
		}
		if err := w.transfer(ctx, i, session); err != nil {
			return err
		}
		took, err := w.relay.wait(session, tilltest.Patience)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		c.notice = append(c.notice, took)
		return nil
	})
	return c
}

// What benchmarks and soaks offer comes to its end, and is timed from the moment at which
// the bank told of it.
func TestCheckoutsAreTimedFromTheirNotice(t *testing.T) {
	const n = 25
	w := newWorld(t, settings{limit: 1_000_000})
	if kept := w.till.heap(); kept > 250 { // MiB: each password that was hashed took 64
		t.Errorf("with %d merchants signed up Till keeps %.0f MiB", merchants, kept)
	}
	if r := w.checkouts(50, n); r.whole.failed()+r.whole.Missed > 0 || len(r.notice) != n {
		t.Errorf("of %d checkouts: %s", n, r)
	}
}

// What one checkout is made of: calls of the driver to Till and to the bank, of
// Till to the bank, of the bank through the relay to Till, of Till to the
// merchant; commits of Till (session, attempt, instructions, payment, delivery)
// and of the bank (account, transfer, told).
const (
	callsOfOne   = 7
	commitsOfOne = 8
)

// limit is how many checkouts a second this machine could do if each was nothing
// but its calls and its commits: bare echoes by the same client and commits of
// one row gathered as Till gathers them, measured alone.
func (w *world) limit(b *testing.B) float64 {
	b.Helper()
	lasts := time.Duration(size(3000, 500)) * time.Millisecond
	h, _, err := closed(64, lasts, w.echo(b))
	must(b, err)
	c := bareCommits(b, lasts)
	progress("  bare: %.0f posts/s, %.0f commits/s", h, c)
	return 1 / (callsOfOne/h + commitsOfOne/c)
}
