package checkout_test

import (
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// A bank that cannot be told of a refund for most of a day, and then takes it on, has
// said something of it: it is asked on, and nobody has to look.
func TestARefundThatIsTakenOnAfterALongOutageIsAskedAboutOn(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.unreached(true)
		r := w.ordered(p, 200_000)
		w.rest()
		w.passes(22, time.Hour)
		w.unreached(false)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		w.passes(4, time.Hour)
		if r = w.becomes(r.ID, flow.RefundProcessing); r.Tries < 2 || r.Failure != "" {
			w.t.Errorf("%+v", r)
		}
		w.weather(rail.Conditions{NotifyLossPercent: 100})
		w.passes(3, time.Hour)
		w.becomes(r.ID, flow.RefundProcessed)
		if e := w.events(session.ID); e[flow.RefundAttentionKind] != 0 {
			w.t.Errorf("told %v", e)
		}
	})
}

// What was ordered while a bank was away for a part of a day is sent within the hour
// that it is back.
func TestARefundIsSentWithinTheHourThatTheBankIsBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		_, p := w.paidFor(500_000)
		w.unreached(true)
		r := w.ordered(p, 200_000)
		w.rest()
		w.passes(9, time.Hour)
		w.unreached(false)
		w.passes(2, 30*time.Minute)
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundProcessed)
	})
}

// A payout that the bank takes on after more than a day is one that it was told of only
// now: it is asked about as any other, and no operator is sent to ask.
func TestAPayoutThatIsTakenOnAfterALongOutageIsAskedAboutOn(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.earns()
		w.unreached(true)
		w.at("2026-11-23T08:00:01Z")
		w.rest()
		w.passes(30, time.Hour)
		w.weather(rail.Conditions{NotifyLossPercent: 100})
		w.unreached(false)
		w.passes(2, time.Hour)
		if b := w.settlements(project)[0]; b.Status != flow.SettlementSucceeded || b.Tries < 2 {
			w.t.Errorf("%+v", b)
		}
	})
}

// A bank that took a refund on and was away then for more than a day has had no time to say
// what became of it: that it is still on its way, once it answers, is no reason to look yet.
func TestARefundThatIsStillOnItsWayAfterALongOutageIsAskedAboutOn(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		_, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{}, rail.ErrUnavailable
		})
		r := w.ordered(p, 100_000)
		w.rest()
		w.passes(30, time.Hour)
		w.rail.sentOut(nil)
		w.passes(5, 4*time.Hour)
		w.becomes(r.ID, flow.RefundProcessing)
		w.passes(3, 4*time.Hour)
		w.becomes(r.ID, flow.RefundAttention) // like any other
	})
}

// A refund that has been on its way for more than a day stands where people look for what
// hangs, as a payout does; and its session's story says that the bank was asked about it,
// and not that nothing was done there.
func TestARefundWhoseBankIsAwayForDaysIsShown(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, p := w.paidFor(500_000)
		w.rail.set(func(r *shakyRail) { // it may have taken it on, and is away then
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnknown
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, rail.ErrUnavailable
			}
		})
		r := w.ordered(p, 200_000)
		w.rest()
		stuck := func(of flow.ProjectID) []store.Waiting {
			list, err := w.service.Reader().Waits(w.t.Context(), store.QueueFilter{Queue: store.QueueStuck, Project: of, Now: w.clock(), Limit: 9})
			w.must(err)
			return list
		}
		w.passes(5, 4*time.Hour)
		if list := stuck(""); len(list) != 0 {
			w.t.Errorf("the bank has a day to say what became of it, and already %+v waits for somebody", list)
		}
		w.passes(3, 4*time.Hour)
		for _, of := range []flow.ProjectID{"", project} {
			if list := stuck(of); len(list) != 1 || list[0].Subject != string(r.ID) || list[0].Session != session.ID || list[0].Amount != 200_000 || list[0].Detail != "refund" {
				w.t.Errorf("of %q: %+v", of, list)
			}
		}
		if list := stuck("wsp_prj_9"); len(list) != 0 {
			w.t.Errorf("another's: %+v", list)
		}
		story, err := checkout.Timeline(w.t.Context(), w.service.Reader(), session.ID)
		w.must(err)
		asked := 0
		for _, m := range story {
			switch {
			case strings.Contains(m.Told, "nothing was done there"):
				w.t.Errorf("told: %s", m.Told)
			case strings.HasPrefix(m.Told, "The bank was asked what became of the refund of ₦2,000 and could not be reached. That took "):
				asked++
			}
		}
		if asked < 5 {
			w.t.Errorf("it is told %d times that the bank was asked", asked)
		}
	})
}
