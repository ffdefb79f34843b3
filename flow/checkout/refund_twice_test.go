package checkout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// paidOut is a notice that the bank sent a refund under a name.
func (w *world) paidOut(name, transaction string, amount flow.Kobo) {
	w.t.Helper()
	w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: name, RailTransactionID: transaction, Amount: amount, PaidAt: w.clock()}))
	w.rest()
}

// cameBack is a notice that it came back.
func (w *world) cameBack(name, transaction, reverses string, amount flow.Kobo) {
	w.t.Helper()
	w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: name, RailTransactionID: transaction, Reverses: reverses, Amount: amount, PaidAt: w.clock()}))
	w.rest()
}

// refusedThenSent is a refund of ₦2,000 that the bank refused under its first name
// and was then given under its second; fate is what the bank does with that.
func (w *world) refusedThenSent(fate rail.Fate) flow.Refund {
	w.t.Helper()
	session, p := w.paidFor(500_000)
	w.weather(rail.Conditions{Refunds: rail.FateFail})
	r := w.ordered(p, 200_000)
	w.refuses(session.ID, 1)
	w.weather(rail.Conditions{Refunds: fate})
	w.must(w.retryRefund(r))
	w.rest()
	if fate == rail.FatePending {
		return w.becomes(r.ID, flow.RefundProcessing)
	}
	return w.sentBack(session.ID)
}

// looks fails unless the queue of refunds shows this much that left too often.
func (w *world) looks(want flow.Kobo) {
	w.t.Helper()
	list, err := w.db.Waits(w.t.Context(), store.QueueFilter{Queue: store.QueueRefunds, Project: project, Now: w.clock(), Limit: 10})
	w.must(err)
	if want == 0 && len(list) != 0 || want != 0 && (len(list) != 1 || list[0].Waits != want || list[0].Amount != 200_000) {
		w.t.Errorf("%d kobo left too often, and these wait: %+v", want, list)
	}
}

// A bank that says late that it sent what it had refused, once it has sent the same
// under another name, has sent it twice: the ledger says what is owed to us, a
// person is told, and the merchant pays for one refund.
func TestARefundThatIsSentUnderTwoNamesIsBookedAndSeen(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		r := w.refusedThenSent("")
		if r.Reference == string(r.ID) {
			t.Fatalf("it has one name: %+v", r)
		}
		w.looks(0)
		for range 2 { // told again, it is the same
			w.paidOut(string(r.ID), "B9", r.Amount)
		}
		again := w.becomes(r.ID, flow.RefundProcessed)
		if again.Overpaid != 200_000 || again.Failure == "" || again.RailTransactionID != r.RailTransactionID {
			t.Errorf("%+v", again)
		}
		w.lies(r.Session, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 100_000, flow.MerchantPending: -282_500, flow.Fees: -17_500, flow.RefundsPayable: 200_000})
		w.looks(200_000)
		if err := w.retryRefund(r); flow.CodeOf(err) != flow.CodeRefundNotRetryable {
			t.Errorf("sent a third time: %v", err)
		}
		if e := w.events(r.Session); e[flow.RefundProcessedKind] != 1 {
			t.Errorf("told %v", e)
		}
		if read := w.texts("ada"); strings.Count(strings.Join(read, " "), "refunded") != 1 { // who was sent it twice is not told of more to come
			t.Errorf("the payer read %q", read)
		}
		w.sound()
		for range 2 {
			w.cameBack(string(r.ID), "B10", "B9", r.Amount)
		}
		w.lies(r.Session, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if again = w.becomes(r.ID, flow.RefundProcessed); again.Overpaid != 0 || again.Failure != "" {
			t.Errorf("%+v", again)
		}
		w.looks(0)
		w.sound()
	})
}

// A day's reconciliation asks for no event of money that left twice once it is back:
// it is none of the merchant's. While it is out, the day is not at rest.
func TestMoneyThatLeftTwiceAndCameBackIsNoDifference(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		r := w.refusedThenSent("")
		untold := func(day flow.Date) (names []string) {
			w.later(2 * time.Minute)
			got, err := w.service.Reconcile(w.t.Context(), project, day)
			w.must(err)
			for _, d := range got.Differences {
				if d.Kind == flow.MissingEvent {
					names = append(names, d.RailTransactionID)
				}
			}
			return names
		}
		sent := flow.DateOf(w.clock())
		w.paidOut(string(r.ID), "B9", r.Amount)
		if got := untold(sent); !slices.Equal(got, []string{"B9"}) {
			w.t.Errorf("while it is out, untold are %q", got)
		}
		w.later(24 * time.Hour)
		back := flow.DateOf(w.clock())
		w.cameBack(string(r.ID), "B10", "B9", r.Amount)
		if a, b := untold(sent), untold(back); len(a)+len(b) > 0 {
			w.t.Errorf("now that it is back, untold are %q and %q", a, b)
		}
	})
}

