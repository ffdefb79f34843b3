package checkout_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

func TestMoneyThatIsTakenBackUndoesWhatItBooked(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		paid, back := said(flow.Credit, "T1", a, 600_000, w.clock()), reversal("R1", "T1", a, 600_000, w.clock())
		w.must(w.tell(paid))
		for range 3 {
			w.must(w.tell(back, paid, back))
		}
		w.rest()
		s := w.read(session.ID)
		if s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || !slices.Equal(s.Exceptions, []flow.Exception{flow.Overpaid, flow.Reversed}) {
			t.Errorf("%s with %d, %v", s.Status, s.AmountPaid, s.Exceptions)
		}
		if left := w.accounts(session.ID); len(left) != 0 {
			t.Errorf("the ledger still says %v", left)
		}
		if e := w.events(session.ID); e[flow.ChargeReversed] != 1 || e[flow.ChargeSuccess] != 1 {
			t.Errorf("told %v", e)
		}
		told := slices.DeleteFunc(w.texts("ada"), func(s string) bool { return s != "reversed" })
		if len(told) != 1 {
			t.Errorf("the payer read %q", w.texts("ada"))
		}
		p, _, err := w.db.PaymentByTransaction(t.Context(), "T1")
		if err != nil || p.Match != flow.Excess || p.Amount != 600_000 || p.Reversed != 600_000 {
			t.Errorf("the payment became %+v (%v)", p, err)
		}
		if queue, err := w.service.Desk(t.Context()); err != nil || len(queue) != 1 {
			t.Errorf("%d chats wait for a person (%v)", len(queue), err)
		}
	})
}

func TestItDoesNotMatterWhetherTheCreditOrItsReversalIsHeardOfFirst(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, named := range []string{"T1", ""} {
			session, a := w.paying()
			id := "T1" + a.Reference
			of := named
			if named != "" {
				of = id
			}
			back := reversal("R1"+a.Reference, of, a, 500_000, w.clock())
			w.must(w.tell(back))
			if s := w.read(session.ID); s.Status != flow.SessionPending || len(s.Exceptions) != 0 {
				t.Fatalf("before its credit: %+v", s)
			}
			for range 2 {
				w.must(w.tell(said(flow.Credit, id, a, 500_000, w.clock()), back))
			}
			w.rest()
			s := w.read(session.ID)
			if s.Status != flow.SessionPaid || !slices.Equal(s.Exceptions, []flow.Exception{flow.Reversed}) || len(w.accounts(session.ID)) != 0 {
				t.Errorf("%s, %v, the ledger %v", s.Status, s.Exceptions, w.accounts(session.ID))
			}
			if e := w.events(session.ID); e[flow.ChargeReversed] != 1 || e[flow.ChargeSuccess] != 1 {
				t.Errorf("told %v", e)
			}
			if got := w.last(); !slices.Contains(w.texts("ada"), "reversed") {
				t.Errorf("the payer read %q at last", got)
			}
			w.must(w.tell(said(flow.Credit, id+"-2", a, 500_000, w.clock()))) // was not taken back
			w.balanced(session.ID, 500_000)
		}
	})
}

