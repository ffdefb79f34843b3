package checkout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// sentAfterAllAndBack has the bank send what it had refused, and has that come back.
func (w *world) sentAfterAllAndBack(r flow.Refund) flow.Refund {
	w.t.Helper()
	w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
	})
	w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: "B1", Amount: r.Amount, PaidAt: w.clock()}))
	w.rest()
	w.becomes(r.ID, flow.RefundProcessed)
	w.rail.set(func(r *shakyRail) { r.onSentOut = nil })
	w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "F1", Reverses: "B1", Amount: r.Amount, PaidAt: w.clock()}))
	return w.becomes(r.ID, flow.RefundAttention)
}

// A refund that was sent after all, came back and is refused once more gives back what
// it took when it was sent, to whom it took that from.
func TestARefundThatWasSentAfterAllGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	lies := map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500}
	t.Run("of money that paid", func(t *testing.T) {
		t.Parallel()
		each(t, func(w *world) {
			session, _ := w.paying()
			p := w.comes(session.ID, 500_000)
			w.weather(rail.Conditions{Refunds: rail.FateReject})
			r := w.sentAfterAllAndBack(w.refused(p, 100_000))
			w.must(w.retryRefund(r))
			w.becomes(r.ID, flow.RefundFailed)
			w.lies(session.ID, lies)
			if net, c := w.payment(p.ID).Net(), w.record(session.ID); net != 482_500 || c.NetMinor != "482500" {
				w.t.Errorf("its payment brought %d, its charge %s", net, c.NetMinor)
			}
		})
	})
	t.Run("of late money that was accepted meanwhile", func(t *testing.T) {
		t.Parallel()
		each(t, func(w *world) {
			w.weather(rail.Conditions{Refunds: rail.FateReject})
			session, p := w.lateMoney(func(*flow.Policy) {})
			r := w.refused(p, 500_000)
			_, err := w.resolve(p.ID, true)
			w.must(err)
			r = w.sentAfterAllAndBack(r)
			w.must(w.retryRefund(r))
			w.becomes(r.ID, flow.RefundFailed)
			if _, err := w.resolve(p.ID, true); flow.CodeOf(err) != flow.CodeNotResolvable {
				w.t.Errorf("it is accepted a second time: %v", err)
			}
			w.lies(session.ID, lies)
			if c, p := w.record(session.ID), w.payment(p.ID); c.NetMinor != "482500" || c.ExcessMinor != "" || c.FeeMinor != "17500" || p.Applied != 500_000 {
				w.t.Errorf("the charge %+v of %+v", c, p)
			}
		})
	})
}

// noneWaits checks that in time no refund of a session waits for somebody any more.
func (w *world) noneWaits(id flow.SessionID) {
	w.t.Helper()
	w.passes(6, 24*time.Hour)
	for _, r := range w.refundsOf(id) {
		if r.Status == flow.RefundAttention {
			w.t.Errorf("a refund waits although nothing can be sent of it: %+v of %+v", r, w.payment(r.Payment))
		}
	}
	w.lies(id, nil)
}

// What was given up ends once the bank takes its money back, and what is left of that
// goes back when its time comes.
func TestARefundEndsWhereTheBankTakesItsMoneyBack(t *testing.T) {
	t.Parallel()
	for name, amount := range map[string]flow.Kobo{"all of it": 500_000, "some of it": 200_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.weather(rail.Conditions{Refunds: rail.FateReject})
				session, p := w.lateMoney(func(*flow.Policy) {})
				w.later(flow.ReturnAfter)
				w.givenUp(session.ID)
				w.weather(rail.Conditions{})
				w.bankTakes(p, amount, "B1")
				w.noneWaits(session.ID)
			})
		})
	}
}

// What was given up ends once another refund of the same money, of before, is sent after all.
func TestARefundEndsWhereAnotherIsRetried(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		session, p := w.lateMoney(func(*flow.Policy) {})
		mine := w.refused(p, 500_000)
		w.until("that of the clock is given up", func() bool {
			w.later(time.Hour)
			return slices.ContainsFunc(w.refundsOf(session.ID), func(r flow.Refund) bool { return r.Status == flow.RefundAttention })
		})
		w.weather(rail.Conditions{})
		w.must(w.retryRefund(mine))
		w.rest()
		w.pass(time.Second)
		w.becomes(mine.ID, flow.RefundProcessed)
		w.noneWaits(session.ID)
	})
}

