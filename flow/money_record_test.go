package flow_test

import (
	"slices"

	"pgregory.net/rapid"

	"till/flow"
)

// This file is what a merchant reads of a session, against its books.

// recorded holds the record of the charge against the ledger.
func (b *books) recorded(t *rapid.T) {
	var fee, net, refunded flow.Kobo
	for _, p := range b.payments {
		if p.Counts() {
			fee -= b.lines[p.ID][flow.Fees]
		}
		if p.Match != flow.Duplicate {
			net -= b.lines[p.ID][flow.MerchantPending] - b.own[p.ID]
		}
		refunded += p.Refunded
	}
	r, want := flow.RecordCharge(b.session, b.attempts, b.payments, flow.Surroundings{}), flow.ChargeRecord{}
	if b.session.Status == flow.SessionPaid {
		want.AmountPaidMinor, want.FeeMinor, want.NetMinor = b.session.AmountPaid.Minor(), fee.Minor(), net.Minor()
		want.RefundedMinor = r.RefundedMinor // of what it was paid with, which no line of the ledger says
	} else if refunded > 0 {
		want.RefundedMinor = refunded.Minor()
	}
	if r.AmountPaidMinor != want.AmountPaidMinor || r.FeeMinor != want.FeeMinor || r.NetMinor != want.NetMinor || r.RefundedMinor != want.RefundedMinor {
		t.Fatalf("the record says %+v of %+v, ledger %v", r, b.payments, b.lines)
	}
}

// named holds that what is told of money names the attempt that it came to: without it
// every chat of the session would be told of one payer's money.
func named(t *rapid.T, c flow.Change) {
	for _, f := range c.Facts {
		if p := f.Payment; p != nil && f.Attempt != p.Attempt {
			t.Fatalf("%s of money for %s is told of %q", f.Kind, p.Attempt, f.Attempt)
		}
	}
	for _, n := range c.News {
		if p := n.Payment; p != nil && n.Attempt != p.Attempt {
			t.Fatalf("%s of money for %s is told of %q", n.Kind, p.Attempt, n.Attempt)
		}
	}
}

// told holds what is told of a session that was paid just now against what was
// there of its payments, which were so before. What goes back by policy as it could
// not before is sent again, and is none of it.
func (b *books) told(t *rapid.T, news flow.News, were []flow.Payment) {
	beyond, mixed, gone := -b.session.AmountPaid, false, flow.Kobo(0)
	for _, p := range b.payments {
		if !p.Counts() || p.Match == flow.Partial && p.Applied+p.Fee == 0 && b.session.Policy.Underpayment == "refund" {
			continue
		}
		beyond += p.Amount
		if i := slices.IndexFunc(were, func(q flow.Payment) bool { return q.ID == p.ID }); i >= 0 {
			beyond -= min(were[i].Refunded+were[i].Reversed, p.Amount)
			mixed = mixed || were[i].Refunded > 0 && p.Resolution != flow.Unresolved
		} else { // it came now, and the bank has some of it already
			gone = min(b.early, p.Amount-p.Applied)
		}
	}
	if news.Kind != flow.NewsPaid || news.Extra != beyond-gone || slices.Contains(b.session.Exceptions, flow.Overpaid) != (beyond > 0) {
		t.Fatalf("%d more came than was asked for, and told is %+v of %+v", beyond, news, b.session)
	}
	r, want := flow.RecordCharge(b.session, b.attempts, b.payments, flow.Surroundings{}), ""
	if beyond > 0 {
		want = beyond.Minor()
	}
	if r.ExcessMinor != want && !mixed { // what went back of it before and goes back now is not told apart
		t.Fatalf("%d more came than was asked for, and the record says %s: %+v", beyond, r.ExcessMinor, b.payments)
	}
}
