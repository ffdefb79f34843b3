package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// Money that no notice told of and no question found is found on the statement.
func TestMoneyThatNobodyToldOfIsFoundOnTheStatement(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, _ := w.paying()
		// The bank neither tells nor answers, all day long.
		w.bankSilent()
		w.pay(session.ID, 500_000, true)
		w.later(time.Minute)
		if s := w.read(session.ID); s.Status == flow.SessionPaid {
			t.Fatal("it was found by asking")
		}
		day := flow.DateOf(w.clock())
		got, err := w.service.Reconcile(t.Context(), project, day)
		w.must(err)
		if len(got.Differences) != 1 || got.Differences[0].Kind != flow.MissingInLedger || got.Differences[0].Session != session.ID || got.Complete || got.Balanced() {
			t.Errorf("the day: %+v", got)
		}
		w.pass(day.Plus(1).Start().Add(time.Hour).Sub(w.clock()))
		w.until("the money is found", func() bool { return len(w.payments(session.ID)) == 1 })
		w.rest()
		if w.lines(session.ID)["bank.statement"] != 1 || w.logged("found on the statement") != 1 {
			t.Errorf("nobody says how it was found: %v", w.lines(session.ID))
		}
		story, err := checkout.Timeline(t.Context(), w.db.Reader, session.ID)
		w.must(err)
		if !strings.Contains(fmt.Sprint(story), "found on the statement: credit") {
			t.Errorf("the story does not say it: %v", story)
		}
		w.proven()
		w.pass(2 * time.Minute)
		if got, err = w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() || !got.Complete || got.Events[flow.MovePayment] != (flow.Total{Count: 1, Amount: 500_000}) {
			t.Errorf("the day after: %+v (%v)", got, err)
		}
		// Each further day is read, and nothing is found twice.
		w.passes(3, 24*time.Hour)
		if n := w.lines(session.ID)["bank.statement"]; n != 1 {
			t.Errorf("found %d times", n)
		}
	})
}

// findsLater fails unless money of today that nobody tells of is found on the statement
// tomorrow, after a restart where there is one.
func (w *world) findsLater(restarts bool) {
	w.t.Helper()
	if restarts {
		w.end()
		w.start(true)
	}
	session, _ := w.paying()
	w.pay(session.ID, 500_000, true)
	w.pass(flow.DateOf(w.clock()).Plus(1).Start().Add(time.Hour).Sub(w.clock()))
	w.until("the money of a later day is found", func() bool { return len(w.payments(session.ID)) == 1 })
}

// A line that can never be booked keeps nothing of later days from being found,
// however long it is there, nor after a restart.
func TestALineThatCannotBeBookedHidesNoLaterDay(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		each(t, func(w *world) {
			w.rail.set(func(r *shakyRail) {
				r.onCheck = func(context.Context, string) ([]flow.Notice, error) { return nil, rail.ErrUnavailable }
				r.lines = []flow.Notice{{Kind: flow.Credit, Reference: "nobody's", Amount: 700, PaidAt: w.clock()}} // without a name
			})
			w.pass(flow.DateOf(w.clock()).Plus(1).Start().Add(time.Hour).Sub(w.clock()))
			for range 40 { // until it is given up
				w.rest()
				w.pass(10 * time.Minute)
			}
			w.findsLater(restarts)
		})
	}
}

// A refund that came back is owed again, whoever lost the word of that: the bank
// that is asked says so, and the statement has it.
func TestARefundThatCameBackUnheardIsFoundAllTheSame(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"that it came back": false, "that it was sent, too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				t := w.t
				w.endpoint("https://shop.test/hook")
				session, p := w.paidFor(500_000)
				w.weather(rail.Conditions{Refunds: rail.FateBounce})
				if lost {
					w.weather(rail.Conditions{Refunds: rail.FateBounce, NotifyLossPercent: 100})
				}
				r := w.ordered(p, 200_000)
				w.rest()
				first := flow.RefundAttention // it is asked about when it has come back already
				if !lost {
					w.pass(time.Second)
					first = flow.RefundProcessed
					r = w.becomes(r.ID, first)
					w.weather(rail.Conditions{NotifyLossPercent: 100})
				}
				w.pass(time.Minute)
				w.becomes(r.ID, first)
				day := flow.DateOf(w.clock())
				w.pass(day.Plus(1).Start().Add(time.Hour).Sub(w.clock()))
				r = w.becomes(r.ID, flow.RefundAttention)
				if !r.Returned || r.Failure == "" {
					t.Errorf("%+v", r)
				}
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.RefundsPayable: -200_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
				if e := w.events(session.ID); e[flow.RefundAttentionKind] != 1 || e[flow.RefundProcessedKind] != 1 {
					t.Errorf("told %v", e)
				}
				w.proven()
				w.pass(2 * time.Minute)
				if got, err := w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() {
					t.Errorf("the day: %+v (%v)", got, err)
				}
				w.weather(rail.Conditions{})
				w.must(w.retryRefund(r))
				w.rest()
				w.pass(time.Second)
				w.becomes(r.ID, flow.RefundProcessed)
				w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
				w.proven()
			})
		})
	}
}

