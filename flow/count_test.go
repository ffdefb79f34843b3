package flow_test

import (
	"testing"

	"till/flow"
)

func TestOneThingIsNotCountedAsSeveral(t *testing.T) {
	for n, want := range map[int]string{0: "0 payers are", 1: "1 payer is", 2: "2 payers are", 21: "21 payers are"} {
		if got := flow.Counted(n, "payer", "is", "are"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
