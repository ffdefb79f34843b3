package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RefundID names money on its way back to who paid: wsp_rfd_….
type RefundID string

// PrefixRefund is the prefix of the ids of refunds.
const PrefixRefund = "wsp_rfd_"

// RefundStatus is where a refund stands.
type RefundStatus string

// The states of a refund.
const (
	RefundPending    RefundStatus = "PENDING"         // the bank was not told yet
	RefundProcessing RefundStatus = "PROCESSING"      // it was, and has not said that it is done
	RefundProcessed  RefundStatus = "PROCESSED"       // the money was sent
	RefundFailed     RefundStatus = "FAILED"          // it was not, and is where it was taken from
	RefundAttention  RefundStatus = "NEEDS_ATTENTION" // nobody knows, it came back, or it is refused again and again: somebody must look
)

// RefundStatuses are all states of a refund.
func RefundStatuses() []RefundStatus {
	return []RefundStatus{RefundPending, RefundProcessing, RefundProcessed, RefundFailed, RefundAttention}
}

// RefundOrigin says who wanted a refund.
type RefundOrigin string

// The origins of a refund.
const (
	OriginMerchant RefundOrigin = "MERCHANT" // asked for by POST /v1/refunds
	OriginPolicy   RefundOrigin = "POLICY"   // the session's policy sends such money back
	OriginClock    RefundOrigin = "CLOCK"    // nobody decided about the money in time
	OriginResolve  RefundOrigin = "RESOLVE"  // the merchant decided so
)

// Refund is money of one payment on its way back to who paid it. What is to be
// sent is set aside in the ledger from the moment it exists.
type Refund struct {
	ID                RefundID
	Project           ProjectID
	Payment           PaymentID
	Session           SessionID // "" for money without a session
	Charge            ChargeID  // of the session, "" while it has none
	Credit            string    // the rail's name of the payment
	Amount            Kobo
	Aside             Kobo // of Amount, taken from what was unapplied when it was taken last; the rest was the merchant's
	Status            RefundStatus
	Origin            RefundOrigin
	Reason            string // in the merchant's words, or ours where nobody asked
	Reference         string // what the rail knows it by: the id, or one derived from it
	Tries             int    // orders under Reference that were begun
	Held              bool   // it is of a part that was held for a session which was not paid
	Returned          bool   // it was sent under Reference, and came back
	Refused           bool   // the bank said that it sends nothing under Reference
	PutBack           bool   // its money lies where it was taken from
	Failures          int    // how often the bank said that it sends nothing
	Overpaid          Kobo   // sent beyond Amount and not come back: the bank sent it under more than one name
	RailTransactionID string // the rail's name of the movement, "" while there is none
	Failure           string // why it failed, or needs attention
	CreatedAt         time.Time
	SentAt            time.Time // when the bank was first told of Reference, or said that it took it on after a silence
	DoneAt            time.Time // when the bank says it was sent
}

// RefundAsk is what a refund is made of. Aside is how much of Amount is taken
// from what is unapplied, in kobo; By is the id of the key that asks, "" where
// nobody does.
type RefundAsk struct {
	ID     RefundID
	Amount Kobo
	Aside  Kobo
	Origin RefundOrigin
	Reason string
	By     string
}

// NewRefund sets money of a payment aside for who paid it. Session is zero for
// money without one. Errors: refund_exceeds_payment.
func NewRefund(s Session, p Payment, ask RefundAsk, now time.Time) (Change, error) {
	if ask.Amount <= 0 || ask.Aside < 0 || ask.Aside > ask.Amount {
		return Change{}, fmt.Errorf("refund %s: %d kobo, %d of them unapplied, are no refund", p.ID, ask.Amount, ask.Aside)
	}
	if err := p.covers(ask.Amount); err != nil {
		return Change{}, err
	}
	r := Refund{
		ID: ask.ID, Project: p.Project, Payment: p.ID, Session: p.Session, Charge: s.Charge, Credit: p.RailTransactionID, Amount: ask.Amount,
		Status: RefundPending, Origin: ask.Origin, Reason: ask.Reason, Reference: string(ask.ID), CreatedAt: now,
	}
	return r.take(s, p, ask.Aside, string(r.ID), Ruled{By: ask.By, At: now, Reason: ask.Reason}), nil
}

