package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// paying is a session in ada's chat with live transfer instructions.
func (w *world) paying() (flow.Session, flow.Attempt) {
	w.t.Helper()
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.hear("ada", method(flow.BankTransfer))
	return session, w.attempts(session.ID)[0]
}

func credit(id, reference string, amount flow.Kobo, at time.Time) flow.Notice {
	return flow.Notice{Kind: flow.Credit, RailTransactionID: id, Reference: reference, Amount: amount, Channel: flow.BankTransfer, PaidAt: at}
}

func TestMoneyOfNobodyIsKeptOnceAndSeen(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for range 3 {
			w.must(w.tell(credit("T1", "wsp_ref_unknown", 12_345, w.clock())))
		}
		p, found, err := w.db.PaymentByTransaction(t.Context(), "T1")
		if err != nil || !found || p.Match != flow.Unmatched || p.Amount != 12_345 {
			t.Errorf("it was kept as %+v, %v, %v", p, found, err)
		}
		if n := w.logged("money came that belongs to no session"); n != 1 {
			t.Errorf("the log tells of it %d times", n)
		}
	})
}

// A bank that does not pass our reference on tells by the account which session money is
// for, and so does one that says a reference that is none of ours.
func TestMoneyIsKnownByTheAccountThatItCameTo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for i, reference := range []string{"", "their own words"} {
			session, a := w.paying()
			n := credit(fmt.Sprint("T", i), reference, 500_000, w.clock())
			n.AccountNumber = a.Instructions.AccountNumber
			w.must(w.tell(n, n))
			w.rest()
			if s, list := w.read(session.ID), w.payments(session.ID); s.Status != flow.SessionPaid || len(list) != 1 || list[0].Attempt != a.ID {
				t.Errorf("by the reference %q: %s, paid by %+v", reference, s.Status, list)
			}
		}
	})
}

func TestWhatIsNoMoneyIsNeverBookedAndNeverForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		strange := credit("T1", a.Reference, 500_000, w.clock())
		strange.Kind = "gift"
		nameless := credit("", a.Reference, 500_000, w.clock())
		for _, n := range []flow.Notice{strange, nameless, credit("T2", a.Reference, 0, w.clock()), credit("T3", a.Reference, -5, w.clock())} {
			if err := w.tell(n); err == nil {
				t.Errorf("the bank was told that %+v is kept", n)
			}
		}
		if s := w.read(session.ID); s.Status != flow.SessionPending || s.AmountPaid != 0 {
			t.Fatalf("it was booked: %+v", s)
		}
		// What is sound in a message is kept, although the bank must repeat it.
		if err := w.tell(nameless, credit("T4", a.Reference, 500_000, w.clock())); err == nil {
			t.Error("the bank was told that all of it is kept")
		}
		if s := w.read(session.ID); s.Status != flow.SessionPaid {
			t.Errorf("sound money beside something strange is not booked: %s", s.Status)
		}
	})
}

func TestABankThatChangesItsMindIsHeardOnceAndNoted(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(credit("T1", a.Reference, 500_000, w.clock())))
	w.must(w.tell(credit("T1", a.Reference, 900_000, w.clock())))
	w.balanced(session.ID, 500_000)
	if w.logged("changed its mind") != 1 {
		t.Error("nobody was told")
	}
}

func TestMoneyByAnotherMethodOrOfAnotherAmountIsBookedByItsReference(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	n := credit("T1", a.Reference, 600_000, w.clock())
	n.Channel = flow.USSD
	w.must(w.tell(n))
	s := w.read(session.ID)
	if s.Status != flow.SessionPaid || s.AmountPaid != 500_000 || !slices.Contains(s.Exceptions, flow.Overpaid) {
		t.Errorf("it became %+v", s)
	}
	w.balanced(session.ID, 600_000)
}