// The one notice that what had been refused was sent and came back says both: nothing
// is owed to us.
func TestWhatCameBackUnderAnOldNameWasSentUnderItToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		r := w.refusedThenSent("")
		w.cameBack(string(r.ID), "B10", "B9", r.Amount) // told once
		if now := w.becomes(r.ID, flow.RefundProcessed); now.Overpaid != 0 || now.Failure != "" || now.RailTransactionID != r.RailTransactionID {
			t.Errorf("%+v", now)
		}
		booked, err := w.db.MovementsNamed(t.Context(), []string{"B9", "B10"})
		if err != nil || len(booked) != 2 {
			t.Errorf("booked %+v (%v)", booked, err)
		}
		w.lies(r.Session, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		w.looks(0)
		w.sound()
	})
}

// What the bank said late is the refund itself where the other order comes to
// nothing, and too much where that is sent too.
func TestWhatIsSaidLateCountsOnceWhateverBecomesOfTheOtherOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then func(w *world, r flow.Refund)
		over flow.Kobo
		rail flow.Kobo // of ₦5,000 that came
	}{
		"refused": {func(w *world, r flow.Refund) {
			w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "F1", Amount: r.Amount, PaidAt: w.clock()}))
		}, 0, 300_000},
		"sent":               {func(w *world, r flow.Refund) { w.paidOut(r.Reference, "B2", r.Amount) }, 200_000, 100_000},
		"sent and came back": {func(w *world, r flow.Refund) { w.cameBack(r.Reference, "B3", "B2", r.Amount) }, 0, 300_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				r := w.refusedThenSent(rail.FatePending)
				w.paidOut(string(r.ID), "B9", r.Amount)
				if r = w.becomes(r.ID, flow.RefundProcessing); r.Overpaid != r.Amount {
					w.t.Errorf("while nobody knows: %+v", r)
				}
				w.looks(r.Amount)
				w.sound()
				c.then(w, r)
				if r = w.becomes(r.ID, flow.RefundProcessed); r.Overpaid != c.over {
					w.t.Errorf("%+v", r)
				}
				want := map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: c.rail, flow.MerchantPending: -282_500, flow.Fees: -17_500}
				if c.over > 0 {
					want[flow.RefundsPayable] = c.over
				}
				w.lies(r.Session, want)
				w.looks(c.over)
				w.sound()
			})
		})
	}
}

// A refund whose money went back by another since is no refund any more when the
// bank says that it sent it after all.
func TestAnAnswerThatComesAfterAnotherRefundIsNotTheMerchantsToBear(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		first := w.ordered(p, 200_000)
		w.refuses(session.ID, 1)
		w.weather(rail.Conditions{})
		w.goesBack(p, 500_000)
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B9", At: w.clock()}, nil
		})
		for range 2 {
			w.paidOut(string(first.ID), "B9", first.Amount)
			w.rest()
		}
		w.until("it is booked", func() bool {
			r, err := w.db.Refund(t.Context(), first.ID)
			return err == nil && r.Overpaid == 200_000 && r.Status == flow.RefundFailed
		})
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: -200_000, flow.MerchantPending: 17_500, flow.Fees: -17_500, flow.RefundsPayable: 200_000})
		w.looks(200_000)
		w.sound()
	})
}

// What left once too often comes back also where the refund that had the money by then
// failed meanwhile; and what the bank says again of it changes nothing.
func TestWhatWasSentBesidesComesBackAfterTheOtherRefundFailed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		first := w.refused(p, 300_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		other := w.ordered(p, 500_000)
		w.rest()
		w.rail.sentOut(func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if name == first.Reference {
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
			}
			return call()
		})
		w.paidOut(first.Reference, "B1", 300_000)
		w.until("it is booked as sent besides", func() bool {
			r, err := w.db.Refund(w.t.Context(), first.ID)
			return err == nil && r.Overpaid == 300_000
		})
		w.rest()
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: other.Reference, RailTransactionID: "F0", Amount: 500_000, PaidAt: w.clock()}))
		w.becomes(other.ID, flow.RefundFailed)
		for range 2 {
			w.cameBack(first.Reference, "F1", "B1", 300_000)
			w.rest()
		}
		if r := w.becomes(first.ID, flow.RefundFailed); r.Overpaid != 0 {
			w.t.Errorf("it is still out: %+v", r)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		w.rail.sentOut(func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if name == first.Reference {
				return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "F1", Reverses: "B1", At: w.clock()}, nil
			}
			return call()
		})
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B2", At: w.clock()}, nil
			}
		})
		w.must(w.retryRefund(first)) // under another name: what came back is no answer to it
		w.becomes(first.ID, flow.RefundProcessed)
	})
}

