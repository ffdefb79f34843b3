package checkout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// lateMoney is money that came after its session was over, whose policy is changed
// so.
func (w *world) lateMoney(change func(*flow.Policy)) (flow.Session, flow.Payment) {
	w.t.Helper()
	session := w.payingUnder(change)
	w.later(2 * time.Hour)
	return session, w.comes(session.ID, 500_000)
}

// lateRefused is late money that a policy sends back, and the bank refuses.
func (w *world) lateRefused() (flow.Session, flow.Payment, flow.Refund) {
	w.t.Helper()
	w.weather(rail.Conditions{Refunds: rail.FateFail})
	session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "refund" })
	return session, p, w.refuses(session.ID, 1)
}

// stuckPart is a session of which a part of ₦2,000 goes back by its policy, and was
// refused by the bank once: from now on the bank would send it.
func (w *world) stuckPart() (flow.Session, flow.Payment) {
	w.t.Helper()
	w.weather(rail.Conditions{Refunds: rail.FateFail})
	session := w.payingUnder(func(p *flow.Policy) { p.Underpayment = "refund" })
	part := w.comes(session.ID, 200_000)
	w.refuses(session.ID, 1)
	w.weather(rail.Conditions{})
	return session, part
}

// refuses waits until the one refund of a session was refused so many times.
func (w *world) refuses(id flow.SessionID, times int) flow.Refund {
	w.t.Helper()
	var r flow.Refund
	w.until("the bank refuses it", func() bool {
		w.later(time.Second) // which the bank takes over it
		list := w.refundsOf(id)
		if len(list) != 1 {
			w.t.Fatalf("%d refunds: %+v", len(list), list)
		}
		r = list[0]
		return r.Failures == times && r.PutBack
	})
	return r
}

// What a policy or the clock sends back is sent again when the bank refuses it,
// less and less often, until somebody must look; meanwhile its money waits.
func TestMoneyThatNobodyOrderedBackIsSentAgainUntilSomebodyMustLook(t *testing.T) {
	t.Parallel()
	for origin, policy := range map[flow.RefundOrigin]string{flow.OriginPolicy: "refund", flow.OriginClock: "review"} {
		t.Run(string(origin), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				w.endpoint("https://shop.test/hook")
				w.weather(rail.Conditions{Refunds: rail.FateFail})
				session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = policy })
				if origin == flow.OriginClock {
					w.later(flow.ReturnAfter)
				}
				for i, wait := range []time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour} {
					r := w.refuses(session.ID, i+1)
					p = w.payment(p.ID)
					if r.Status != flow.RefundFailed || r.Origin != origin || p.Resolution != flow.Unresolved || p.Unapplied != 500_000 || p.Refunded != 0 || p.ReturnsAt.Sub(w.clock()) > wait || p.ReturnsAt.Sub(w.clock()) < wait-time.Minute {
						t.Fatalf("refused %d times: %+v, and its money %+v at %s", i+1, r, p, w.clock())
					}
					w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.Unapplied: -500_000})
					w.later(p.ReturnsAt.Sub(w.clock()) - time.Second)
					if r := w.refundsOf(session.ID)[0]; r.Failures != i+1 || r.Status != flow.RefundFailed {
						t.Fatalf("it is sent again too early: %+v", r)
					}
				}
				r := w.refuses(session.ID, 4)
				p = w.payment(p.ID)
				if r.Status != flow.RefundAttention || !strings.Contains(r.Failure, "4 times") || r.Reference != string(r.ID)+"-4" || !p.Waits(session) || p.Unapplied != 500_000 || !p.ReturnsAt.IsZero() {
					t.Errorf("at last: %+v, and its money %+v", r, p)
				}
				if e := w.events(session.ID); e[flow.RefundPendingKind] != 4 || e[flow.RefundFailedKind] != 3 || e[flow.RefundAttentionKind] != 1 {
					t.Errorf("told %v", e)
				}
				if read := w.texts("ada"); read[len(read)-1] != "not_sent" || strings.Count(strings.Join(read, " "), "not_sent") != 1 {
					t.Errorf("the payer, who waits to hear that it is sent, read %q", read)
				}
				w.passes(5, 48*time.Hour)
				if n := w.calls()["disburse"]; n != 4 {
					t.Errorf("the bank was told %d times", n)
				}
				w.proven()
				// Somebody has it sent again, in vain: the payer may have asked meanwhile, and heard that it is on its way.
				w.must(w.retryRefund(r))
				r = w.refuses(session.ID, 5)
				w.until("the payer hears that it is not sent", func() bool { return strings.Count(strings.Join(w.texts("ada"), " "), "not_sent") == 2 })
				w.proven()
				// Somebody looks: the payer has another account now.
				w.weather(rail.Conditions{})
				w.must(w.retryRefund(r))
				if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded || p.ResolvedBy != "wsp_key_1" || p.Unapplied != 0 || p.Refunded != 500_000 {
					t.Errorf("on its way: %+v", p)
				}
				w.sentBack(session.ID)
				w.lies(session.ID, nil)
				w.proven()
			})
		})
	}
}

