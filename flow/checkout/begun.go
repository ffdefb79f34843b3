package checkout

import (
	"context"

	"till/flow"
	"till/flow/store"
)

// Begun says whether a store knows that an order of money to be sent out, by its
// reference at the bank, was begun. One that does not, of an order that was, stands
// as it stood before.
func Begun(ctx context.Context, r store.Reader, reference string) (bool, error) {
	if isPayout(reference) {
		b, err := r.Settlement(ctx, flow.SettlementID(reference))
		if notFound(err) {
			return false, nil
		}
		return b.Tries > 0, wrap("look for a settlement", err)
	}
	refund, err := r.Refund(ctx, flow.RefundOf(reference))
	if notFound(err) {
		return false, nil
	}
	return refund.Begun(reference), wrap("look for a refund", err)
}
