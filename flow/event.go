package flow

import "time"

// EventKind is what a merchant is told.
type EventKind string

// The kinds of event. Those of sessions are only sent to endpoints that ask.
const (
	ChargeSuccess         EventKind = "charge.success"
	ChargeFailed          EventKind = "charge.failed"
	ChargeExpired         EventKind = "charge.expired"
	ChargeCancelled       EventKind = "charge.cancelled"
	ChargeUnderpaid       EventKind = "charge.underpaid"
	ChargeLate            EventKind = "charge.late"
	ChargeDuplicate       EventKind = "charge.duplicate"
	ChargeReversed        EventKind = "charge.reversed"
	SessionCreated        EventKind = "session.created"
	InstructionsIssued    EventKind = "session.instructions_issued"
	SessionExpiredKind    EventKind = "session.expired"
	SessionCancelKind     EventKind = "session.cancelled"
	PaymentUnmatched      EventKind = "payment.unmatched"
	PaymentReversed       EventKind = "payment.reversed"
	RefundPendingKind     EventKind = "refund.pending"
	RefundProcessedKind   EventKind = "refund.processed"
	RefundFailedKind      EventKind = "refund.failed"
	RefundAttentionKind   EventKind = "refund.needs_attention"
	SettlementSuccessKind EventKind = "settlement.success"
	SettlementFailedKind  EventKind = "settlement.failed"
	IdentityVerified      EventKind = "identity.verified"
	IdentityFailed        EventKind = "identity.failed"
	Ping                  EventKind = "ping"
	EndpointDisabledKind  EventKind = "endpoint.disabled"
)

// EventKinds is every kind an endpoint can ask for.
func EventKinds() []EventKind {
	return []EventKind{
		ChargeSuccess, ChargeFailed, ChargeExpired, ChargeCancelled, ChargeUnderpaid, ChargeLate, ChargeDuplicate,
		ChargeReversed, SessionCreated, InstructionsIssued, SessionExpiredKind, SessionCancelKind, PaymentUnmatched, PaymentReversed,
		RefundPendingKind, RefundProcessedKind, RefundFailedKind, RefundAttentionKind, SettlementSuccessKind, SettlementFailedKind, IdentityVerified, IdentityFailed, EndpointDisabledKind, Ping,
	}
}

// OnRequest says whether a kind is only sent to endpoints that name it.
func (k EventKind) OnRequest() bool {
	switch k {
	case SessionCreated, InstructionsIssued, SessionExpiredKind, SessionCancelKind:
		return true
	case ChargeSuccess, ChargeFailed, ChargeExpired, ChargeCancelled, ChargeUnderpaid, ChargeLate, ChargeDuplicate,
		ChargeReversed, PaymentUnmatched, PaymentReversed, RefundPendingKind, RefundProcessedKind, RefundFailedKind, RefundAttentionKind, SettlementSuccessKind, SettlementFailedKind, IdentityVerified, IdentityFailed, EndpointDisabledKind, Ping:
		return false
	}
	return false
}

// Event is a fact, saved in the transaction of its cause. Body is the exact
// bytes that every delivery of it carries; they change only where a payer is
// forgotten who stands in them.
type Event struct {
	ID        EventID
	Kind      EventKind
	Project   ProjectID
	Session   SessionID
	Sequence  int64 // counts the events of one session
	CreatedAt time.Time
	Body      []byte
}
