package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// What the bank moved and nobody booked is missing for whose it is: money by the account
// that it came to, and what was sent out, or came back, by what it was ordered for.
func TestWhatIsNotBookedIsMissingForWhoseItIs(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t, now := w.t, w.clock()
		p := w.earns()
		w.weather(rail.Conditions{Refunds: rail.FatePending, Payouts: rail.FatePending})
		r := w.ordered(p, 100_000)
		b, made, _, err := w.service.SettleNow(t.Context(), project, "2026-11-23")
		if err != nil || !made {
			t.Fatalf("there is no payout (%v)", err)
		}
		session, a := w.paying()
		w.rest()
		w.rail.set(func(s *shakyRail) {
			s.lines = []flow.Notice{
				{Kind: flow.Credit, RailTransactionID: "1", AccountNumber: a.Instructions.AccountNumber, Amount: 1, PaidAt: now},
				{Kind: flow.PaidOut, RailTransactionID: "2", Reference: r.Reference, Amount: 2, PaidAt: now.Add(time.Second)},
				{Kind: flow.PayoutFailed, RailTransactionID: "3", Reference: r.Reference, Reverses: "2", Amount: 3, PaidAt: now.Add(2 * time.Second)},
				{Kind: flow.PaidOut, RailTransactionID: "4", Reference: string(b.ID), Amount: 4, PaidAt: now.Add(3 * time.Second)},
				{Kind: flow.PayoutFailed, RailTransactionID: "5", Reference: string(b.ID), Reverses: "4", Amount: 5, PaidAt: now.Add(4 * time.Second)},
			}
		})
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(now))
		w.must(err)
		want := []flow.Difference{
			{Movement: flow.MovePayment, Session: session.ID},
			{Movement: flow.MoveRefund, Session: p.Session},
			{Movement: flow.MoveRefundReturned, Session: p.Session},
			{Movement: flow.MovePayout},
			{Movement: flow.MovePayoutReturned},
		}
		if len(got.Differences) != len(want) {
			t.Fatalf("%+v", got.Differences)
		}
		for i, d := range got.Differences {
			if d.Kind != flow.MissingInLedger || d.Movement != want[i].Movement || d.Session != want[i].Session || d.Project != project {
				t.Errorf("%+v", d)
			}
		}
		if got, err = w.service.Reconcile(t.Context(), "wsp_prj_2", flow.DateOf(now)); err != nil || len(got.Rail)+len(got.Differences) != 0 {
			t.Errorf("another project's: %+v (%v)", got, err)
		}
	})
}

// What the bank told under the value time of one day, and its statement lists under that
// of another, twice, is booked once.
func TestWhatTheStatementListsTwiceOnAnotherDayIsBookedOnce(t *testing.T) {
	t.Parallel()
	w := one(t)
	_, a := w.paying()
	n := said(flow.Credit, "T1", a, 500_000, w.clock())
	w.must(w.tell(n))
	w.rest()
	w.later(24 * time.Hour)
	n.PaidAt = w.clock().Add(-time.Hour)
	w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{n, n} })
	for _, of := range []flow.ProjectID{project, ""} {
		got, err := w.service.Reconcile(t.Context(), of, flow.DateOf(n.PaidAt))
		if err != nil || len(got.Differences) != 1 || got.Differences[0].Kind != flow.TwiceAtRail || got.Ledger[flow.MovePayment].Count != 1 || got.Events[flow.MovePayment].Count != 1 {
			t.Errorf("of %q: %+v (%v)", of, got, err)
		}
	}
}

