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

// untold says whether a refund waits that the bank was told nothing of.
func untold(r flow.Refund) bool { return r.Status == flow.RefundPending && r.Tries == 0 }

// order has the bank told of a refund, at once or later.
func (b *books) order(t *rapid.T, r flow.Refund) {
	if untold(r) && rapid.IntRange(0, 3).Draw(t, "told later, of four") == 0 {
		b.row(r)
		return
	}
	b.send(t, r)
}

// sends tells the bank of a refund that waits for that.
func (b *books) sends(t *rapid.T) {
	if r, is := one(t, b.refunds, untold); is {
		b.send(t, r)
	}
}

// calledOff calls refunds off which the bank was not told of, as far as it takes back what
// they would send.
func (b *books) calledOff(t *rapid.T, id flow.PaymentID, amount flow.Kobo) {
	for _, r := range slices.Clone(b.refunds) {
		p := *b.payment(id)
		if r.Payment != id || !untold(r) || p.Refundable() >= amount {
			continue
		}
		c, err := r.Heard(b.session, p, flow.Disbursed{Status: flow.DisbursementFailed}, false, b.now)
		if err != nil {
			t.Fatal(err)
		}
		b.putBack(t, r, c)
	}
}

// send tells the bank of a refund. One that takes what the bank took meanwhile fails.
func (b *books) send(t *rapid.T, r flow.Refund) {
	c, err := r.Send(b.session, *b.payment(r.Payment), b.now)
	if err != nil {
		t.Fatal(err)
	}
	if c.Refund.PutBack {
		b.putBack(t, r, c)
		return
	}
	b.row(*c.Refund)
	b.ordered = append(b.ordered, c.Refund.Reference)
}

// row keeps where a refund stands.
func (b *books) row(r flow.Refund) {
	if i := slices.IndexFunc(b.refunds, func(x flow.Refund) bool { return x.ID == r.ID }); i >= 0 {
		b.refunds[i] = r
	} else {
		b.refunds = append(b.refunds, r)
	}
}

// named is the refund that the bank knows, or knew, by a name.
func (b *books) named(name string) flow.Refund {
	return b.refunds[slices.IndexFunc(b.refunds, func(r flow.Refund) bool { return r.ID == flow.RefundOf(name) })]
}

// taken is what a payment's row shows once its money is with a refund.
func (b *books) taken(r flow.Refund) {
	b.payment(r.Payment).Refunded += r.Amount
	b.own[r.Payment] += r.Amount - r.Aside
}

// left is the money of a refund being with who paid it, which the bank calls name.
func (b *books) left(name string, was, r flow.Refund) {
	b.sent[r.Payment] += r.Amount
	b.out = append(b.out, name)
	if was.PutBack && !r.PutBack {
		b.taken(r)
		b.payment(r.Payment).Lost -= r.Amount - r.Aside
	}
}

// one picks one of a list.
func one[T any](t *rapid.T, list []T, is func(T) bool) (x T, found bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !is(x) })
	if len(list) == 0 {
		return x, false
	}
	return rapid.SampledFrom(list).Draw(t, "one"), true
}

// sentAs is the bank saying that it sent something under a name.
func sentAs(name string) flow.Disbursed {
	return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-" + name}
}

// refunded is the bank saying what became of a refund that is under way. Where it sends
// nothing of one that it sent under another name before, that was it.
func (b *books) refunded(t *rapid.T) {
	r, is := one(t, b.refunds, func(r flow.Refund) bool { return r.Open() && !untold(r) })
	if !is {
		return
	}
	says := sentAs(r.Reference)
	if rapid.Bool().Draw(t, "refused") {
		says = flow.Disbursed{Status: flow.DisbursementFailed}
	}
	c, err := r.Heard(b.session, *b.payment(r.Payment), says, false, b.now)
	if err != nil {
		t.Fatal(err)
	}
	if c.Refund.PutBack {
		b.putBack(t, r, c)
		return
	}
	if says.Status == flow.DisbursementDone {
		b.left(r.Reference, r, *c.Refund)
	}
	b.row(*c.Refund)
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
	b.row(*c.Refund)
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

// bounced is money that arrived coming back.
func (b *books) bounced(t *rapid.T) {
	name, is := one(t, b.out, func(string) bool { return true })
	if !is {
		return
	}
	r := b.named(name)
	says := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "back-" + name, Reverses: "out-" + name}
	c, err := r.BackUnder(b.session, says, b.now)
	if name == r.Reference {
		c, err = r.Heard(b.session, *b.payment(r.Payment), says, r.PutBack, b.now)
	}
	if err != nil || c.Refund == nil || r.Overpaid-c.Refund.Overpaid != r.Amount && c.Refund.Status != flow.RefundAttention {
		t.Fatalf("%s came back, and it is %+v (%v)", name, c.Refund, err)
	}
	b.out = slices.DeleteFunc(b.out, func(x string) bool { return x == name })
	b.sent[r.Payment] -= r.Amount
	b.row(*c.Refund)
	b.keep(t, c)
}