func TestOneConfirmationAtATimeSettlesWhateverComesAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		n := credit("T1", a.Reference, 500_000, w.clock())
		w.rail.set(func(r *shakyRail) { r.parsed = []flow.Notice{n} })
		errs := make(chan error, 16)
		for range cap(errs) {
			go func() { errs <- w.service.Notice(t.Context(), nil, nil) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		w.rest()
		w.balanced(session.ID, 500_000)
		if n := w.events(session.ID)[flow.ChargeSuccess]; n != 1 {
			t.Errorf("%d events", n)
		}
		if got := w.texts("ada"); len(got) != 5 || got[4] != "receipt" {
			t.Errorf("the payer read %q", got)
		}
	})
}

func TestWhatTheBankRepeatsAtEveryQuestionIsNewsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		said := []flow.Notice{
			{Kind: flow.Declined, RailTransactionID: "D1", Reference: a.Reference, Amount: 500_000, Channel: flow.Card, PaidAt: w.clock(), Reason: "No funds"},
			{Kind: flow.Reversal, RailTransactionID: "R1", Reference: a.Reference, Amount: 100_000, Channel: flow.BankTransfer, PaidAt: w.clock()},
			credit("T1", a.Reference, 100_000, w.clock()),
		}
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return said, nil })
		for range 6 {
			w.later(time.Minute)
			w.must(w.tell(said...)) // and by itself as well
			w.rest()
		}
		lines := w.lines(session.ID)
		if n := lines["bank.answer"] + lines["bank.notice"]; n != 3 {
			t.Errorf("three things were logged %d times: %v", n, lines)
		}
		if events := w.events(session.ID); events[flow.ChargeFailed] != 1 || events[flow.ChargeUnderpaid] != 1 {
			t.Errorf("the merchant was told %v", events)
		}
		if n := w.logged("took money back"); n != 1 {
			t.Errorf("the log tells of the reversal %d times", n)
		}
	})
}

func TestOneAttemptThatTheBankCannotAnswerForHidesNoOther(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, first := w.paying()
	w.hear("ada", flow.Intent{Kind: flow.MeansOther})
	w.hear("ada", method(flow.Card))
	attempts := w.attempts(session.ID)
	if len(attempts) != 2 || attempts[0].Status != flow.AttemptSuperseded {
		t.Fatalf("%+v", attempts)
	}
	w.rail.checking(func(_ context.Context, reference string) ([]flow.Notice, error) {
		if reference == first.Reference {
			return nil, rail.ErrUnknown
		}
		// The bank does not say again what it was asked about.
		return []flow.Notice{credit("T1", "", 500_000, w.clock())}, nil
	})
	w.pass(time.Minute)
	w.hear("ada", flow.Intent{Kind: flow.MeansPaid})
	w.is(session.ID, flow.SessionPaid)
}

// Parts come to an account that was switched away from as well. The one that the payer is
// asked to pay to now asks for what is left, whichever a part came to, was taken back of or
// goes back from.
func TestAnAccountAsksForWhatIsLeftWhicheverAPartCameTo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, first := w.paying()
		asks := func(when string, want flow.Kobo) {
			w.t.Helper()
			w.rest()
			if a := flow.Asking(w.attempts(session.ID)); a.ID == "" || a.ID == first.ID || a.Amount != want {
				w.t.Errorf("%s: attempt %q asks for %d, not %d", when, a.Reference, a.Amount, want)
			}
		}
		comes := func(amount flow.Kobo) flow.Payment {
			w.t.Helper()
			_, err := w.bank.Transfer(w.t.Context(), rail.Transfer{
				AccountNumber: first.Instructions.AccountNumber, Amount: amount, SenderName: "BOLA ADE", ValueTime: w.clock(),
			})
			w.must(err)
			var p flow.Payment
			w.until("the part", func() bool {
				list := w.payments(session.ID)
				i := slices.IndexFunc(list, func(p flow.Payment) bool { return p.Amount == amount })
				if i >= 0 {
					p = list[i]
				}
				return i >= 0
			})
			return p
		}
		w.hear("ada", flow.Intent{Kind: flow.MeansOther})
		w.hear("ada", method(flow.Card))
		one := comes(200_000)
		w.hear("ada", flow.Intent{Kind: flow.MeansOther})
		w.hear("ada", method(flow.BankTransfer))
		asks("at first", 300_000)
		another := comes(100_000)
		asks("after another part", 200_000)
		_, err := w.bank.Reverse(w.t.Context(), another.RailTransactionID)
		w.must(err)
		w.until("it to be taken back", func() bool { return w.read(session.ID).AmountPaid == 200_000 })
		asks("with that taken back", 300_000)
		w.ordered(one, 50_000)
		asks("with some of the other refunded", 350_000)
	})
}