// Each movement that takes money back, or brings it back, is told by an event of its own:
// what was told of another day's, or of none, does not stand for it.
func TestNoEventTellsOfAnotherMovementThanItsOwn(t *testing.T) {
	t.Parallel()
	w := one(t)
	day := flow.DateOf(w.clock())
	_, a := w.paying()
	lines := []flow.Notice{said(flow.Credit, "T1", a, 500_000, w.clock()), reversal("R1", "T1", a, 100_000, w.clock())}
	w.must(w.tell(lines...))
	p := w.payments(a.Session)[0]
	w.bankSilent()
	w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
		return flow.Disbursed{}, rail.ErrUnavailable
	})
	w.unreached(true)
	r := w.ordered(p, 50_000)
	w.rest()
	w.passes(8, 24*time.Hour)
	w.becomes(r.ID, flow.RefundAttention) // of which the bank does not say what became
	third := flow.DateOf(w.clock())
	lines = append(
		lines, reversal("R2", "T1", a, 200_000, w.clock()),
		flow.Notice{Kind: flow.PaidOut, Reference: r.Reference, RailTransactionID: "S1", Amount: r.Amount, PaidAt: w.clock()},
		flow.Notice{Kind: flow.PayoutFailed, Reference: r.Reference, RailTransactionID: "S2", Reverses: "S1", Amount: r.Amount, PaidAt: w.clock()},
	)
	w.must(w.tell(lines[2:]...))
	w.rest()
	w.rail.set(func(s *shakyRail) { s.lines = lines })
	untold := func(day flow.Date) (names []string) {
		w.later(2 * time.Minute)
		got, err := w.service.Reconcile(t.Context(), project, day)
		w.must(err)
		for _, d := range got.Differences {
			names = append(names, string(d.Kind)+" "+d.RailTransactionID)
		}
		return names
	}
	if first, last := untold(day), untold(third); len(first)+len(last) != 0 {
		t.Fatalf("all is told: %q %q", first, last)
	}
	w.spoilt = true // its events are not what they say
	for _, kind := range []flow.EventKind{flow.ChargeReversed, flow.RefundAttentionKind} {
		w.change("UPDATE events SET kind = 'ping' WHERE sequence = (SELECT MAX(sequence) FROM events WHERE kind = '" + string(kind) + "')")
	}
	if first, last := untold(day), untold(third); len(first) != 0 || !slices.Equal(last, []string{"missing_event R2", "missing_event S2"}) {
		t.Errorf("untold of the first day: %q, of the last: %q", first, last)
	}
}

// A refund that left twice and came back is told of to nobody, and the event of another
// one that came back is not taken for its.
func TestWhatCameBackIsToldApartByHowMuchItIs(t *testing.T) {
	t.Parallel()
	w := one(t)
	r := w.refusedThenSent("")
	w.paidOut(string(r.ID), "B1", r.Amount)
	w.later(time.Second)
	w.cameBack(string(r.ID), "B2", "B1", r.Amount)
	w.later(time.Second)
	w.weather(rail.Conditions{Refunds: rail.FateBounce})
	other := w.ordered(w.payments(r.Session)[0], 50_000)
	w.rest()
	w.later(3 * time.Second)
	w.becomes(other.ID, flow.RefundAttention)
	w.rail.set(func(s *shakyRail) {
		s.lines = []flow.Notice{
			{Kind: flow.PaidOut, Reference: string(r.ID), RailTransactionID: "B1", Amount: r.Amount, PaidAt: w.now},
			{Kind: flow.PayoutFailed, Reference: string(r.ID), RailTransactionID: "B2", Reverses: "B1", Amount: r.Amount, PaidAt: w.now},
		}
	})
	got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
	if err != nil || !got.Balanced() || got.Ledger[flow.MoveRefundReturned].Count != 2 {
		t.Errorf("%+v (%v)", got, err)
	}
}

// Of money without a session too, what is taken back on another day is told by itself.
func TestEachDayIsToldWhatWasTakenBackOfMoneyOfNoSession(t *testing.T) {
	t.Parallel()
	w := one(t)
	n := credit("T1", "", 250_000, w.clock())
	n.Collects = project
	lines := []flow.Notice{n}
	for _, id := range []string{"R1", "R2"} {
		back := credit(id, "", 100_000, w.clock())
		back.Kind, back.Reverses = flow.Reversal, "T1"
		lines = append(lines, back)
		w.must(w.tell(n, back))
		w.rest()
		w.later(24 * time.Hour)
	}
	w.rail.set(func(r *shakyRail) { r.lines = lines })
	for _, back := range lines[1:] {
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(back.PaidAt))
		if err != nil || !got.Balanced() || got.Events[flow.MoveReversal].Count != 1 {
			t.Errorf("%+v (%v)", got, err)
		}
	}
}

