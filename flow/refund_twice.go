package flow

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// This file is about a refund that the bank sent although it had said that it would
// not, or once more after it came back: it was sent under another name by then, or its
// money went elsewhere. Then money left twice. Neither the merchant nor the payer ordered that: what left
// beyond the refund is booked as owed to us on the account of what goes to payers,
// which the ledger then shows below zero, until it comes back.

// SentUnder takes in that the bank sent a refund under a name that the ledger knows
// nothing of yet and that it is not known by any more, or that it was paid besides.
// p is its payment as it is by now. Where nothing is, or may be, out otherwise, that
// was the refund.
func (r Refund) SentUnder(name string, s Session, p Payment, d Disbursed, now time.Time) (Change, error) {
	untold := r.Status == RefundPending && r.Tries == 0
	cameBack := r.Status == RefundAttention && r.Returned
	if nowhere := r.PutBack && !r.wentOtherwise(p); !untold && !cameBack && !nowhere {
		return r.again(name, d, now), nil
	}
	known := r.Reference
	r.Reference = name
	change, err := r.paid(s, p, d, now)
	if err != nil {
		return Change{}, err
	}
	change.Refund.Reference, change.Refund.Returned = known, false
	return change, nil
}

// SentBesides says whether a notice tells of money that a bank sent, or sent and got back,
// beside what a refund is known as sent by.
func (r Refund) SentBesides(n Notice) bool {
	d := n.Outcomes()[0]
	return d.Status == DisbursementDone && sentAgain(r.RailTransactionID, d.RailTransactionID)
}

// wentOtherwise says of a refund whose money was put back whether other refunds took
// that money since. What the bank took back itself is another matter: the merchant
// bears that.
func (r Refund) wentOtherwise(p Payment) bool { return p.Refunded > p.Amount-r.Amount }

// BackUnder takes in that what the bank sent under such a name came back.
func (r Refund) BackUnder(s Session, d Disbursed, now time.Time) (Change, error) {
	switch {
	case r.Overpaid > 0:
		return r.back(d, now), nil
	case r.Status == RefundProcessed:
		return r.bounced(s, d, now)
	}
	return Change{}, nil
}

// again books that money of a refund left once more.
func (r Refund) again(name string, d Disbursed, now time.Time) Change {
	r.Overpaid += r.Amount
	if r.RailTransactionID == "" {
		r.RailTransactionID = d.RailTransactionID
	}
	r.Failure = r.beyond()
	sent := r.entry(EntryRefundPaid, name, now, []Posting{{Account: RefundsPayable, Amount: r.Amount}, {Account: RailClearing, Amount: -r.Amount}})
	sent.RailID, sent.ValueAt = d.RailTransactionID, d.At
	return Change{Refund: &r, Entries: []Entry{sent}}
}

// back books that what left once too often came back.
func (r Refund) back(d Disbursed, now time.Time) Change {
	if r.Overpaid -= r.Amount; r.Overpaid == 0 {
		r.Failure = ""
	}
	back := r.entry(EntryRefundReturned, cmp.Or(d.RailTransactionID, r.Reference), now, []Posting{{Account: RailClearing, Amount: r.Amount}, {Account: RefundsPayable, Amount: -r.Amount}})
	back.RailID, back.ValueAt = d.RailTransactionID, d.At
	return Change{Refund: &r, Entries: []Entry{back}}
}

// sentAlready is a refund that the bank sends nothing of under its name, and sent
// under another before: what is set aside for it is what left.
func (r Refund) sentAlready(s Session, now time.Time) (Change, error) {
	r, err := r.move(triggerPay)
	if err != nil {
		return Change{}, err
	}
	r.Overpaid -= r.Amount
	r.Failure, r.Refused, r.DoneAt = r.beyond(), true, now
	return r.change(s, RefundProcessedKind), nil
}

// beyond says what left beyond a refund, "" for nothing.
func (r Refund) beyond() string {
	if r.Overpaid == 0 {
		return ""
	}
	return fmt.Sprintf("The bank sent %s more than was ordered. Ask the bank, or the payer, for that money.", r.Overpaid.Naira())
}

// notBeyond refuses to have a refund sent that was sent once too often already.
// Error: refund_not_retryable.
func (r Refund) notBeyond() error {
	if r.Overpaid < r.Amount {
		return nil
	}
	return Refuse(CodeRefundNotRetryable, "The bank sent this refund already, under another name: nothing more is to be sent.")
}

// Overtaken ends a refund that the bank refused and that needs attention, once what
// was decided about its payment p leaves nothing of it to be sent as it is: its money
// went back by another refund or its merchant keeps it, all or some of it. What is
// left set aside then waits for a decision of its own. False where it waits still.
func (r Refund) Overtaken(s Session, p Payment) (change Change, is bool, err error) {
	accepted := p.Resolution == ResolvedAccepted || p.Resolution == Unresolved && p.Match == Partial // a part is with the rest
	why := ""
	switch {
	case r.Status != RefundAttention || !r.PutBack || r.Overpaid > 0:
	case p.Unapplied >= r.Amount: // all of it waits, as it did when it was given up
	case p.Unapplied > 0 && accepted && p.Refundable() >= r.Amount:
		why = "Some of its money was accepted, and the rest waits for a decision."
	case p.Unapplied > 0:
		why = "Some of its money went back another way, and the rest waits for a decision."
	case accepted && p.Refundable() >= r.Amount:
		why = "Its money was accepted."
	default:
		why = "Its money went back another way."
	}
	if why == "" {
		return Change{}, false, nil
	}
	if r, err = r.move(triggerFail); err != nil {
		return Change{}, false, err
	}
	r.Failure = strings.TrimSpace(r.Failure + " " + why)
	return r.change(s, RefundFailedKind), true, nil
}
