package checkout_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// A day that the bank does not give keeps no other day from being read, then or
// later, and is read once the bank gives it.
func TestADayThatTheBankDoesNotGiveHidesNoOther(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.bankSilent()
		bad := flow.DateOf(w.clock())
		w.rail.set(func(r *shakyRail) {
			r.onStatement = func(_ context.Context, from, to time.Time) error {
				if from.Before(bad.Plus(1).Start()) && to.After(bad.Start()) {
					return rail.ErrUnknown
				}
				return nil
			}
		})
		hidden, _ := w.paying()
		w.pay(hidden.ID, 500_000, true)
		w.pass(bad.Plus(1).Start().Add(time.Hour).Sub(w.clock()))
		w.until("it shows", func() bool { return w.logged("does not give its statement of a day") > 0 })
		w.rest()
		if w.logged("level=ERROR msg=\"the bank does not give its statement of a day\" day="+string(bad)) == 0 {
			t.Error("nobody says which day it is")
		}
		for range 4 { // the bad day is among those that are read again, and then is not
			session := w.session(flow.Headless)
			w.must(w.instruct(t.Context(), session.ID))
			w.pay(session.ID, 500_000, true)
			w.pass(flow.DateOf(w.clock()).Plus(1).Start().Add(time.Hour).Sub(w.clock()))
			w.until("the money of a later day is found", func() bool { return len(w.payments(session.ID)) == 1 })
			w.rest()
		}
		if n := len(w.payments(hidden.ID)); n != 0 {
			t.Fatalf("the bad day was read: %d", n)
		}
		told := w.logged("does not give its statement of a day")
		w.passes(3, 20*time.Minute)
		if n := w.logged("does not give its statement of a day") - told; n != 1 {
			t.Errorf("long after it the bad day is asked for %d times in an hour", n)
		}
		w.rail.set(func(r *shakyRail) { r.onStatement = nil })
		w.pass(time.Hour)
		w.until("the bad day is read after all", func() bool { return len(w.payments(hidden.ID)) == 1 })
		w.rest()
		before := w.calls()["statement"]
		w.passes(3, time.Hour)
		if n := w.calls()["statement"] - before; n != 0 {
			t.Errorf("it is read on and on: %d times", n)
		}
	})
}

// A bug of ours with one day keeps no other day from being read, however long it is
// there, nor after a restart.
func TestAPanicOverOneDayHidesNoOther(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		w := one(t)
		w.bankSilent()
		bad := flow.DateOf(w.clock())
		w.paying() // so it runs, and this day is to be read
		w.rail.set(func(r *shakyRail) {
			r.onStatement = func(_ context.Context, from, to time.Time) error {
				if from.Before(bad.Plus(1).Start()) && to.After(bad.Start()) {
					panic("a bug")
				}
				return nil
			}
		})
		w.pass(bad.Plus(1).Start().Add(time.Hour).Sub(w.clock()))
		for range 40 { // until it is given up
			w.later(10 * time.Minute)
		}
		if n := w.logged("given_up=true"); n != 1 {
			t.Errorf("%d tasks were given up", n)
		}
		w.findsLater(restarts)
	}
}

// What a merchant was told of money is held against the books: another amount is a
// difference, and says what they were told.
func TestAnEventThatTellsAnotherAmountIsADifference(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t, ctx := w.t, w.t.Context()
		session, p := w.paidFor(500_000)
		events, err := w.db.Events(ctx, session.ID)
		w.must(err)
		w.spoilt = true // its events tell another amount
		w.must(w.db.Update(ctx, func(tx *store.Tx) error {
			for _, e := range events {
				if err := tx.RewriteEvent(ctx, e.ID, bytes.ReplaceAll(e.Body, []byte(`"500000"`), []byte(`"400000"`))); err != nil {
					return err
				}
			}
			return nil
		}))
		w.later(2 * time.Minute)
		got, err := w.service.Reconcile(ctx, project, flow.DateOf(w.clock()))
		if err != nil || len(got.Differences) != 1 {
			t.Fatalf("%+v (%v)", got, err)
		}
		if d := got.Differences[0]; d.Kind != flow.EventDiffers || *d.Event != 400_000 || *d.Ledger != 500_000 || d.Payment != p.ID {
			t.Errorf("%+v", d)
		}
	})
}