// A line of money that left under names which nobody here gave is nobody's, and does not
// keep a project from its day.
func TestALineOfMoneyThatNobodyHereSentIsNobodys(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.rail.set(func(r *shakyRail) {
		for i, reference := range []string{"wsp_rfd_unknown", "wsp_stl_unknown", "somebody else's"} {
			r.lines = append(r.lines, flow.Notice{Kind: flow.PaidOut, Reference: reference, RailTransactionID: fmt.Sprint("B", i), Amount: 100_000, PaidAt: w.now})
		}
	})
	for of, differences := range map[flow.ProjectID]int{project: 0, "": 3} {
		got, err := w.service.Reconcile(t.Context(), of, flow.DateOf(w.clock()))
		if err != nil || len(got.Differences) != differences || got.Rail[flow.MoveRefund].Count+got.Rail[flow.MovePayout].Count != differences {
			t.Errorf("of %q: %+v (%v)", of, got, err)
		}
	}
}

// Money that several events tell of moved once: late, and then taken.
func TestMoneyThatSeveralEventsTellOfIsCountedOnce(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.lateMoney(func(*flow.Policy) {})
	_, err := w.resolve(p.ID, true)
	w.must(err)
	if e := w.events(session.ID); e[flow.ChargeLate] != 1 || e[flow.ChargeSuccess] != 1 {
		t.Fatalf("told %v", e)
	}
	got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(p.PaidAt))
	if want := (flow.Total{Count: 1, Amount: 500_000}); err != nil || !got.Balanced() || got.Events[flow.MovePayment] != want {
		t.Errorf("%+v (%v)", got, err)
	}
}

// A payout that was not sent has an event as one that came back has, which does not stand
// for that of the other.
func TestAPayoutThatWasNotSentIsNoneThatCameBack(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		w.endpoint("https://shop.test/hook")
		for n, payday := range []struct {
			fate rail.Fate
			on   flow.Date
		}{{rail.FateFail, "2026-11-23"}, {rail.FateBounce, "2026-11-24"}} {
			w.weather(rail.Conditions{Payouts: payday.fate})
			_, made, _, err := w.service.SettleNow(t.Context(), project, payday.on)
			if err != nil || !made {
				t.Fatalf("there is no payout (%v)", err)
			}
			w.rest()
			w.later(5 * time.Second) // what the bank took on is sent, or not, and comes back
			w.until("the bank's last word", func() bool { return w.told(flow.SettlementFailedKind) == n+1 })
		}
		if list := w.ended(project, 2); list[0].RailTransactionID != "" || !list[1].Returned {
			t.Fatalf("%+v", list)
		}
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
		if err != nil || !got.Balanced() || got.Events[flow.MovePayoutReturned].Count != 1 {
			t.Errorf("%+v (%v)", got, err)
		}
		w.spoilt = true // an event is not what it says
		w.change("UPDATE events SET kind = 'ping' WHERE id = (SELECT MAX(id) FROM events WHERE kind = 'settlement.failed')")
		got, err = w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
		if err != nil || len(got.Differences) != 1 || got.Differences[0].Kind != flow.MissingEvent || got.Differences[0].Movement != flow.MovePayoutReturned {
			t.Errorf("%+v (%v)", got.Differences, err)
		}
	})
}

