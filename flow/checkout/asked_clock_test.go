package checkout_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
)

// A clock that is set back does not keep anybody from asking the bank for as long as it
// was set back: neither a merchant, nor a payer who says that it is paid.
func TestTheBankIsAskedOnAWordAlsoAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(w *world, id flow.SessionID){
		"a merchant's": func(w *world, id flow.SessionID) { w.must(w.service.AskBank(t.Context(), project, id)) },
		"a payer's":    func(w *world, _ flow.SessionID) { w.hear("ada", flow.Intent{Kind: flow.MeansPaid}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			session, _ := w.paying()
			w.later(2 * time.Minute)
			var asked atomic.Int32
			w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
				asked.Add(1)
				return nil, nil
			})
			ask(w, session.ID)
			w.rest()
			before := asked.Load()
			w.setClock(w.clock().Add(-time.Minute))
			ask(w, session.ID)
			w.rest()
			if n := asked.Load() - before; before == 0 || n != 1 {
				t.Errorf("the bank was asked %d times before, and %d times after it", before, n)
			}
		})
	}
}
