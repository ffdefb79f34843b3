package flow_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

// This file is what refunds do to the books of a session.

// refund is the merchant sending back what is left of some payment, half of that, or
// what is set aside of it: that goes first.
func (b *books) refund(t *rapid.T) {
	if len(b.payments) == 0 {
		return
	}
	p := rapid.SampledFrom(b.payments).Draw(t, "payment")
	most := p.Refundable()
	if most == 0 {
		return
	}
	b.n++
	ask := flow.RefundAsk{ID: flow.RefundID(fmt.Sprint("wsp_rfd_", b.n)), Origin: flow.OriginMerchant, By: "wsp_key_1"}
	amounts := []flow.Kobo{most, max(most/2, 1)}
	if aside := min(p.Unapplied, most); aside > 0 {
		amounts = []flow.Kobo{aside, max(aside/2, 1), most}
	}
	ask.Amount = rapid.SampledFrom(amounts).Draw(t, "of it")
	ask.Aside = min(ask.Amount, p.Unapplied)
	c, err := flow.NewRefund(b.session, p, ask, b.now)
	if err != nil {
		t.Fatalf("what is left cannot go back: %v", err)
	}
	b.taken(*c.Refund)
	b.keep(t, c)
	b.order(t, *c.Refund)
}

// order tells the bank of a refund. One that takes what the bank took meanwhile fails.
func (b *books) order(t *rapid.T, r flow.Refund) {
	c, err := r.Send(b.session, *b.payment(r.Payment), b.now)
	if err != nil {
		t.Fatal(err)
	}
	if c.Refund.PutBack {
		b.putBack(t, r, c)
		return
	}
	b.refunds = append(b.refunds, *c.Refund)
}

// taken is what a payment's row shows once its money is with a refund.
func (b *books) taken(r flow.Refund) {
	b.payment(r.Payment).Refunded += r.Amount
	b.own[r.Payment] += r.Amount - r.Aside
}

// one takes one out of a list of refunds.
func one(t *rapid.T, list *[]flow.Refund) (r flow.Refund, is bool) {
	if len(*list) == 0 {
		return r, false
	}
	i := rapid.IntRange(0, len(*list)-1).Draw(t, "refund")
	r = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return r, true
}

// refunded is the bank saying what became of a refund that is under way.
func (b *books) refunded(t *rapid.T) {
	r, is := one(t, &b.refunds)
	if !is {
		return
	}
	says := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-" + r.Reference}
	if rapid.Bool().Draw(t, "refused") {
		says = flow.Disbursed{Status: flow.DisbursementFailed}
	}
	c, err := r.Heard(b.session, *b.payment(r.Payment), says, false, b.now)
	if err != nil {
		t.Fatal(err)
	}
	if says.Status == flow.DisbursementFailed {
		b.putBack(t, r, c)
		return
	}
	b.sent[r.Payment] += r.Amount
	b.arrived = append(b.arrived, *c.Refund)
	b.keep(t, c)
}

// putBack is the money of a refund lying where it was taken from.
func (b *books) putBack(t *rapid.T, r flow.Refund, c flow.Change) {
	p := b.payment(r.Payment)
	p.Refunded -= r.Amount
	b.own[p.ID] -= r.Amount - r.Aside
	p.Lost += r.Amount - r.Aside
	if c.SetsAside() { // it waits again
		p.Resolution, p.ReturnsAt = flow.Unresolved, c.Refund.ReturnsAt(b.session, *p, b.now)
	} else if p.Resolution == flow.ResolvedRefunded && p.Refunded == 0 && p.Unapplied == 0 {
		p.Resolution, p.ReturnsAt = flow.Unresolved, time.Time{}
	}
	b.stopped = append(b.stopped, *c.Refund)
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

// bounced is a refund that arrived coming back.
func (b *books) bounced(t *rapid.T) {
	r, is := one(t, &b.arrived)
	if !is {
		return
	}
	says := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "back-" + r.Reference, Reverses: r.RailTransactionID}
	c, err := r.Heard(b.session, *b.payment(r.Payment), says, false, b.now)
	if err != nil || c.Refund.Status != flow.RefundAttention {
		t.Fatalf("it came back, and is %+v (%v)", c.Refund, err)
	}
	b.sent[r.Payment] -= r.Amount
	b.stopped = append(b.stopped, *c.Refund)
	b.keep(t, c)
}

// retry is the merchant sending a refund again that was refused or came back. What the
// bank took meanwhile is not sent too.
func (b *books) retry(t *rapid.T) {
	r, is := one(t, &b.stopped)
	if !is {
		return
	}
	p := b.payment(r.Payment)
	c, err := r.Retry(b.session, *p, flow.Ruled{By: "wsp_key_1", At: b.now})
	besides := flow.CodeOf(err) == flow.CodeRefundNotRetryable && r.Overpaid > 0
	if besides || flow.CodeOf(err) == flow.CodeRefundExceeds && p.Refundable() < r.Amount {
		b.stopped = append(b.stopped, r)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.PutBack {
		b.taken(*c.Refund)
	}
	b.keep(t, c)
	b.order(t, *c.Refund)
}

// afterAll is the bank saying that it sent a refund after all which it had refused. It
// is the refund, or left besides where its money went back otherwise meanwhile.
func (b *books) afterAll(t *rapid.T) {
	i := slices.IndexFunc(b.stopped, func(r flow.Refund) bool {
		return r.PutBack && r.Tries > 0 && !b.posted[string(flow.EntryRefundPaid)+"/"+r.Reference]
	})
	if i < 0 {
		return
	}
	r := b.stopped[i]
	p := b.payment(r.Payment)
	besides := p.Refunded+r.Amount > p.Amount
	c, err := r.Heard(b.session, *p, flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-" + r.Reference}, false, b.now)
	if err != nil || besides != (c.Refund.Overpaid > 0) || besides == (c.Refund.Status == flow.RefundProcessed) {
		t.Fatalf("%+v was sent after all, and is %+v (%v)", r, c.Refund, err)
	}
	b.sent[p.ID] += r.Amount
	if besides {
		b.stopped[i] = *c.Refund
	} else {
		b.stopped = slices.Delete(b.stopped, i, i+1)
		b.arrived = append(b.arrived, *c.Refund)
		b.taken(*c.Refund)
		p.Lost -= r.Amount - c.Refund.Aside
	}
	b.keep(t, c)
}

// backBesides is what left besides a refund coming back.
func (b *books) backBesides(t *rapid.T) {
	i := slices.IndexFunc(b.stopped, func(r flow.Refund) bool { return r.Overpaid > 0 })
	if i < 0 {
		return
	}
	r := b.stopped[i]
	says := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "back-" + r.Reference, Reverses: "out-" + r.Reference}
	c, err := r.Heard(b.session, *b.payment(r.Payment), says, true, b.now)
	if err != nil || c.Refund.Overpaid != 0 || c.Refund.Status != r.Status {
		t.Fatalf("what left besides came back, and it is %+v (%v)", c.Refund, err)
	}
	b.sent[r.Payment] -= r.Amount
	b.stopped[i] = *c.Refund
	b.keep(t, c)
}

// givenUp says whether a payment has a refund that somebody must look at.
func (b *books) givenUp(id flow.PaymentID) bool {
	return slices.ContainsFunc(b.stopped, func(r flow.Refund) bool { return r.Payment == id && r.Status == flow.RefundAttention })
}
