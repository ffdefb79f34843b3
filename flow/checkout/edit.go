package checkout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// changes finds the message that another one takes back or takes the place of. Of
// one that did something already, as it was written or as it was edited since, an edit
// is a note: it is only kept, with what that one was about, as is that it was taken
// back. One that was not understood may be said better, and a secret must be taken
// back wherever it was typed.
func (w *saving) changes(row store.ChatRow, t *flow.Turn) error {
	changed := cmp.Or(t.Edits, t.Revokes)
	if changed == "" {
		return nil
	}
	line, found, err := w.tx.HeardLine(w.ctx, row.ID, changed)
	if err != nil || !found {
		return err
	}
	t.Of = line.Seq
	if t.Edits != "" && t.Heard.Kind != flow.MeansSecret {
		did, found, err := w.acted(line, changed)
		if err != nil {
			return err
		}
		if found {
			line = did
			t.Heard = &flow.Intent{Kind: flow.MeansNote, Text: t.Heard.Text, By: t.Heard.By}
		}
	}
	if t.Heard.Kind == flow.MeansNote {
		t.About = line.Session
	}
	return nil
}

// maxEditedLines is how many lines of the log behind a message it is looked for edits
// of it: payers can make some for a quarter of an hour.
const maxEditedLines = 300

// acted is the line of a message, or of an edit of it, that did something.
func (w *saving) acted(heard store.Line, message string) (did store.Line, found bool, err error) {
	behind, err := w.tx.LinesBehind(w.ctx, heard.Stream, heard.Seq, maxEditedLines)
	if err != nil {
		return did, false, err
	}
	for _, line := range append([]store.Line{heard}, behind...) {
		if line.Kind != replay.Heard {
			continue
		}
		var t flow.Turn
		if err := json.Unmarshal(line.Data, &t); err != nil {
			return did, false, fmt.Errorf("read an edited message: %w", err)
		}
		if line.Seq != heard.Seq && t.Edits != message {
			continue
		}
		if consumed, err := w.consumed(line, t); err != nil || consumed {
			return line, consumed, err
		}
	}
	return did, false, nil
}

// consumed says whether a message did something.
func (w *saving) consumed(heard store.Line, t flow.Turn) (bool, error) {
	switch {
	case t.Heard == nil, t.Off: // or it came to a number that was switched off
		return false, nil
	case t.Heard.Kind == flow.MeansCode:
		return w.opened(heard, t.ByCode)
	}
	return !slices.Contains([]flow.IntentKind{flow.MeansNothing, flow.MeansMaybe, flow.MeansThanks, flow.MeansWait, flow.MeansTerms, flow.MeansMenu}, t.Heard.Kind), nil
}

// opened says whether an entry code led to a session that can still come to
// something: who mistyped it, or took that of another payment, may say it better.
func (w *saving) opened(heard store.Line, session flow.SessionID) (bool, error) {
	if session == "" {
		return false, nil
	}
	line, err := w.tx.Line(w.ctx, heard.Stream, heard.Seq+1)
	if notFound(err) || err == nil && line.Cause != heard.Seq { // nobody answered it
		return false, nil
	} else if err != nil {
		return false, err
	}
	var d replay.Outcome
	if err := json.Unmarshal(line.Data, &d); err != nil {
		return false, fmt.Errorf("read what became of an edited message: %w", err)
	}
	talk, _ := d.Chat.Talk(session)
	return d.Chat.Focus == session && talk.State != flow.Closed, nil
}