// An event that tells of money which nobody booked, on no day, is a difference.
func TestAnEventThatTellsOfMoneyThatIsNotBookedIsADifference(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.paidFor(500_000)
	w.pay(session.ID, 500_000, false)
	w.until("the second is here", func() bool { return len(w.payments(session.ID)) == 2 })
	w.rest()
	w.change("UPDATE events SET body = CAST(REPLACE(CAST(body AS TEXT), '" + p.RailTransactionID + "', 'T0') AS BLOB) WHERE kind = 'charge.success'")
	got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
	if err != nil || len(got.Differences) != 2 {
		t.Fatalf("%+v (%v)", got.Differences, err)
	}
	for _, d := range got.Differences {
		if d.RailTransactionID == "T0" && (d.Kind != flow.EventWithoutBooking || d.Rail != nil || d.Ledger != nil || *d.Event != 500_000 || d.Session != session.ID) ||
			d.RailTransactionID != "T0" && (d.Kind != flow.MissingEvent || d.RailTransactionID != p.RailTransactionID) {
			t.Errorf("%+v", d)
		}
	}
}

// What was booked since the statement was read cannot stand on it, and a day is not
// over that was not when it was read, nor while what was sent before midnight may land.
func TestWhatWasBookedSinceTheStatementWasReadIsNoDifference(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		day := flow.DateOf(w.clock())
		w.pass(day.Plus(1).Start().Add(-10 * time.Second).Sub(w.clock()))
		w.paidFor(500_000)
		got, err := w.service.Reconcile(t.Context(), project, day)
		if err != nil || got.Complete || !got.Balanced() || got.Ledger[flow.MovePayment].Count != 1 {
			t.Fatalf("%+v (%v)", got, err)
		}
		w.pass(2 * time.Second)
		w.paidFor(500_000)
		if got, err = w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() || got.Ledger[flow.MovePayment].Count != 1 {
			t.Errorf("with a statement of before: %+v (%v)", got, err)
		}
		w.pass(30 * time.Second) // past midnight
		if got, err = w.service.Reconcile(t.Context(), project, day); err != nil || got.Complete || !got.Balanced() {
			t.Errorf("with a statement of before midnight: %+v (%v)", got, err)
		}
		for _, complete := range []bool{false, true} {
			w.pass(28 * time.Minute)
			if got, err = w.service.Reconcile(t.Context(), project, day); err != nil || got.Complete != complete || !got.Balanced() || got.Ledger[flow.MovePayment].Count != 2 {
				t.Errorf("read again: %+v (%v)", got, err)
			}
		}
	})
}

// What another process booked since, by a clock that is a little behind, cannot stand on
// the statement either; what was booked before does, or is a difference.
func TestWhatIsBookedByAClockThatIsBehindIsNoDifference(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.paidFor(500_000)
		w.pass(10 * time.Second)
		read := w.clock()
		day := flow.DateOf(read)
		if got, err := w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() {
			t.Fatalf("%+v (%v)", got, err)
		}
		w.setClock(read.Add(-2 * time.Second))
		w.paidFor(500_000)
		w.setClock(read.Add(time.Second))
		if got, err := w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() || got.Ledger[flow.MovePayment].Count != 1 {
			t.Errorf("with a statement of before: %+v (%v)", got, err)
		}
		w.pass(2 * time.Minute)
		if got, err := w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() || got.Ledger[flow.MovePayment].Count != 2 {
			t.Errorf("read again: %+v (%v)", got, err)
		}
		_, a := w.paying()
		w.must(w.tell(said(flow.Credit, "T9", a, 500_000, w.clock())))
		w.pass(2 * time.Minute)
		got, err := w.service.Reconcile(t.Context(), project, day)
		if err != nil || len(got.Differences) != 1 || got.Differences[0].Kind != flow.MissingAtRail {
			t.Errorf("of what the bank does not know: %+v (%v)", got, err)
		}
	})
}

