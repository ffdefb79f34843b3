package checkout_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
)

// A day of money is Lagos's, to the millisecond: what comes in its last one is paid out
// a working day sooner than what comes in the next, and each day is reconciled with
// what came and what went back on it, and with nothing else.
func TestADayOfMoneyEndsWithItsLastMillisecondInLagos(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		lastOf := func(day flow.Date) {
			w.later(day.Plus(1).Start().Add(-time.Millisecond).Sub(w.clock()))
		}
		lastOf("2026-11-23") // Monday
		before := w.earns()
		w.later(time.Millisecond)
		after := w.earns()
		w.at("2026-11-24T08:00:01Z")
		if b := w.ended(project, 1)[0]; b.SettlesOn != "2026-11-24" || b.Lines != 1 || b.Amount != 482_500 {
			t.Errorf("on Tuesday it is paid what came on Monday: %+v", b)
		}
		lastOf("2026-11-24")
		for _, p := range []flow.Payment{before, after} {
			_, err := w.bank.Reverse(t.Context(), p.RailTransactionID)
			w.must(err)
			w.until("it is taken back", func() bool { return w.payment(p.ID).Reversed == p.Amount })
			w.later(time.Millisecond)
		}
		w.later(2 * time.Minute)
		for day, want := range map[flow.Date]map[flow.MovementKind]int{
			"2026-11-23": {flow.MovePayment: 1},
			"2026-11-24": {flow.MovePayment: 1, flow.MoveReversal: 1, flow.MovePayout: 1},
			"2026-11-25": {flow.MoveReversal: 1},
		} {
			got, err := w.service.Reconcile(t.Context(), project, day)
			if err != nil || !got.Balanced() {
				t.Fatalf("%s: %+v (%v)", day, got, err)
			}
			for _, kind := range flow.MovementKinds() {
				if n := want[kind]; got.Rail[kind].Count != n || got.Ledger[kind].Count != n || got.Events[kind].Count != n {
					t.Errorf("%s: of %s there are %d at the bank, %d in the ledger and %d told, not %d", day, kind, got.Rail[kind].Count, got.Ledger[kind].Count, got.Events[kind].Count, n)
				}
			}
		}
	})
}

// A part that was on its way past the end of its session ends it when it comes: nothing
// is waited for any more, and its payer is sent it back a day after that.
func TestAPartThatWasOnItsWayPastTheEndEndsItsSession(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		each(t, func(w *world) {
			t := w.t
			session, a := w.paying()
			w.bankSilent()
			w.must(w.tell(said(flow.Pending, "T1", a, 200_000, w.clock())))
			w.later(session.ExpiresAt.Sub(w.clock()) + time.Hour)
			w.is(session.ID, flow.SessionProcessing)
			at := session.ExpiresAt
			if late {
				at = w.clock()
			}
			w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return nil, nil })
			w.must(w.tell(said(flow.Credit, "T1", a, 200_000, at)))
			w.rest()
			w.is(session.ID, flow.SessionExpired)
			if p := w.payments(session.ID)[0]; !p.ReturnsAt.Equal(w.clock().Add(flow.ReturnAfter)) {
				t.Errorf("late: %v, it goes back at %s: %+v", late, p.ReturnsAt, p)
			}
		})
	}
}

// A holiday is often declared for another day at the last moment: a start that knows of it
// pays out on the day that is open after all, though the payday was kept for a later one.
func TestADayThatIsOpenAfterAllIsAPayday(t *testing.T) {
	t.Parallel()
	eachPaying(t, "2026-11-23,Declared", func(w *world) {
		t := w.t
		w.earns()
		w.end()
		w.pays("2026-11-24,Declared instead")
		w.start(true)
		w.rest()
		w.at("2026-11-23T08:00:01Z")
		if list := w.settlements(project); len(list) != 1 || list[0].SettlesOn != "2026-11-23" {
			t.Errorf("on Monday, which is open: %+v", list)
		}
	})
}
