package checkout_test

import (
	"testing"

	"till/flow"
	"till/flow/checkout"
)

// Nobody takes a chat over whose payer was forgotten, or has them sent anything again:
// no word would ever reach them, and whoever wrote would be told that it is on its way.
func TestNobodyWritesToWhoIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s, chat := w.forgottenAda()
		before, err := w.db.SaysOf(ctx, chat, 99)
		w.must(err)
		if err := w.service.Claim(ctx, chat, "bola", 0); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to take it over says %v", err)
		}
		if err := w.service.Reply(ctx, chat, "bola", "Are you there?", checkout.Call{}); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to answer in it says %v", err)
		}
		if n, err := w.service.SayAgain(ctx, s.Project, s.ID, "bola"); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to send again reached %d chats and says %v", n, err)
		}
		if after, err := w.db.SaysOf(ctx, chat, 99); err != nil || len(after) != len(before) {
			t.Errorf("there are %d messages of %d: %v", len(after), len(before), err)
		}
	})
}
