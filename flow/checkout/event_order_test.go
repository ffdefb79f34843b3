package checkout_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// A bank that is asked about money which it sent, and which came back, says both at
// once: the events that follow are told apart by their times, for of a payout they
// have nothing else.
func TestEventsOfOneMomentSayWhichCameFirst(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", Reverses: "B1", Reason: "It came back.", At: w.clock()}, nil
		})
		w.weather(rail.Conditions{Payouts: rail.FatePending, NotifyLossPercent: 100})
		w.at("2026-11-23T08:00:01Z")
		w.later(time.Minute)
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementFailed || !b.Returned {
			t.Fatalf("%+v", b)
		}
		list, _, err := w.service.Events(t.Context(), project, checkout.EventFilter{Limit: 100})
		w.must(err)
		slices.Reverse(list)
		var told []flow.EventKind
		var last time.Time
		for _, e := range list {
			if e.Event.Session != "" {
				continue
			}
			if !e.Event.CreatedAt.After(last) {
				t.Errorf("%s is of the same moment as another", e.Event.Kind)
			}
			told, last = append(told, e.Event.Kind), e.Event.CreatedAt
		}
		if !slices.Equal(told, []flow.EventKind{flow.SettlementSuccessKind, flow.SettlementFailedKind}) {
			t.Errorf("told in this order: %v", told)
		}
	})
}
