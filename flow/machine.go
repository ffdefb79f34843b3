package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/looplab/fsm"
)

// A table is the legal moves of one thing that has states. It is the only
// source of them: nothing sets a state but through move.
//
// looplab/fsm answers one question at a time. A machine is built for each
// question and thrown away, has no callbacks and gets a context that never
// ends: a kept machine is wedged for good by an expired context, and a callback
// that fails leaves the new state in place. It is built with the moves out of
// the state that is asked about alone: with the whole table, building it is
// what a turn of a chat would spend its time on.
type table struct {
	name   string
	events fsm.Events
	outOf  map[string]fsm.Events
}

// tabled is a table with its moves sorted by the state they lead out of.
func tabled(name string, events fsm.Events) table {
	t := table{name: name, events: events, outOf: map[string]fsm.Events{}}
	for _, e := range events {
		for _, from := range e.Src {
			t.outOf[from] = append(t.outOf[from], fsm.EventDesc{Name: e.Name, Src: []string{from}, Dst: e.Dst})
		}
	}
	return t
}

// move asks a table where a trigger leads. A trigger that the state does not
// know is an *IllegalMove; one that leads back to the state is not an error.
func move(t table, from, trigger string) (string, error) {
	machine := fsm.NewFSM(from, t.outOf[from], nil)
	err := machine.Event(context.Background(), trigger) //nolint:forbidigo // see table: the machine must not see a context that can end
	if _, same := errors.AsType[fsm.NoTransitionError](err); err != nil && !same {
		return "", &IllegalMove{Table: t.name, From: from, Trigger: trigger}
	}
	return machine.Current(), nil
}

// IllegalMove is a trigger that a state does not know.
type IllegalMove struct{ Table, From, Trigger string } //nolint:errname // a move, said to be illegal

// Error names the table, the state and the trigger.
func (e *IllegalMove) Error() string {
	return fmt.Sprintf("%s: %s does not lead out of %s", e.Table, e.Trigger, e.From)
}

// The triggers of a session.
const (
	triggerPay     = "pay"     // the bank confirmed all of it
	triggerExpire  = "expire"  // its time is over
	triggerCancel  = "cancel"  // the merchant or the payer cancelled
	triggerAccept  = "accept"  // late money is taken
	triggerProcess = "process" // the bank said that money is on its way
	triggerResume  = "resume"  // it did not come
)

var sessionTable = tabled("session", fsm.Events{
	{Name: triggerProcess, Src: []string{string(SessionPending)}, Dst: string(SessionProcessing)},
	{Name: triggerResume, Src: []string{string(SessionProcessing)}, Dst: string(SessionPending)},
	{Name: triggerPay, Src: []string{string(SessionPending), string(SessionProcessing)}, Dst: string(SessionPaid)},
	{Name: triggerExpire, Src: []string{string(SessionPending)}, Dst: string(SessionExpired)},
	{Name: triggerCancel, Src: []string{string(SessionPending)}, Dst: string(SessionCancelled)},
	{Name: triggerAccept, Src: []string{string(SessionExpired), string(SessionCancelled)}, Dst: string(SessionPaid)},
})

// The triggers of an attempt.
const (
	triggerSucceed   = "succeed"
	triggerFail      = "fail"
	triggerLapse     = "lapse"
	triggerSupersede = "supersede"
	triggerTakeUp    = "take_up" // it was switched away from, and is asked for again
)

// An attempt that ended is still watched: late money makes it SUCCEEDED.
var attemptTable = tabled("attempt", fsm.Events{
	{Name: triggerSucceed, Src: []string{string(AttemptActive), string(AttemptExpired), string(AttemptSuperseded), string(AttemptFailed)}, Dst: string(AttemptSucceeded)},
	{Name: triggerFail, Src: []string{string(AttemptActive), string(AttemptSuperseded)}, Dst: string(AttemptFailed)},
	{Name: triggerLapse, Src: []string{string(AttemptActive)}, Dst: string(AttemptExpired)},
	{Name: triggerSupersede, Src: []string{string(AttemptActive)}, Dst: string(AttemptSuperseded)},
	{Name: triggerTakeUp, Src: []string{string(AttemptSuperseded)}, Dst: string(AttemptActive)},
})

// The triggers of a project's KYC.
const (
	triggerSubmit  = "submit"  // the merchant, also after a rejection
	triggerApprove = "approve" // the operator, also to end a suspension
	triggerReject  = "reject"  // the operator
	triggerSuspend = "suspend" // the operator
)

