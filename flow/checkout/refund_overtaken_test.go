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

// givenUp waits until the one refund of a session was refused so often that somebody
// must look.
func (w *world) givenUp(id flow.SessionID) flow.Refund {
	w.t.Helper()
	for i := range 3 {
		r := w.refuses(id, i+1)
		w.later(w.payment(r.Payment).ReturnsAt.Sub(w.clock()))
	}
	r := w.refuses(id, 4)
	if r.Status != flow.RefundAttention {
		w.t.Fatalf("refused four times: %+v", r)
	}
	return r
}

// bankTakes has the bank take some of a payment back, in a movement of that name.
func (w *world) bankTakes(p flow.Payment, amount flow.Kobo, name string) {
	w.t.Helper()
	back := credit(name, "", amount, w.clock())
	back.Kind, back.Reverses = flow.Reversal, p.RailTransactionID
	w.must(w.tell(back))
}

// record is the charge of a session as its merchant reads it.
func (w *world) record(id flow.SessionID) flow.ChargeRecord {
	w.t.Helper()
	return w.service.RecordCharge(checkout.View{Session: w.read(id), Attempts: w.attempts(id), Payments: w.payments(id)})
}

// A part whose refund somebody must look at is the merchant's once the rest came and
// was accepted: then nothing of it is to be sent, whoever retries that.
func TestARefundEndsWhereItsMoneyIsAcceptedBesideOthers(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]string{"a person accepts the rest": "review", "the policy takes the rest": "accept"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				w.weather(rail.Conditions{Refunds: rail.FateReject})
				session := w.payingUnder(func(p *flow.Policy) { p.LatePayment = late })
				part := w.comes(session.ID, 300_000)
				w.later(2 * time.Hour)
				w.later(flow.ReturnAfter)
				w.givenUp(session.ID)
				w.weather(rail.Conditions{})
				rest := w.comes(session.ID, 200_000)
				if late == "review" {
					if _, err := w.resolve(rest.ID, true); err != nil {
						t.Fatal(err)
					}
				}
				if s, p := w.read(session.ID), w.payment(part.ID); s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || p.Applied != 300_000 || p.Unapplied != 0 {
					t.Fatalf("paid with both: %+v, and the part %+v", s, p)
				}
				w.waitsNoMore(session.ID, "The bank refused it: ", " Its money was accepted.")
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.MerchantPending: -482_500, flow.Fees: -17_500})
				w.proven()
			})
		})
	}
}

// Where some of the money of a refund that somebody must look at went back another
// way, it says so, and the rest waits for a decision and its time as such money does.
func TestARefundOfWhichAPartWentBackLeavesTheRestToTheClock(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.weather(rail.Conditions{Refunds: rail.FateReject})
		session, p := w.lateMoney(func(*flow.Policy) {})
		w.later(flow.ReturnAfter)
		first := w.givenUp(session.ID)
		w.weather(rail.Conditions{})
		w.goesBack(p, 1)
		r := w.becomes(first.ID, flow.RefundFailed)
		if !strings.HasSuffix(r.Failure, "Some of its money went back another way, and the rest waits for a decision.") {
			t.Errorf("it ended because %q", r.Failure)
		}
		if p = w.payment(p.ID); p.Unapplied != 499_999 || !p.Waits(session) || p.ReturnsAt.Sub(w.clock()) > flow.ReturnAfter || p.ReturnsAt.Before(w.clock()) {
			t.Fatalf("the rest: %+v at %s", p, w.clock())
		}
		w.later(p.ReturnsAt.Sub(w.clock()))
		w.until("the rest goes back", func() bool { w.later(time.Second); return w.payment(p.ID).Refunded == 500_000 })
		w.until("it is sent", func() bool {
			w.later(time.Second)
			return !slices.ContainsFunc(w.refundsOf(session.ID), flow.Refund.Open)
		})
		w.lies(session.ID, nil)
		w.proven()
	})
}