// take takes the money of a refund from where it lies: aside of it from what is
// unapplied, the rest from the merchant. Each time has a subject of its own.
// Nothing is left to be decided about a payment once all of it that waited goes.
func (r Refund) take(s Session, p Payment, aside Kobo, subject string, by Ruled) Change {
	r.Aside, r.PutBack = aside, false
	r.Held = p.Match == Partial && s.Status != SessionPaid && s.Policy.Underpayment != "refund"
	s = r.counted(s, -r.Amount)
	lines := append(r.source(1, aside), Posting{Account: RefundsPayable, Amount: -r.Amount})
	change := r.change(s, RefundPendingKind, r.entry(EntryRefund, subject, by.At, lines))
	change.Payments = r.settles(p, aside, by)
	return change
}

// settles is a payment once aside of what is unapplied of it went into a refund,
// none where something of it still waits for a decision, or nothing did.
func (r Refund) settles(p Payment, aside Kobo, by Ruled) []Payment {
	if p.Resolution != Unresolved || aside == 0 || aside != p.Unapplied {
		return nil
	}
	p = p.resolved(ResolvedRefunded, by)
	p.Refunded, p.Unapplied = p.Refunded+r.Amount, 0
	return []Payment{p}
}

// ruled is the decision that a refund stands for, where the key that made it is
// not known any more.
func (r Refund) ruled(now time.Time) Ruled {
	return Ruled{By: map[RefundOrigin]string{OriginPolicy: ByPolicy, OriginClock: ByClock}[r.Origin], At: now, Reason: r.Reason}
}

// Heard takes in what the rail says became of a refund under its Reference. p is
// the refund's payment as it is by now. What is known already changes nothing: booked
// says that the books know it as sent under its Reference, although its money was put
// back.
func (r Refund) Heard(s Session, p Payment, d Disbursed, booked bool, now time.Time) (Change, error) {
	switch {
	case d.Status == DisbursementDone && booked:
		return Change{}, nil
	case d.Status == DisbursementDone && r.PutBack && r.wentOtherwise(p):
		return r.again(r.Reference, d, now), nil
	case d.Status == DisbursementDone && r.Status == RefundAttention && r.Returned && !r.PutBack && sentAgain(r.RailTransactionID, d.RailTransactionID):
		return r.SentUnder(OnceMore(r.Reference, d), s, p, d, now)
	case d.Status == DisbursementDone && r.Status != RefundProcessed && !r.Returned:
		return r.paid(s, p, d, now)
	case d.CameBack() && r.Overpaid > 0:
		r.Returned = r.Returned || r.PutBack // what is sent again needs another name
		return r.back(d, now), nil
	case d.CameBack() && r.Status == RefundProcessed:
		return r.bounced(s, d, now)
	case d.Status == DisbursementFailed && r.Status != RefundProcessed && !r.Refused && !r.Returned:
		return r.fail(s, p, d, now)
	}
	return Change{}, nil
}

// paid takes in that the money was sent. One that was said to have failed had
// been put back: it is taken again, because it is gone. What is not set aside any
// more was given to the merchant; and where another refund or the bank has the
// merchant's part by now, it takes of what is set aside all that is not there any more.
func (r Refund) paid(s Session, p Payment, d Disbursed, now time.Time) (Change, error) {
	lines := []Posting{{Account: RefundsPayable, Amount: r.Amount}}
	var settled []Payment
	if r.PutBack {
		aside := max(min(r.Aside, p.Unapplied), p.Unapplied-max(p.Refundable()-r.Amount, 0))
		lines, s, settled = r.source(1, aside), r.counted(s, -aside), r.settles(p, aside, r.ruled(now))
		r.Aside = aside
	}
	r, err := r.move(triggerPay)
	if err != nil {
		return Change{}, err
	}
	if r.DoneAt = d.At; r.DoneAt.UnixMilli() <= 0 { // the bank gave no value time
		r.DoneAt = now
	}
	r.RailTransactionID, r.Failure, r.PutBack = d.RailTransactionID, r.beyond(), false
	paid := r.entry(EntryRefundPaid, r.Reference, now, append(lines, Posting{Account: RailClearing, Amount: -r.Amount}))
	paid.RailID, paid.ValueAt = d.RailTransactionID, r.DoneAt
	change := r.change(s, RefundProcessedKind, paid)
	change.Payments = settled
	return change, nil
}