var kycTable = tabled("kyc", fsm.Events{
	{Name: triggerSubmit, Src: []string{string(KYCNone), string(KYCRejected)}, Dst: string(KYCSubmitted)},
	{Name: triggerApprove, Src: []string{string(KYCSubmitted), string(KYCSuspended)}, Dst: string(KYCApproved)},
	{Name: triggerReject, Src: []string{string(KYCSubmitted)}, Dst: string(KYCRejected)},
	{Name: triggerSuspend, Src: []string{string(KYCSubmitted), string(KYCApproved)}, Dst: string(KYCSuspended)},
})

// The triggers of a refund; triggerPay and triggerFail are as above.
const (
	triggerSend   = "send"    // the bank is told of it
	triggerDoubt  = "doubt"   // it was asked often enough and does not say
	triggerBounce = "bounce"  // what was sent came back
	triggerRetry  = "retry"   // the merchant, or its time, wants it sent again
	triggerGiveUp = "give_up" // the bank refused it too often
)

// What a bank says is taken in whatever we believed: one that failed may turn out
// to have been sent after all.
var refundTable = tabled("refund", fsm.Events{
	{Name: triggerSend, Src: []string{string(RefundPending), string(RefundProcessing)}, Dst: string(RefundProcessing)},
	{Name: triggerPay, Src: []string{string(RefundPending), string(RefundProcessing), string(RefundAttention), string(RefundFailed)}, Dst: string(RefundProcessed)},
	{Name: triggerFail, Src: []string{string(RefundPending), string(RefundProcessing), string(RefundAttention)}, Dst: string(RefundFailed)},
	{Name: triggerDoubt, Src: []string{string(RefundProcessing)}, Dst: string(RefundAttention)},
	{Name: triggerBounce, Src: []string{string(RefundProcessed)}, Dst: string(RefundAttention)},
	{Name: triggerRetry, Src: []string{string(RefundAttention), string(RefundFailed)}, Dst: string(RefundPending)},
	{Name: triggerGiveUp, Src: []string{string(RefundPending), string(RefundProcessing), string(RefundAttention)}, Dst: string(RefundAttention)},
})

// What is sent again has another name: the next batch takes what failed. A bank
// that says so is believed here too, but of nothing that it was not told of yet.
var settlementTable = tabled("settlement", fsm.Events{
	{Name: triggerSend, Src: []string{string(SettlementPending), string(SettlementProcessing)}, Dst: string(SettlementProcessing)},
	{Name: triggerPay, Src: []string{string(SettlementProcessing), string(SettlementFailed)}, Dst: string(SettlementSucceeded)},
	{Name: triggerFail, Src: []string{string(SettlementProcessing)}, Dst: string(SettlementFailed)},
	{Name: triggerBounce, Src: []string{string(SettlementSucceeded)}, Dst: string(SettlementFailed)},
})

// move is the session after a trigger.
func (s Session) move(trigger string) (Session, error) {
	to, err := move(sessionTable, string(s.Status), trigger)
	if err != nil {
		return s, err
	}
	s.Status = SessionStatus(to)
	return s, nil
}

// move is the attempt after a trigger.
func (a Attempt) move(trigger string) (Attempt, error) {
	to, err := move(attemptTable, string(a.Status), trigger)
	if err != nil {
		return a, err
	}
	a.Status = AttemptStatus(to)
	return a, nil
}

// move is the refund after a trigger.
func (r Refund) move(trigger string) (Refund, error) {
	to, err := move(refundTable, string(r.Status), trigger)
	if err != nil {
		return r, err
	}
	r.Status = RefundStatus(to)
	return r, nil
}

// move is the settlement after a trigger.
func (b Settlement) move(trigger string) (Settlement, error) {
	to, err := move(settlementTable, string(b.Status), trigger)
	if err != nil {
		return b, err
	}
	b.Status = SettlementStatus(to)
	return b, nil
}

// Mermaid draws every table as a state diagram for the documentation.
func Mermaid() string {
	var b strings.Builder
	for _, t := range []table{sessionTable, attemptTable, talkTable, deskTable, kycTable, refundTable, settlementTable} {
		fmt.Fprintf(&b, "%%%% %s\nstateDiagram-v2\n", t.name)
		for _, e := range t.events {
			for _, from := range e.Src {
				fmt.Fprintf(&b, "  %s --> %s: %s\n", from, e.Dst, e.Name)
			}
		}
	}
	return b.String()
}
