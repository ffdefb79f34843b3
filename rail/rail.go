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
	// A flow.Reversal names the credit in Reverses, where the provider does.
	Check(ctx context.Context, reference string) ([]flow.Notice, error)
	// Parse reads a message from the provider after verifying its signature,
	// and returns ErrForged when that does not hold.
	Parse(h http.Header, body []byte) ([]flow.Notice, error)
}

// What can go wrong with a call to a provider.
var (
	// ErrRejected: the provider said no; asking again gives the same answer.
	ErrRejected = errors.New("the bank refused")
	// ErrUnavailable: the provider was not reached, so nothing happened there.
	ErrUnavailable = errors.New("the bank cannot be reached")
	// ErrUnknown: the call was sent and its outcome is not known.
	ErrUnknown = errors.New("the bank did not answer in time")
	// ErrForged: a message whose signature does not hold.
	ErrForged = errors.New("the message is not the bank's")
)
