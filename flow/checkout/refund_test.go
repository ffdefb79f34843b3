package checkout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// paidFor is a session in ada's chat that was paid with so much, and the payment.
func (w *world) paidFor(amount flow.Kobo) (flow.Session, flow.Payment) {
	w.t.Helper()
	session, _ := w.paying()
	w.pay(session.ID, amount, false)
	w.until("the money is here", func() bool { return len(w.payments(session.ID)) == 1 })
	w.rest()
	return w.read(session.ID), w.payments(session.ID)[0]
}

func (w *world) payments(id flow.SessionID) []flow.Payment {
	w.t.Helper()
	list, err := w.db.Payments(w.t.Context(), id)
	w.must(err)
	return list
}

// refund asks for a refund of a payment.
func (w *world) refund(p flow.Payment, amount flow.Kobo) (flow.Refund, error) {
	w.t.Helper()
	var made checkout.Made
	_, err := w.service.Refund(w.t.Context(), checkout.NewRefund{Payment: p.ID, Amount: amount, Reason: "it came back", Key: "wsp_key_1"}, call("", "", &made))
	return made.Refund, err
}

// ordered is a refund of a payment that was taken on.
func (w *world) ordered(p flow.Payment, amount flow.Kobo) flow.Refund {
	w.t.Helper()
	r, err := w.refund(p, amount)
	w.must(err)
	return r
}

// refused has a refund ordered that the bank refuses.
func (w *world) refused(p flow.Payment, amount flow.Kobo) flow.Refund {
	w.t.Helper()
	r := w.ordered(p, amount)
	w.rest()
	return w.becomes(r.ID, flow.RefundFailed)
}

// goesBack has a refund ordered that the bank sends.
func (w *world) goesBack(p flow.Payment, amount flow.Kobo) flow.Refund {
	w.t.Helper()
	r := w.ordered(p, amount)
	w.rest()
	w.pass(time.Second)
	return w.becomes(r.ID, flow.RefundProcessed)
}

// becomes waits until a refund stands somewhere, with all that follows.
func (w *world) becomes(id flow.RefundID, status flow.RefundStatus) flow.Refund {
	w.t.Helper()
	var r flow.Refund
	w.until(fmt.Sprintf("the refund is %s", status), func() bool {
		var err error
		r, err = w.db.Refund(w.t.Context(), id)
		return err == nil && r.Status == status
	})
	w.rest()
	return r
}

// weather is what the bank does with refunds.
func (w *world) weather(c rail.Conditions) {
	w.t.Helper()
	c.Up = true
	_, err := w.bank.SetConditions(w.t.Context(), c)
	w.must(err)
}

// lies fails unless the ledger of a session says this, and nothing else.
func (w *world) lies(id flow.SessionID, want map[flow.LedgerAccount]flow.Kobo) {
	w.t.Helper()
	got := w.accounts(id)
	for _, account := range flow.LedgerAccounts() {
		if got[account] != want[account] {
			w.t.Errorf("the ledger says %v, not %v", got, want)
			return
		}
	}
}

func TestARefundGoesBackToWhoPaid(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		session, p := w.paidFor(500_000)
		r, err := w.refund(p, 200_000)
		if err != nil || r.Status != flow.RefundPending || r.Session != session.ID || r.Charge != session.Charge || r.Origin != flow.OriginMerchant {
			t.Fatalf("%+v (%v)", r, err)
		}
		w.rest()
		w.pass(time.Second)
		r = w.becomes(r.ID, flow.RefundProcessed)
		if r.RailTransactionID == "" || r.DoneAt.IsZero() || r.Failure != "" || r.Tries != 1 {
			t.Errorf("%+v", r)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if e := w.events(session.ID); e[flow.RefundPendingKind] != 1 || e[flow.RefundProcessedKind] != 1 || e[flow.ChargeSuccess] != 1 {
			t.Errorf("told %v", e)
		}
		list, err := w.db.Events(t.Context(), session.ID)
		must(t, err)
		for i, e := range list {
			if i > 0 && e.Sequence <= list[i-1].Sequence {
				t.Errorf("%s has the number %d after %d", e.Kind, e.Sequence, list[i-1].Sequence)
			}
		}
		w.until("the merchant is told", func() bool { return len(w.deliveries(flow.RefundProcessedKind)) == 1 })
		body := string(w.deliveries(flow.RefundProcessedKind)[0].Body)
		for _, want := range []string{`"amountMinor":"200000"`, `"status":"PROCESSED"`, `"paymentId":"` + string(p.ID), `"chargeId":"` + string(session.Charge), `"reason":"it came back"`, `"origin":"MERCHANT"`} {
			if !strings.Contains(body, want) {
				t.Errorf("want %s in %s", want, body)
			}
		}
		// A bank tells as often as it likes.
		for range 3 {
			w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: r.RailTransactionID, Amount: r.Amount, PaidAt: w.clock()}))
		}
		w.rest()
		if e := w.events(session.ID); e[flow.RefundProcessedKind] != 1 {
			t.Errorf("told %v", e)
		}
		if n := w.calls()["disburse"]; n != 1 {
			t.Errorf("the bank was told %d times", n)
		}
		if got := w.texts("ada"); strings.Count(strings.Join(got, " "), "refunded") != 1 || got[len(got)-1] != "refunded" {
			t.Errorf("the payer read %q", got)
		}
		if s := w.read(session.ID); s.Status != flow.SessionPaid || s.AmountPaid != 500_000 {
			t.Errorf("the session is %s with %d", s.Status, s.AmountPaid)
		}
		if _, err := w.refund(p, 300_001); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("more than is left: %v", err)
		}
		if rest, err := w.refund(p, 0); err != nil || rest.Amount != 300_000 {
			t.Errorf("all that is left is %d (%v)", rest.Amount, err)
		}
		if _, err := w.refund(p, 0); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("of nothing: %v", err)
		}
	})
}

