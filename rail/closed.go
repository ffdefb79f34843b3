package rail

import (
	"context"
	"net/http"
	"time"

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

// Disburse returns ErrUnavailable.
func (Closed) Disburse(context.Context, flow.Disbursement) (flow.Disbursed, error) {
	return flow.Disbursed{}, ErrUnavailable
}

// Disbursed was never ordered anything.
func (Closed) Disbursed(context.Context, string) (flow.Disbursed, error) {
	return flow.Disbursed{}, ErrNotFound
}

// Statement is empty.
func (Closed) Statement(context.Context, time.Time, time.Time) ([]flow.Notice, error) {
	return nil, nil
}
