package flow

// Refundable is how much of a payment can still go back, in kobo: what came,
// less what the bank took and what is back or on its way already.
func (p Payment) Refundable() Kobo { return max(p.Amount-p.Reversed-p.Refunded, 0) }

// SentBack is how much of a payment is back with who paid it, or on its way there.
func (p Payment) SentBack() Kobo { return p.Refunded - p.Bounced }

// Bounced is how much of what was sent back of some payments is with us again, in kobo.
func Bounced(payments []Payment) (sum Kobo) {
	for _, p := range payments {
		sum += p.Bounced
	}
	return sum
}

// Gone is what of the money that a session was paid with went back, or is on its way,
// and what the bank took back of it, in kobo. What was gone before it was paid, or came
// beyond, is none of it, also where its merchant accepted that; nor is what did not
// arrive and is with us again.
func Gone(s Session, payments []Payment) (back, taken Kobo) {
	beyond := -s.AmountPaid
	for _, p := range payments {
		if !p.Counts() {
			continue
		}
		lost := p.Lost + p.FeeBack
		aside := p.Amount - p.Applied - p.Unapplied - (p.Reversed - lost) - p.BouncedAside // went back, and had never been taken
		back, taken, beyond = back+max(p.SentBack()-aside, 0), taken+min(lost, p.Applied), beyond+p.Applied
	}
	beyond = max(beyond, 0)
	return max(back-beyond, 0), max(taken-beyond, 0)
}

// covers refuses an amount that is more than is left of a payment. Error:
// refund_exceeds_payment.
func (p Payment) covers(amount Kobo) error {
	left := p.Refundable()
	if amount <= left {
		return nil
	}
	why := "."
	switch refunded, taken := p.Refunded.Naira()+" of it is in refunds already", "the bank took "+p.Reversed.Naira()+" back"; {
	case p.Refunded > 0 && p.Reversed > 0:
		why = ": " + refunded + ", and " + taken + "."
	case p.Refunded > 0:
		why = ": " + refunded + "."
	case p.Reversed > 0:
		why = ": " + taken + "."
	}
	refusal := Refuse(CodeRefundExceeds, "Of payment %s, %s can be refunded (%s kobo), not %s (%s kobo)%s",
		p.ID, left.Naira(), left.Minor(), amount.Naira(), amount.Minor(), why)
	refusal.Details = map[string]string{"paymentId": string(p.ID), "refundableMinor": left.Minor()}
	return refusal
}

// Overdraft is what a merchant's refunds of payments that were not paid out yet took
// beyond what these brought it, in kobo: our fees of them.
type Overdraft struct {
	Fees   Kobo // of all its payments
	Own    Kobo // of these, the fee of the payment that is refunded
	Beyond Kobo // what refunds of that one took beyond its fee as well
}

// Afford refuses a refund that took more of a merchant's own money than there is,
// in kobo: balance is what it has left, pending and available, once that is taken.
// The fees of its overdraft it may owe us, for else who refunds a payment whole would
// need the money of another: no kobo of anybody else's leaves for that. What was paid
// out is only refunded out of what is left. Error: refund_exceeds_balance.
func Afford(p Payment, taken, balance Kobo, over Overdraft) error {
	lacks := -(balance + over.Fees)
	if lacks <= 0 {
		return nil
	}
	// A smaller refund leaves a smaller fee to be owed: what goes beyond the fee comes
	// off first, and after that nothing is gained before the whole fee is off too.
	if lacks > over.Beyond {
		lacks += over.Own
	}
	covered := max(taken-lacks, 0)
	refusal := Refuse(CodeRefundOverBalance, "Of payment %s, %s (%s kobo) of this refund would come out of your balance, which covers %s (%s kobo): the rest was paid out to you, or went back to payers or banks.",
		p.ID, taken.Naira(), taken.Minor(), covered.Naira(), covered.Minor())
	refusal.Details = map[string]string{"paymentId": string(p.ID), "coveredMinor": covered.Minor(), "neededMinor": taken.Minor()}
	return refusal
}
