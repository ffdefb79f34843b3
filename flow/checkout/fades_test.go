package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// What a message does not say of a chat (a call has no name, a reaction no
// timer) leaves what is known, and an answer stays as long as the chat keeps
// its messages.
func TestACallDoesNotForgetHowAChatFades(t *testing.T) {
	each(t, func(w *world) {
		heard := 0
		hears := func(kind flow.IntentKind, name string, fades time.Duration) store.ChatRow {
			t.Helper()
			heard++
			w.must(w.service.Hear(t.Context(), checkout.Inbound{
				Number: ourNumber, Person: "ada", Phone: "2348031000010", Name: name, Message: fmt.Sprintf("FADES%d", heard), Fades: fades,
				Intent: flow.Intent{Kind: kind},
			}))
			w.rest()
			row, _, err := w.db.ChatOf(t.Context(), ourNumber, "ada")
			w.must(err)
			return row
		}
		for _, c := range []struct {
			kind  flow.IntentKind
			name  string
			fades time.Duration
			want  time.Duration
		}{
			{flow.MeansCall, "", -1, 0},
			{flow.MeansMenu, "Ada", 24 * time.Hour, 24 * time.Hour},
			{flow.MeansCall, "", -1, 24 * time.Hour},
			{flow.MeansNote, "Ada", -1, 24 * time.Hour},
			{flow.MeansNote, "Ada", 7 * 24 * time.Hour, 7 * 24 * time.Hour},
			{flow.MeansMenu, "Ada", 0, 0},
		} {
			row := hears(c.kind, c.name, c.fades)
			if row.Fades != c.want || heard > 1 && row.Name != "Ada" {
				t.Errorf("after %s in a chat of %s: %+v", c.kind, c.fades, row)
			}
		}
	})
}
