package sandbox

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"till/rail"
)

// This file is rail.TestBank: the test door, called over the network. Errors
// are those of rail.Rail; what the bank will not do is rail.ErrRejected.

// Transfer plays a payer who sends money to an account number. The money is
// there at once, or after PendingMs; DelayMs, Copies and Drop are about the notice
// of it.
func (r *Rail) Transfer(ctx context.Context, t rail.Transfer) (rail.TransferResult, error) {
	var out rail.TransferResult
	_, err := r.call(ctx, http.MethodPost, "/bank/test/transfers", t, &out)
	return out, wrap("play a transfer", err)
}

// Reverse plays the bank taking a credit back, once.
func (r *Rail) Reverse(ctx context.Context, railTransactionID string) (rail.TransferResult, error) {
	var out rail.TransferResult
	_, err := r.call(ctx, http.MethodPost, "/bank/test/reversals", reversal{railTransactionID}, &out)
	return out, wrap("play a reversal", err)
}

// CompleteUSSD plays a payer who dials: "success" or "failed", once.
func (r *Rail) CompleteUSSD(ctx context.Context, paymentCode, outcome string) error {
	_, err := r.call(ctx, http.MethodPost, "/bank/test/ussd/"+url.PathEscape(paymentCode)+"/complete", ended{outcome}, nil)
	return wrap("complete a USSD payment", err)
}

// CompleteCard ends a card page by our reference: "approved" or "declined", once.
func (r *Rail) CompleteCard(ctx context.Context, reference, outcome string) error {
	_, err := r.call(ctx, http.MethodPost, "/bank/test/cards/"+url.PathEscape(reference)+"/complete", ended{outcome}, nil)
	return wrap("complete a card payment", err)
}

// Conditions is how the bank behaves now.
func (r *Rail) Conditions(ctx context.Context) (rail.Conditions, error) {
	var out rail.Conditions
	_, err := r.call(ctx, http.MethodGet, "/bank/test/conditions", nil, &out)
	return out, wrap("read the bank's conditions", err)
}

// SetConditions sets all of how the bank behaves from now on.
func (r *Rail) SetConditions(ctx context.Context, c rail.Conditions) (rail.Conditions, error) {
	var out rail.Conditions
	_, err := r.call(ctx, http.MethodPut, "/bank/test/conditions", c, &out)
	return out, wrap("set the bank's conditions", err)
}

// Calls lists the calls that the bank received through the rail, oldest first,
// after a cursor: at most limit, and at most 100.
func (r *Rail) Calls(ctx context.Context, after int64, limit int) ([]rail.Call, error) {
	limit = min(max(limit, 1), callsPage)
	var out struct {
		Items []rail.Call `json:"items"`
	}
	_, err := r.call(ctx, http.MethodGet, "/bank/test/calls?after="+strconv.FormatInt(after, 10)+"&limit="+strconv.Itoa(limit), nil, &out)
	return out.Items, wrap("list the bank's calls", err)
}
