package checkout_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// The clock, its retry, the merchant's retry, the merchant's decision and the
// merchant's own refund come at once: the money goes one way, once.
func TestAtOneMomentOnlyOneDecidesAboutWhatTheBankRefused(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for round := range 6 {
			session, p, r := w.lateRefused()
			w.weather(rail.Conditions{})
			wait := w.payment(p.ID).ReturnsAt.Sub(w.clock())
			start := make(chan struct{})
			var all sync.WaitGroup
			errs := make([]error, 3)
			all.Go(func() { <-start; errs[0] = w.retryRefund(r) })
			all.Go(func() { <-start; _, errs[1] = w.resolve(p.ID, round%2 == 0) })
			all.Go(func() { <-start; _, errs[2] = w.refund(p, 500_000) })
			all.Go(func() { <-start; w.pass(wait) })
			close(start)
			all.Wait()
			for _, err := range errs {
				if code := flow.CodeOf(err); err != nil && code != flow.CodeRefundNotRetryable && code != flow.CodeNotResolvable && code != flow.CodeRefundExceeds && code != flow.CodeRefundOverBalance {
					t.Errorf("round %d: %v", round, err)
				}
			}
			w.passes(3, time.Second)
			p = w.payment(p.ID)
			if p.Refunded > 500_000 || p.Unapplied != 0 || p.Resolution == flow.Unresolved {
				t.Errorf("round %d: %+v", round, p)
			}
			lines, err := checkout.WholeStatement(t.Context(), w.bank.Statement, w.clock())
			w.must(err)
			var sent flow.Kobo
			for _, n := range lines {
				if n.Kind == flow.PaidOut && slices.ContainsFunc(w.refundsOf(session.ID), func(r flow.Refund) bool { return r.ID == flow.RefundOf(n.Reference) }) {
					sent += n.Amount
				}
			}
			if sent != p.Refunded || sent > 500_000 {
				t.Errorf("round %d: the bank sent %d, the record says %d by %+v", round, sent, p.Refunded, w.refundsOf(session.ID))
			}
			w.later(48 * time.Hour)
		}
		w.proven()
	})
}

// The bank is asked about a refund that it refused, and the merchant has it sent
// again before the answer is taken in: it is sent now, and not when a bank that had
// said nothing would be asked next.
func TestWhatIsSentAgainWhileTheBankIsAskedIsNotHeldUpByTheAnswer(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _, r := w.lateRefused()
		w.weather(rail.Conditions{})
		var once sync.Once
		w.rail.sentOut(func(_ string, bank func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			d, err := bank()
			once.Do(func() {
				again := w.retryRefund(r)
				if again != nil {
					t.Errorf("it is not sent again: %v", again)
				}
				w.pass(time.Hour) // whoever had that in hand has lost it
			})
			return d, err
		})
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "N1", Amount: r.Amount, PaidAt: w.clock()}))
		w.rest()
		if now := w.refundsOf(session.ID)[0]; now.Reference != string(r.ID)+"-2" || now.Tries != 1 {
			t.Errorf("without any more time it is %+v", now)
		}
		w.later(10 * time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		w.proven()
	})
}

// A refund is asked for while a settlement is gathered, on and on: together they
// take no more than there is.
func TestRefundsAndASettlementAtOnceTakeNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		var payments []flow.Payment
		for range 6 {
			payments = append(payments, w.earns())
		}
		w.later(40 * time.Hour) // Monday morning, before the payday
		start := make(chan struct{})
		var all sync.WaitGroup
		made := make([]flow.Kobo, len(payments))
		for i := range payments {
			all.Go(func() {
				<-start
				for range 5 {
					_, err := w.refund(payments[i], 100_000)
					switch {
					case err == nil:
						made[i] += 100_000
					case flow.CodeOf(err) != flow.CodeRefundOverBalance:
						t.Errorf("one ended with %v", err)
					}
				}
			})
		}
		all.Go(func() { <-start; w.at("2026-11-23T08:00:01Z") })
		close(start)
		all.Wait()
		w.passes(6, 3*time.Second) // the bank is not told of all of them at once
		var out flow.Kobo
		for _, b := range w.settlements(project) {
			if b.Status != flow.SettlementSucceeded {
				t.Errorf("%+v", b)
			}
			out += b.Amount
		}
		var refunded, fees flow.Kobo
		for _, sum := range made {
			if refunded += sum; sum > 0 {
				fees += 17_500
			}
		}
		t.Logf("paid out %d and refunded %d of %d", out, refunded, 6*482_500)
		if out+refunded > 6*482_500+fees {
			t.Errorf("paid out %d and refunded %d of %d", out, refunded, 6*482_500)
		}
		w.proven()
	})
}

// The program dies around every step of a refund that is sent again by itself.
func TestWhatIsSentAgainByItselfSurvivesACrash(t *testing.T) {
	t.Parallel()
	for name, arm := range refundCrashes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.endpoint("https://shop.test/hook")
				session, p, r := w.lateRefused()
				w.weather(rail.Conditions{})
				returns := w.payment(p.ID).ReturnsAt // nothing can be read while it is down
				arm(w, w.crash)
				w.pass(returns.Sub(w.clock()))
				w.outlives(r.ID, true)
				w.lies(session.ID, nil)
				w.proven()
			})
		})
	}
}

// A bank that sends a refund once more under the name that it has now has sent it twice,
// as under one that it had: what comes back of that is not the refund, which its merchant
// would send a third time.
func TestARefundThatIsSentTwiceUnderOneNameIsBookedAndSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told bool // that it was sent once more, before it came back
		back string
	}{
		"the second comes back":                    {true, "B9"},
		"the first comes back":                     {true, ""},
		"the second is told of once it comes back": {false, "B9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				session, p := w.paidFor(500_000)
				w.ordered(p, 200_000)
				r := w.sentBack(session.ID)
				if c.told {
					for range 2 { // told again, it is the same
						w.paidOut(r.Reference, r.RailTransactionID, r.Amount)
						w.paidOut(r.Reference, "B9", r.Amount)
					}
					if now := w.becomes(r.ID, flow.RefundProcessed); now.Overpaid != r.Amount || now.Failure == "" || now.RailTransactionID != r.RailTransactionID {
						w.t.Errorf("sent twice, it is %+v", now)
					}
					w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 100_000, flow.MerchantPending: -282_500, flow.Fees: -17_500, flow.RefundsPayable: 200_000})
					w.looks(r.Amount)
					w.sound()
				}
				for range 2 {
					w.cameBack(r.Reference, "B10", cmp.Or(c.back, r.RailTransactionID), r.Amount)
				}
				if now := w.becomes(r.ID, flow.RefundProcessed); now.Overpaid != 0 || now.Failure != "" {
					w.t.Errorf("of two, one came back: %+v", now)
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
				w.looks(0)
				if e := w.events(session.ID); e[flow.RefundProcessedKind] != 1 || e[flow.RefundAttentionKind] != 0 {
					w.t.Errorf("told %v", e)
				}
				w.sound()
			})
		})
	}
}
