package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// What came in while we were away comes in one second, with the times at which it was
// written: the last of it is answered like the first.
func TestWhatCameInWhileWeWereAwayIsAnswered(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		began := w.clock()
		w.pass(5 * time.Hour)
		says := func(i int, in flow.Intent) {
			w.must(w.service.Hear(w.t.Context(), checkout.Inbound{
				Number: ourNumber, Person: "ada", Message: fmt.Sprint("AWAY", i), Intent: in, Wrote: began.Add(time.Duration(i) * 10 * time.Minute),
			}))
		}
		says(0, code(w.session(flow.InChat)))
		for i := range 15 {
			says(1+i, flow.Intent{Kind: flow.MeansThanks})
		}
		says(16, code(w.session(flow.InChat)))
		w.rest()
		if got := w.texts("ada"); len(got) != 1+15+2 || got[len(got)-1] != "summary" {
			w.t.Errorf("the payer reads %q", got)
		}
	})
}
