package checkout_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

func TestWhatTheBankTookBackIsNotSetAsideAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		w.later(2 * time.Hour)
		p := w.comes(session.ID, 500_000)
		w.rail.set(func(r *shakyRail) { // it may have been told
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
		})
		_, err := w.resolve(p.ID, false)
		w.must(err)
		w.rest()
		r := w.becomes(w.refundsOf(session.ID)[0].ID, flow.RefundProcessing)
		w.must(w.tell(flow.Notice{Kind: flow.Reversal, RailTransactionID: "R1", Reverses: p.RailTransactionID, Amount: 500_000, PaidAt: w.clock()}))
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "Nothing is left of it."}, nil
		})
		w.pass(time.Hour)
		w.becomes(r.ID, flow.RefundFailed)
		w.lies(session.ID, nil)
		for _, accept := range []bool{true, false} {
			if _, err := w.resolve(p.ID, accept); flow.CodeOf(err) != flow.CodeNotResolvable {
				t.Errorf("what is gone is decided about: %v", err)
			}
		}
		if s := w.read(session.ID); s.Status != flow.SessionExpired || w.events(session.ID)[flow.ChargeSuccess] != 0 {
			t.Errorf("it became %+v", s)
		}
		// The bank sends it all the same: it is gone twice, and the merchant's to bear.
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
		})
		w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: "B1", Amount: 500_000, PaidAt: w.clock()}))
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: -500_000, flow.MerchantPending: 500_000})
	})
}

// Of what went back in part its merchant reads so also where the bank took the rest before
// that could follow: it is not as if nobody had decided about it.
func TestWhatWentBackInPartStaysSoWhenTheBankTakesTheRest(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.lateMoney(func(*flow.Policy) {})
	w.goesBack(p, 200_000)
	away := func() (flow.Disbursed, error) { return flow.Disbursed{}, rail.ErrUnavailable }
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return away() }
		r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return away() }
	})
	_, err := w.resolve(p.ID, false)
	w.must(err)
	w.rest()
	w.bankTakes(p, 300_000, "R1")
	w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "Nothing is left of it."}, nil
	})
	w.pass(time.Hour)
	w.becomes(w.refundsOf(session.ID)[1].ID, flow.RefundFailed)
	if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded || p.Refunded != 200_000 || p.Unapplied != 0 {
		t.Errorf("it became %+v", p)
	}
}

func TestWhatWasAcceptedStaysSoWhenItsRefundFails(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		w.later(2 * time.Hour)
		p, err := w.resolve(w.comes(session.ID, 500_000).ID, true)
		w.must(err)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(p, 100_000)
		w.rest()
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Resolution != flow.ResolvedAccepted || p.ResolvedBy != "wsp_key_1" || !p.Counts() || p.Unapplied != 0 {
			t.Errorf("it became %+v", p)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
	})
}

// What was too much can be accepted again when a refund of some of it fails.
func TestAnExcessIsAcceptedAgainWhenARefundOfItFails(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session := w.payingUnder(func(*flow.Policy) {})
		p := w.comes(session.ID, 700_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 50_000)
		w.becomes(r.ID, flow.RefundProcessing)
		p, err := w.resolve(p.ID, true)
		w.must(err)
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "N1", Amount: r.Amount, PaidAt: w.clock()}))
		w.becomes(r.ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Unapplied != 50_000 || p.Applied != 650_000 {
			t.Fatalf("set aside again: %+v", p)
		}
		p, err = w.resolve(p.ID, true)
		if err != nil || p.Unapplied != 0 || p.Applied != 700_000 {
			t.Errorf("%+v (%v)", p, err)
		}
		w.proven()
	})
}

func TestPartsThatCouldNotGoBackCanBeAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		session := w.payingUnder(func(p *flow.Policy) { p.Underpayment = "refund" })
		var parts []flow.Payment
		for _, amount := range []flow.Kobo{200_000, 100_000} {
			parts = append(parts, w.comes(session.ID, amount))
			w.later(time.Second)
		}
		for _, r := range w.refundsOf(session.ID) {
			w.becomes(r.ID, flow.RefundFailed)
		}
		if s := w.read(session.ID); s.AmountPaid != 0 {
			t.Errorf("what was to go back counts: %+v", s)
		}
		w.later(w.read(session.ID).ExpiresAt.Sub(w.clock())) // before it is sent again
		p, err := w.resolve(parts[0].ID, true)
		w.must(err)
		w.rest()
		if s := w.read(session.ID); s.Status != flow.SessionPaid || s.AmountPaid != 300_000 || !slices.Contains(s.Exceptions, flow.PartiallyPaid) || w.events(session.ID)[flow.ChargeSuccess] != 1 {
			t.Errorf("it became %+v", s)
		}
		other := w.payment(parts[1].ID)
		if p.Applied != 200_000 || other.Applied != 100_000 || other.Resolution != flow.ResolvedAccepted || p.Fee != flow.Fee(300_000) {
			t.Errorf("the parts became %+v and %+v", p, other)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -285_500, flow.Fees: -14_500})
	})
}