// What a bank says first and is heard of last, that nothing was sent, does not say that
// what it sent since came back: nothing is booked, and nobody sends it again.
func TestARefusalThatIsToldLateIsNoReturn(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 200_000)
		w.rest()
		refusal := flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "N1", Amount: r.Amount, PaidAt: w.clock()}
		w.paidOut(r.Reference, "B1", r.Amount)
		w.must(w.tell(refusal))
		w.rest()
		if r = w.becomes(r.ID, flow.RefundProcessed); r.Failure != "" {
			t.Errorf("%+v", r)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if e := w.events(session.ID); e[flow.RefundAttentionKind] != 0 {
			t.Errorf("told %v", e)
		}
	})
}

// What the bank sent and got back of a refund that it had refused, whose money went back
// by another meanwhile, moved at the bank: it is booked, once, and changes nothing else.
func TestWhatWasSentAndCameBackBesideAnotherRefundIsBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		first := w.refused(p, 300_000)
		w.weather(rail.Conditions{})
		w.goesBack(p, 500_000)
		w.rail.sentOut(func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if name == first.Reference {
				return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "F1", Reverses: "B1", Reason: "It came back.", At: w.clock()}, nil
			}
			return call()
		})
		for range 2 {
			w.cameBack(first.Reference, "F1", "B1", 300_000)
		}
		w.until("both are booked", func() bool {
			out, err := w.db.MovementsNamed(w.t.Context(), []string{"B1", "F1"})
			return err == nil && len(out) == 2 && out[0].Amount+out[1].Amount == 0
		})
		w.rest()
		if r := w.becomes(first.ID, flow.RefundFailed); r.Overpaid != 0 || r.Failure != first.Failure || r.RailTransactionID != "" {
			w.t.Errorf("it became %+v", r)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 17_500, flow.Fees: -17_500})
		w.looks(0)
	})
}

// What the bank sends after all leaves no more set aside than it left of the payment:
// the clock would send that back in vain for ever, and a decision about it could not be
// carried out.
func TestWhatIsSentAfterAllLeavesNoMoreSetAsideThanThereIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(w *world, p flow.Payment)
		want      map[flow.LedgerAccount]flow.Kobo
	}{
		"some of its money is under way by another": {func(w *world, p flow.Payment) {
			w.ordered(p, 300_000)
		}, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.RefundsPayable: -300_000, flow.MerchantPending: 17_500, flow.Fees: -17_500}},
		"the bank took some of the payment back": {func(w *world, p flow.Payment) {
			w.bankTakes(p, 300_000, "R1")
		}, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 17_500, flow.Fees: -17_500}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				w.weather(rail.Conditions{Refunds: rail.FatePending})
				session := w.payingUnder(func(p *flow.Policy) { p.Overpayment = "refund_excess" })
				p := w.comes(session.ID, 600_000)
				excess := w.refundsOf(session.ID)[0]
				w.becomes(excess.ID, flow.RefundProcessing)
				w.weather(rail.Conditions{Refunds: rail.FateReject})
				r := w.refused(p, 300_000)
				w.weather(rail.Conditions{Refunds: rail.FatePending})
				c.meanwhile(w, p)
				w.rest()
				w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: excess.Reference, RailTransactionID: "F0", Amount: excess.Amount, PaidAt: w.clock()}))
				w.becomes(excess.ID, flow.RefundFailed)
				if p = w.payment(p.ID); p.Unapplied != 100_000 || p.Refundable() != 300_000 || !p.ReturnsAt.After(w.clock()) {
					t.Fatalf("what the bank refused waits: %+v", p)
				}
				w.rail.sentOut(func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					if name == r.Reference {
						return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
					}
					return call()
				})
				w.paidOut(r.Reference, "B1", r.Amount)
				if got := w.becomes(r.ID, flow.RefundProcessed); got.Overpaid != 0 {
					t.Errorf("all of it was left: %+v", got)
				}
				w.later(flow.ReturnAfter)
				if got := w.payment(p.ID); got.Unapplied != 0 || got.Refundable() != 0 || got.Decidable(session) {
					t.Errorf("nothing is left of it: %+v", got)
				}
				if n := w.logged("refund_exceeds_payment"); n != 0 {
					t.Errorf("it was to go back in vain, %d times", n)
				}
				w.lies(session.ID, c.want)
				w.sound()
			})
		})
	}
}
