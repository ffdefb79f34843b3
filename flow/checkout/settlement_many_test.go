package checkout_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// counter is a bank's book of payouts: what it was told of, what it sent, and what
// it says and when is drawn.
type counter struct {
	mu     sync.Mutex
	draw   *rand.Rand
	orders map[string]*ordered
}

type ordered struct {
	amount flow.Kobo
	times  int
	stands flow.Disbursed
}

// disburse is an order: taken on, refused, or taken on without an answer.
func (c *counter) disburse(d flow.Disbursement) (flow.Disbursed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, there := c.orders[d.Reference]; there {
		one.times++
		return one.stands, nil
	}
	switch c.draw.IntN(6) {
	case 0:
		return flow.Disbursed{}, rail.ErrUnavailable
	case 1:
		return flow.Disbursed{}, rail.ErrRejected
	}
	one := &ordered{amount: d.Amount, times: 1, stands: flow.Disbursed{Status: flow.DisbursementPending}}
	c.orders[d.Reference] = one
	if c.draw.IntN(3) == 0 {
		return flow.Disbursed{}, rail.ErrUnknown
	}
	return one.stands, nil
}

func (c *counter) disbursed(reference string) (flow.Disbursed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, there := c.orders[reference]
	if !there {
		return flow.Disbursed{}, rail.ErrNotFound
	}
	return one.stands, nil
}

// moves lets some payouts go on: they are sent, fail, or, while bouncing, come
// back. It returns what the bank says of them. That money came back is always
// told: nobody asks about what was sent.
func (c *counter) moves(now time.Time, bouncing bool) []flow.Notice {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []flow.Notice
	for _, reference := range slices.Sorted(maps.Keys(c.orders)) {
		one := c.orders[reference]
		n := flow.Notice{Reference: reference, Amount: one.amount, PaidAt: now}
		switch {
		case one.stands.Status == flow.DisbursementPending && c.draw.IntN(2) == 0:
			one.stands = flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-" + reference, At: now}
			n.Kind, n.RailTransactionID = flow.PaidOut, "out-"+reference
		case one.stands.Status == flow.DisbursementPending && c.draw.IntN(3) == 0:
			one.stands = flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "no-" + reference, At: now}
			n.Kind, n.RailTransactionID = flow.PayoutFailed, "no-"+reference
		case bouncing && one.stands.Status == flow.DisbursementDone && c.draw.IntN(12) == 0:
			one.stands = flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "back-" + reference, At: now}
			n.Kind, n.RailTransactionID, n.Reverses = flow.PayoutFailed, "back-"+reference, "out-"+reference
		default:
			continue
		}
		if n.Reverses != "" || c.draw.IntN(3) > 0 { // else the notice is lost
			out = append(out, n)
		}
	}
	return out
}

// sent is what left the bank and stayed away.
func (c *counter) sent() (total flow.Kobo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.orders {
		if one.stands.Status == flow.DisbursementDone {
			total += one.amount
		}
	}
	return total
}

// line is a transaction of the ledger that leaves a project so much, or takes it.
func line(kind flow.EntryKind, n int, net flow.Kobo, at time.Time) flow.Entry {
	other := map[flow.EntryKind]flow.LedgerAccount{
		flow.EntryPayment: flow.RailClearing, flow.EntryReversal: flow.RailClearing, flow.EntryAccept: flow.Unapplied,
		flow.EntryRefund: flow.RefundsPayable, flow.EntryRefundFailed: flow.RefundsPayable,
	}[kind]
	return flow.Entry{
		Kind: kind, Subject: fmt.Sprintf("%s_%06d", kind, n), Payment: flow.PaymentID(fmt.Sprintf("wsp_pay_%06d", n)), Project: project, At: at,
		Postings: []flow.Posting{{Account: flow.MerchantPending, Amount: -net}, {Account: other, Amount: net}},
	}
}

