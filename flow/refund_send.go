package flow

import (
	"fmt"
	"strings"
	"time"
)

// This file is what a bank is told of a refund, under which name and when.

// Send takes in that the bank is about to be told of a refund. It must be kept
// before the bank is called. p is the refund's payment as it is by now: what the
// bank took back meanwhile is not sent too.
func (r Refund) Send(s Session, p Payment, now time.Time) (Change, error) {
	if r.Status == RefundPending && p.Refunded > p.Amount-p.Reversed {
		return r.fail(s, p, Disbursed{Reason: "The bank took the payment back before the refund was sent."}, now)
	}
	r, err := r.move(triggerSend)
	if err != nil {
		return Change{}, err
	}
	if r.SentAt.IsZero() {
		r.SentAt = now
	}
	r.Tries++
	return Change{Refund: &r}, nil
}

// Wait takes in that the bank does not say what became of a refund that is to be
// sent again: it is asked on, and nothing is sent before it has said.
func (r Refund) Wait(now time.Time) (Change, error) {
	r, err := r.move(triggerSend)
	if err != nil {
		return Change{}, err
	}
	if r.SentAt.IsZero() {
		r.SentAt = now
	}
	return Change{Refund: &r}, nil
}

// Anew gives a refund the next name at the rail, for when nothing is, or will
// be, sent under the one it has.
func (r Refund) Anew() Refund {
	n := 2
	if _, last, found := strings.Cut(r.Reference, referenceCut); found {
		_, _ = fmt.Sscanf(last, "%d", &n)
		n++
	}
	r.Reference = fmt.Sprintf("%s%s%d", r.ID, referenceCut, n)
	r.Tries, r.Returned, r.RailTransactionID = 0, false, ""
	return r
}

// referenceCut stands between a refund's id and which of its names it is.
const referenceCut = "-"

// RefundOf is the refund that a reference at the rail names.
func RefundOf(reference string) RefundID {
	id, _, _ := strings.Cut(reference, referenceCut)
	return RefundID(id)
}

// askAt are the ages at which the bank is asked what became of money that is to
// be sent; after the last one somebody must look.
var askAt = [...]time.Duration{
	10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
	16 * time.Hour, 24 * time.Hour,
}

// NextAsk is when the bank is to be asked about a refund next, false when it was
// asked often enough.
func (r Refund) NextAsk(now time.Time) (time.Time, bool) { return nextAsk(r.SentAt, now) }

func nextAsk(sent, now time.Time) (time.Time, bool) {
	for _, age := range askAt {
		if at := sent.Add(age); at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}

// Order is what the rail is told of a refund.
func (r Refund) Order() Disbursement {
	return Disbursement{
		Kind: DisburseRefund, Reference: r.Reference, Amount: r.Amount, Credit: r.Credit, Project: r.Project, Narration: "Refund " + string(r.ID),
	}
}
