package checkout_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

func TestManyRefundsAtOnceAreNeverMoreThanCame(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		const at, each = 50, 40_000 // twelve of them fit
		errs := make([]error, at)
		var all sync.WaitGroup
		for i := range at {
			all.Go(func() { _, errs[i] = w.refund(p, each) })
		}
		all.Wait()
		made := 0
		for _, err := range errs {
			switch {
			case err == nil:
				made++
			case flow.CodeOf(err) != flow.CodeRefundExceeds:
				t.Errorf("one ended with %v", err)
			}
		}
		if made != 12 {
			t.Errorf("%d refunds were made", made)
		}
		w.rest()
		w.pass(time.Second)
		w.until("all are sent", func() bool {
			list, err := w.db.Refunds(t.Context(), store.RefundFilter{Project: project, Status: flow.RefundProcessed, Limit: at})
			return err == nil && len(list) == made
		})
		w.rest()
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 20_000, flow.MerchantPending: -2_500, flow.Fees: -17_500})
	})
}

func TestWhatTheBankTakesBackMeanwhileIsNotSentToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", a, 500_000, w.clock())))
		w.rest()
		p := w.payments(session.ID)[0]
		began, hold := make(chan struct{}), make(chan struct{})
		var once sync.Once
		w.rail.set(func(r *shakyRail) { // two refunds: the bank is busy with the first
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				once.Do(func() { close(began); <-hold })
				return flow.Disbursed{}, rail.ErrUnavailable
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
		})
		first := w.ordered(p, 100_000)
		<-began
		w.must(w.tell(reversal("R1", "T1", a, 500_000, w.clock())))
		if _, err := w.refund(p, 1); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("what is gone is refunded: %v", err)
		}
		close(hold)
		w.rest()
		w.becomes(first.ID, flow.RefundProcessing) // the bank may have been told
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 100_000, flow.RefundsPayable: -100_000})

		// One that the bank was not told of yet goes no further.
		other, b := w.paying()
		w.must(w.tell(said(flow.Credit, "T2", b, 500_000, w.clock())))
		w.rest()
		w.end()
		w.open(true) // nothing is at work
		second := w.ordered(w.payments(other.ID)[0], 300_000)
		w.must(w.tell(reversal("R2", "T2", b, 500_000, w.clock())))
		w.run()
		if r := w.becomes(second.ID, flow.RefundFailed); !strings.Contains(r.Failure, "took the payment back") || r.Tries != 0 {
			t.Errorf("%+v", r)
		}
		w.lies(other.ID, nil)
	})
}

func TestWhatIsTooMuchGoesBackFirst(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock())))
		w.rest()
		// A held part that goes back is due again.
		part := w.payments(session.ID)[0]
		hold := make(chan struct{})
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(_ flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				<-hold
				return call()
			}
		})
		r := w.ordered(part, 50_000)
		if s := w.read(session.ID); s.AmountPaid != 150_000 || s.Status != flow.SessionPending || w.attempts(session.ID)[0].Amount != 350_000 {
			t.Errorf("the session has %d, and its account asks for %d", s.AmountPaid, w.attempts(session.ID)[0].Amount)
		}
		close(hold)
		w.becomes(r.ID, flow.RefundFailed) // the pretend bank knows nothing of T1
		if s := w.read(session.ID); s.AmountPaid != 200_000 || w.attempts(session.ID)[0].Amount != 300_000 {
			t.Errorf("it stays after all: the session has %d", s.AmountPaid)
		}
		w.pass(time.Second)
		w.must(w.tell(said(flow.Credit, "T2", a, 400_000, w.clock())))
		w.rest()
		payments := w.payments(session.ID)
		for i, want := range []flow.Kobo{0, 100_000} {
			w.weather(rail.Conditions{Refunds: rail.FatePending})
			r, err := w.refund(payments[i], 150_000)
			if err != nil || r.Aside != want {
				t.Errorf("of %s, %d are taken from what was too much, not %d (%v)", payments[i].Match, r.Aside, want, err)
			}
		}
		w.rest()
	})
}

func TestWhatWentBackAndIsThenTakenBackIsTheMerchantsToBear(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(600_000) // of which ₦1,000 is too much
		r, err := w.refund(p, 100_000)
		if err != nil || r.Aside != 100_000 {
			t.Fatalf("%+v (%v)", r, err)
		}
		w.rest()
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		w.must(w.tell(reversal("R1", p.RailTransactionID, w.attempts(session.ID)[0], 600_000, w.clock())))
		w.rest()
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: -100_000, flow.MerchantPending: 100_000})
	})
}

