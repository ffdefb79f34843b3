//go:build linux

package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// burst measures what becomes of many notices at once, a tenth of them twice: the
// bank's notices of payments are kept back by the relay, as those of a bank that
// was away, and then passed on together.
func burst(b *testing.B, t *table) {
	b.Helper()
	w := newWorld(b, settings{limit: 1_000_000})
	all, seconds := size(5000, 500), 5.0
	payments := all * 9 / 10
	w.relay.keeping.Store(true)
	began := time.Now()
	for round := 0; int(w.paid.Load()) < payments; round++ { // what the bank was too busy for is asked again
		left := payments - int(w.paid.Load())
		o := pace(100, left, 512, func(i int) error {
			session, _, err := w.open(context.Background(), i, "headless")
			if err != nil {
				return err
			}
			return w.transfer(context.Background(), i, session)
		})
		progress("  %d of %d payments made in %s%s", w.paid.Load(), payments, time.Since(began).Round(time.Second), reasons(o.Faults))
		if round == 5 {
			b.Fatal("the payments cannot be made")
		}
	}
	until(b, "the bank has told of every payment", 2*tilltest.Patience, func() bool { return len(w.relay.notices()) >= payments })
	list := w.relay.notices()[:payments]
	draw := rand.New(rand.NewPCG(1, 2)) // the same order each time
	for _, again := range draw.Perm(payments)[:all-payments] {
		list = append(list, list[again])
	}
	draw.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for _, n := range list {
		if session, ok := w.accounts.Load(accountIn(n.body)); ok {
			w.relay.told.Store(session, time.Now())
		}
	}
	began = time.Now()
	o := pace(float64(all)/seconds, all, all, func(i int) error {
		status, err := w.relay.pass(context.Background(), list[i])
		if err == nil && status >= 300 {
			err = fmt.Errorf("%d", status)
		}
		return err
	})
	answered := time.Since(began)
	until(b, "every payment's webhook came", 2*time.Minute, func() bool { return int(w.relay.arrived.Load()) >= payments })
	settled := time.Since(began)
	codes, fives := w.relay.answers()
	t.Judge(fmt.Sprintf("burst of %d notices in %.0f s, a tenth of them doubles: answers", all, seconds), fmt.Sprintf("%v, p99 %s", codes, ms(o.Took.at(0.99))),
		"", "no 5xx", fives == 0 && o.failed() == 0)
	t.Judge("all answered, all settled and their webhooks received, after", fmt.Sprintf("%.1f s, %.1f s", answered.Seconds(), settled.Seconds()), "5.0 s: the arrivals", "≤ 30 s",
		settled <= 30*time.Second)
	text, holds := w.proven()
	t.Promise("every movement of the bank has one outcome (I3)", firstLine(text, "I3 rail"), "holds", holds)
}

// notices are those that were kept back.
func (r *relay) notices() []notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept)
}
