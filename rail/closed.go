package rail

import (
	"context"
	"net/http"

	"till/flow"
)

// Closed is a rail that serves no method: what an environment has before a bank
// is connected. Sessions can be made there; their methods say rail_down.
type Closed struct{}

var _ Rail = Closed{}

// Methods are none.
func (Closed) Methods() []flow.Method { return nil }

// Start returns ErrUnavailable.
func (Closed) Start(context.Context, flow.Order) (flow.Instructions, error) {
	return flow.Instructions{}, ErrUnavailable
}

// Check knows of no money.
func (Closed) Check(context.Context, string) ([]flow.Notice, error) { return nil, nil }

// Parse believes nobody.
func (Closed) Parse(http.Header, []byte) ([]flow.Notice, error) { return nil, ErrForged }
