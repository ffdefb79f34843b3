package sandbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// What the bank refused while it held what it took on is not sent once it lets that go.
func TestWhatWasRefusedIsNotSentWhenTheBankLetsGo(t *testing.T) {
	w := openTown(t)
	w.paid(t, "ref")
	_, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FatePending})
	must(t, err)
	if _, err := w.rail.Disburse(t.Context(), refund("rf_1", 1, "ttb_none")); !errors.Is(err, rail.ErrRejected) {
		t.Fatalf("a refund of no credit = %v", err)
	}
	_, err = w.rail.SetConditions(t.Context(), rail.Conditions{Up: true})
	must(t, err)
	w.settled(t)
	w.silent(t)
}

// A refund is of a credit, goes by the way that this came, and comes back a while after it
// was sent, which says when that was.
func TestARefundIsOfACreditAndMayComeBack(t *testing.T) {
	w := openTown(t)
	must(t, w.rail.CompleteUSSD(t.Context(), w.start(t, flow.USSD, "ref").PaymentCode, "success"))
	credit := w.hear(t)
	w.disburse(t, payout("set_1", 1, "0123456789"))
	if _, err := w.rail.Disburse(t.Context(), refund("rf_1", 1, w.hear(t).RailTransactionID)); !errors.Is(err, rail.ErrRejected) || !strings.Contains(err.Error(), "no_such_credit") {
		t.Errorf("a refund of a payout = %v", err)
	}
	_, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateBounce})
	must(t, err)
	w.disburse(t, refund("rf_2", 1, credit.RailTransactionID))
	sent := w.hear(t)
	if sent.Kind != flow.PaidOut || sent.Channel != flow.USSD || sent.NIPSessionID != "" {
		t.Errorf("sent is %+v", sent)
	}
	w.clock.advance(time.Minute)
	back, err := w.rail.Disbursed(t.Context(), "rf_2")
	if err != nil || back.Reverses != sent.RailTransactionID || !back.SentAt.Equal(sent.PaidAt) || !back.At.Equal(sent.PaidAt.Add(time.Second)) {
		t.Errorf("sent is %+v, and back %+v, %v", sent, back, err)
	}
	if moves, err := w.rail.Check(t.Context(), "rf_2"); err != nil || len(moves) != 0 {
		t.Errorf("asked as about money that comes in: %+v, %v", moves, err)
	}
}

// Neither a credit nor the bank has money again of a refund that fails before that is
// known, nor of a transfer that was sent back.
func TestMoneyOnItsWayIsNotThere(t *testing.T) {
	w := openTown(t)
	credit := w.paid(t, "ref")
	w.transfer(t, rail.Transfer{AccountNumber: w.start(t, flow.BankTransfer, "ref_2").AccountNumber, Returned: true})
	_, err := w.rail.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateFail})
	must(t, err)
	w.disburse(t, refund("rf_1", 500_000, credit.RailTransactionID))
	must(t, w.bank.Exec(`UPDATE transits SET lands_at = lands_at + 3600000 WHERE returned = 0`))
	for want, d := range map[string]flow.Disbursement{"exceeds_credit": refund("rf_2", 500_000, credit.RailTransactionID), "insufficient_funds": payout("set_1", 1, "0123456789")} {
		if _, err := w.rail.Disburse(t.Context(), d); !errors.Is(err, rail.ErrRejected) || !strings.Contains(err.Error(), want) {
			t.Errorf("while it is under way, %s = %v; want %s", d.Reference, err, want)
		}
	}
	w.clock.advance(2 * time.Hour)
	w.disburse(t, refund("rf_3", 500_000, credit.RailTransactionID))
}
