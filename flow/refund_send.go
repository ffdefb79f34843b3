package flow

import (
	"fmt"
	"strings"
	"time"
)

// This file is what a bank is told of a refund, under which name and when, and how
// what it says of that is taken in.

// Send takes in that the bank is about to be told of a refund. It must be kept
// before the bank is called, and one that the bank may know of is only sent once the
// bank has said that it does not. p is the refund's payment as it is by now: what
// the bank took back meanwhile is not sent too, however often it was tried before.
func (r Refund) Send(s Session, p Payment, now time.Time) (Change, error) {
	if p.Refunded > p.Amount-p.Reversed {
		if r.Refused {
			r = r.Anew()
		}
		return r.fail(s, p, Disbursed{Reason: "The bank took the payment back before the refund was sent."}, now)
	}
	if r.Refused { // under this name nothing is sent
		r = r.Anew()
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

// TakenOn takes in that the bank says of a refund that it is on its way. Where it had not
// heard of it when it was told before, or was away when it was to be asked for the last
// time, it is asked about as one that it was told of only now. told says that it was told
// of it, and not asked.
func (r Refund) TakenOn(told bool, now time.Time) Change {
	late := now.Sub(r.SentAt) >= askAt[len(askAt)-1]+askAway // it was asked once more, behind the last time
	if told && r.Tries == 1 || !told && !late {
		return Change{}
	}
	r.SentAt = now
	return Change{Refund: &r}
}

// HeardNotice takes in a notice about what was sent under a refund's Reference,
// as Heard does.
func (r Refund) HeardNotice(s Session, p Payment, n Notice, booked bool, now time.Time) (Change, error) {
	return r.heard(s, p, n.Outcomes(), booked, now)
}

// HeardAnswer takes in what a bank that was asked says became of a refund, as Heard
// does. That what was put back was sent and came back is booked, and changes nothing
// else any more, where it went back otherwise meanwhile.
func (r Refund) HeardAnswer(s Session, p Payment, d Disbursed, booked bool, now time.Time) (Change, error) {
	if d.CameBack() && r.PutBack && r.Overpaid == 0 && p.Refundable() < r.Amount {
		if booked {
			return Change{}, nil
		}
		out := r.again(r.Reference, d.Outcomes()[0], now)
		both := out.Then(out.Refund.back(d, now))
		both.Refund = &r
		return both, nil
	}
	return r.heard(s, p, d.Outcomes(), booked, now)
}

func (r Refund) heard(s Session, p Payment, all []Disbursed, booked bool, now time.Time) (c Change, err error) {
	for _, d := range all {
		change, err := r.Heard(s, p, d, booked, now)
		if err != nil {
			return Change{}, err
		}
		if change.Refund == nil {
			continue
		}
		if r, c = *change.Refund, c.Then(change); change.Session != nil {
			s = *change.Session
		}
	}
	return c, nil
}

// DoneByHand takes in that somebody paid a refund by hand which needs attention:
// transfer is the bank's name of that movement, and at its time. From then on the
// refund has another name, so that nothing which the bank may still say about the
// order that it was given counts as this payment. p is its payment as it is by now.
// Errors: refund_not_retryable, refund_exceeds_payment; invalid_field for a time before
// the money came.
func (r Refund) DoneByHand(s Session, p Payment, transfer string, at, now time.Time) (Change, error) {
	if r.Status != RefundAttention {
		return Change{}, Refuse(CodeRefundNotRetryable, "A refund that is %s cannot be paid by hand: only one that is %s can.", r.Status, RefundAttention)
	}
	if err := r.notBeyond(); err != nil {
		return Change{}, err
	}
	if came := p.came().Truncate(time.Minute); at.Before(came) { // people write minutes
		return Change{}, Refuse(CodeInvalidField, "The transfer cannot have been sent before the money came, on %s in Lagos.", came.In(Lagos).Format("2 January 2006 at 15:04"))
	}
	if r.PutBack {
		if err := p.covers(r.Amount); err != nil {
			return Change{}, err
		}
	}
	change, err := r.Anew().paid(s, p, Disbursed{Status: DisbursementDone, RailTransactionID: transfer, At: at}, now)
	if err == nil && s.ID != "" { // the payer must not look for it where it came from
		change.News = []News{{Kind: NewsByHand, Attempt: p.Attempt, Payment: &p, Amount: r.Amount}}
	}
	return change, err
}

// Anew gives a refund the next name at the rail, for when nothing is, or will
// be, sent under the one it has.
func (r Refund) Anew() Refund {
	r.Reference = fmt.Sprintf("%s%s%d", r.ID, referenceCut, nameNumber(r.Reference)+1)
	r.Tries, r.Returned, r.Refused, r.RailTransactionID = 0, false, false, ""
	return r
}

// referenceCut stands between a refund's id and which of its names it is.
const referenceCut = "-"

// OnceMore is what the ledger calls what a bank sent once more under a name of ours: what
// it sent first stands there by that name alone.
func OnceMore(name string, d Disbursed) string { return name + referenceCut + d.RailTransactionID }

// nameNumber is which of a refund's names a reference is.
func nameNumber(reference string) int {
	n := 1
	if _, last, found := strings.Cut(reference, referenceCut); found {
		_, _ = fmt.Sscanf(last, "%d", &n)
	}
	return n
}

// Begun says whether an order under a reference, which is one of its names, was begun.
func (r Refund) Begun(reference string) bool {
	is, asked := nameNumber(r.Reference), nameNumber(reference)
	return is > asked || is == asked && r.Tries > 0
}

// RefundOf is the refund that a reference at the rail names.
func RefundOf(reference string) RefundID {
	id, _, _ := strings.Cut(reference, referenceCut)
	return RefundID(id)
}

// FirstAsk is how long after it was told of money that is to be sent a bank is asked
// at the soonest what became of it.
const FirstAsk = 10 * time.Second

// askAt are the ages at which the bank is asked what became of money that is to
// be sent; after the last one somebody must look.
var askAt = [...]time.Duration{
	FirstAsk, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour,
	16 * time.Hour, 24 * time.Hour,
}

// A bank that is away is asked nothing at any of askAt: it is asked on until it is heard,
// at least so often and no longer than so.
const (
	askAway     = time.Hour
	askAwayEnds = 7 * 24 * time.Hour
)

// NextAsk is when the bank is to be asked about a refund next, false when it was
// asked often enough. first says that it was told of it for the first time now, however
// long that took by our clock; heard, that it answered.
func (r Refund) NextAsk(now time.Time, first, heard bool) (time.Time, bool) {
	return nextAsk(r.SentAt, now, first, heard)
}

func nextAsk(sent, now time.Time, first, heard bool) (time.Time, bool) {
	for _, age := range askAt {
		if at := sent.Add(age); at.After(now) {
			if soon := now.Add(askAway); !heard && at.After(soon) {
				at = soon
			}
			return at, true
		}
	}
	switch {
	case first:
		return now.Add(FirstAsk), true
	case !heard && now.Sub(sent) < askAwayEnds:
		return now.Add(askAway), true
	}
	return time.Time{}, false
}

// sendAgain are the waits after each refusal of a refund that no merchant ordered
// before it is sent again by itself; then somebody must look.
var sendAgain = [...]time.Duration{time.Hour, 6 * time.Hour, 24 * time.Hour}

// Open says whether a refund is on its way: the bank is to be told of it, or asked.
func (r Refund) Open() bool { return r.Status == RefundPending || r.Status == RefundProcessing }

// OfNobody says whether no merchant ordered a refund: a policy did, or the clock.
func (r Refund) OfNobody() bool { return r.Origin == OriginPolicy || r.Origin == OriginClock }

// ReturnsAt is when the money of a refund goes back by itself after the bank
// refused to send it, zero for never. p is its payment as it is by then. What a
// merchant ordered has the time for another decision that such money always has.
func (r Refund) ReturnsAt(s Session, p Payment, now time.Time) time.Time {
	switch {
	case !r.PutBack || r.Status != RefundFailed:
	case r.OfNobody():
		return now.Add(sendAgain[min(r.Failures, len(sendAgain))-1])
	case p.Match == Late || p.Match == Duplicate || p.Match == Partial && (!s.Open() || s.Policy.Underpayment == "refund") || p.Match == Excess && s.Policy.Overpayment == "refund_excess":
		return now.Add(ReturnAfter)
	}
	return time.Time{}
}

// Again sends a refund again that no merchant ordered, once the time of its money
// has come; nothing happens before, and where that money was decided about
// otherwise meanwhile.
func (r Refund) Again(s Session, p Payment, now time.Time) (Change, error) {
	due := !p.ReturnsAt.IsZero() && !now.Before(p.ReturnsAt)
	if !due || !r.OfNobody() || !r.PutBack || r.Overpaid > 0 || r.Status != RefundFailed || p.Resolution != Unresolved || p.Unapplied < r.Amount || p.Refundable() < r.Amount {
		return Change{}, nil
	}
	return r.Retry(s, p, r.ruled(now))
}

// Order is what the rail is told of a refund.
func (r Refund) Order() Disbursement {
	return Disbursement{
		Kind: DisburseRefund, Reference: r.Reference, Amount: r.Amount, Credit: r.Credit, Project: r.Project, Narration: "Refund " + string(r.ID),
	}
}