// A day that the bank takes too long over is told of like one that it does not give.
func TestADayThatTakesTooLongIsToldOf(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.rest()
	slow := flow.DateOf(w.clock())
	w.rail.set(func(r *shakyRail) {
		r.onStatement = func(ctx context.Context, from, _ time.Time) error {
			if !from.Equal(slow.Start()) {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
	})
	w.pass(slow.Plus(1).Start().Add(time.Hour).Sub(w.clock()))
	w.until("it shows", func() bool {
		return w.logged("level=ERROR msg=\"the bank does not give its statement of a day\" day="+string(slow)) > 0
	})
	w.rest()
}

// What a bank books two days after its value time stands on the statement of a day
// that was read before: that is read again.
func TestMoneyThatIsBookedTwoDaysLateIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.bankSilent()
		session, a := w.paying()
		late := said(flow.Credit, "T1", a, 500_000, w.clock())
		w.passes(2, 24*time.Hour) // its day is read, and the next
		if len(w.payments(session.ID)) != 0 {
			t.Fatal("it is there before its time")
		}
		w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{late} })
		w.later(24 * time.Hour)
		if s := w.read(session.ID); s.Status != flow.SessionPaid || len(w.payments(session.ID)) != 1 || w.lines(session.ID)["bank.statement"] != 1 {
			t.Errorf("it is not found: %+v", s)
		}
	})
}

// Money that was collected for a project is missing in that project's ledger, and in
// no other's, while it is not booked.
func TestUnbookedMoneyIsMissingForWhomItWasCollected(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		n := credit("T1", "", 250_000, w.clock())
		n.Collects = project
		w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{n} })
		for of, want := range map[flow.ProjectID]int{project: 1, "wsp_prj_2": 0} {
			got, err := w.service.Reconcile(t.Context(), of, flow.DateOf(w.clock()))
			if err != nil || len(got.Differences) != want || got.Rail[flow.MovePayment].Count != want {
				t.Fatalf("%s: %+v (%v)", of, got, err)
			}
			if want > 0 && (got.Differences[0].Kind != flow.MissingInLedger || got.Rail[flow.MovePayment].Amount != 250_000) {
				t.Errorf("%+v", got)
			}
		}
	})
}

// Money of no session is told on the day on which it is heard of, which may be before
// the bank's own, and so is that the bank took it back.
func TestMoneyOfNoSessionIsReconciledOnTheBanksDay(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook", flow.PaymentUnmatched, flow.PaymentReversed)
		n := credit("T1", "", 250_000, w.clock().Add(24*time.Hour))
		n.Collects = project
		back := credit("B1", "", 250_000, n.PaidAt)
		back.Kind, back.Reverses = flow.Reversal, "T1"
		w.must(w.tell(n))
		p, found, err := w.db.PaymentByTransaction(t.Context(), "T1")
		if err != nil || !found {
			t.Fatal(err)
		}
		if _, err := w.resolve(p.ID, true); err != nil {
			t.Fatal(err)
		}
		w.must(w.tell(back, back))
		w.rest()
		if told := w.deliveries(flow.PaymentReversed); len(told) != 1 || !strings.Contains(string(told[0].Body), `"reversedMinor":"250000"`) || !strings.Contains(string(told[0].Body), `"netMinor":"0"`) {
			t.Errorf("told %d times: %+v", len(told), told)
		}
		w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{n, back} })
		w.later(48 * time.Hour)
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(n.PaidAt))
		if err != nil || !got.Balanced() || got.Events[flow.MovePayment].Count != 1 || got.Events[flow.MoveReversal].Count != 1 {
			t.Errorf("%+v (%v)", got, err)
		}
	})
}