// fail takes in that nothing was sent, for good: the money goes back to where it
// was taken from. Nothing is set aside that the bank took back meanwhile: its
// reversal found nothing there, and is the merchant's until now. What no merchant
// ordered is sent again by itself, and needs attention once that was in vain too
// often.
func (r Refund) fail(s Session, p Payment, d Disbursed, now time.Time) (Change, error) {
	if r.Overpaid >= r.Amount { // it was sent under another name: that was it, then
		return r.sentAlready(s, now)
	}
	left := p.Amount - p.Reversed - (p.Refunded - r.Amount)
	aside := min(r.Aside, max(left, 0))
	r.Failures++
	trigger, kind, why := triggerFail, RefundFailedKind, cmp.Or(d.Reason, "The bank refused to send it.")
	if r.OfNobody() && aside == r.Amount && r.Failures > len(sendAgain) {
		trigger, kind, why = triggerGiveUp, RefundAttentionKind, fmt.Sprintf("%s It was refused %d times, and is not tried again by itself.", why, r.Failures)
	}
	r, err := r.move(trigger)
	if err != nil {
		return Change{}, err
	}
	r.Failure, r.Refused, r.PutBack = why, true, true
	s = r.counted(s, aside)
	lines := append(r.source(-1, aside), Posting{Account: RefundsPayable, Amount: r.Amount})
	return r.change(s, kind, r.entry(EntryRefundFailed, r.Reference, now, lines)), nil
}

// bounced takes in that money which was sent came back: it is owed again.
func (r Refund) bounced(s Session, d Disbursed, now time.Time) (Change, error) {
	r, err := r.move(triggerBounce)
	if err != nil {
		return Change{}, err
	}
	r.Returned, r.DoneAt = true, time.Time{}
	r.Failure = cmp.Or(d.Reason, "It came back after it had been sent.")
	subject := cmp.Or(d.RailTransactionID, r.Reference)
	lines := []Posting{{Account: RailClearing, Amount: r.Amount}, {Account: RefundsPayable, Amount: -r.Amount}}
	back := r.entry(EntryRefundReturned, subject, now, lines)
	back.RailID, back.ValueAt = d.RailTransactionID, d.At
	return r.change(s, RefundAttentionKind, back), nil
}

// Doubt takes in that the bank was asked often enough without saying what became
// of a refund. The money stays set aside: it may have been sent.
func (r Refund) Doubt(s Session) (Change, error) {
	r, err := r.move(triggerDoubt)
	if err != nil {
		return Change{}, err
	}
	r.Failure = strings.TrimSpace("The bank has not said whether it was sent. Ask the bank before you retry. " + r.beyond())
	return r.change(s, RefundAttentionKind), nil
}

// Retry sends a refund again that failed or needs attention: by says who wants
// that, and when. p is its payment as it is by now. What came back gets a new name
// at the rail; for the rest, the rail is asked under the old one first. What was
// put back is taken again. Errors: refund_not_retryable, refund_exceeds_payment.
func (r Refund) Retry(s Session, p Payment, by Ruled) (Change, error) {
	if r.Status != RefundAttention && r.Status != RefundFailed {
		return Change{}, Refuse(CodeRefundNotRetryable, "A refund that is %s cannot be retried: only one that is %s or %s can.", r.Status, RefundFailed, RefundAttention)
	}
	if err := r.notBeyond(); err != nil {
		return Change{}, err
	}
	if r.PutBack {
		if err := p.covers(r.Amount); err != nil {
			return Change{}, err
		}
	}
	r, err := r.move(triggerRetry)
	if err != nil {
		return Change{}, err
	}
	if r.Returned {
		r = r.Anew()
	}
	r.SentAt, r.Failure = time.Time{}, ""
	if !r.PutBack {
		return r.change(s, RefundPendingKind), nil
	}
	return r.take(s, p, min(p.Unapplied, r.Amount), fmt.Sprintf("%s%s%d", r.ID, referenceCut, r.Failures+1), by), nil
}

