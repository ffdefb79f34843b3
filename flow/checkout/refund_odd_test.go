package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// What the merchant sends back fails beside what the clock sends back: both wait,
// and all of it goes back.
func TestTwoRefundsOfAPaymentThatFailBothGoBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.lateMoney(func(*flow.Policy) {})
		w.pass(flow.ReturnAfter - time.Minute)
		w.rail.set(func(r *shakyRail) { // it takes on what the merchant sends, and refuses the clock's
			r.onSendOut = func(d flow.Disbursement, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				if d.Amount == 100_000 {
					return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
				}
				return flow.Disbursed{}, fmt.Errorf("%w: not now", rail.ErrRejected)
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrNotFound
			}
		})
		mine := w.ordered(p, 100_000)
		w.rest()
		w.later(time.Minute)
		list := w.refundsOf(session.ID)
		if len(list) != 2 || list[1].Origin != flow.OriginClock {
			t.Fatalf("%+v", list)
		}
		clocks := w.becomes(list[1].ID, flow.RefundFailed)
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: mine.Reference, RailTransactionID: "F1", Amount: mine.Amount, PaidAt: w.clock()}))
		w.becomes(mine.ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Unapplied != 500_000 || p.ReturnsAt.IsZero() {
			t.Fatalf("all of it waits: %+v", p)
		}
		w.rail.set(func(r *shakyRail) { r.onSendOut, r.onSentOut = nil, nil })
		for range 4 {
			w.later(flow.ReturnAfter)
			w.later(time.Second)
		}
		w.becomes(clocks.ID, flow.RefundProcessed)
		if p = w.payment(p.ID); p.Unapplied != 0 || p.Refunded != 500_000 || p.Resolution != flow.ResolvedRefunded {
			t.Errorf("%+v, refunds %+v", p, w.refundsOf(session.ID))
		}
		w.lies(session.ID, nil)
		w.proven()
	})
}

// Of money that waits the bank takes all back but what is on its way: that comes
// back to wait, and goes back in time as all such money does.
func TestWhatComesBackToWaitGoesBackThoughTheRestIsGone(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.lateMoney(func(*flow.Policy) {})
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(p, 100_000)
		w.becomes(r.ID, flow.RefundProcessing)
		w.must(w.tell(flow.Notice{Kind: flow.Reversal, RailTransactionID: "R1", Reverses: p.RailTransactionID, Amount: 400_000, PaidAt: w.clock()}))
		if p = w.payment(p.ID); p.Unapplied != 0 {
			t.Fatalf("%+v", p)
		}
		w.rest()
		w.pass(2 * time.Second) // now the bank says so
		w.becomes(r.ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Unapplied != 100_000 || p.ReturnsAt.IsZero() {
			t.Errorf("it waits: %+v", p)
		}
		w.weather(rail.Conditions{})
		w.passes(3, flow.ReturnAfter)
		if list := w.refundsOf(session.ID); len(list) != 2 || list[1].Origin != flow.OriginClock || list[1].Amount != 100_000 {
			t.Errorf("%+v", list)
		}
	})
}

// A part that its session took some of counts for that session, whatever becomes
// of the rest of it.
func TestAPartOfWhichSomeIsTakenCountsWhenTheRestGoesBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		part := w.comes(session.ID, 200_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(part, 200_000)
		w.rest()
		w.comes(session.ID, 400_000)
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundFailed)
		w.weather(rail.Conditions{})
		beyond, err := w.refund(part, 100_000) // what was too much
		if err != nil || beyond.Aside != 100_000 {
			t.Fatalf("%+v (%v)", beyond, err)
		}
		w.rest()
		w.pass(time.Second)
		w.becomes(beyond.ID, flow.RefundProcessed)
		session = w.read(session.ID)
		view, err := w.service.ViewOfCharge(t.Context(), project, session.Charge)
		w.must(err)
		if c := w.service.RecordCharge(view); c.FeeMinor != "17500" || c.NetMinor != "482500" {
			t.Errorf("the charge says fee %s and net %s", c.FeeMinor, c.NetMinor)
		}
		if part = w.payment(part.ID); !part.Counts() {
			t.Errorf("it does not count: %+v", part)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		w.proven()
	})
}

