package checkout_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// edit is a message of Ada's that takes the place of another one.
func (w *world) edit(message, edited string, in flow.Intent) {
	w.t.Helper()
	w.must(w.service.Hear(w.t.Context(), checkout.Inbound{Number: ourNumber, Person: "ada", Message: message, Edits: edited, Intent: in}))
	w.rest()
}

// Whoever mends a code that opened nothing means the payment of the mended one: the
// next digit pays that, and not the one that was spoken of before.
func TestACodeThatOpenedNothingMayBeEdited(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(w *world) flow.Intent{
		"of no session": func(*world) flow.Intent { return flow.Intent{Kind: flow.MeansCode, Code: "JKP6HHEZ"} },
		"of one that was cancelled": func(w *world) flow.Intent {
			over := w.session(flow.InChat)
			_, err := w.service.Cancel(w.t.Context(), over.ID, call("", "", nil))
			w.must(err)
			return code(over)
		},
		"of one that is over in this chat": func(w *world) flow.Intent {
			over := w.session(flow.InChat)
			w.hear("ada", code(over))
			_, err := w.service.Cancel(w.t.Context(), over.ID, call("", "", nil))
			w.must(err)
			w.rest()
			return code(over)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			first, second := w.session(flow.InChat), w.session(flow.InChat)
			w.hear("ada", code(first))
			w.must(w.hears("ada", "WRONG", wrong(w)))
			w.edit("RIGHT", "WRONG", code(second))
			w.hear("ada", method(flow.BankTransfer))
			if before, now := w.attempts(first.ID), w.attempts(second.ID); len(before) != 0 || len(now) != 1 {
				t.Errorf("of the payment before %+v, of the mended code %+v", before, now)
			}
		})
	}
}

// An edit of a code that opened its session is only kept, with what was said of
// that session: not with the one whose code it names, which it never opened.
func TestAnEditThatIsOnlyKeptStandsWithTheMessageThatItIsOf(t *testing.T) {
	t.Parallel()
	w := one(t)
	first, second, third := w.session(flow.InChat), w.session(flow.InChat), w.session(flow.InChat)
	w.must(w.hears("ada", "FIRST", code(first)))
	w.pass(time.Second)
	w.hear("ada", code(second))
	w.edit("EDIT", "FIRST", code(third))
	list, err := checkout.Recordings(t.Context(), w.service.Reader(), "", w.chatOf("ada"))
	w.must(err)
	at := slices.IndexFunc(list[0].Lines, func(l replay.Line) bool { return l.Message == "EDIT" })
	heard, decided := list[0].Lines[at], list[0].Lines[at+1]
	var turn flow.Turn
	w.must(json.Unmarshal(heard.Data, &turn))
	if turn.Heard.Kind != flow.MeansNote || turn.ByCode != "" || heard.Session != first.ID || decided.Session != first.ID {
		t.Errorf("the edit is of %s and %s, and kept as %s", heard.Session, decided.Session, heard.Data)
	}
	if got := w.texts("ada"); !slices.Equal(got, []string{"summary", "parked", "summary"}) {
		t.Errorf("the payer reads %q", got)
	}
	words, err := replay.Verify(list[0], func(s flow.Say, _ time.Time) string { return s.Key })
	w.must(err)
	if words.Worst() != replay.Same && words.Worst() != replay.CopyOnly {
		t.Errorf("decided again: %+v", words.Differences)
	}
}

// An edit that did something did it: the next edit of the same message is only kept.
func TestAnEditThatDidSomethingIsDone(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]flow.Intent{"a word": {Kind: flow.MeansNothing, Text: "pya"}, "a code": {Kind: flow.MeansCode, Code: "JKP6HHEZ"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			first, second := w.session(flow.InChat), w.session(flow.InChat)
			w.must(w.hears("ada", "WRONG", wrong))
			w.edit("RIGHT", "WRONG", code(first))
			w.edit("AGAIN", "WRONG", code(second))
			w.hear("ada", method(flow.BankTransfer))
			if opened, other := w.attempts(first.ID), w.attempts(second.ID); len(opened) != 1 || len(other) != 0 {
				t.Errorf("of the payment that the first edit opened %+v, of the other %+v", opened, other)
			}
			w.must(w.hears("ada", "TYPO", flow.Intent{Kind: flow.MeansNothing, Text: "crad"}))
			w.edit("CARD", "TYPO", method(flow.Card))
			said := w.texts("ada")
			w.edit("USSD", "TYPO", method(flow.USSD))
			if now := w.texts("ada"); !slices.Equal(now, said) {
				t.Errorf("to the second edit of a message the payer reads %q", now[len(said):])
			}
		})
	}
}