func TestARefundWhoseNoticeIsLostIsFoundByAsking(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{NotifyLossPercent: 100})
		r := w.ordered(p, 500_000)
		w.rest()
		w.pass(11 * time.Second)
		r = w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 17_500, flow.Fees: -17_500})
		if n := w.calls(); n["disburse"] != 1 || n["find_disbursement"] != 1 {
			w.t.Errorf("the bank was called %v for %+v", n, r)
		}
	})
}

func TestARefundThatTheBankWillNotSendPutsItsMoneyBack(t *testing.T) {
	t.Parallel()
	for _, fate := range []rail.Fate{rail.FateReject, rail.FateFail} {
		t.Run(string(fate), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				session, p := w.paidFor(600_000) // of which ₦1,000 is too much
				w.weather(rail.Conditions{Refunds: fate})
				r, err := w.refund(p, 600_000)
				if err != nil || r.Aside != 100_000 {
					t.Fatalf("%+v (%v)", r, err)
				}
				w.rest()
				w.pass(time.Second)
				if r = w.becomes(r.ID, flow.RefundFailed); r.Failure == "" {
					t.Error("it does not say why")
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 600_000, flow.Unapplied: -100_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
				if e := w.events(session.ID); e[flow.RefundFailedKind] != 1 || e[flow.RefundProcessedKind] != 0 {
					t.Errorf("told %v", e)
				}
				w.weather(rail.Conditions{})
				again, err := w.refund(p, 400_000)
				if err != nil || again.Aside != 100_000 {
					t.Fatalf("a new one: %+v (%v)", again, err)
				}
				w.rest()
				w.pass(time.Second)
				w.becomes(again.ID, flow.RefundProcessed)
				if err := w.retryRefund(again); flow.CodeOf(err) != flow.CodeRefundNotRetryable {
					t.Errorf("what was sent is retried: %v", err)
				}
				if err := w.retryRefund(r); flow.CodeOf(err) != flow.CodeRefundExceeds {
					t.Errorf("more than is left is retried: %v", err)
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 200_000, flow.MerchantPending: -182_500, flow.Fees: -17_500})
				w.goesBack(p, 200_000)
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 17_500, flow.Fees: -17_500})
			})
		})
	}
}

func TestARefundThatBouncesIsSentAgainUnderAnotherName(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateBounce})
		r := w.goesBack(p, 200_000)
		w.pass(2 * time.Second)
		r = w.becomes(r.ID, flow.RefundAttention)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.RefundsPayable: -200_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if _, err := w.refund(p, 300_001); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("what is owed is refunded once more: %v", err)
		}
		read := []string{"refunded", "came_back"}
		if got := w.texts("ada"); !slices.Equal(got[max(0, len(got)-len(read)):], read) {
			t.Errorf("the payer read %q", got)
		}
		w.weather(rail.Conditions{})
		first := r.RailTransactionID
		w.must(w.retryRefund(r))
		w.rest()
		w.pass(time.Second)
		if r = w.becomes(r.ID, flow.RefundProcessed); r.Reference != string(r.ID)+"-2" {
			t.Errorf("it was sent as %s", r.Reference)
		}
		// What the bank said of the first one, said again, is of the first one.
		for _, kind := range []flow.NoticeKind{flow.PaidOut, flow.PayoutFailed} {
			w.must(w.tell(flow.Notice{Kind: kind, Reference: string(r.ID), RailTransactionID: first, Amount: r.Amount, PaidAt: w.clock()}))
		}
		w.becomes(r.ID, flow.RefundProcessed)
		read = append(read, "refunded")
		if got := w.texts("ada"); !slices.Equal(got[max(0, len(got)-len(read)):], read) {
			t.Errorf("the payer read %q", got)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if e := w.events(session.ID); e[flow.RefundPendingKind] != 2 || e[flow.RefundProcessedKind] != 2 || e[flow.RefundAttentionKind] != 1 {
			t.Errorf("told %v", e)
		}
	})
}