// books are what a test knows of a project's money.
type books struct {
	w     *world
	bank  *counter
	net   flow.Kobo // all that was ever the merchant's, less what was taken back
	lines int
}

// hold fails unless everything that was ever the merchant's is in one place.
func (b *books) hold(when string) {
	w := b.w
	w.t.Helper()
	ctx := w.t.Context()
	pending, err := w.db.Due(ctx, project, w.clock().AddDate(1, 0, 0))
	w.must(err)
	open, gathering, err := w.db.Gathering(ctx, project)
	w.must(err)
	inside := int64(0)
	if gathering {
		g, err := w.db.Gathered(ctx, open.ID)
		w.must(err)
		pending, inside = pending+g.Net, g.Lines
	}
	available, err := w.db.Available(ctx, project)
	w.must(err)
	var underWay, paid flow.Kobo
	for _, one := range w.settlements(project) {
		if w.whole(one); one.Status == flow.SettlementSucceeded {
			paid += one.Amount
		} else if one.Status != flow.SettlementFailed {
			underWay += one.Amount
		}
		inside += one.Lines
	}
	if pending+available+underWay+paid != b.net {
		w.t.Errorf("%s: pending %d, available %d, under way %d and paid %d are not the merchant's %d", when, pending, available, underWay, paid, b.net)
	}
	if inside > int64(b.lines) {
		w.t.Errorf("%s: %d lines are settled, and there are %d", when, inside, b.lines)
	}
}

// Whatever comes, goes back and fails in whatever order: what the merchant is
// owed, is being paid and was paid is always all that is the merchant's, and in
// the end the bank has sent all of it, once.
func TestWhateverHappensAMerchantIsPaidWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "2026-11-25,Declared", func(w *world) {
				w.spoilt = true // its lines are of no payment
				draw := rand.New(rand.NewPCG(seed, 7))
				b := &books{w: w, bank: &counter{draw: rand.New(rand.NewPCG(seed, 9)), orders: map[string]*ordered{}}}
				w.rail.set(func(r *shakyRail) {
					r.onSendOut = func(d flow.Disbursement, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
						return b.bank.disburse(d)
					}
					r.onSentOut = func(reference string, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
						return b.bank.disbursed(reference)
					}
				})
				for step := range 60 {
					b.step(draw)
					if step%6 == 5 {
						b.hold(fmt.Sprintf("step %d", step))
					}
				}
				b.finish()
			})
		})
	}
}

func (b *books) post(kind flow.EntryKind, net flow.Kobo) {
	w := b.w
	w.t.Helper()
	b.lines++
	b.net += net
	ctx := w.t.Context()
	w.must(w.db.Update(ctx, func(tx *store.Tx) error { return tx.Post(ctx, line(kind, b.lines, net, w.clock())) }))
}

// step is one thing that happens.
func (b *books) step(draw *rand.Rand) {
	w := b.w
	w.t.Helper()
	amount := flow.Kobo(1 + draw.IntN(1_000_000))
	switch draw.IntN(9) {
	case 0, 1:
		b.post(flow.EntryPayment, amount)
	case 2:
		b.post(flow.EntryAccept, amount)
	case 3:
		b.post(flow.EntryRefund, -amount)
	case 4:
		b.post(flow.EntryReversal, -amount/2-1)
	case 5:
		b.post(flow.EntryRefundFailed, amount)
	case 6:
		_, _, _, err := w.service.SettleNow(w.t.Context(), project, flow.DateOf(w.clock()).Plus(draw.IntN(3)))
		w.must(err)
		w.rest()
	case 7:
		w.later(time.Duration(draw.IntN(30)) * time.Hour)
	case 8:
		for _, n := range b.bank.moves(w.clock(), true) {
			for range 1 + draw.IntN(2) {
				w.must(w.tell(n))
			}
		}
		w.rest()
	}
}