// What a policy sends back of what is too much goes back by itself also where the bank
// refused a refund of it that its merchant ordered.
func TestWhatIsTooMuchGoesBackAfterAMerchantsRefundFailed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		session := w.payingUnder(func(p *flow.Policy) { p.Overpayment = "refund_excess" })
		p := w.comes(session.ID, 800_000)
		first := w.givenUp(session.ID)
		w.refused(p, 300_000)
		if first = w.becomes(first.ID, flow.RefundFailed); !strings.HasSuffix(first.Failure, " Its money went back another way.") {
			w.t.Errorf("it ended because %q", first.Failure)
		}
		w.weather(rail.Conditions{})
		w.passes(3, 24*time.Hour)
		if p = w.payment(p.ID); p.Unapplied != 0 || p.Refunded != 300_000 {
			w.t.Errorf("it waits on: %+v", p)
		}
		w.proven()
	})
}

// A charge says of what it was paid with how much was too much and how much went back.
func TestAChargeSaysWhatItWasPaidWith(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.payingUnder(func(*flow.Policy) {})
		w.later(2 * time.Hour)
		p := w.comes(session.ID, 300_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(p, 100_000)
		_, err := w.resolve(p.ID, true)
		w.must(err)
		w.until("the refund fails", func() bool {
			w.later(time.Second)
			return w.refundsOf(session.ID)[0].Status == flow.RefundFailed
		})
		w.weather(rail.Conditions{})
		w.until("its money goes back", func() bool { w.later(time.Hour); return w.payment(r.Payment).Refunded == 100_000 })
		if c := w.record(session.ID); c.ExcessMinor != "" || c.RefundedMinor != "" || c.AmountPaidMinor != "200000" {
			w.t.Errorf("less than was asked for came: %+v", c)
		}

		for _, before := range []flow.Kobo{100_000, 300_000} {
			session, _ = w.paying()
			part := w.comes(session.ID, 300_000)
			w.goesBack(part, before)
			rest := w.comes(session.ID, 200_000+before)
			if c := w.record(session.ID); c.RefundedMinor != "" || c.AmountPaidMinor != "500000" || c.NetMinor != "482500" {
				w.t.Errorf("%d of a part went back before it was paid: %+v", before, c)
			}
			r = w.ordered(rest, 50_000)
			if c := w.record(session.ID); c.RefundedMinor != "50000" {
				w.t.Errorf("and 50000 after: %+v", c)
			}
			w.rest()
			w.pass(time.Second)
			w.becomes(r.ID, flow.RefundProcessed)
		}
		w.proven()
	})
}

// What was given up of too much ends once the bank takes some of that back, or its
// merchant sends some of it back: no more than what is left goes, and by itself.
func TestARefundOfTooMuchEndsWhereSomeOfItIsGone(t *testing.T) {
	t.Parallel()
	takes := func(amount flow.Kobo) func(*world, flow.Payment) {
		return func(w *world, p flow.Payment) {
			w.bankTakes(p, amount, "B1")
		}
	}
	some, all := " Some of its money went back another way, and the rest waits for a decision.", " Its money went back another way."
	for name, c := range map[string]struct {
		do   func(*world, flow.Payment)
		why  string
		sent flow.Kobo // of it, in the end
	}{
		"the bank takes some of it":   {takes(200_000), some, 100_000},
		"the bank takes all of it":    {takes(300_000), all, 0},
		"the merchant refunds a part": {func(w *world, p flow.Payment) { _, err := w.refund(p, 100_000); w.must(err) }, some, 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				w.weather(rail.Conditions{Refunds: rail.FateReject})
				session := w.payingUnder(func(p *flow.Policy) { p.Overpayment = "refund_excess" })
				p := w.comes(session.ID, 800_000)
				first := w.givenUp(session.ID)
				w.weather(rail.Conditions{})
				c.do(w, p)
				w.rest()
				if first = w.becomes(first.ID, flow.RefundFailed); !strings.HasSuffix(first.Failure, c.why) {
					w.t.Errorf("it ended because %q", first.Failure)
				}
				w.passes(3, 24*time.Hour)
				if p = w.payment(p.ID); p.Unapplied != 0 || p.Refunded != c.sent || p.Applied != 500_000 {
					w.t.Errorf("in the end: %+v", p)
				}
			})
		})
	}
}

