package checkout_test

import (
	"testing"
	"time"

	"till/flow"
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