func TestARefundOfAChargeIsOfOnePayment(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	for i, amount := range []flow.Kobo{200_000, 300_000, 500_000} {
		w.pass(time.Second)
		w.pay(session.ID, amount, false)
		w.until("the money is here", func() bool { return len(w.payments(session.ID)) == i+1 })
		w.rest()
	}
	session = w.read(session.ID)
	payments := w.payments(session.ID)
	besides := payments[2]
	ask := func(amount flow.Kobo) (flow.Refund, error) {
		var made checkout.Made
		_, err := w.service.Refund(t.Context(), checkout.NewRefund{Charge: session.Charge, Amount: amount}, call("", "", &made))
		return made.Refund, err
	}
	for _, amount := range []flow.Kobo{0, 300_001, 500_000} {
		_, err := ask(amount)
		var refusal *flow.Error
		if !errors.As(err, &refusal) || refusal.Code != flow.CodeRefundExceeds || refusal.Details["refundableMinor"] != "300000" ||
			refusal.Details["paymentIds"] != string(payments[0].ID)+","+string(payments[1].ID) {
			t.Errorf("%d: %+v", amount, err)
		}
	}
	if r, err := ask(250_000); err != nil || r.Payment != payments[1].ID {
		t.Errorf("the newest that it fits into: %+v (%v)", r, err)
	}
	if r, err := ask(100_000); err != nil || r.Payment != payments[0].ID {
		t.Errorf("and then the other: %+v (%v)", r, err)
	}
	// What comes besides is not what paid it: who asks too often is refused, and told
	// how else.
	for _, amount := range []flow.Kobo{50_000, 100_000} {
		if _, err := ask(amount); err != nil {
			t.Errorf("the rest: %v", err)
		}
	}
	for _, amount := range []flow.Kobo{0, 1, 100_000} {
		if r, err := ask(amount); flow.CodeOf(err) != flow.CodeRefundExceeds || !strings.Contains(err.Error(), string(besides.ID)) {
			t.Errorf("more than paid it: %+v (%v)", r, err)
		}
	}
	if _, err := w.refund(besides, 500_000); err != nil {
		t.Errorf("what came besides, by its id: %v", err)
	}
	for _, n := range []checkout.NewRefund{{Charge: "wsp_chg_other"}, {Payment: "wsp_pay_other"}} {
		if _, err := w.service.Refund(t.Context(), n, call("", "", nil)); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("%+v: %v", n, err)
		}
	}
	stranger := call("", "", nil)
	stranger.Project = "wsp_prj_2"
	for _, n := range []checkout.NewRefund{{Charge: session.Charge}, {Payment: payments[0].ID}} {
		if _, err := w.service.Refund(t.Context(), n, stranger); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another's: %v", err)
		}
	}
	list, more, err := w.service.Refunds(t.Context(), "wsp_prj_2", checkout.RefundFilter{Charge: session.Charge, Limit: 5})
	if err != nil || len(list) != 0 || more {
		t.Errorf("another sees %v (%v)", list, err)
	}
	w.rest()
}

// A part that goes back by its policy, and could not yet, is none of what paid a charge:
// who refunds the charge must not be told to choose, nor send it besides.
func TestARefundOfAChargeIsOfNoPartThatGoesBackByPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, part := w.stuckPart()
		whole := w.comes(session.ID, 500_000)
		session = w.read(session.ID)
		var made checkout.Made
		_, err := w.service.Refund(t.Context(), checkout.NewRefund{Charge: session.Charge}, call("", "", &made))
		if err != nil || made.Refund.Payment != whole.ID || made.Refund.Amount != 500_000 {
			t.Fatalf("%+v (%v)", made.Refund, err)
		}
		_, err = w.service.Refund(t.Context(), checkout.NewRefund{Charge: session.Charge}, call("", "", &made))
		if flow.CodeOf(err) != flow.CodeRefundExceeds || !strings.Contains(err.Error(), "What came besides what paid it is refunded by its paymentId: "+string(part.ID)) {
			t.Errorf("once more: %+v (%v)", made.Refund, err)
		}
	})
}