// What the bank took of a part before it paid is none of what went back of it later.
func TestAChargeSaysWhatWentBackBesideWhatTheBankTook(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, _ := w.paying()
		part := w.comes(session.ID, 300_000)
		w.bankTakes(part, 100_000, "B1")
		w.comes(session.ID, 300_000)
		w.ordered(part, 50_000)
		if c := w.record(session.ID); c.RefundedMinor != "50000" || c.AmountPaidMinor != "500000" {
			w.t.Errorf("the charge says %+v", c)
		}
	})
}

// What was given up of a part of which some is accepted ends too: no retry takes from
// the merchant what the session was paid with.
func TestARefundEndsWhereSomeOfItsMoneyIsAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.paidFor(500_000) // the merchant has money beside
		session := w.payingUnder(func(p *flow.Policy) { p.Underpayment, p.Overpayment = "refund", "accept" })
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		w.comes(session.ID, 300_000)
		w.pass(time.Second)
		part := w.comes(session.ID, 300_000)
		w.until("both are given up", func() bool {
			w.later(time.Hour)
			return !slices.ContainsFunc(w.refundsOf(session.ID), func(r flow.Refund) bool { return r.Status != flow.RefundAttention })
		})
		w.weather(rail.Conditions{})
		late := w.comes(session.ID, 200_000)
		_, err := w.resolve(late.ID, true)
		w.must(err)
		w.rest()
		for _, r := range w.refundsOf(session.ID) {
			why := " Its money was accepted."
			if r.Payment == part.ID {
				why = " Some of its money was accepted, and the rest waits for a decision."
			}
			if r = w.becomes(r.ID, flow.RefundFailed); !strings.HasSuffix(r.Failure, why) {
				w.t.Errorf("the refund of %s ended because %q", r.Payment, r.Failure)
			}
		}
		w.passes(6, 24*time.Hour)
		if p := w.payment(part.ID); p.Applied != 200_000 || p.Refunded != 100_000 || p.Unapplied != 0 {
			w.t.Errorf("in the end: %+v", p)
		}
		w.proven()
	})
}

// What a bank says late that it sent after all is not sent once more by a refund of the
// same money that it was not told of yet: neither under the name that the first one has,
// nor under one that it had.
func TestWhatWasSentAfterAllIsNotSentByARefundThatWaits(t *testing.T) {
	t.Parallel()
	for name, renamed := range map[string]bool{"under its name": false, "under an old name": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			session, p := w.paidFor(500_000)
			w.weather(rail.Conditions{Refunds: rail.FateReject})
			first := w.refused(p, 300_000)
			if renamed {
				w.must(w.retryRefund(first))
				w.refuses(session.ID, 2)
			}
			w.weather(rail.Conditions{})
			w.holds(flow.MoneyHeld)
			kept, second := w.ordered(p, 100_000), w.ordered(p, 400_000)
			w.rest()
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
			})
			w.paidOut(string(first.ID), "B1", first.Amount)
			if r := w.becomes(first.ID, flow.RefundProcessed); r.Overpaid != 0 {
				t.Errorf("it left besides: %+v", r)
			}
			if r := w.becomes(second.ID, flow.RefundFailed); !strings.HasPrefix(r.Failure, "The bank sent the money back") {
				t.Errorf("%+v", r)
			}
			w.rail.sentOut(nil)
			w.holds("")
			w.passes(3, 10*time.Minute)
			w.becomes(kept.ID, flow.RefundProcessed)
			w.becomes(second.ID, flow.RefundFailed)
			w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 100_000, flow.MerchantPending: -82_500, flow.Fees: -17_500})
			w.sound()
		})
	}
}