// What was paid out is not refunded, and what an earlier refund owed us was made
// up for by the payout.
func TestNothingIsRefundedOnTheFeesOfEarlierRefunds(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		for range 3 {
			p := w.earns()
			if _, err := w.refund(p, 500_000); err != nil { // the first payment ever, too
				t.Errorf("whole: %v", err)
			}
			w.rest()
			w.later(time.Second)
		}
		last := w.earns()
		w.at("2026-11-23T08:00:01Z")
		if list := w.ended(project, 1); list[0].Amount != 482_500-3*17_500 {
			t.Fatalf("paid out %+v", list)
		}
		for _, amount := range []flow.Kobo{1, 17_500, 17_501, 500_000} {
			if _, err := w.refund(last, amount); flow.CodeOf(err) != flow.CodeRefundOverBalance {
				t.Errorf("%d of what was paid out: %v", amount, err)
			}
		}
		next := w.earns()
		if _, err := w.refund(last, 482_501); flow.CodeOf(err) != flow.CodeRefundOverBalance {
			t.Errorf("more than was earned since: %v", err)
		}
		r := w.ordered(last, 482_500) // what was earned since pays for it
		if _, err := w.refund(next, 1); flow.CodeOf(err) != flow.CodeRefundOverBalance {
			t.Errorf("twice: %v", err)
		}
		w.rest()
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		w.proven()
	})
}

// What was sent and came back without a word is booked as both when the bank is
// asked, and is not sent again by itself: the payer's bank does not take it.
func TestWhatBouncedUnheardIsBookedWhenTheBankIsAsked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.lateMoney(func(*flow.Policy) {})
		w.weather(rail.Conditions{Refunds: rail.FateBounce, NotifyLossPercent: 100})
		w.later(flow.ReturnAfter)
		w.pass(11 * time.Second)
		r := w.becomes(w.refundsOf(session.ID)[0].ID, flow.RefundAttention)
		if e := w.events(session.ID); !r.Returned || r.PutBack || e[flow.RefundProcessedKind] != 1 || e[flow.RefundAttentionKind] != 1 || e[flow.RefundFailedKind] != 0 {
			t.Errorf("%+v, told %v", r, e)
		}
		w.proven()
		w.weather(rail.Conditions{})
		w.must(w.retryRefund(r))
		if r = w.sentBack(session.ID); r.Reference != string(r.ID)+"-2" {
			t.Errorf("%+v", r)
		}
		w.passes(3, 24*time.Hour) // the statements of these days are read
		w.lies(session.ID, nil)
		w.proven()
	})
}

// A payout too.
func TestAPayoutThatBouncedUnheardIsBookedWhenTheBankIsAsked(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.earns()
		w.weather(rail.Conditions{Payouts: rail.FateBounce, NotifyLossPercent: 100})
		w.at("2026-11-23T08:00:01Z")
		w.pass(8 * time.Second)
		if list := w.ended(project, 1); list[0].Status != flow.SettlementFailed || !list[0].Returned {
			w.t.Errorf("%+v", list)
		}
		w.proven()
	})
}

// A part that was put back, and that the bank then says it sent and got back, does
// not count any more: it is owed.
func TestAPartThatWasSentAfterAllAndCameBackDoesNotCount(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		part := w.comes(session.ID, 200_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(part, 200_000)
		w.refuses(session.ID, 1)
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "B2", Reverses: "B1", Amount: r.Amount, PaidAt: w.clock()}))
		w.becomes(r.ID, flow.RefundAttention)
		if s := w.read(session.ID); s.AmountPaid != 0 || w.attempts(session.ID)[0].Amount != 500_000 {
			t.Errorf("it has %d, and asks for %d", s.AmountPaid, w.attempts(session.ID)[0].Amount)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 200_000, flow.RefundsPayable: -200_000})
	})
}

// A bank that refuses to be asked has not said that it sends nothing.
func TestARefusedQuestionIsNoRefusedRefund(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		p := w.earns()
		w.weather(rail.Conditions{Refunds: rail.FatePending, Payouts: rail.FatePending})
		r := w.ordered(p, 200_000)
		w.rest()
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{}, fmt.Errorf("%w: answered with 401", rail.ErrRejected)
		})
		w.pass(time.Minute)
		w.becomes(r.ID, flow.RefundProcessing)
		w.at("2026-11-23T08:00:01Z")
		w.later(time.Minute)
		if list := w.settlements(project); len(list) != 1 || list[0].Status != flow.SettlementProcessing {
			t.Errorf("%+v", list)
		}
	})
}