func TestARefundThatNobodyKnowsOfNeedsAttentionAndIsAskedAboutBeforeItIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 200_000)
		var err error
		asks := 0
		for w.rest(); asks < 50; asks++ {
			if r, err = w.db.Refund(t.Context(), r.ID); err != nil || r.Status != flow.RefundProcessing {
				break
			}
			next, more := r.NextAsk(w.clock(), false, true)
			if !more {
				next = w.clock().Add(time.Second)
			}
			w.later(next.Sub(w.clock()))
		}
		if err != nil || r.Status != flow.RefundAttention || asks < 5 || asks > 20 {
			t.Fatalf("after %d questions: %+v (%v)", asks, r, err)
		}
		if e := w.events(session.ID); e[flow.RefundAttentionKind] != 1 {
			t.Errorf("told %v", e)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.RefundsPayable: -200_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		w.must(w.retryRefund(r))
		w.becomes(r.ID, flow.RefundProcessing)
		w.rest()
		w.sound()                    // it is asked about on
		w.weather(rail.Conditions{}) // what was held is sent
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		if n := w.calls()["disburse"]; n != 1 {
			t.Errorf("the bank was told %d times", n)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
	})
}

// A bank that is away for more than a day was never asked: what was ordered then is sent
// by itself once it is back, and nobody is called before it was away for a week.
func TestWhatWasOrderedOfABankThatIsAwayIsSentOnceItIsBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		_, p := w.paidFor(500_000)
		away := func() {
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					return flow.Disbursed{}, rail.ErrUnavailable
				}
				r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					return flow.Disbursed{}, rail.ErrUnknown
				}
			})
		}
		away()
		r := w.ordered(p, 200_000)
		w.rest()
		w.passes(30, time.Hour)
		r = w.becomes(r.ID, flow.RefundProcessing)
		w.rail.set(func(r *shakyRail) { r.onSendOut, r.onSentOut = nil, nil })
		w.later(time.Hour)
		w.pass(time.Second)
		if r = w.becomes(r.ID, flow.RefundProcessed); r.Tries != 2 || r.Reference != string(r.ID) {
			t.Errorf("it was sent as %s, told %d times", r.Reference, r.Tries)
		}
		away()
		r = w.ordered(p, 100_000)
		w.rest()
		w.passes(22, 8*time.Hour)
		if r = w.becomes(r.ID, flow.RefundAttention); !strings.Contains(r.Failure, "Ask the bank before you retry") {
			t.Errorf("after a week: %+v", r)
		}
	})
}

func TestARetryOfWhatTheBankNeverTookOnKeepsItsName(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		_, p := w.paidFor(500_000)
		w.unreached(true)
		r := w.ordered(p, 200_000)
		var err error
		for range 30 { // for a week
			w.rest()
			if r, err = w.db.Refund(t.Context(), r.ID); err != nil || r.Status != flow.RefundProcessing {
				break
			}
			w.pass(6 * time.Hour)
		}
		if err != nil || r.Status != flow.RefundAttention || r.Tries < 3 {
			t.Fatalf("%+v (%v)", r, err)
		}
		w.unreached(false)
		w.must(w.retryRefund(r))
		w.rest()
		w.pass(time.Second)
		if r = w.becomes(r.ID, flow.RefundProcessed); r.Reference != string(r.ID) {
			t.Errorf("it was sent as %s", r.Reference)
		}
	})
}

func TestARefundWhoseAnswerIsLostIsNotSentTwice(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		var orders []string
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(d flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				orders = append(orders, d.Reference)
				_, _ = call()
				return flow.Disbursed{}, fmt.Errorf("%w: the line broke", rail.ErrUnknown)
			}
		})
		r := w.ordered(p, 200_000)
		w.rest()
		w.pass(11 * time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		if len(orders) != 1 {
			t.Errorf("ordered %v", orders)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
	})
}
