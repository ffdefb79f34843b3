package checkout_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
)

// How long payers wait is told of the answers that they got. One that was given up or
// withdrawn is none, and what is said hours later has not taken as long.
func TestAnAnswerThatNeverCameIsNoLongWaitForTheNext(t *testing.T) {
	t.Parallel()
	for name, never := range map[string]func(w *world){
		"given up": func(w *world) {
			w.sending(func(checkout.Outgoing) error { return errRefused })
			w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
			w.retry(3)
		},
		"withdrawn": func(w *world) {
			w.sending(func(checkout.Outgoing) error { return &checkout.NotYetError{Wait: time.Second} })
			w.must(w.says("ada", flow.Intent{Kind: flow.MeansMenu}))
			w.must(w.service.Claim(w.t.Context(), w.chatOf("ada"), "ngozi", 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			session := w.session(flow.InChat)
			w.hear("ada", code(session))
			never(w)
			if got := w.texts("ada"); len(got) != 1 {
				t.Fatalf("the payer read %q", got)
			}
			w.sending(nil)
			w.later(3 * time.Hour)
			w.hear("ada", flow.Intent{Kind: flow.MeansMenu})
			if got := w.texts("ada"); len(got) < 2 {
				t.Fatalf("the payer read %q", got)
			}
			w.unsent.mu.Lock()
			defer w.unsent.mu.Unlock()
			if most := slices.Max(w.unsent.waited); most >= time.Minute {
				t.Errorf("payers are said to have waited up to %s", most)
			}
		})
	}
}
