package flow_test

import (
	"testing"

	"till/flow"
)

// What the bank has taken back of new money keeps nothing of earlier parts from
// going back, and none of it is set aside twice.
func TestWhatWasTakenBackHoldsUpNoOthersReturn(t *testing.T) {
	t.Parallel()
	p := flow.Payment{ID: "late", Amount: 300_000, Applied: 1, Refunded: 299_999, Resolution: flow.ResolvedRefunded}
	c := flow.Change{Payment: &p, Returns: []flow.Return{{Payment: "part", Amount: 200_001}, {Payment: "late", Amount: 299_999}}}
	c = c.Unsent(300_000)
	if len(c.Returns) != 1 || c.Returns[0].Payment != "part" || c.Returns[0].Amount != 200_001 {
		t.Errorf("what goes back is %+v", c.Returns)
	}
	if p.Refunded != 0 || p.Unapplied != 299_999 || p.Resolution != flow.Unresolved {
		t.Errorf("the payment is %+v", p)
	}
}