// A part that goes back by policy while its session is open, and that the bank refuses,
// may be decided about; and what is left of it after a refund of the merchant's own goes
// back when its time comes.
func TestAPartThatAPolicySendsBackMayBeDecidedAbout(t *testing.T) {
	t.Parallel()
	refused := func(w *world) (flow.Session, flow.Payment) {
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		n := newSession(flow.InChat)
		n.Policy.Underpayment = "refund"
		session := w.opened(n)
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		p := w.comes(session.ID, 300_000)
		w.refuses(session.ID, 1)
		w.weather(rail.Conditions{})
		if s := w.read(session.ID); !s.Open() {
			w.t.Fatalf("the session is %s", s.Status)
		}
		return session, w.payment(p.ID)
	}
	each(t, func(w *world) {
		t := w.t
		session, p := refused(w)
		w.ordered(p, 1)
		w.later(w.payment(p.ID).ReturnsAt.Sub(w.clock()))
		w.until("the rest goes back", func() bool { w.later(time.Second); return w.payment(p.ID).Refunded == 300_000 })
		if s := w.read(session.ID); !s.Open() || s.AmountPaid != 0 {
			t.Errorf("its session: %+v", s)
		}
		w.until("it is sent", func() bool {
			w.later(time.Second)
			return !slices.ContainsFunc(w.refundsOf(session.ID), flow.Refund.Open)
		})
		w.lies(session.ID, nil)

		for _, accept := range []bool{true, false} {
			session, p := refused(w)
			p, err := w.resolve(p.ID, accept)
			w.must(err)
			w.rest()
			if s := w.read(session.ID); accept != (s.Status == flow.SessionPaid) || accept != (p.Applied == 300_000) || accept == (p.Refunded == 300_000) {
				t.Errorf("accepted: %v: %+v, %+v", accept, s, p)
			}
		}
		w.proven()
	})
}

// Money that is accepted piece by piece counts the same in whatever order that is done.
func TestWhatIsAcceptedAfterwardsCountsForItsSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		part, late, second flow.Kobo // what comes in time, and late
		paid               flow.Kobo
		excess             string
		marks              []flow.Exception
	}{
		"a part and the rest, the part first": {part: 300_000, late: 200_000, paid: 500_000, marks: []flow.Exception{flow.PaidLate}},
		"too little, and then too much":       {late: 300_000, second: 500_000, paid: 500_000, excess: "300000", marks: []flow.Exception{flow.Overpaid, flow.PaidLate}},
		"too little twice":                    {late: 100_000, second: 200_000, paid: 300_000, marks: []flow.Exception{flow.PaidLate, flow.PartiallyPaid}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				session := w.payingUnder(func(*flow.Policy) {})
				var all []flow.Payment
				if c.part > 0 {
					all = append(all, w.comes(session.ID, c.part))
				}
				w.later(2 * time.Hour)
				all = append(all, w.comes(session.ID, c.late))
				if c.second > 0 {
					all = append(all, w.comes(session.ID, c.second))
				}
				for _, p := range all {
					if _, err := w.resolve(p.ID, true); err != nil {
						t.Fatal(err)
					}
				}
				s, r := w.read(session.ID), w.record(session.ID)
				slices.Sort(s.Exceptions)
				taken := c.part + c.late + c.second
				if s.AmountPaid != c.paid || !slices.Equal(s.Exceptions, c.marks) || r.ExcessMinor != c.excess || r.AmountPaidMinor != c.paid.Minor() || r.NetMinor != (taken-flow.Fee(taken)).Minor() {
					t.Errorf("%d of it paid, %v, and the charge says %+v", s.AmountPaid, s.Exceptions, r)
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: taken, flow.MerchantPending: flow.Fee(taken) - taken, flow.Fees: -flow.Fee(taken)})
				w.proven()
			})
		})
	}
}

// What the bank took back of money whose refund then failed is lost once, and not what
// that refund had set aside besides.
func TestALossIsCountedOnceWhereARefundFailsAfterIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		p := w.comes(session.ID, 700_000)
		if _, err := w.resolve(p.ID, false); err != nil {
			t.Fatal(err)
		}
		w.until("the bank is told", func() bool { w.later(time.Second); return w.refundsOf(session.ID)[0].Tries == 1 })
		w.bankTakes(p, 700_000, "B1")
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		w.until("it fails", func() bool { w.later(time.Minute); return w.refundsOf(session.ID)[0].Status == flow.RefundFailed })
		w.lies(session.ID, nil)
		if p = w.payment(p.ID); p.Net() != 0 || p.Refunded != 0 || p.Resolution != flow.Unresolved {
			t.Errorf("the payment brought %d: %+v", p.Net(), p)
		}
		if r := w.record(session.ID); r.NetMinor != "0" || r.RefundedMinor != "" {
			t.Errorf("the charge says %+v", r)
		}
	})
}

// A charge says of itself what of it went back, and what was lost of what was sent back
// before; not what became of a second payment.
func TestAChargeSaysWhatBecameOfItsOwnMoney(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		w.comes(session.ID, 500_000)
		w.comes(session.ID, 500_000)
		w.later(flow.ReturnAfter)
		w.sentBack(session.ID)
		if r := w.record(session.ID); r.RefundedMinor != "" || r.AmountPaidMinor != "500000" || r.NetMinor != "482500" {
			t.Errorf("after a second payment went back: %+v", r)
		}

		session, _ = w.paying()
		part := w.comes(session.ID, 300_000)
		w.goesBack(part, 100_000)
		w.bankTakes(part, 300_000, "B2")
		w.comes(session.ID, 500_000)
		if r := w.record(session.ID); r.NetMinor != "382500" || w.payment(part.ID).Net() != -100_000 {
			t.Errorf("after the bank took back what had gone back: %+v", r)
		}
	})
}

