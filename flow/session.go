package flow

import (
	"slices"
	"time"
)

// Mode says who shows the instructions to the payer.
type Mode string

// The two modes: the merchant shows them, or Till's bot does.
const (
	Headless Mode = "headless"
	InChat   Mode = "chat"
)

// Method is a way to pay.
type Method string

// The methods, in the order in which they are always offered.
const (
	BankTransfer Method = "bank_transfer"
	USSD         Method = "ussd"
	Card         Method = "card"
)

// Methods is every method in the order of offering.
func Methods() []Method { return []Method{BankTransfer, USSD, Card} }

// Slug is the method's name in a path: bank-transfer, ussd, card.
func (m Method) Slug() string {
	if m == BankTransfer {
		return "bank-transfer"
	}
	return string(m)
}

// SessionStatus is where a session stands.
type SessionStatus string

// The states of a session. PAID is never left; EXPIRED and CANCELLED only for
// PAID, when late money is accepted.
const (
	SessionPending    SessionStatus = "PENDING"
	SessionProcessing SessionStatus = "PROCESSING"
	SessionPaid       SessionStatus = "PAID"
	SessionExpired    SessionStatus = "EXPIRED"
	SessionCancelled  SessionStatus = "CANCELLED"
)

// SessionStatuses are all there are.
func SessionStatuses() []SessionStatus {
	return []SessionStatus{SessionPending, SessionProcessing, SessionPaid, SessionExpired, SessionCancelled}
}

// Exception is something unusual about the money of a session.
type Exception string

// The exceptions; a session holds a set of them.
const (
	PartiallyPaid    Exception = "PARTIALLY_PAID"
	Overpaid         Exception = "OVERPAID"
	PaidLate         Exception = "PAID_LATE"
	DuplicatePayment Exception = "DUPLICATE_PAYMENT"
	Reversed         Exception = "REVERSED"
)

// Policy says what to do with money that does not fit: hold, accept, refund,
// refund_excess or review, as the case allows; and how its chat begins.
type Policy struct {
	Underpayment string `json:"underpayment"`
	Overpayment  string `json:"overpayment"`
	LatePayment  string `json:"latePayment"`

	// Lang is of a chat whose payer has chosen none, Brand a few words behind the
	// merchant's name, as the project's settings were when the session was opened.
	Lang  Lang   `json:"lang,omitempty"`
	Brand string `json:"brand,omitempty"`
}

// DefaultPolicy holds what is too little, accepts what is too much and asks
// about what is late.
func DefaultPolicy() Policy {
	return Policy{Underpayment: "hold", Overpayment: "accept", LatePayment: "review"}
}

// Session is one request for money: what a merchant created and a payer pays.
type Session struct {
	ID             SessionID
	Project        ProjectID
	Merchant       string // the business name a payer sees
	Mode           Mode
	Amount         Kobo
	AmountPaid     Kobo // applied to this session; never more than bank-confirmed
	Status         SessionStatus
	Exceptions     []Exception
	AllowedMethods []Method
	CustomerEmail  string
	CustomerPhone  Phone
	CustomerName   string
	Reference      string // the merchant's own, or ""
	Description    string
	Metadata       map[string]string
	CallbackURL    string
	Policy         Policy
	EntryCode      string // eight characters, no dash; opens it in the chat
	Number         string // the WhatsApp number whose link was given out
	Charge         ChargeID
	ChargeAsked    bool  // the merchant made the charge itself (POST /v1/charges)
	Sequence       int64 // of the last event about it
	Version        int64 // of the row: an update that meets another one is refused
	CreatedAt      time.Time
	ExpiresAt      time.Time
	PaidAt         time.Time
}

// Outstanding is what is still to be paid, in kobo.
func (s Session) Outstanding() Kobo { return max(s.Amount-s.AmountPaid, 0) }

// Open says whether the session can still be paid in the ordinary way.
func (s Session) Open() bool { return s.Status == SessionPending || s.Status == SessionProcessing }

// With is the session with one more exception in its set.
func (s Session) With(e Exception) Session {
	if !slices.Contains(s.Exceptions, e) {
		s.Exceptions = append(slices.Clone(s.Exceptions), e)
	}
	return s
}

// Without is the session with an exception taken out of its set.
func (s Session) Without(e Exception) Session {
	s.Exceptions = slices.DeleteFunc(slices.Clone(s.Exceptions), func(x Exception) bool { return x == e })
	return s
}

// Closed is the refusal for a session that is not open, nil for one that is.
func (s Session) Closed() error {
	switch s.Status {
	case SessionPending, SessionProcessing:
		return nil
	case SessionPaid:
		return Refuse(CodeSessionPaid, "This session is already paid.")
	case SessionExpired:
		return Refuse(CodeSessionExpired, "This session expired at %s. Create a new one.", Stamp(s.ExpiresAt))
	case SessionCancelled:
		return Refuse(CodeSessionCancelled, "This session was cancelled. Create a new one.")
	}
	return Refuse(CodeInternal, "session %s has the unknown state %s", s.ID, s.Status)
}

// Offer is one method as a session offers it.
type Offer struct {
	Method Method
	Status OfferStatus
	Reason string // why it is unavailable
}

// OfferStatus says whether a method can be asked for.
type OfferStatus string

// The states of an offer.
const (
	OfferAvailable   OfferStatus = "available"
	OfferActive      OfferStatus = "active"
	OfferCompleted   OfferStatus = "completed"
	OfferUnavailable OfferStatus = "unavailable"
)

// Offers lists the methods of a session in the order of offering. The attempts
// are the session's own; served are the methods the rail serves now.
func Offers(s Session, attempts []Attempt, served []Method, now time.Time) []Offer {
	var out []Offer
	for _, m := range Methods() {
		if !slices.Contains(s.AllowedMethods, m) {
			continue
		}
		offer := Offer{Method: m, Status: OfferAvailable}
		for _, a := range attempts {
			switch {
			case a.Method != m:
			case a.Status == AttemptSucceeded:
				offer.Status = OfferCompleted
			case a.Live(now) && a.Instructions != nil && a.Amount == s.Outstanding() && offer.Status != OfferCompleted: // what asks for another amount, Begin replaces
				offer.Status = OfferActive
			}
		}
		if offer.Status != OfferCompleted && !s.Open() {
			offer.Status, offer.Reason = OfferUnavailable, string(CodeOf(s.Closed()))
		} else if offer.Status != OfferCompleted && !now.Before(s.ExpiresAt) { // money may be on its way to it, for a day
			offer.Status, offer.Reason = OfferUnavailable, string(CodeSessionExpired)
		}
		if offer.Status == OfferAvailable {
			if offer.Reason = unavailable(s, m, served); offer.Reason != "" {
				offer.Status = OfferUnavailable
			}
		}
		out = append(out, offer)
	}
	return out
}

// RailDown is the reason of a method that nobody offers now.
const RailDown = "rail_down"

// unavailable is the reason why a method cannot pay what is outstanding.
func unavailable(s Session, m Method, served []Method) string {
	due := s.Outstanding()
	if m == USSD {
		switch {
		case due > MaxUSSD:
			return "amount_above_maximum"
		case !due.Whole():
			return "whole_naira_only"
		}
	}
	if !slices.Contains(served, m) {
		return RailDown
	}
	return ""
}

// Stamp writes a time the way the API does: RFC 3339, UTC, milliseconds, Z.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