// source are the lines for where the money of a refund is taken from: 1 to take
// it, -1 to put it back. aside of it is unapplied, the rest the merchant's.
func (r Refund) source(sign, aside Kobo) []Posting {
	var lines []Posting
	if mine := r.Amount - aside; mine != 0 {
		lines = append(lines, Posting{Account: MerchantPending, Amount: sign * mine})
	}
	if aside != 0 {
		lines = append(lines, Posting{Account: Unapplied, Amount: sign * aside})
	}
	return lines
}

// SetsAside says whether a change puts money aside that waits for a decision.
func (c Change) SetsAside() bool {
	return slices.ContainsFunc(c.Entries, func(e Entry) bool {
		return slices.ContainsFunc(e.Postings, func(p Posting) bool { return p.Account == Unapplied && p.Amount < 0 })
	})
}

// Bounced says whether a change takes in that money came back to us which the bank
// had sent to whoever paid it.
func (c Change) Bounced() bool {
	return c.Refund != nil && c.Refund.Status == RefundAttention &&
		slices.ContainsFunc(c.Entries, func(e Entry) bool { return e.Kind == EntryRefundReturned })
}

// NotSent is how much a change takes in that the bank refuses to send back of what its
// payer was told goes back: of what a merchant decided so, and of what a policy or the
// clock did once it is not tried again by itself. Each time, for whoever asks while it is
// tried again by hand is told that it is on its way. What the bank took back meanwhile, or
// takes back now, lies nowhere here, and is told as such.
func (c Change) NotSent() Kobo {
	r := c.Refund
	if r == nil || r.Origin != OriginResolve && (r.Status != RefundAttention || r.Failures <= len(sendAgain)) {
		return 0
	}
	back := -c.Taking
	for _, e := range c.Entries {
		for _, p := range e.Postings {
			if e.Kind == EntryRefundFailed && p.Account == Unapplied {
				back -= p.Amount
			}
		}
	}
	return back
}

// counted is a session that waits for the rest of its money once a part that is
// held for it goes back, or stays after all.
func (r Refund) counted(s Session, amount Kobo) Session {
	if !r.Held || s.Status == SessionPaid {
		return s
	}
	s.AmountPaid = min(max(s.AmountPaid+amount, 0), s.Amount-1)
	if s.AmountPaid == 0 {
		return s.Without(PartiallyPaid)
	}
	return s.With(PartiallyPaid)
}

// entry is a transaction of the ledger about a refund.
func (r Refund) entry(kind EntryKind, subject string, now time.Time, lines []Posting) Entry {
	return Entry{Kind: kind, Subject: subject, Payment: r.Payment, Project: r.Project, At: now, Postings: lines}
}

// change is a refund's new state, what it posts and what its merchant is told.
func (r Refund) change(s Session, kind EventKind, entries ...Entry) Change {
	c := Change{Refund: &r, Entries: entries, Facts: []Fact{{Kind: kind, Refund: &r}}}
	if s.ID != "" {
		c.Session = &s
	}
	return c
}

// RefundRecord is a refund as its merchant reads it.
type RefundRecord struct {
	ID                RefundID     `json:"id"`
	PaymentID         PaymentID    `json:"paymentId"`
	ChargeID          *string      `json:"chargeId"`
	SessionID         *string      `json:"sessionId"`
	AmountMinor       string       `json:"amountMinor"`
	Currency          string       `json:"currency"`
	Status            RefundStatus `json:"status"`
	Reason            *string      `json:"reason"`
	Origin            RefundOrigin `json:"origin"`
	FailureReason     *string      `json:"failureReason"`
	RailTransactionID *string      `json:"railTransactionId"`
	CreatedAt         string       `json:"createdAt"`
	ProcessedAt       *string      `json:"processedAt"`
	Livemode          bool         `json:"livemode"`
}

// RecordRefund makes the record of a refund.
func RecordRefund(r Refund, around Surroundings) RefundRecord {
	return RefundRecord{
		ID: r.ID, PaymentID: r.Payment, ChargeID: OrNull(r.Charge), SessionID: OrNull(r.Session), AmountMinor: r.Amount.Minor(),
		Currency: Currency, Status: r.Status, Reason: OrNull(r.Reason), Origin: r.Origin, FailureReason: OrNull(r.Failure),
		RailTransactionID: OrNull(r.RailTransactionID), CreatedAt: Stamp(r.CreatedAt), ProcessedAt: StampOrNull(r.DoneAt), Livemode: around.Live,
	}
}
