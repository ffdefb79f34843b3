package flow

import "time"

// Milestone is one thing that an integration has shown to work before it goes
// live.
type Milestone string

// The milestones, in the order in which they are usually met.
const (
	// MilestoneKey is a call with a secret key.
	MilestoneKey Milestone = "key"
	// MilestoneWebhook is an event of money that an endpoint took with a 2xx.
	MilestoneWebhook Milestone = "webhook"
	// MilestoneOnce is a call with an Idempotency-Key.
	MilestoneOnce Milestone = "idempotency"
	// MilestoneEnded is the end of a charge without money that an endpoint took.
	MilestoneEnded Milestone = "ended"
	// MilestoneForged is a delivery whose signature does not hold and that was
	// refused. Till sends none: somebody says so.
	MilestoneForged Milestone = "forged"
)

// Milestones lists them all.
func Milestones() []Milestone {
	return []Milestone{MilestoneKey, MilestoneWebhook, MilestoneOnce, MilestoneEnded, MilestoneForged}
}

// Proof are the kinds of event by whose delivery a milestone is seen, none for one
// that is seen elsewhere.
func (m Milestone) Proof() []EventKind {
	switch m {
	case MilestoneWebhook:
		return []EventKind{ChargeSuccess, ChargeUnderpaid, ChargeLate, ChargeDuplicate}
	case MilestoneEnded:
		return []EventKind{ChargeExpired, ChargeCancelled, SessionExpiredKind, SessionCancelKind}
	case MilestoneKey, MilestoneOnce, MilestoneForged:
	}
	return nil
}

// What Till describes endpoints with that it makes for itself: what they take shows
// nothing of a merchant's own.
const (
	EarOfTry     = "till try"
	EarOfTrigger = "till trigger"
	EarOfListen  = "till listen to nobody" // who forwards to a merchant's program names that
	EarOfSandbox = "The catcher of the sandbox"
)

// OwnEars are all of them.
func OwnEars() []string { return []string{EarOfTry, EarOfTrigger, EarOfListen, EarOfSandbox} }

// Met is a milestone that a project has met.
type Met struct {
	Milestone Milestone
	At        time.Time // when it was seen, or said
	SaidBy    string    // e-mail address of who said so; "" where Till saw it
}
