package flow

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// NoticeKind says what a rail tells.
type NoticeKind string

// The kinds of notice.
const (
	Credit   NoticeKind = "credit"   // money arrived
	Declined NoticeKind = "declined" // a card or USSD payment was refused
	Reversal NoticeKind = "reversal" // money that had arrived was taken back
	Pending  NoticeKind = "pending"  // money is on its way and has not arrived
	Returned NoticeKind = "returned" // money was sent back by the bank itself: it never arrived

	PaidOut      NoticeKind = "paid_out"      // what we ordered to be sent was sent
	PayoutFailed NoticeKind = "payout_failed" // it was not, for good, or it came back
)

// Notice is what a rail says became of an attempt. It is only ever made from a
// message whose signature was verified, or from an answer to our own question.
type Notice struct {
	Kind              NoticeKind `json:"kind"`
	RailTransactionID string     `json:"railTransactionId"` // the rail's name for this movement; posts once
	Reference         string     `json:"reference"`         // ours, "" where the rail does not know it; of money out, the refund's or settlement's id
	AccountNumber     string     `json:"accountNumber,omitempty"`
	Amount            Kobo       `json:"amountMinor"`
	Channel           Method     `json:"channel"`
	PaidAt            time.Time  `json:"paidAt"` // the bank's value time
	Payer             PaidBy     `json:"payer"`
	NIPSessionID      string     `json:"nipSessionId,omitempty"`
	Reason            string     `json:"reason,omitempty"`   // of a decline, in plain words
	Reverses          string     `json:"reverses,omitempty"` // of a reversal: the rail's name of the credit, "" where it does not say; of a payout_failed: of the paid_out that came back, "" where nothing was sent
	SentAt            time.Time  `json:"sentAt,omitzero"`    // of a payout_failed: the value time of the paid_out that came back, zero where the rail does not say
	Collects          ProjectID  `json:"collects,omitempty"` // whose collection account a credit came to, "" where the rail does not say
}

// The bounds of what a bank says. Names are compared, and stores look them up: no
// more is indexed by each of them.
const (
	maxTold     = 200 // characters of a text
	maxRailName = 255 // bytes of a name
)

// Keepable is a notice as it may be kept: what payers call themselves and write is
// passed on by a bank as it is.
func (n Notice) Keepable() Notice {
	for _, text := range []*string{&n.Payer.Name, &n.Payer.BankName, &n.Payer.AccountNumberMasked, &n.Reason} {
		*text = Told(*text)
	}
	n.NIPSessionID = cut(OneLine(n.NIPSessionID))
	return n
}

// Told is a text of a bank as it may be kept: money is kept whatever is said around
// it, so that what no store takes, and nobody reads, is left out.
func Told(text string) string { return cut(Keepable(OneLine(text))) }

func cut(text string) string {
	if len(text) <= maxTold { // no more characters than bytes
		return text
	}
	if r := []rune(text); len(r) > maxTold {
		return string(r[:maxTold])
	}
	return text
}

// RailName says whether a rail's name for a movement can be kept as it is. It is
// never cut to fit: two movements would become one.
func RailName(name string) bool {
	return len(name) <= maxRailName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// PaidBy is who paid, as far as the bank tells; the account number is masked.
type PaidBy struct {
	Name                string `json:"name"`
	BankName            string `json:"bankName"`
	AccountNumberMasked string `json:"accountNumberMasked"`
}

// MatchStatus is the one outcome that every payment has.
type MatchStatus string

// The outcomes of money.
const (
	Matched   MatchStatus = "MATCHED"
	Partial   MatchStatus = "PARTIAL"
	Excess    MatchStatus = "EXCESS"
	Late      MatchStatus = "LATE"
	Duplicate MatchStatus = "DUPLICATE"
	Unmatched MatchStatus = "UNMATCHED"
)

// MatchStatuses are all outcomes of money.
func MatchStatuses() []MatchStatus {
	return []MatchStatus{Matched, Partial, Excess, Late, Duplicate, Unmatched}
}

// Payment is money that a bank confirmed.
type Payment struct {
	ID                PaymentID
	Project           ProjectID // "" while it belongs to nobody we know
	Session           SessionID // "" for money without a session
	Attempt           AttemptID
	Amount            Kobo
	Fee               Kobo // ours
	Channel           Method
	PaidAt            time.Time
	ReceivedAt        time.Time
	Payer             PaidBy
	NIPSessionID      string
	RailTransactionID string
	Match             MatchStatus
	Reversed          Kobo // of Amount, taken back by the bank
	Refunded          Kobo // of Amount, back with who paid it or on its way there
	Bounced           Kobo // of Refunded, with us again: it did not arrive, and nobody had it sent anew
	BouncedAside      Kobo // of Bounced, what had been set aside when it went
	Applied           Kobo // of Amount, taken for the merchant when it came or was accepted; our fee is of it
	Unapplied         Kobo // of Amount, set aside now
	Lost              Kobo // what the bank took back from the merchant's part of it, less FeeBack
	FeeBack           Kobo // of Fee, given back because the bank took all of the payment back
	Resolution        Resolution
	ResolvedAt        time.Time
	ResolvedBy        string    // the id of a key, of an account or one of its people in the console, ByOperator, ByPolicy or ByClock
	ResolvedWhy       string    // in the words of who decided
	ReturnsAt         time.Time // when what is set aside goes back by itself, zero for never
}

// came is when its money came, by the bank's clock or by ours.
func (p Payment) came() time.Time {
	if p.ReceivedAt.Before(p.PaidAt) {
		return p.ReceivedAt
	}
	return p.PaidAt
}

// apart says whether a session goes on as it is when the bank takes a payment back:
// none of it counts there, for it came once too often, or is sent back.
func (p Payment) apart() bool {
	return p.Match == Duplicate || p.Resolution == ResolvedRefunded && p.Applied == 0
}

// spares says whether the bank took nothing of a payment but what lay beside what its
// session is paid with.
func (p Payment) spares(s Session) bool { return s.Status == SessionPaid && p.Lost+p.FeeBack == 0 }

// FeeKept is what we keep of a payment, in kobo: nothing once the bank took all of
// it back.
func (p Payment) FeeKept() Kobo { return p.Fee - p.FeeBack }

// Net is what a payment brought its merchant, in kobo: what was taken for it, less
// our fee and what the bank took back of that. It is negative where the bank took
// back what had been sent back before.
func (p Payment) Net() Kobo { return p.Applied - p.Fee - p.Lost }

// TakenBack is money that a bank took back after it had come: each time once,
// under the rail's own name for that.
type TakenBack struct {
	RailTransactionID string
	Reverses          string    // the rail's name of the credit, "" where it does not say
	Payment           PaymentID // the credit, "" while we have not heard of it
	Project           ProjectID
	Session           SessionID
	Amount            Kobo
	At                time.Time // the bank's value time
	ReceivedAt        time.Time
	Postings          []Posting // none while the credit is not known
}

// Of says whether it is this credit that was taken back. A bank that does not
// say which one it was means one of the session, of the same amount.
func (b TakenBack) Of(p Payment) bool {
	if b.Reverses != "" {
		return b.Reverses == p.RailTransactionID
	}
	return b.Session != "" && b.Session == p.Session && b.Amount == p.Amount && p.Reversed == 0
}
