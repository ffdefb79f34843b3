package flow

import (
	"slices"
	"time"
)

// EventKind is what a merchant is told.
type EventKind string

// The kinds of event. Those of sessions are only sent to endpoints that ask.
const (
	ChargeSuccess      EventKind = "charge.success"
	ChargeFailed       EventKind = "charge.failed"
	ChargeExpired      EventKind = "charge.expired"
	ChargeCancelled    EventKind = "charge.cancelled"
	ChargeUnderpaid    EventKind = "charge.underpaid"
	ChargeLate         EventKind = "charge.late"
	ChargeDuplicate    EventKind = "charge.duplicate"
	ChargeReversed     EventKind = "charge.reversed"
	SessionCreated     EventKind = "session.created"
	InstructionsIssued EventKind = "session.instructions_issued"
	SessionExpiredKind EventKind = "session.expired"
	SessionCancelKind  EventKind = "session.cancelled"
	PaymentUnmatched   EventKind = "payment.unmatched"
	IdentityVerified   EventKind = "identity.verified"
	IdentityFailed     EventKind = "identity.failed"
	Ping               EventKind = "ping"
)

// EventKinds is every kind an endpoint can ask for.
func EventKinds() []EventKind {
	return []EventKind{
		ChargeSuccess, ChargeFailed, ChargeExpired, ChargeCancelled, ChargeUnderpaid, ChargeLate, ChargeDuplicate,
		ChargeReversed, SessionCreated, InstructionsIssued, SessionExpiredKind, SessionCancelKind, PaymentUnmatched, IdentityVerified, IdentityFailed, Ping,
	}
}

// OnRequest says whether a kind is only sent to endpoints that name it.
func (k EventKind) OnRequest() bool {
	switch k {
	case SessionCreated, InstructionsIssued, SessionExpiredKind, SessionCancelKind:
		return true
	case ChargeSuccess, ChargeFailed, ChargeExpired, ChargeCancelled, ChargeUnderpaid, ChargeLate, ChargeDuplicate,
		ChargeReversed, PaymentUnmatched, IdentityVerified, IdentityFailed, Ping:
		return false
	}
	return false
}

// Event is a fact, saved in the transaction of its cause. Body is the exact
// bytes that every delivery of it carries; they never change.
type Event struct {
	ID        EventID
	Kind      EventKind
	Project   ProjectID
	Session   SessionID
	Sequence  int64 // counts the events of one session
	CreatedAt time.Time
	Body      []byte
}

// Endpoint is where a merchant wants to be told, and of what.
type Endpoint struct {
	ID          EndpointID
	Project     ProjectID
	URL         string
	Description string
	Events      []EventKind // empty: every kind that is not on request
	Secrets     []string    // whsec_…, newest first: each signs
	Status      string      // ENABLED or DISABLED
	CreatedAt   time.Time
}

// Wants says whether the endpoint is told of a kind.
func (e Endpoint) Wants(k EventKind) bool {
	if e.Status != EndpointEnabled {
		return false
	}
	if len(e.Events) == 0 {
		return !k.OnRequest()
	}
	return slices.Contains(e.Events, k)
}

// The states of an endpoint.
const (
	EndpointEnabled  = "ENABLED"
	EndpointDisabled = "DISABLED"
)

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID       string
	Event    EventID
	Endpoint EndpointID
	URL      string
	Secrets  []string
	Body     []byte
	Attempts int    // that were made before
	Lease    string // names who may send it now
}

// Verdict is what became of one try to deliver.
type Verdict struct {
	OK         bool
	Gone       bool   // the endpoint said 410: never again
	Status     int    // the HTTP status, 0 where there was no answer
	Reason     string // why it failed, in a word
	Body       []byte // of the answer, at most 4 KiB
	Duration   time.Duration
	RetryAfter time.Duration
}