// After a downtime every day of it is read.
func TestADowntimeIsReadDayByDay(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paying()
	w.bankSilent()
	w.pay(session.ID, 500_000, true)
	w.end()
	w.setClock(w.clock().Add(9 * 24 * time.Hour))
	w.start(true)
	w.until("the money is found", func() bool { return len(w.payments(session.ID)) == 1 })
	w.rest()
	if n := w.calls()["statement"]; n < 9 {
		t.Errorf("%d statements for nine days", n)
	}
}

// However many look at a day, the bank is asked once a minute.
func TestTheStatementIsReadOnceAMinute(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.session(flow.Headless)
	day := flow.DateOf(w.clock())
	for range 20 {
		_, err := w.service.Reconcile(t.Context(), project, day)
		w.must(err)
	}
	if n := w.calls()["statement"]; n != 1 {
		t.Errorf("asked %d times", n)
	}
	w.pass(time.Minute)
	_, err := w.service.Reconcile(t.Context(), project, day)
	w.must(err)
	if n := w.calls()["statement"]; n != 2 {
		t.Errorf("asked %d times after a minute", n)
	}
	var refused error
	for i := range 20 {
		if _, err := w.service.Reconcile(t.Context(), project, day.Plus(-1-i)); err != nil {
			refused = err
		}
	}
	if n := w.calls()["statement"]; flow.CodeOf(refused) != flow.CodeRateLimited || n > 11 {
		t.Errorf("asked for %d days at once (%v)", n, refused)
	}
	if _, err := w.service.Reconcile(t.Context(), project, day.Plus(1)); flow.CodeOf(err) != flow.CodeInvalidField {
		t.Errorf("a day to come: %v", err)
	}
}

// That a bank gave no statement stands for less long than one that it gave, and says why.
func TestABankThatGivesNoStatementIsAskedAgainSoon(t *testing.T) {
	t.Parallel()
	w := one(t)
	day := flow.DateOf(w.clock())
	asked := 0
	for failure, code := range map[error]flow.Code{
		rail.ErrUnavailable: flow.CodeRailUnavailable, rail.ErrRejected: flow.CodeRailRejected, rail.ErrUnknown: flow.CodeRailTimeout,
	} {
		w.rail.set(func(r *shakyRail) {
			r.onStatement = func(context.Context, time.Time, time.Time) error { asked++; return failure }
		})
		w.setClock(w.clock().Add(10 * time.Second))
		before := asked
		for range 2 {
			if _, err := w.service.Reconcile(t.Context(), project, day); flow.CodeOf(err) != code {
				t.Errorf("of %v it said %v", failure, err)
			}
			w.setClock(w.clock().Add(9 * time.Second))
		}
		if asked-before != 1 {
			t.Errorf("within ten seconds the bank was asked %d times", asked-before)
		}
	}
}

// A merchant sees neither others' movements nor what is nobody's.
func TestADayIsReconciledForItsProjectAlone(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.everything()
	day := flow.DateOf(w.clock())
	mine, err := w.service.Reconcile(t.Context(), project, day)
	w.must(err)
	if !mine.Balanced() || mine.Ledger[flow.MovePayment].Amount != 500_000+200_000+700_000+500_000+500_000 {
		t.Errorf("mine: %+v", mine)
	}
	for kind, want := range map[flow.MovementKind]flow.Total{
		flow.MoveReversal: {Count: 1, Amount: -500_000}, flow.MoveRefund: {Count: 2, Amount: -150_000}, flow.MoveRefundReturned: {Count: 1, Amount: 50_000},
	} {
		if mine.Rail[kind] != want || mine.Ledger[kind] != want || mine.Events[kind] != want {
			t.Errorf("%s: %v %v %v", kind, mine.Rail[kind], mine.Ledger[kind], mine.Events[kind])
		}
	}
	theirs, err := w.service.Reconcile(t.Context(), "wsp_prj_2", day)
	w.must(err)
	if len(theirs.Rail)+len(theirs.Ledger)+len(theirs.Events)+len(theirs.Differences) != 0 {
		t.Errorf("theirs: %+v", theirs)
	}
	// What one was not told of is missing for that one alone.
	w.spoilt = true // an event is not what it says
	w.change("UPDATE events SET kind = 'ping' WHERE kind = 'charge.duplicate'")
	if mine, err = w.service.Reconcile(t.Context(), project, day); err != nil || len(mine.Differences) != 1 || mine.Differences[0].Kind != flow.MissingEvent {
		t.Errorf("%+v (%v)", mine.Differences, err)
	}
}