// Of money that a policy sends back nothing is sent that the bank has taken back
// already, and no event says otherwise.
func TestWhatWasTakenBackBeforeItsCreditIsNotSaidToGoBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.rail.set(func(r *shakyRail) { // it takes on what is left to send
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
			}
		})
		for name, c := range map[string]struct {
			policy          func(*flow.Policy)
			wait            time.Duration
			amount, taken   flow.Kobo
			unapplied, back string // as charge.reversed says
			last            flow.Resolution
		}{
			"late":         {func(p *flow.Policy) { p.LatePayment = "refund" }, 2 * time.Hour, 500_000, 500_000, "0", "0", flow.Unresolved},
			"some of late": {func(p *flow.Policy) { p.LatePayment = "refund" }, 2 * time.Hour, 500_000, 200_000, "0", "300000", flow.ResolvedRefunded},
			"too little":   {func(p *flow.Policy) { p.Underpayment = "refund" }, 0, 300_000, 300_000, "0", "0", flow.Unresolved},
			"too much":     {func(p *flow.Policy) { p.Overpayment = "refund_excess" }, 0, 700_000, 700_000, "0", "0", flow.Unresolved},
			"an excess":    {func(p *flow.Policy) { p.Overpayment = "refund_excess" }, 0, 700_000, 50_000, "0", "150000", flow.ResolvedRefunded},
		} {
			session := w.payingUnder(c.policy)
			a := w.attempts(session.ID)[0]
			w.pass(c.wait)
			w.rest()
			id := "T" + a.Reference
			w.must(w.tell(reversal("R"+a.Reference, id, a, c.taken, w.clock()), said(flow.Credit, id, a, c.amount, w.clock())))
			w.rest()
			p, _, err := w.db.PaymentByTransaction(t.Context(), id)
			w.must(err)
			if p.Refunded.Minor() != c.back || p.Unapplied.Minor() != c.unapplied || p.Resolution != c.last || p.Reversed != c.taken {
				t.Errorf("%s: the payment became %+v", name, p)
			}
			events, err := w.db.Events(t.Context(), session.ID)
			w.must(err)
			told := 0
			for _, e := range events {
				if e.Kind != flow.ChargeReversed {
					continue
				}
				told++
				var body struct {
					Data struct{ Payment flow.PaymentRecord }
				}
				w.must(json.Unmarshal(e.Body, &body))
				if got := body.Data.Payment; got.UnappliedMinor != c.unapplied || got.RefundedMinor != c.back || got.ReversedMinor != c.taken.Minor() {
					t.Errorf("%s: the event says that %s are set aside, %s go back and %s are taken back", name, got.UnappliedMinor, got.RefundedMinor, got.ReversedMinor)
				}
			}
			if told != 1 {
				t.Errorf("%s: told %v", name, w.events(session.ID))
			}
		}
	})
}

// A bank may take a credit back in parts, and tell of all of them before it. They
// count whether or not it tells of them again after the credit.
func TestEachPartThatWasTakenBackBeforeItsCreditCounts(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprintf("told again %t", again), func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				session, a := w.paying()
				first, second := reversal("R1", "T1", a, 30_000, w.clock()), reversal("R2", "T1", a, 20_000, w.clock())
				credit := said(flow.Credit, "T1", a, 500_000, w.clock())
				if again {
					w.must(w.tell(first, second, first))
					w.must(w.tell(credit, second, first))
				} else {
					w.must(w.tell(first, second))
					w.must(w.tell(credit))
				}
				w.rest()
				p, _, err := w.db.PaymentByTransaction(t.Context(), "T1")
				if err != nil || p.Reversed != 50_000 {
					t.Errorf("of the payment %d kobo are taken back: %+v (%v)", p.Reversed, p, err)
				}
				if left := w.accounts(session.ID); left[flow.RailClearing] != 450_000 {
					t.Errorf("the ledger says %v", left)
				}
			})
		})
	}
}

func TestOneReversalAtATimeWhateverComesAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		notices := []flow.Notice{said(flow.Credit, "T1", a, 500_000, w.clock()), reversal("R1", "T1", a, 500_000, w.clock())}
		w.rail.set(func(r *shakyRail) { r.parsed = notices })
		errs := make(chan error, 12)
		for range cap(errs) {
			go func() { errs <- w.service.Notice(t.Context(), nil, nil) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		w.rest()
		if left := w.accounts(session.ID); len(left) != 0 || w.events(session.ID)[flow.ChargeReversed] != 1 {
			t.Errorf("the ledger says %v, told %v", left, w.events(session.ID))
		}
	})
}

func TestAPartThatIsTakenBackIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock())))
	w.must(w.tell(reversal("R1", "", a, 200_000, w.clock())))
	w.rest()
	s := w.read(session.ID)
	if s.Status != flow.SessionPending || s.AmountPaid != 0 || !slices.Equal(s.Exceptions, []flow.Exception{flow.Reversed}) || w.attempts(session.ID)[0].Amount != 500_000 {
		t.Errorf("%+v, asked for %d", s, w.attempts(session.ID)[0].Amount)
	}
	w.must(w.tell(said(flow.Credit, "T2", a, 500_000, w.clock())))
	w.rest()
	if s := w.read(session.ID); s.Status != flow.SessionPaid || len(s.Exceptions) != 0 {
		t.Errorf("%s, with %v: all that it is paid with is there", s.Status, s.Exceptions)
	}
	left := w.accounts(session.ID)
	if left[flow.RailClearing] != 500_000 || left[flow.Unapplied] != 0 || left[flow.MerchantPending] != -482_500 {
		t.Errorf("the ledger says %v", left)
	}
}

// What the bank took of a part is told whenever its payer asks for the money, also once all is paid.
func TestWhoAsksForTheMoneyHearsWhatOfItWasTakenBack(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock()), reversal("R1", "T1", a, 50_000, w.clock())))
	w.must(w.tell(said(flow.Credit, "T2", a, 350_000, w.clock())))
	w.rest()
	w.is(session.ID, flow.SessionPaid)
	before := len(w.texts("ada"))
	w.hear("ada", flow.Intent{Kind: flow.MeansMoney})
	if got := w.texts("ada")[before:]; !slices.Equal(got, []string{"money_paid", "taken_back"}) {
		t.Errorf("answered %q", got)
	}
}

// What the bank took of one payer's money is not said to another, whose own waits for a decision.
func TestWhoseMoneyIsLateHearsNothingOfAnothersThatWasTakenBack(t *testing.T) {
	t.Parallel()
	w := one(t)
	session := w.payingUnder(func(*flow.Policy) {})
	ada := w.attempts(session.ID)[0]
	w.must(w.tell(said(flow.Credit, "T1", ada, 200_000, w.clock()), reversal("R1", "T1", ada, 200_000, w.clock())))
	w.hear("bola", code(session))
	w.hear("bola", method(flow.BankTransfer))
	w.later(2 * time.Hour)
	late := w.comes(session.ID, 500_000)
	asks := func(want ...string) {
		t.Helper()
		before := len(w.texts("bola"))
		w.hear("bola", flow.Intent{Kind: flow.MeansMoney})
		if got := w.texts("bola")[before:]; !slices.Equal(got, want) {
			t.Errorf("answered %q, not %q", got, want)
		}
	}
	asks("in_review", "paid_late")
	_, err := w.resolve(late.ID, false)
	w.must(err)
	w.rest()
	asks("session_over", "went_back", "human")
}

func TestTheSecondPaymentIsTakenBackWithoutDoubtAboutTheFirst(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"T2", ""} { // a bank that does not say which one means the last
		w := one(t)
		session, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T1", a, 500_000, w.clock())))
		w.later(time.Second)
		w.must(w.tell(said(flow.Credit, "T2", a, 500_000, w.clock()), reversal("R1", of, a, 500_000, w.clock())))
		w.rest()
		if s := w.read(session.ID); !slices.Equal(s.Exceptions, []flow.Exception{flow.DuplicatePayment}) {
			t.Errorf("%v", s.Exceptions)
		}
		if w.events(session.ID)[flow.ChargeReversed] != 1 || slices.Contains(w.texts("ada"), "reversed") {
			t.Errorf("told %v; the payer read %q", w.events(session.ID), w.texts("ada"))
		}
		w.balanced(session.ID, 500_000)
	}
}

// Nothing that a session is paid with is gone where the bank takes back what waits beside it.
func TestWhatWaitsBesideIsTakenBackWithoutDoubtAboutWhatIsPaid(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, first := w.lateMoney(func(*flow.Policy) {})
	second := w.comes(session.ID, 500_000)
	_, err := w.resolve(first.ID, true)
	w.must(err)
	w.is(session.ID, flow.SessionPaid)
	w.rest()
	before := len(w.texts("ada"))
	w.must(w.tell(reversal("R1", second.RailTransactionID, w.attempts(session.ID)[0], 500_000, w.clock())))
	w.rest()
	if s := w.read(session.ID); !slices.Equal(s.Exceptions, []flow.Exception{flow.PaidLate}) {
		t.Errorf("%v: all that it is paid with is there", s.Exceptions)
	}
	if got := w.texts("ada")[before:]; !slices.Equal(got, []string{"taken_back"}) {
		t.Errorf("the payer read %q", got)
	}
	if queue, err := w.service.Desk(t.Context()); err != nil || len(queue) != 0 {
		t.Errorf("%d chats wait for a person (%v)", len(queue), err)
	}
	if e := w.events(session.ID); e[flow.ChargeReversed] != 1 {
		t.Errorf("told %v", e)
	}
}