// finish lets a last payment make up for all that went back, and every payout
// end, and wants all of it at the merchant's.
func (b *books) finish() {
	w := b.w
	w.t.Helper()
	b.post(flow.EntryPayment, 100_000_000) // more than can have gone back after it was paid out
	for range 60 {
		if b.bank.sent() == b.net {
			break
		}
		w.later(24 * time.Hour)
		for _, n := range b.bank.moves(w.clock(), false) {
			w.must(w.tell(n))
		}
		w.rest()
	}
	w.passes(3, 24*time.Hour) // and what was lost on the way is found by asking
	b.hold("in the end")
	if sent := b.bank.sent(); sent != b.net {
		w.t.Errorf("the bank sent %d kobo of the merchant's %d", sent, b.net)
	}
	b.bank.mu.Lock()
	defer b.bank.mu.Unlock()
	for reference, one := range b.bank.orders {
		if one.times != 1 {
			w.t.Errorf("%s was ordered %d times", reference, one.times)
		}
	}
}

// A project may have very many lines: they are gathered some at a time.
func TestAHundredThousandPaymentsAreOneSettlement(t *testing.T) {
	t.Parallel()
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		t.Parallel()
		many := 100_000
		if c.URL != "" {
			many = 10_000 // each is a trip over the network here
		}
		if raced {
			many = 2_000 // what is looked for then is no matter of how many
		}
		w := newWorld(t, c)
		w.spoilt = true // its lines are of no payment
		w.pays("")
		w.start(true)
		ctx := context.WithoutCancel(t.Context())
		var owed flow.Kobo
		for n := 0; n < many; {
			from := n
			w.must(w.db.Update(ctx, func(tx *store.Tx) error {
				for n = from; n < min(from+1000, many); n++ {
					if err := tx.Post(ctx, line(flow.EntryPayment, n, flow.Kobo(100+n%7), w.clock())); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for n := range many {
			owed += flow.Kobo(100 + n%7)
		}
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-1", At: w.clock()}, nil
			}
		})
		began := time.Now()
		b, made, blocked, err := w.service.SettleNow(ctx, project, "2026-11-23")
		t.Logf("%d lines were settled in %v", many, time.Since(began))
		if err != nil || !made || blocked != "" || b.Amount != owed || b.Lines != int64(many) {
			t.Fatalf("%+v, %v, %q, %v, and %d are owed", b, made, blocked, err, owed)
		}
		if list := w.ended(project, 1); list[0].Status != flow.SettlementSucceeded {
			t.Errorf("%+v", list)
		}
		left, err := w.db.Due(ctx, project, w.clock().AddDate(1, 0, 0))
		if err != nil || left != 0 {
			t.Errorf("%d kobo are left (%v)", left, err)
		}
	})
}

// However many projects are owed money, each is paid out on the payday: those too
// that come after the first page of them.
func TestEachOfVeryManyProjectsIsPaidOutOnThePayday(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.spoilt = true  // its lines are of no payment
		w.rest()         // the payday is planned
		const many = 103 // more than a page
		owed := make([]flow.ProjectID, many)
		w.must(w.db.Update(t.Context(), func(tx *store.Tx) error {
			for n := range owed {
				owed[n] = flow.ProjectID(fmt.Sprintf("wsp_prj_%06d", n))
				e := line(flow.EntryPayment, n, 482_500, w.clock())
				e.Project = owed[n]
				if err := tx.Post(t.Context(), e); err != nil {
					return err
				}
			}
			return nil
		}))
		w.at("2026-11-23T08:00:01Z")
		w.passes(8, 2*time.Second) // the bank is not told of all of them at once
		for n, of := range owed {
			if list := w.settlements(of); len(list) != 1 || list[0].Amount != 482_500 || list[0].SettlesOn != "2026-11-23" || list[0].Tries != 1 {
				t.Fatalf("project %d of %d is paid out %+v", n+1, many, list)
			}
		}
	})
}
