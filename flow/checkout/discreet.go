package checkout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

// discreet is a rail whose failures may be kept: a bank's own words may repeat the
// number of a card or a person, or a key. They stand in the timeline and the log, and
// merchants are told them.
type discreet struct{ rail.Rail }

// sayable is an error of a rail without what is kept nowhere, and without what no store
// takes: what kind it is of stays.
func sayable(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if flow.Held("", text) == "" && utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return err
	}
	kind := rail.ErrUnknown
	for _, one := range []error{rail.ErrRejected, rail.ErrUnavailable, rail.ErrNotFound, rail.ErrTooMuch, rail.ErrForged} {
		if errors.Is(err, one) {
			kind = one
		}
	}
	return fmt.Errorf("%w: %s", kind, flow.Told(text))
}

// keepable is what became of money that was sent out, as it may be kept. Where its
// name cannot be kept, nobody knows yet.
func keepable(done flow.Disbursed, err error) (flow.Disbursed, error) {
	if err == nil && (!flow.RailName(done.RailTransactionID) || !flow.RailName(done.Reverses)) {
		return flow.Disbursed{}, fmt.Errorf("%w: what was sent has no name that can be kept", rail.ErrUnknown)
	}
	done.Reason = flow.Told(done.Reason)
	return done, sayable(err)
}

// Start implements rail.Rail.
func (d discreet) Start(ctx context.Context, o flow.Order) (flow.Instructions, error) {
	ins, err := d.Rail.Start(ctx, o)
	return ins, sayable(err)
}

// Check implements rail.Rail.
func (d discreet) Check(ctx context.Context, reference string) ([]flow.Notice, error) {
	list, err := d.Rail.Check(ctx, reference)
	return list, sayable(err)
}

// Parse implements rail.Rail.
func (d discreet) Parse(h http.Header, body []byte) ([]flow.Notice, error) {
	list, err := d.Rail.Parse(h, body)
	return list, sayable(err)
}

// Disburse implements rail.Rail.
func (d discreet) Disburse(ctx context.Context, o flow.Disbursement) (flow.Disbursed, error) {
	return keepable(d.Rail.Disburse(ctx, o))
}

// Disbursed implements rail.Rail.
func (d discreet) Disbursed(ctx context.Context, reference string) (flow.Disbursed, error) {
	return keepable(d.Rail.Disbursed(ctx, reference))
}

// Statement implements rail.Rail.
func (d discreet) Statement(ctx context.Context, from, to time.Time) ([]flow.Notice, error) {
	list, err := d.Rail.Statement(ctx, from, to)
	return list, sayable(err)
}