// A second payment into a paid account whose notice was lost is found, and so is
// money for what was declined.
func TestLostMoneyOfWhatIsOverIsFoundWithinADay(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, _ := w.paidFor(500_000)
	w.pay(session.ID, 500_000, true)
	before := w.calls()["check"]
	w.passes(60, time.Hour)
	if s := w.read(session.ID); len(w.payments(session.ID)) != 2 || fmt.Sprint(s.Exceptions) != "[DUPLICATE_PAYMENT]" {
		t.Errorf("it is lost: %+v", s.Exceptions)
	}
	if asked := w.calls()["check"] - before; asked < 1 || asked > 7 {
		t.Errorf("asked %d times about what is paid", asked)
	}
}

// What the bank declined may be paid after all: where nobody tells of it, it is
// found when the bank is asked, which is seldom.
func TestLostMoneyForWhatWasDeclinedIsFound(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	w.must(w.tell(flow.Notice{Kind: flow.Declined, RailTransactionID: "no", Reference: a.Reference, Reason: "Do not honour", PaidAt: w.clock()}))
	if got := w.attempts(session.ID)[0]; got.Status != flow.AttemptFailed {
		t.Fatalf("it is not declined: %+v", got)
	}
	w.pay(session.ID, 500_000, true)
	before := w.calls()["check"]
	w.passes(30, time.Hour)
	if s := w.read(session.ID); s.AmountPaid != 500_000 || len(w.payments(session.ID)) != 1 {
		t.Errorf("it is lost: %+v", s)
	}
	w.balanced(session.ID, 500_000)
	if asked := w.calls()["check"] - before; asked < 1 || asked > 7 {
		t.Errorf("asked %d times about what was declined", asked)
	}
	if n := w.logged("found on the statement"); n != 0 {
		t.Errorf("it was found on the statement %d times, not by asking", n)
	}
	w.proven()
}

// However many days projects look at, one that has looked at none yet is served, and
// what one had read serves all.
func TestNoProjectKeepsTheStatementFromOthers(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.session(flow.Headless)
	day := flow.DateOf(w.clock())
	next := 0
	looks := func(of flow.ProjectID) (served int) { // at as many other days as it is let
		for range 30 {
			next++
			_, err := w.service.Reconcile(t.Context(), of, day.Plus(-next))
			if flow.CodeOf(err) == flow.CodeRateLimited {
				if refused, ok := errors.AsType[*flow.Error](err); !ok || refused.RetryAfter != time.Minute {
					t.Errorf("told when to ask again: %v", err)
				}
				return served
			}
			w.must(err)
			served++
		}
		return served
	}
	if n := looks(project); n != 5 {
		t.Errorf("one project is served %d days at once", n)
	}
	for i := range 40 { // as many as there are, each as often as it can
		looks(flow.ProjectID(fmt.Sprintf("wsp_prj_many_%d", i)))
	}
	if n := w.calls()["statement"]; n > 24 {
		t.Errorf("the bank is asked %d times in a minute", n)
	}
	if _, err := w.service.Reconcile(t.Context(), "wsp_prj_new", day.Plus(-1)); err != nil { // read for another
		t.Errorf("what is there: %v", err)
	}
	w.pass(time.Minute)
	greedy := 0
	for i := range 6 {
		greedy += looks(flow.ProjectID(fmt.Sprintf("wsp_prj_greedy_%d", i)))
	}
	if _, err := w.service.Reconcile(t.Context(), "wsp_prj_new", day.Plus(-999)); err != nil || greedy < 16 {
		t.Errorf("one that has asked for nothing, after six that took %d: %v", greedy, err)
	}
}