// Of two refunds of one amount that left twice, the one that came back is none of the
// merchant's any more, and the one that is out still is looked for.
func TestWhatCameBackIsNotTakenForAnotherPaymentsOfTheSameAmount(t *testing.T) {
	t.Parallel()
	w := one(t)
	out, back := w.refusedThenSent(""), w.refusedThenSent("")
	w.paidOut(string(out.ID), "B8", out.Amount)
	w.later(time.Second)
	w.paidOut(string(back.ID), "B9", back.Amount)
	w.later(time.Second)
	w.cameBack(string(back.ID), "B10", "B9", back.Amount)
	w.rail.set(func(s *shakyRail) {
		for id, r := range map[string]flow.Refund{"B8": out, "B9": back, "B10": back} {
			n := flow.Notice{Kind: flow.PaidOut, Reference: string(r.ID), RailTransactionID: id, Amount: r.Amount, PaidAt: w.now}
			if id == "B10" {
				n.Kind, n.Reverses = flow.PayoutFailed, "B9"
			}
			s.lines = append(s.lines, n)
		}
	})
	got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
	if err != nil || len(got.Differences) != 1 || got.Differences[0].Kind != flow.MissingEvent || got.Differences[0].RailTransactionID != "B8" {
		t.Errorf("%+v (%v)", got.Differences, err)
	}
}

// What the bank took back is of the day on which it did, whenever that was heard of.
func TestWhatTheBankTookBackIsOfTheDayOnWhichItDid(t *testing.T) {
	t.Parallel()
	w := one(t)
	_, a := w.paying()
	lines := []flow.Notice{said(flow.Credit, "T1", a, 500_000, w.clock()), reversal("R1", "T1", a, 100_000, w.clock())}
	w.must(w.tell(lines[0]))
	w.rest()
	w.later(24 * time.Hour)
	w.must(w.tell(lines[1]))
	w.rest()
	w.later(time.Hour)
	w.rail.set(func(r *shakyRail) { r.lines = lines })
	for day, count := range map[flow.Date]int{flow.DateOf(lines[1].PaidAt): 1, flow.DateOf(w.clock()): 0} {
		got, err := w.service.Reconcile(t.Context(), project, day)
		if err != nil || !got.Balanced() || got.Ledger[flow.MoveReversal].Count != count {
			t.Errorf("on %s: %+v (%v)", day, got, err)
		}
	}
}

// What a merchant was told of a payout is held against the books too: another amount, and a
// payout that nobody booked.
func TestAPayoutOfWhichAnEventTellsOtherwiseIsADifference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.SQLite(t, store.Checkout))
	w.pays("")
	w.start(true)
	w.earns()
	if _, made, _, err := w.service.SettleNow(t.Context(), project, "2026-11-23"); err != nil || !made {
		t.Fatalf("there is no payout (%v)", err)
	}
	w.rest()
	w.later(3 * time.Second)
	name := w.ended(project, 1)[0].RailTransactionID
	w.spoilt = true // an event is not what it says
	for _, c := range []struct {
		was, is string
		want    map[flow.DifferenceKind]string // and the movement that it is of
	}{
		{`"482500"`, `"482400"`, map[flow.DifferenceKind]string{flow.EventDiffers: name}},
		{name, "T0", map[flow.DifferenceKind]string{flow.EventWithoutBooking: "T0", flow.MissingEvent: name}},
	} {
		w.change("UPDATE events SET body = CAST(REPLACE(CAST(body AS TEXT), '" + c.was + "', '" + c.is + "') AS BLOB) WHERE kind = 'settlement.success'")
		w.later(2 * time.Minute)
		got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
		if err != nil || len(got.Differences) != len(c.want) {
			t.Errorf("%s: %+v (%v)", c.is, got.Differences, err)
		}
		for _, d := range got.Differences {
			if c.want[d.Kind] != d.RailTransactionID || d.Movement != flow.MovePayout || d.Event != nil && *d.Event != -482_400 {
				t.Errorf("%s: %+v", c.is, d)
			}
		}
	}
}

// Who goes while the bank is asked for its statement says nothing of the bank: the next is
// not refused for it.
func TestWhoGoesWhileTheStatementIsReadKeepsItFromNobody(t *testing.T) {
	t.Parallel()
	w := one(t)
	ctx, goes := context.WithCancel(t.Context())
	goes()
	day := flow.DateOf(w.clock())
	if _, err := w.service.Reconcile(ctx, project, day); err == nil {
		t.Error("who has gone was answered")
	}
	if got, err := w.service.Reconcile(t.Context(), project, day); err != nil || !got.Balanced() {
		t.Errorf("the next: %+v (%v)", got, err)
	}
}
