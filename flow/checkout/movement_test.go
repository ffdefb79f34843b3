package checkout_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// said is something that the bank says about an attempt.
func said(kind flow.NoticeKind, id string, a flow.Attempt, amount flow.Kobo, at time.Time) flow.Notice {
	n := credit(id, a.Reference, amount, at)
	n.Kind = kind
	return n
}

// reversal is the bank taking a credit back.
func reversal(id, of string, a flow.Attempt, amount flow.Kobo, at time.Time) flow.Notice {
	n := said(flow.Reversal, id, a, amount, at)
	n.Reverses = of
	return n
}

// accounts are the sums of a session's ledger.
func (w *world) accounts(id flow.SessionID) map[flow.LedgerAccount]flow.Kobo {
	w.t.Helper()
	posted, err := w.db.Ledger(w.t.Context(), id)
	w.must(err)
	out := map[flow.LedgerAccount]flow.Kobo{}
	for _, e := range posted {
		for _, line := range e.Postings {
			if out[line.Account] += line.Amount; out[line.Account] == 0 {
				delete(out, line.Account)
			}
		}
	}
	return out
}

// last is what ada read last.
func (w *world) last() string {
	texts := w.texts("ada")
	return texts[len(texts)-1]
}

func TestMoneyOnItsWayHoldsEverythingUntilItIsThere(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: a.Instructions.AccountNumber, PendingMs: 600_000})
		w.must(err)
		w.hear("ada", flow.Intent{Kind: flow.MeansOther})
		if s := w.read(session.ID); s.Status != flow.SessionProcessing || w.last() != "on_the_way" || w.attempts(session.ID)[0].Status != flow.AttemptActive {
			t.Fatalf("asked for another way, the session is %s, and the payer read %q", s.Status, w.texts("ada"))
		}
		w.pass(time.Second) // the answer that is remembered
		w.hear("ada", method(flow.Card))
		w.pass(time.Minute)
		w.hear("ada", flow.Intent{Kind: flow.MeansCancel})
		w.hear("ada", flow.Intent{Kind: flow.MeansConfirm})
		if s := w.read(session.ID); s.Status != flow.SessionProcessing || len(w.attempts(session.ID)) != 1 {
			t.Errorf("after a switch and a cancellation the session is %s: %+v", s.Status, w.attempts(session.ID))
		}
		if _, err := w.service.Cancel(t.Context(), session.ID, call("", "", nil)); flow.CodeOf(err) != flow.CodeNotCancellable {
			t.Errorf("its merchant cancelled it: %v", err)
		}
		w.pass(10 * time.Minute)
		w.until("the payment", func() bool { return w.read(session.ID).Status == flow.SessionPaid })
		w.rest()
		if n := w.events(session.ID)[flow.ChargeSuccess]; n != 1 || w.last() != "receipt" {
			t.Errorf("told %d times; the payer read %q", n, w.texts("ada"))
		}
		if n := w.lines(session.ID)["bank.answer"]; n > 2 {
			t.Errorf("what the bank said of one transfer stands in the log %d times", n)
		}
		w.balanced(session.ID, 500_000)
	})
}

func TestMoneyThatDoesNotComeAfterAllFreesTheSession(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		w.must(w.tell(said(flow.Pending, "T1", a, 500_000, w.clock()))) // told by itself, and to nobody who asks
		if s := w.read(session.ID); s.Status != flow.SessionProcessing {
			t.Fatalf("the session is %s", s.Status)
		}
		w.pass(5 * time.Minute)
		w.until("the session to be free", func() bool { return w.read(session.ID).Status == flow.SessionPending })
		w.rest()
		w.hear("ada", flow.Intent{Kind: flow.MeansCancel})
		w.hear("ada", flow.Intent{Kind: flow.MeansConfirm})
		w.is(session.ID, flow.SessionCancelled)
	})
}

func TestABankThatDoesNotAnswerDoesNotTakeMoneyOffItsWay(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Pending, "", a, 500_000, w.clock())))
	w.bankSilent()
	w.passes(4, 5*time.Minute)
	w.is(session.ID, flow.SessionProcessing)
}

func TestASessionDoesNotExpireUnderMoneyOnItsWayNorWaitForItForEver(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for _, comes := range []bool{true, false} {
			session, a := w.paying()
			pending := true
			w.rail.set(func(r *shakyRail) {
				r.onCheck = func(_ context.Context, reference string) ([]flow.Notice, error) {
					r.mu.Lock()
					defer r.mu.Unlock()
					if reference != a.Reference || !pending {
						return nil, nil
					}
					return []flow.Notice{said(flow.Pending, "P"+a.Reference, a, 500_000, session.CreatedAt)}, nil
				}
			})
			w.later(time.Minute)
			w.later(session.ExpiresAt.Sub(w.clock()) + time.Minute)
			if s := w.read(session.ID); s.Status != flow.SessionProcessing {
				t.Fatalf("a minute after its end the session is %s", s.Status)
			}
			w.hear("ada", flow.Intent{Kind: flow.MeansPaid})
			if got := w.last(); got != "on_the_way" {
				t.Errorf("who asked then read %q", got)
			}
			want := flow.SessionExpired
			if comes {
				want = flow.SessionPaid
				w.must(w.tell(said(flow.Credit, "P"+a.Reference, a, 500_000, session.ExpiresAt)))
			} else {
				w.pass(flow.WatchAfter)
			}
			w.until("the end", func() bool { return w.read(session.ID).Status == want })
			w.rail.set(func(*shakyRail) { pending = false })
			w.rest()
			if n := w.events(session.ID)[flow.ChargeReversed]; n != 0 {
				t.Errorf("%d reversals", n)
			}
		}
	})
}