// A refund that the bank may have is not called off because the bank takes the payment
// back: that it is given to be sent again does not say that it was not sent.
func TestARefundThatTheBankMayHaveIsNotCalledOff(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.unreached(true)
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{}, rail.ErrUnavailable
		})
		r := w.ordered(p, 500_000)
		w.rest()
		w.passes(8, 24*time.Hour)
		w.becomes(r.ID, flow.RefundAttention)
		w.end() // so that nobody asks the bank yet
		w.open(true)
		w.must(w.retryRefund(r))
		w.must(w.tell(reversal("R1", p.RailTransactionID, w.attempts(session.ID)[0], 500_000, w.clock())))
		if r, err := w.db.Refund(t.Context(), r.ID); err != nil || r.Status != flow.RefundPending || r.PutBack {
			t.Fatalf("it is called off: %+v (%v)", r, err)
		}
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "S1", At: w.clock()}, nil
		})
		w.run()
		w.becomes(r.ID, flow.RefundProcessed)
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: -500_000, flow.MerchantPending: 500_000})
	})
}

func TestMoneyOfNobodyIsTakenBackToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		nobody := flow.Attempt{Reference: "wsp_ref_unknown"}
		w.must(w.tell(reversal("R1", "T1", nobody, 700, w.clock()), said(flow.Credit, "T1", nobody, 700, w.clock()))) // in any order
		w.must(w.tell(said(flow.Credit, "T2", nobody, 700, w.clock()), reversal("R2", "T2", nobody, 700, w.clock())))
		for _, id := range []string{"T1", "T2"} {
			p, found, err := w.db.PaymentByTransaction(t.Context(), id)
			booked, err2 := w.db.Booked(t.Context(), p.ID)
			if err != nil || err2 != nil || !found || p.Reversed != 700 || len(booked) != 4 {
				t.Errorf("%s: %+v, posted %v (%v, %v)", id, p, booked, err, err2)
			}
		}
	})
}

// A refund that the bank never took on is not ordered once the bank has taken the
// payment back itself, however often it was tried before.
func TestWhatWasTakenBackWhileTheBankCouldNotBeReachedIsNotSentToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		ordered := 0
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				ordered++
				return flow.Disbursed{}, rail.ErrUnavailable
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
		})
		session, p := w.lateMoney(func(p *flow.Policy) { p.LatePayment = "refund" })
		id := w.refundsOf(session.ID)[0].ID
		if r := w.becomes(id, flow.RefundProcessing); r.Tries != 1 || ordered != 1 {
			t.Fatalf("ordered %d times: %+v", ordered, r)
		}
		w.must(w.tell(reversal("R1", p.RailTransactionID, w.attempts(session.ID)[0], 500_000, w.clock())))
		w.becomes(id, flow.RefundProcessing) // the bank may have it
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{}, rail.ErrNotFound
		})
		w.pass(time.Minute)
		r := w.becomes(id, flow.RefundFailed)
		if ordered != 1 || !r.PutBack || r.Failure == "" {
			t.Errorf("ordered %d times: %+v", ordered, r)
		}
		w.lies(session.ID, nil)
		if e := w.events(session.ID); e[flow.RefundFailedKind] != 1 || e[flow.ChargeReversed] != 1 {
			t.Errorf("told %v", e)
		}
		w.passes(3, 24*time.Hour)
		w.becomes(id, flow.RefundFailed)
		if ordered != 1 {
			t.Errorf("ordered %d times", ordered)
		}
	})
}
