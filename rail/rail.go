// Package rail is the contract between Till and a bank or payment provider.
//
// A rail translates: it turns our orders into the provider's calls and the
// provider's messages into notices. It keeps nothing and decides nothing, and
// it knows neither sessions' states nor chats nor merchants. To add one, write
// a package below this one and make it pass railtest.
package rail

import (
	"context"
	"errors"
	"net/http"
	"time"

	"till/flow"
)

// Rail is one provider.
type Rail interface {
	// Methods are the methods the provider serves at this moment.
	Methods() []flow.Method
	// Start makes the instructions for an order. The same reference always
	// gives the same instructions, however often it is asked. An order marked
	// Again is looked up by its reference before anything is made.
	// Errors are ErrRejected, ErrUnavailable or ErrUnknown.
	Start(ctx context.Context, o flow.Order) (flow.Instructions, error)
	// Check asks what became of the order with our reference: every movement
	// of money the provider knows for it, oldest first; none is not an error.
	//
	// Money that is on its way is flow.Pending for as long as the provider knows
	// of it and has not credited it; it is flow.Credit, or flow.Returned,
	// afterwards. A provider that tells of it by itself (Parse) tells it here too:
	// when no answer holds it any more, it is taken not to come. A movement that
	// ended (credited, declined, returned, reversed) stays in every later answer.
	// A flow.Reversal names the credit in Reverses, where the provider does. A name
	// has at most 255 bytes, all of which print (flow.RailName), and a movement is of
	// 1 to 10^13 kobo: what is not so is refused.
	Check(ctx context.Context, reference string) ([]flow.Notice, error)
	// Parse reads a message from the provider after verifying its signature,
	// and returns ErrForged when that does not hold.
	Parse(h http.Header, body []byte) ([]flow.Notice, error)
	// Disburse orders that money is sent out. The same reference is sent once,
	// however often it is ordered, and gives what became of it. Errors are
	// ErrRejected (nothing is sent, and asking again gives the same answer),
	// ErrUnavailable or ErrUnknown.
	//
	// What became of it is told by itself (Parse) where the provider does, and to
	// whoever asks: flow.PaidOut when it was sent, flow.PayoutFailed when it was
	// not or when it came back. That one is a movement of its own, and names in
	// Reverses the one that was sent, and in SentAt when, where the provider says that;
	// nothing was, where it names none. The two may overtake one another.
	Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error)
	// Disbursed asks what became of an order by its reference, and answers as the
	// last notice of it told, Reverses too; ErrNotFound where the provider never took
	// one on, or refused it. ErrRejected is of the question: it says nothing of the
	// order.
	Disbursed(ctx context.Context, reference string) (flow.Disbursed, error)
	// Statement is every movement that the provider booked with a value time from
	// from until before to, in and out, oldest first: credits, reversals and
	// disbursements that were sent or came back. Each is told as its notice is, once.
	// A movement may be booked later than its value time: what a statement of the
	// past holds can grow. A day is given however much it holds (InParts); of more
	// than that it may be ErrTooMuch.
	Statement(ctx context.Context, from, to time.Time) ([]flow.Notice, error)
}

// What can go wrong with a call to a provider.
var (
	// ErrRejected: the provider said no; asking again gives the same answer.
	ErrRejected = errors.New("the bank refused")
	// ErrUnavailable: the provider was not reached, or did not know who we are, so
	// nothing happened there.
	ErrUnavailable = errors.New("the bank cannot be reached")
	// ErrUnknown: the call was sent and its outcome is not known.
	ErrUnknown = errors.New("the bank did not answer in time")
	// ErrTooMuch: a statement is longer than the provider gives at once; ask for less.
	ErrTooMuch = errors.New("the statement is too long")
	// ErrForged: a message whose signature does not hold.
	ErrForged = errors.New("the message is not the bank's")
)