func TestASessionWhoseTimeIsOverEndsWhenItsMoneyDoesNotCome(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	pending := true
	w.rail.set(func(r *shakyRail) {
		r.onCheck = func(context.Context, string) ([]flow.Notice, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !pending {
				return nil, nil
			}
			return []flow.Notice{said(flow.Pending, "P", a, 500_000, session.CreatedAt)}, nil
		}
	})
	w.later(24 * time.Hour)
	if s := w.read(session.ID); s.Status != flow.SessionProcessing {
		t.Fatalf("the session is %s", s.Status)
	}
	w.rail.set(func(*shakyRail) { pending = false })
	w.pass(5 * time.Minute)
	w.until("its end", func() bool { return w.read(session.ID).Status == flow.SessionExpired })
}

func TestAPartOfWhatWasOnItsWayIsHeldAsAnyPart(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Pending, "T1", a, 200_000, w.clock())))
	w.must(w.tell(said(flow.Credit, "T1", a, 200_000, w.clock())))
	w.must(w.tell(said(flow.Pending, "T1", a, 200_000, w.clock()))) // late, and overtaken
	w.rest()
	if s := w.read(session.ID); s.Status != flow.SessionPending || s.AmountPaid != 200_000 {
		t.Errorf("%s with %d", s.Status, s.AmountPaid)
	}
	w.must(w.tell(said(flow.Credit, "T2", a, 300_000, w.clock())))
	w.must(w.tell(said(flow.Pending, "T3", a, 300_000, w.clock()))) // after it was paid
	w.rest()
	if s := w.read(session.ID); s.Status != flow.SessionPaid {
		t.Errorf("%s after all of it came", s.Status)
	}
	w.balanced(session.ID, 500_000)
}

func TestWhatTheBankSendsBackIsToldOnceAndBookedNever(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		w.hear("obi", code(session))
		n := said(flow.Returned, "B1", a, 300_000, w.clock())
		w.must(w.tell(said(flow.Pending, "B1", a, 300_000, w.clock())))
		for range 3 {
			w.must(w.tell(n, n))
		}
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return []flow.Notice{n}, nil })
		w.passes(3, 5*time.Minute)
		told := slices.DeleteFunc(w.texts("ada"), func(s string) bool { return s != "sent_back" })
		if len(told) != 1 || slices.Contains(w.texts("obi"), "sent_back") {
			t.Errorf("who sent it read %q, somebody else %q", w.texts("ada"), w.texts("obi"))
		}
		if s := w.read(session.ID); s.Status != flow.SessionPending || s.AmountPaid != 0 || len(s.Exceptions) != 0 {
			t.Errorf("%+v", s)
		}
		if _, found, err := w.db.PaymentByTransaction(t.Context(), "B1"); found || err != nil {
			t.Errorf("it was kept as a payment (%v)", err)
		}
		w.balanced(session.ID, 0)
		if n := w.lines(session.ID); n["bank.notice"] != 4 || n["bank.answer"] != 0 { // on its way and sent back, for each of two chats
			t.Errorf("the story holds %v", n)
		}
		t.Run("and of nobody's account nothing is kept", func(t *testing.T) {
			w.must(w.tell(flow.Notice{Kind: flow.Returned, RailTransactionID: "B2", AccountNumber: "0000000009", Amount: 100, Channel: flow.BankTransfer, PaidAt: w.clock()}))
			if w.logs.count("was for no session") != 1 {
				t.Error("nobody was told")
			}
		})
	})
}

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

// A bank may take a credit back in parts, and tell of all of them before it.
func TestEachPartThatWasTakenBackBeforeItsCreditCounts(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		first, second := reversal("R1", "T1", a, 30_000, w.clock()), reversal("R2", "T1", a, 20_000, w.clock())
		w.must(w.tell(first, second, first))
		w.must(w.tell(said(flow.Credit, "T1", a, 500_000, w.clock()), second, first))
		w.rest()
		p, _, err := w.db.PaymentByTransaction(t.Context(), "T1")
		if err != nil || p.Reversed != 50_000 {
			t.Errorf("of the payment %d kobo are taken back: %+v (%v)", p.Reversed, p, err)
		}
		if left := w.accounts(session.ID); left[flow.RailClearing] != 450_000 {
			t.Errorf("the ledger says %v", left)
		}
	})
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
	if s := w.read(session.ID); s.Status != flow.SessionPaid {
		t.Errorf("%s", s.Status)
	}
	left := w.accounts(session.ID)
	if left[flow.RailClearing] != 500_000 || left[flow.Unapplied] != 0 || left[flow.MerchantPending] != -482_500 {
		t.Errorf("the ledger says %v", left)
	}
}

func TestTheSecondPaymentIsTakenBackWithoutDoubtAboutTheFirst(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Credit, "T1", a, 500_000, w.clock()), said(flow.Credit, "T2", a, 500_000, w.clock()), reversal("R1", "T2", a, 500_000, w.clock())))
	w.rest()
	if s := w.read(session.ID); !slices.Equal(s.Exceptions, []flow.Exception{flow.DuplicatePayment}) {
		t.Errorf("%v", s.Exceptions)
	}
	if w.events(session.ID)[flow.ChargeReversed] != 1 || slices.Contains(w.texts("ada"), "reversed") {
		t.Errorf("told %v; the payer read %q", w.events(session.ID), w.texts("ada"))
	}
	w.balanced(session.ID, 500_000)
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