// A person may decide otherwise about money that the bank does not send.
func TestMoneyThatIsRefusedTooOftenCanBeAccepted(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "refund" })
		w.givenUp(session.ID)
		p, err := w.resolve(p.ID, true)
		if err != nil || p.Applied != 500_000 || w.read(session.ID).Status != flow.SessionPaid {
			t.Errorf("%+v (%v)", p, err)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		w.waitsNoMore(session.ID, "The bank refused it: ", " Its money was accepted.")
	})
}

// What is given up because the bank refused it too often may have been sent all the same:
// a bank that says so is asked, and it is neither sent again nor decided about.
func TestMoneyThatIsRefusedTooOftenMayHaveBeenSent(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.weather(rail.Conditions{Refunds: rail.FateReject})
	session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "refund" })
	r := w.givenUp(session.ID)
	w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
	})
	w.paidOut(r.Reference, "B1", r.Amount)
	w.becomes(r.ID, flow.RefundProcessed)
	w.lies(session.ID, nil)
	if _, err := w.resolve(p.ID, true); flow.CodeOf(err) != flow.CodeNotResolvable {
		t.Errorf("it is accepted: %v", err)
	}
}

// What is given up waits for somebody: it does not go back by the clock because another
// refund of its payment, which the bank had by then, is sent.
func TestMoneyThatIsRefusedTooOftenWaitsWhateverElseIsSent(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.weather(rail.Conditions{Refunds: rail.FatePending})
	session := w.payingUnder(func(p *flow.Policy) { p.Overpayment = "refund_excess" })
	p := w.comes(session.ID, 600_000)
	excess, other := w.refundsOf(session.ID)[0], w.ordered(p, 200_000)
	w.rest()
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{}, rail.ErrRejected
		}
		r.onSentOut = func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if name == other.Reference {
				return call()
			}
			return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "No such account."}, nil
		}
	})
	w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: excess.Reference, Amount: excess.Amount, PaidAt: w.clock()}))
	for range 3 {
		w.becomes(excess.ID, flow.RefundFailed)
		w.later(w.payment(p.ID).ReturnsAt.Sub(w.clock()))
	}
	w.becomes(excess.ID, flow.RefundAttention)
	w.paidOut(other.Reference, "B1", other.Amount)
	w.becomes(other.ID, flow.RefundProcessed)
	if p = w.payment(p.ID); !p.ReturnsAt.IsZero() || p.Unapplied != excess.Amount {
		t.Errorf("it waits for the clock: %+v", p)
	}
	w.becomes(excess.ID, flow.RefundAttention)
}

// waitsNoMore fails where a refund of a session that waited for somebody does not end, for
// this reason, or would still keep its payer.
func (w *world) waitsNoMore(id flow.SessionID, begins, ends string) {
	w.t.Helper()
	r := w.refundsOf(id)[0]
	if r.Status != flow.RefundFailed || !r.PutBack || !strings.HasPrefix(r.Failure, begins) || !strings.HasSuffix(r.Failure, ends) {
		w.t.Errorf("what waited became %+v", r)
	}
	if open, err := w.db.UnsettledOf(w.t.Context(), id, w.clock()); err != nil || len(open) > 0 {
		w.t.Errorf("not over: %+v (%v)", open, err)
	}
	w.proven()
}

// Money that the bank does not send under one refund can go under another, ordered by
// hand: the first one waits for nobody then.
func TestMoneyThatIsRefusedTooOftenCanGoAnotherWay(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "refund" })
		first := w.givenUp(session.ID)
		w.weather(rail.Conditions{})
		_, err := w.service.Refund(t.Context(), checkout.NewRefund{Payment: p.ID}, call("", "", nil))
		w.must(err)
		w.until("it is sent", func() bool {
			w.later(time.Second)
			return len(w.refundsOf(session.ID)) == 2 && w.refundsOf(session.ID)[1].Status == flow.RefundProcessed
		})
		w.lies(session.ID, nil)
		w.waitsNoMore(session.ID, "", "and is not tried again by itself. Its money went back another way.")
		if err := w.retryRefund(first); flow.CodeOf(err) != flow.CodeRefundExceeds {
			t.Errorf("sent again: %v", err)
		}
		if e := w.events(session.ID); e[flow.RefundFailedKind] != 4 || e[flow.RefundProcessedKind] != 1 || e[flow.RefundAttentionKind] != 1 {
			t.Errorf("told %v", e)
		}
	})
}

