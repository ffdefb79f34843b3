package flow_test

import (
	"errors"
	"testing"

	"till/flow"
)

// What a refusal says is covered is the most that is: of what a refund took beyond its
// payment, that which goes beyond the fee comes off first, and after that the fee as a
// whole.
func TestWhatARefusalSaysIsCoveredIsTheMostThatIs(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	const taken, fee, beyond = 200_000, 17_500, 100_000
	p := came(flow.Matched)
	// afford asks for a refund that takes so much less, of a merchant who has lacking too
	// little for the whole of it.
	afford := func(less, lacking flow.Kobo) error {
		over := max(fee+beyond-less, 0)
		own := min(over, fee)
		return flow.Afford(p, taken-less, less-lacking-fee, flow.Overdraft{Fees: own, Own: own, Beyond: over - own})
	}
	for _, lacking := range []flow.Kobo{1, 60_000, beyond, beyond + 1, 150_000, taken - fee, taken} {
		refusal, ok := errors.AsType[*flow.Error](afford(0, lacking))
		if !ok || refusal.Code != flow.CodeRefundOverBalance {
			t.Fatalf("%d too little: %v", lacking, refusal)
		}
		most := flow.Kobo(0)
		for refunds := flow.Kobo(taken); refunds > 0 && most == 0; refunds-- {
			if afford(taken-refunds, lacking) == nil {
				most = refunds
			}
		}
		if got := refusal.Details["coveredMinor"]; got != most.Minor() {
			t.Errorf("%d too little: %s is said to be covered, and %s is", lacking, got, most.Minor())
		}
	}
}