// A bank that says that it sent what it had refused, and cannot be asked just then,
// is asked again.
func TestABankThatChangedItsMindIsAskedUntilItAnswers(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(p, 200_000)
		w.refuses(session.ID, 1)
		var asked int
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if asked++; asked == 1 {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
		})
		w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: "B1", Amount: r.Amount, PaidAt: w.clock()}))
		w.rest()
		w.passes(3, time.Minute)
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
	})
}

// What a bank tells of a refund that nobody ordered is no money of ours. It is taken in
// and logged: told of an error, the bank would tell it for ever.
func TestANoticeOfARefundThatNobodyOrderedIsTakenIn(t *testing.T) {
	t.Parallel()
	w := one(t)
	for i, kind := range []flow.NoticeKind{flow.PaidOut, flow.PayoutFailed} {
		w.must(w.tell(flow.Notice{Kind: kind, Reference: "wsp_rfd_01k9z3m5x8v2c7n4b6t1q0w9fe", Amount: 1, RailTransactionID: fmt.Sprint("out-", i), PaidAt: w.clock()}))
		if got := w.logged("nobody ordered it"); got != i+1 {
			t.Errorf("after %s the log tells of it %d times", kind, got)
		}
	}
}

// A bank may send a refund once more that came back, under the name that it has: that is
// the refund then, booked and told as what it is.
func TestARefundThatIsSentOnceMoreAfterItCameBackIsBooked(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.paidFor(500_000)
	w.weather(rail.Conditions{Refunds: rail.FatePending})
	r := w.ordered(p, 200_000)
	w.rest()
	sent := map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500}
	for _, c := range []struct{ id, back string }{{"B1", ""}, {"B2", "B1"}, {"B4", "B3"}, {"B5", ""}} {
		w.later(time.Second)
		for range 2 { // told again, it is the same
			if c.back == "" {
				w.paidOut(r.Reference, c.id, r.Amount)
			} else {
				w.cameBack(r.Reference, c.id, c.back, r.Amount)
			}
		}
		if c.back == "" {
			r = w.becomes(r.ID, flow.RefundProcessed)
			w.lies(session.ID, sent)
		} else {
			r = w.becomes(r.ID, flow.RefundAttention)
			w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -282_500, flow.Fees: -17_500, flow.RefundsPayable: -200_000})
		}
		if r.Returned != (c.back != "") || r.Overpaid != 0 || r.Reference != string(r.ID) {
			t.Errorf("after %s: %+v", c.id, r)
		}
	}
	if e := w.events(session.ID); e[flow.RefundProcessedKind] != 3 || e[flow.RefundAttentionKind] != 2 {
		t.Errorf("told %v", e)
	}
}

// So may one that a merchant retried since, which is known by another name by then: money
// left twice. What comes back of that is none of what the other name sent, which the
// merchant would else send a third time.
func TestARefundThatIsSentOnceMoreUnderTheNameThatItHadIsBooked(t *testing.T) {
	t.Parallel()
	once := map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500}
	twice := map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 100_000, flow.MerchantPending: -282_500, flow.Fees: -17_500, flow.RefundsPayable: 200_000}
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 200_000)
		w.rest()
		first := r.Reference
		w.paidOut(first, "B1", r.Amount)
		w.cameBack(first, "B2", "B1", r.Amount)
		w.must(w.retryRefund(w.becomes(r.ID, flow.RefundAttention)))
		w.rest()
		r = w.becomes(r.ID, flow.RefundProcessing)
		w.paidOut(r.Reference, "B3", r.Amount)
		for _, c := range []struct{ id, back string }{{"B4", ""}, {"B5", "B4"}, {"B7", "B6"}} { // of B6 nobody told
			for range 2 { // told again, it is the same
				if c.back == "" {
					w.paidOut(first, c.id, r.Amount)
				} else {
					w.cameBack(first, c.id, c.back, r.Amount)
				}
			}
			over, lies := flow.Kobo(0), once
			if c.back == "" {
				over, lies = r.Amount, twice
			}
			if now := w.becomes(r.ID, flow.RefundProcessed); now.Overpaid != over || now.RailTransactionID != "B3" || (now.Failure != "") != (over > 0) {
				w.t.Errorf("after %s: %+v", c.id, now)
			}
			w.lies(session.ID, lies)
			w.looks(over)
		}
		if booked, err := w.db.MovementsNamed(w.t.Context(), []string{"B1", "B2", "B3", "B4", "B5", "B6", "B7"}); err != nil || len(booked) != 7 {
			w.t.Errorf("booked %+v (%v)", booked, err)
		}
		w.sound()
	})
}