func TestMoneyForAMethodThatWasSwitchedAwayFromIsFoundAfterTheSessionWasPaid(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, first := w.paying()
	w.hear("ada", flow.Intent{Kind: flow.MeansOther})
	w.hear("ada", method(flow.Card))
	w.must(w.bank.CompleteCard(t.Context(), w.attempts(session.ID)[1].Reference, "approved"))
	w.until("the payment", func() bool { return w.read(session.ID).Status == flow.SessionPaid })
	w.passes(3, 30*time.Minute) // what was planned before it was paid is over
	_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: first.Instructions.AccountNumber, SenderName: "BOLA ADE", Drop: true, ValueTime: w.clock()})
	w.must(err)
	w.passes(4, 30*time.Minute)
	if s := w.read(session.ID); !slices.Contains(s.Exceptions, flow.DuplicatePayment) {
		t.Errorf("money that nobody told of is lost: %v", s.Exceptions)
	}
	w.balanced(session.ID, 1_000_000)
}

func TestTheBankIsAskedOnAndOnAndThenNoMore(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	checks := 0
	w.rail.set(func(r *shakyRail) {
		r.onCheck = func(context.Context, string) ([]flow.Notice, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			checks++
			return nil, nil
		}
	})
	w.passes(60, 30*time.Minute)
	most := checks
	w.passes(60, 30*time.Minute)
	if checks != most || most < 9 || most > 13 { // more and more seldom: flow.LateWaits
		t.Errorf("the bank was asked %d times within 30 hours and %d times later on", most, checks-most)
	}
	w.is(session.ID, flow.SessionExpired)
}

func TestNothingIsCancelledOnAGuess(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		w.bankSilent()
		w.hear("ada", flow.Intent{Kind: flow.MeansPaid}) // the bank is asked and does not answer
		w.hear("ada", flow.Intent{Kind: flow.MeansCancel})
		w.hear("ada", flow.Intent{Kind: flow.MeansConfirm}) // within the time in which it is not asked again
		if s := w.read(session.ID); s.Status != flow.SessionPending {
			t.Errorf("a bank that does not answer was taken for one that knows of no money: %s", s.Status)
		}
		lines, err := w.db.SessionLines(t.Context(), session.ID)
		w.must(err)
		if !slices.ContainsFunc(lines, func(l store.Line) bool {
			return l.Kind == "bank.asked" && strings.Contains(string(l.Data), rail.ErrUnavailable.Error())
		}) {
			t.Error("nobody reads in its story that the bank did not answer")
		}
		got := w.texts("ada")
		if !slices.Equal(got[len(got)-2:], []string{"bank_down", "not_cancelled"}) {
			t.Errorf("the payer read %q", got)
		}
		w.rail.set(func(r *shakyRail) { r.onCheck = nil })
		w.pass(time.Minute)
		w.hear("ada", flow.Intent{Kind: flow.MeansCancel})
		w.hear("ada", flow.Intent{Kind: flow.MeansConfirm})
		if s := w.read(session.ID); s.Status != flow.SessionCancelled {
			t.Errorf("with the bank back it is %s", s.Status)
		}
	})
}

func TestEveryChatOfASessionHearsItOnceAndOnlyItsOwnMoney(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		for i := range 5 {
			w.hear(fmt.Sprintf("other-%d", i), code(session))
		}
		w.must(w.tell(credit("T1", a.Reference, 500_000, w.clock())))
		w.rest()
		if got := w.texts("ada"); got[len(got)-1] != "receipt" {
			t.Errorf("who paid read %q", got)
		}
		for i := range 5 {
			if got := w.texts(fmt.Sprintf("other-%d", i)); !slices.Equal(got, []string{"summary", "paid_elsewhere"}) {
				t.Errorf("who did not pay read %q", got)
			}
		}
		w.balanced(session.ID, 500_000)
	})
}
