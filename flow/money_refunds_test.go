package flow_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"till/flow"
)

// This file is what refunds do to the books of a session.

// refund is the merchant sending back what is set aside of some payment, or half.
func (b *books) refund(t *rapid.T) {
	if len(b.payments) == 0 {
		return
	}
	p := rapid.SampledFrom(b.payments).Draw(t, "payment")
	most := min(p.Unapplied, p.Refundable())
	if most <= 0 {
		return
	}
	b.n++
	ask := flow.RefundAsk{ID: flow.RefundID(fmt.Sprint("wsp_rfd_", b.n)), Origin: flow.OriginMerchant, By: "wsp_key_1"}
	ask.Amount = rapid.SampledFrom([]flow.Kobo{most, max(most/2, 1)}).Draw(t, "of it")
	ask.Aside = ask.Amount
	c, err := flow.NewRefund(b.session, p, ask, b.now)
	if err != nil {
		t.Fatalf("what is set aside cannot go back: %v", err)
	}
	b.payment(p.ID).Refunded += ask.Amount
	b.refunds = append(b.refunds, *c.Refund)
	b.keep(t, c)
}

// refunded is the bank saying what became of a refund that is under way.
func (b *books) refunded(t *rapid.T) {
	if len(b.refunds) == 0 {
		return
	}
	i := rapid.IntRange(0, len(b.refunds)-1).Draw(t, "refund")
	r := b.refunds[i]
	b.refunds = slices.Delete(b.refunds, i, i+1)
	says := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-" + string(r.ID)}
	if rapid.Bool().Draw(t, "refused") {
		says = flow.Disbursed{Status: flow.DisbursementFailed}
	}
	p := b.payment(r.Payment)
	c, err := r.Heard(b.session, *p, says, false, b.now)
	if err != nil {
		t.Fatal(err)
	}
	if says.Status == flow.DisbursementDone {
		b.sent[p.ID] += r.Amount
		b.keep(t, c)
		return
	}
	p.Refunded -= r.Amount
	if c.SetsAside() && (p.Resolution != flow.Unresolved || p.ReturnsAt.IsZero()) { // it waits again
		p.Resolution, p.ReturnsAt = flow.Unresolved, c.Refund.ReturnsAt(b.session, *p, b.now)
	}
	if b.keepOpen(t, c); !c.Refund.Held {
		b.sound(t, b.session)
		return
	}
	p = b.payment(r.Payment)
	complete, err := flow.Complete(b.known(b.attempt(p.Attempt)), *p)
	if err != nil {
		t.Fatal(err)
	}
	b.keep(t, complete)
}