// A payer who was told that money goes back hears each time that the bank does not send
// it, for they may have asked meanwhile and heard that it is on its way, and that it was
// sent after all.
func TestThePayerHearsThatTheBankDoesNotSendMoneyBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "review" })
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		_, err := w.resolve(p.ID, false)
		w.must(err)
		w.must(w.retryRefund(w.refuses(session.ID, 1)))
		r := w.refuses(session.ID, 2)
		w.weather(rail.Conditions{})
		w.must(w.retryRefund(r))
		w.sentBack(session.ID)
		want := []string{"paid_late", "returning", "not_sent", "not_sent", "refunded"}
		if read := w.texts("ada"); !slices.Equal(read[max(0, len(read)-len(want)):], want) {
			t.Errorf("the payer read %q", read)
		}
	})
}

// The second time may do.
func TestWhatIsSentAgainByItselfArrives(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, part := w.stuckPart()
		// The payer pays the whole of it meanwhile: the part is still theirs.
		w.pay(session.ID, 500_000, false)
		w.until("it is paid", func() bool { return w.read(session.ID).Status == flow.SessionPaid })
		w.rest()
		w.pass(w.payment(part.ID).ReturnsAt.Sub(w.clock()))
		r := w.sentBack(session.ID)
		if r.Amount != 200_000 || r.Reference != string(r.ID)+"-2" {
			t.Errorf("%+v", r)
		}
		if part = w.payment(part.ID); part.Resolution != flow.ResolvedRefunded || part.ResolvedBy != flow.ByPolicy || part.Refunded != 200_000 || part.Unapplied != 0 {
			t.Errorf("the part: %+v", part)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
		w.proven()
	})
}

// A merchant sends a refund that failed again: from where its money lies by then.
func TestAMerchantRetriesARefundThatFailed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(600_000) // of which ₦1,000 is too much
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		made := w.ordered(p, 600_000)
		for i := range 5 { // as often as they like
			r := w.refuses(session.ID, i+1)
			if r.Status != flow.RefundFailed || r.Aside != 100_000 {
				t.Fatalf("%+v", r)
			}
			if i == 4 {
				w.weather(rail.Conditions{})
			}
			w.must(w.retryRefund(made))
		}
		w.rest()
		w.pass(time.Second)
		w.becomes(made.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.MerchantPending: 17_500, flow.Fees: -17_500})
		w.proven()
	})
}

// A bank that changed its mind is asked before anything is sent under another name.
func TestWhatWasRefusedIsAskedAboutBeforeItIsSentAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p, r := w.lateRefused()
		w.rail.sentOut(func(reference string, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if reference != r.Reference {
				t.Errorf("asked about %s", reference)
			}
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
		})
		w.pass(time.Hour)
		r = w.becomes(r.ID, flow.RefundProcessed)
		// The bank says once more what it said first.
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "B0", Amount: r.Amount, PaidAt: w.clock()}))
		w.becomes(r.ID, flow.RefundProcessed)
		if n := w.calls()["disburse"]; n != 1 || r.Reference != string(r.ID) || r.RailTransactionID != "B1" {
			t.Errorf("told %d times: %+v", n, r)
		}
		if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded || p.Unapplied != 0 || !p.ReturnsAt.IsZero() {
			t.Errorf("%+v", p)
		}
		w.lies(session.ID, nil)
	})
}

// What the merchant sends back whole does not wait any more, and the clock does
// not send it once more; what then fails waits again.
func TestWhatTheMerchantSendsBackWholeDoesNotWait(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.lateMoney(func(*flow.Policy) {})
		if p.ReturnsAt.IsZero() {
			t.Fatalf("it does not wait: %+v", p)
		}
		w.goesBack(p, 100_000)
		if p = w.payment(p.ID); p.Resolution != flow.Unresolved || p.ReturnsAt.IsZero() || p.Unapplied != 400_000 {
			t.Errorf("a part of it went back: %+v", p)
		}
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		rest := w.ordered(p, 400_000)
		if p = w.payment(p.ID); p.Resolution != flow.ResolvedRefunded || p.ResolvedBy != "wsp_key_1" || p.ResolvedWhy != "it came back" || !p.ReturnsAt.IsZero() || p.Unapplied != 0 {
			t.Errorf("all of it goes back: %+v", p)
		}
		w.rest()
		w.pass(time.Second)
		w.becomes(rest.ID, flow.RefundFailed)
		if p = w.payment(p.ID); p.Resolution != flow.Unresolved || !p.ReturnsAt.Equal(w.clock().Add(flow.ReturnAfter)) || p.Unapplied != 400_000 {
			t.Errorf("it could not: %+v", p)
		}
		w.weather(rail.Conditions{})
		w.goesBack(p, 400_000)
		w.later(3 * flow.ReturnAfter)
		if list := w.refundsOf(session.ID); len(list) != 3 {
			t.Errorf("the clock sent it once more: %+v", list)
		}
		w.lies(session.ID, nil)
		w.proven()
	})
}
