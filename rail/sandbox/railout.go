package sandbox

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"till/flow"
	"till/rail"
)

// Disburse orders that money is sent out; the same reference is sent once.
func (r *Rail) Disburse(ctx context.Context, d flow.Disbursement) (flow.Disbursed, error) {
	in := disbursement{
		Reference: d.Reference, Kind: d.Kind, Amount: int64(d.Amount), Credit: d.Credit, BankCode: d.To.BankCode, AccountNumber: d.To.Number,
		AccountName: d.To.Name, Narration: d.Narration, Project: d.Project,
	}
	var got disbursed
	if _, err := r.call(ctx, http.MethodPost, "/bank/v1/disbursements", in, &got); err != nil {
		return flow.Disbursed{}, wrap("disburse", err)
	}
	if got.disbursement != in {
		return flow.Disbursed{}, fmt.Errorf("disburse: %w: the answer is about another order", rail.ErrUnknown)
	}
	return sentOut("disburse", got)
}

// Disbursed asks what became of an order. What the bank refused it never took on.
func (r *Rail) Disbursed(ctx context.Context, reference string) (flow.Disbursed, error) {
	const what = "ask about a disbursement"
	var got disbursed
	_, err := r.call(ctx, http.MethodGet, "/bank/v1/disbursements/"+url.PathEscape(reference), nil, &got)
	switch {
	case err != nil:
		return flow.Disbursed{}, wrap(what, err)
	case got.Reference != reference:
		return flow.Disbursed{}, fmt.Errorf("%s: %w: the answer is about another", what, rail.ErrUnknown)
	case !got.Found:
		return flow.Disbursed{}, fmt.Errorf("%s: %w", what, rail.ErrNotFound)
	}
	return sentOut(what, got)
}

// sentOut is what the bank says of an order, in our words.
func sentOut(what string, got disbursed) (flow.Disbursed, error) {
	ended := got.RailTransactionID != ""
	switch got.Status {
	case flow.DisbursementPending:
		ended = !ended
	case flow.DisbursementDone, flow.DisbursementFailed:
	default:
		ended = false
	}
	if !ended || got.At.IsZero() {
		return flow.Disbursed{}, fmt.Errorf("%s: %w: the answer does not say what became of it", what, rail.ErrUnknown)
	}
	return flow.Disbursed{
		Status: got.Status, RailTransactionID: got.RailTransactionID, At: got.At.UTC(), Reason: got.Reason, Reverses: got.Reverses, SentAt: got.SentAt.UTC(),
	}, nil
}