// What becomes of a refund is told under the reference that its money was told under,
// whichever attempt came after.
func TestARefundIsToldUnderTheReferenceOfItsMoney(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		n := newSession(flow.InChat)
		n.Policy.LatePayment, n.Reference, n.ExpiresIn = "refund", "", 2*time.Hour
		session := w.opened(n)
		w.hear("ada", code(session))
		w.hear("ada", method(flow.BankTransfer))
		first := w.attempts(session.ID)[0]
		w.later(time.Hour) // its account is over
		w.hear("ada", method(flow.BankTransfer))
		if all := w.attempts(session.ID); len(all) != 2 {
			t.Fatalf("%d attempts", len(all))
		}
		w.later(2 * time.Hour)
		w.must(w.tell(credit("T9", first.Reference, 500_000, w.clock())))
		w.rest()
		for _, kind := range []flow.EventKind{flow.ChargeLate, flow.RefundPendingKind} {
			told := w.deliveries(kind)
			if len(told) != 1 || !strings.Contains(string(told[0].Body), `"reference":"`+first.Reference+`"`) {
				t.Errorf("%s is not told under %s: %s", kind, first.Reference, told[0].Body)
			}
		}
	})
}

// Of money that came back to us the bank may take some: the rest is still its payer's,
// and who asks hears so beside what the bank took.
func TestWhatCameBackIsToldBesideWhatTheBankTookOfIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.weather(rail.Conditions{Refunds: rail.FateBounce})
		session := w.payingUnder(func(p *flow.Policy) { p.Underpayment = "refund" })
		part := w.comes(session.ID, 300_000)
		w.until("it came back", func() bool {
			w.later(time.Second)
			return w.refundsOf(session.ID)[0].Status == flow.RefundAttention
		})
		w.bankTakes(part, 100_000, "R1")
		w.rest()
		if read := w.lastRead(3); read != "came_back taken_back came_back" {
			w.t.Errorf("the payer read %q", read)
		}
		w.hear("ada", flow.Intent{Kind: flow.MeansMoney})
		w.rest()
		if read := w.lastRead(2); read != "taken_back came_back" {
			w.t.Errorf("who asked read %q", read)
		}
		w.bankTakes(part, 200_000, "R2")
		w.hear("ada", flow.Intent{Kind: flow.MeansMoney})
		w.rest()
		if read := w.lastRead(2); read != "money_none taken_back" {
			w.t.Errorf("once the bank took all of it: %q", read)
		}
	})
}

// A payer whose late money goes back by policy is promised none of what the bank had
// taken back before we heard of the money.
func TestWhatWasTakenBackBeforeItsCreditIsPromisedToNobody(t *testing.T) {
	t.Parallel()
	for taken, told := range map[flow.Kobo]string{500_000: "session_over reversed", 200_000: "returning taken_back"} {
		each(t, func(w *world) {
			session := w.payingUnder(func(p *flow.Policy) { p.LatePayment = "refund" })
			a := w.attempts(session.ID)[0]
			w.later(2 * time.Hour)
			w.unreached(true) // so that what goes back is on its way
			w.must(w.tell(reversal("R1", "T1", a, taken, w.clock()), said(flow.Credit, "T1", a, 500_000, w.clock())))
			w.rest()
			if read := w.lastRead(2); read != told {
				w.t.Errorf("of ₦5,000, of which the bank took %d kobo, the payer read %q", taken, read)
			}
			if taken < 500_000 {
				w.tells(session.ID, "The chat hears that money that was set aside goes back (₦3,000).")
				w.hear("ada", flow.Intent{Kind: flow.MeansMoney})
				w.rest()
				if read := w.lastRead(4); read != "session_over taken_back went_back human" {
					w.t.Errorf("who asked read %q", read)
				}
			}
		})
	}
}