// retry is the merchant sending a refund again that was refused or came back. What the
// bank took meanwhile is not sent too, and nothing that it sent although it had refused.
func (b *books) retry(t *rapid.T) {
	r, is := one(t, b.refunds, func(r flow.Refund) bool { return !r.Open() && r.Status != flow.RefundProcessed })
	if !is {
		return
	}
	p := b.payment(r.Payment)
	c, err := r.Retry(b.session, *p, flow.Ruled{By: "wsp_key_1", At: b.now})
	if b.mayNot(r, err) {
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

// mayNot says whether a refund is rightly not sent again.
func (b *books) mayNot(r flow.Refund, err error) bool {
	return flow.CodeOf(err) == flow.CodeRefundExceeds && r.PutBack && b.payment(r.Payment).Refundable() < r.Amount ||
		flow.CodeOf(err) == flow.CodeRefundNotRetryable && r.Overpaid > 0
}

// byHand is somebody paying a refund that needs attention.
func (b *books) byHand(t *rapid.T) {
	r, is := one(t, b.refunds, func(r flow.Refund) bool { return r.Status == flow.RefundAttention })
	if !is {
		return
	}
	b.n++
	c, err := r.DoneByHand(b.session, *b.payment(r.Payment), fmt.Sprint("hand-", b.n), b.now, b.now)
	if b.mayNot(r, err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	b.left(c.Refund.Reference, r, *c.Refund)
	b.row(*c.Refund)
	b.keep(t, c)
}

// afterAll is the bank saying that it sent under some name after all what it had refused
// to. It is the refund, or left besides where that is, or may be, out otherwise.
func (b *books) afterAll(t *rapid.T) {
	name, is := one(t, b.ordered, func(name string) bool {
		r := b.named(name)
		return !b.posted[string(flow.EntryRefundPaid)+"/"+name] && (name != r.Reference || r.PutBack)
	})
	if !is {
		return
	}
	r := b.named(name)
	p := *b.payment(r.Payment)
	c, err := r.SentUnder(name, b.session, p, sentAs(name), b.now)
	if name == r.Reference {
		c, err = r.Heard(b.session, p, sentAs(name), false, b.now)
	}
	besides := r.Open() && !untold(r) || r.Status == flow.RefundProcessed || r.PutBack && p.Refunded+r.Amount > p.Amount
	if err != nil || besides != (c.Refund.Overpaid > r.Overpaid) || !besides && c.Refund.Status != flow.RefundProcessed {
		t.Fatalf("%+v was sent after all, and is %+v (%v)", r, c.Refund, err)
	}
	b.left(name, r, *c.Refund)
	b.row(*c.Refund)
	b.keep(t, c)
}

// overtaken ends what was given up and cannot be sent as it is any more.
func (b *books) overtaken(t *rapid.T) {
	for _, r := range b.refunds {
		p := b.payment(r.Payment)
		c, is, err := r.Overtaken(b.session, *p)
		if err != nil {
			t.Fatal(err)
		}
		if !is {
			continue
		}
		b.row(*c.Refund)
		if p.Decidable(b.session) && p.ReturnsAt.IsZero() {
			p.ReturnsAt = b.now.Add(flow.ReturnAfter)
		}
	}
}

// givenUp says whether a payment has a refund that somebody must look at.
func (b *books) givenUp(id flow.PaymentID) bool {
	return slices.ContainsFunc(b.refunds, func(r flow.Refund) bool { return r.Payment == id && r.Status == flow.RefundAttention })
}
