package checkout_test

import (
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// What somebody asked for and nobody agreed to in its time is over: the money went its
// own way since, and it keeps no payer from being forgotten.
func TestWhatNobodyAgreedToKeepsNobodyFromBeingForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.twoAbove(100_000)
		w.askedForAndLeft()
		if _, err := w.forgets(w.find()); err != nil {
			t.Errorf("a day after it was asked for: %v", err)
		}
		w.nowhere()
	})
}

// Nor do the words of a chat stay for it.
func TestWhatNobodyAgreedToKeepsNoWords(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.keep = kept90
	w.twoAbove(100_000)
	w.askedForAndLeft()
	w.stands(adaSaid, true)
	w.days(92)
	w.stands(adaSaid, false)
}

// askedForAndLeft has Ada pay twice, and somebody ask that the second payment be sent
// back, to which nobody agrees; so it goes back by itself.
func (w *world) askedForAndLeft() {
	w.t.Helper()
	s := w.adaSession()
	w.adaPays(s)
	p := w.comes(s.ID, s.Amount)
	waits, err := w.service.Order(w.t.Context(), project, checkout.MoneyOrder{Act: flow.ActSendBack, Subject: string(p.ID), Reason: "she called", Key: "wsp_usr_1", By: "ada@shop.test"})
	w.must(err)
	w.refusesToForget("proposal", string(waits.ID))
	w.later(flow.ReturnAfter)
	w.until("the second payment is back", func() bool {
		w.later(time.Minute) // the bank is asked what became of it
		r := w.refundsOf(s.ID)
		return len(r) == 1 && r[0].Status == flow.RefundProcessed
	})
}