// Nor is it promised to anybody, or said to be safe, whatever such money came to, and
// however often the bank took some of it.
func TestWhatWasTakenBackBeforeItsCreditIsSaidToBeSafeToNobody(t *testing.T) {
	t.Parallel()
	refunding := func(p *flow.Policy) { p.LatePayment, p.Overpayment = "refund", "refund_excess" }
	for name, c := range map[string]struct {
		policy func(*flow.Policy)
		wait   time.Duration
		before flow.Kobo // came in time
		amount flow.Kobo
		taken  []flow.Kobo
		told   string // the last of it
		story  string
	}{
		"late":                 {func(*flow.Policy) {}, 2 * time.Hour, 0, 500_000, []flow.Kobo{500_000}, "session_over reversed", ""},
		"some of late":         {func(*flow.Policy) {}, 2 * time.Hour, 0, 500_000, []flow.Kobo{200_000}, "paid_late reversed", "The chat hears that money came after the payment was over (₦3,000)."},
		"late in two":          {refunding, 2 * time.Hour, 0, 500_000, []flow.Kobo{200_000, 300_000}, "session_over reversed reversed", ""},
		"some of it in two":    {refunding, 2 * time.Hour, 0, 500_000, []flow.Kobo{100_000, 200_000}, "returning taken_back taken_back", "The chat hears that money that was set aside goes back (₦2,000)."},
		"twice":                {func(*flow.Policy) {}, 0, 500_000, 500_000, []flow.Kobo{500_000}, "receipt taken_back", ""},
		"some of twice":        {func(*flow.Policy) {}, 0, 500_000, 500_000, []flow.Kobo{200_000}, "paid_twice taken_back", ""},
		"too much":             {func(*flow.Policy) {}, 0, 0, 600_000, []flow.Kobo{600_000}, "receipt reversed", ""},
		"what is too much":     {func(*flow.Policy) {}, 0, 0, 600_000, []flow.Kobo{100_000}, "receipt taken_back", ""},
		"some of that":         {func(*flow.Policy) {}, 0, 0, 600_000, []flow.Kobo{40_000}, "receipt paid_over taken_back", ""},
		"what goes back":       {refunding, 0, 0, 600_000, []flow.Kobo{100_000}, "receipt taken_back", ""},
		"some of what does so": {refunding, 0, 0, 600_000, []flow.Kobo{40_000}, "receipt over_returned taken_back", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				session := w.payingUnder(c.policy)
				a := w.attempts(session.ID)[0]
				w.later(c.wait)
				var notices []flow.Notice
				if c.before > 0 {
					notices = append(notices, said(flow.Credit, "T0", a, c.before, w.clock()))
				}
				for i, taken := range c.taken {
					notices = append(notices, reversal(fmt.Sprint("R", i), "T1", a, taken, w.clock()))
				}
				w.must(w.tell(append(notices, said(flow.Credit, "T1", a, c.amount, w.clock()))...))
				w.rest()
				if read := w.lastRead(1 + strings.Count(c.told, " ")); read != c.told {
					w.t.Errorf("the payer read %q", read)
				}
				if c.story != "" {
					w.tells(session.ID, c.story)
				}
			})
		})
	}
}

// A bank that does not say which credit it took back means one of that amount, which is
// another one where it named what it took of this: the rest of this goes back.
func TestWhatWasTakenBackOfAnotherCreditGoesBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session := w.payingUnder(func(p *flow.Policy) { p.LatePayment = "refund" })
		a := w.attempts(session.ID)[0]
		w.later(2 * time.Hour)
		w.unreached(true)
		w.must(w.tell(reversal("R1", "T1", a, 200_000, w.clock()), reversal("R2", "", a, 500_000, w.clock()), said(flow.Credit, "T1", a, 500_000, w.clock())))
		w.rest()
		if read := w.lastRead(2); read != "returning taken_back" {
			w.t.Errorf("the payer read %q", read)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.RefundsPayable: -300_000})
		w.must(w.tell(said(flow.Credit, "T2", a, 500_000, w.clock())))
		w.rest()
		if read := w.lastRead(2); read != "taken_back reversed" {
			w.t.Errorf("of the other one the payer read %q", read)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.RefundsPayable: -300_000})
	})
}

// Nor is a part promised back that came in time, and that we heard of once its session was
// over.
func TestAPartThatWasTakenBackBeforeItsCreditIsPromisedToNobody(t *testing.T) {
	t.Parallel()
	for taken, told := range map[flow.Kobo]string{200_000: "session_over taken_back", 80_000: "returning taken_back"} {
		each(t, func(w *world) {
			session := w.payingUnder(func(p *flow.Policy) { p.Underpayment = "refund" })
			a, at := w.attempts(session.ID)[0], w.clock()
			w.later(2 * time.Hour)
			w.must(w.tell(reversal("R1", "T1", a, taken, at), said(flow.Credit, "T1", a, 200_000, at)))
			w.rest()
			if read := w.lastRead(2); read != told {
				w.t.Errorf("of ₦2,000, of which the bank took %d kobo, the payer read %q", taken, read)
			}
			if taken < 200_000 {
				w.tells(session.ID, "The chat hears that less came than was asked for, and goes back (₦1,200).")
			}
		})
	}
}
