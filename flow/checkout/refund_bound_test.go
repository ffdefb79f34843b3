package checkout_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"till/flow"
)

// earned is a payment as this test knows it.
type earned struct {
	flow.Payment

	taken   flow.Kobo // by refunds
	paidOut bool
}

const (
	netOf = flow.Kobo(482_500) // of ₦5,000
	feeOf = flow.Kobo(17_500)
)

// Whatever is earned, refunded and paid out in whatever order: a refund is taken
// where it fits and refused where not, and never leaves a project more behind than
// our own fees of what was not paid out to it yet. No kobo of anybody else's, and
// none of our earlier fees, leaves for it.
func TestNoRefundIsPaidWithTheMoneyOfOthers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "", func(w *world) {
				t := w.t
				random := rand.New(rand.NewPCG(seed, 7))
				var all []*earned
				var paid int
				days := []string{"2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27", "2026-11-30", "2026-12-01"}
				all = append(all, &earned{Payment: w.earnsFrom("p1")}, &earned{Payment: w.earnsFrom("p2")})
				refused, taken := 0, 0
				for range 60 {
					switch what := random.IntN(8); {
					case what == 0:
						all = append(all, &earned{Payment: w.earnsFrom(fmt.Sprintf("p%d", len(all)+1))})
					case what <= 2 && len(days) > 0:
						had := w.left()
						w.at(days[0] + "T08:00:01Z")
						if days = days[1:]; had <= 0 { // what is owed to us waits for what comes
							break
						}
						paid++
						w.ended(project, paid)
						if left := w.left(); left != 0 {
							t.Fatalf("%d are left of %d that were paid out", left, had)
						}
						for _, e := range all {
							e.paidOut = true
						}
					default:
						e := all[random.IntN(len(all))]
						rest := e.Amount - e.taken
						amount := min([]flow.Kobo{1, feeOf, feeOf + 1, netOf, rest, flow.Kobo(random.IntN(500_000) + 1)}[random.IntN(6)], rest)
						if amount == 0 {
							break
						}
						fits := fitting(all, e, amount, w.left())
						_, err := w.refund(e.Payment, amount)
						if (err == nil) != fits || err != nil && flow.CodeOf(err) != flow.CodeRefundOverBalance {
							t.Fatalf("%d of %s, with %d left: fits is %v, and it says %v", amount, e.ID, w.left(), fits, err)
						}
						if covered := coveredOf(t, err); !fits && (covered > 0 && !fitting(all, e, covered, w.left()) || fitting(all, e, covered+1, w.left())) {
							t.Fatalf("%d of %s, with %d left: %d is not the most that is covered", amount, e.ID, w.left(), covered)
						}
						if refused++; fits {
							refused, taken, e.taken = refused-1, taken+1, e.taken+amount
							w.rest()
							w.later(time.Second)
						}
					}
					w.bounded(all)
				}
				if refused == 0 || taken == 0 || paid == 0 {
					t.Errorf("this shows little: %d refused, %d taken, %d paid out", refused, taken, paid)
				}
				w.sound()
			})
		})
	}
}

// coveredOf is how much a refusal says that a merchant's balance covers, 0 of none.
func coveredOf(t *testing.T, err error) flow.Kobo {
	t.Helper()
	refusal, ok := errors.AsType[*flow.Error](err)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(refusal.Details["coveredMinor"], 10, 64)
	must(t, err)
	return flow.Kobo(n)
}

// earnsFrom is a payment of somebody who pays nothing else.
func (w *world) earnsFrom(person string) flow.Payment {
	w.t.Helper()
	session := w.session(flow.InChat)
	w.hear(person, code(session))
	w.hear(person, method(flow.BankTransfer))
	w.pay(session.ID, 500_000, false)
	w.until("the money is here", func() bool { return len(w.payments(session.ID)) == 1 })
	w.rest()
	return w.payments(session.ID)[0]
}

// fitting says whether a refund of a payment is covered: what it leaves a merchant
// behind is made up by fees of payments that were not paid out.
func fitting(all []*earned, of *earned, amount, left flow.Kobo) bool {
	left -= amount
	for _, e := range all {
		taken := e.taken
		if e == of {
			taken += amount
		}
		if !e.paidOut {
			left += max(taken-netOf, 0)
		}
	}
	return left >= 0
}

// left is what is a project's own.
func (w *world) left() flow.Kobo {
	w.t.Helper()
	b, err := w.db.Balance(w.t.Context(), project)
	w.must(err)
	return b.Pending + b.Available
}

// bounded fails where a project owes us more than our fees of what was not paid out
// to it.
func (w *world) bounded(all []*earned) {
	w.t.Helper()
	fees := flow.Kobo(0)
	for _, e := range all {
		if !e.paidOut {
			fees += feeOf
		}
	}
	if left := w.left(); left < -fees {
		w.t.Fatalf("it owes us %d, and our fees are %d", -left, fees)
	}
}
