package sandbox_test

import (
	"testing"

	"till/flow"
	"till/rail"
)

// A refund that waits for other weather is not sent once its credit was taken back: it
// would be refused by then, and what would be refused fails. Another of the same weather
// goes.
func TestNoRefundIsSentOfACreditThatWasTakenBackMeanwhile(t *testing.T) {
	w := openTown(t)
	back, stays := w.paid(t, "ref_1"), w.paid(t, "ref_2")
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FatePending}); err != nil {
		t.Fatal(err)
	}
	w.disburse(t, refund("rf_1", 500_000, back.RailTransactionID))
	w.disburse(t, refund("rf_2", 500_000, stays.RailTransactionID))
	if _, err := w.rail.Reverse(t.Context(), back.RailTransactionID); err != nil {
		t.Fatal(err)
	}
	if n := w.hear(t); n.Kind != flow.Reversal {
		t.Fatalf("notice %+v; want the reversal", n)
	}
	if _, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
		t.Fatal(err)
	}
	told := map[string]flow.NoticeKind{}
	for range 2 {
		n := w.hear(t)
		told[n.Reference] = n.Kind
	}
	if told["rf_1"] != flow.PayoutFailed || told["rf_2"] != flow.PaidOut {
		t.Errorf("told %v; want the first failed and the second sent", told)
	}
	for reference, want := range map[string]flow.DisbursementStatus{"rf_1": flow.DisbursementFailed, "rf_2": flow.DisbursementDone} {
		if got, err := w.rail.Disbursed(t.Context(), reference); err != nil || got.Status != want {
			t.Errorf("Disbursed(%s) = %+v, %v; want %s", reference, got, err, want)
		}
	}
}
