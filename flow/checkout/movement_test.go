package checkout_test

import (
	"context"
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
		if s := w.read(session.ID); s.Status != flow.SessionProcessing || w.last() != "not_switched" || w.attempts(session.ID)[0].Status != flow.AttemptActive {
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

// That money is on its way is remembered from one payer's question to the next, and no
// longer than it is so: the bank, asked by their merchant meanwhile, knows of none.
func TestMoneyThatIsNotOnItsWayAnyMoreIsNotPromised(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	knows := func(notices ...flow.Notice) {
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return notices, nil })
	}
	knows(said(flow.Pending, "T1", a, 500_000, w.clock()))
	w.hear("ada", flow.Intent{Kind: flow.MeansPaid})
	if got := w.last(); got != "on_the_way" {
		t.Fatalf("the payer read %q", got)
	}
	knows()
	w.must(w.service.AskBank(t.Context(), project, session.ID))
	w.is(session.ID, flow.SessionPending)
	w.hear("ada", flow.Intent{Kind: flow.MeansPaid})
	if got := w.last(); got == "on_the_way" {
		t.Errorf("who asks again reads %q of money that the bank knows nothing of any more", got)
	}
}

// A bank that is asked may still call on its way what it has told of already: whoever
// asks is not told that more comes.
func TestMoneyThatIsHereIsNotOnItsWayWhateverTheBankAnswers(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	n := said(flow.Credit, "T1", a, 200_000, w.clock())
	w.must(w.tell(n))
	n.Kind = flow.Pending
	w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return []flow.Notice{n}, nil })
	w.hear("ada", flow.Intent{Kind: flow.MeansPaid})
	if got := w.last(); got == "on_the_way" {
		t.Errorf("who asked read %q", got)
	}
	if s := w.read(session.ID); s.Status != flow.SessionPending || s.AmountPaid != 200_000 {
		t.Errorf("%s with %d", s.Status, s.AmountPaid)
	}
}

// What the bank tells while it is asked about a session stands, whatever it answers.
func TestMoneyThatIsToldOfWhileTheBankIsAskedStaysOnItsWay(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(said(flow.Pending, "T1", a, 500_000, w.clock())))
	told := false
	w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
		if !told {
			told = true
			w.must(w.tell(said(flow.Returned, "T1", a, 500_000, w.clock()), said(flow.Pending, "T2", a, 500_000, w.clock())))
			return nil, nil
		}
		return nil, rail.ErrUnavailable
	})
	w.later(flow.ComingAgain)
	if !told {
		t.Fatal("the bank was not asked")
	}
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
		t.Run("and what it sends back next is told too", func(t *testing.T) {
			w.must(w.tell(said(flow.Returned, "B3", a, 200_000, w.clock())))
			w.rest()
			if told := slices.DeleteFunc(w.texts("ada"), func(s string) bool { return s != "sent_back" }); len(told) != 2 {
				t.Errorf("who sent both read %q", w.texts("ada"))
			}
		})
		t.Run("and of nobody's account nothing is kept", func(t *testing.T) {
			w.must(w.tell(flow.Notice{Kind: flow.Returned, RailTransactionID: "B2", AccountNumber: "0000000009", Amount: 100, Channel: flow.BankTransfer, PaidAt: w.clock()}))
			if w.logged("was for no session") != 1 {
				t.Error("nobody was told")
			}
		})
	})
}
