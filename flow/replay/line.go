package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"till/flow"
)

// The kinds of line that a replay reads; there are others, which tell of the
// bank and of webhooks.
const (
	Heard     = "heard"   // a payer's message, with all that its decision depended on
	News      = "news"    // something that happened, likewise
	Decided   = "decided" // what came of the line before it
	Sent      = "sent"    // a message of ours left
	Delivered = "delivered"
	Read      = "read"
	Failed    = "failed" // it was given up
)

// Line is one line of a chat's log.
type Line struct {
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	Cause   int64           `json:"cause,omitempty"` // the line that led to it
	Session flow.SessionID  `json:"session,omitempty"`
	Message string          `json:"message,omitempty"` // WhatsApp's id
	Data    json.RawMessage `json:"data"`
}

// Outcome is what a turn came to, as its line of the log keeps it.
type Outcome struct {
	flow.Decision

	Texts []Text `json:"texts,omitempty"`
	Rules int    `json:"rules"`           // flow.RulesVersion that decided
	Copy  string `json:"copy,omitempty"`  // version of the words
	Build string `json:"build,omitempty"` // of the program
}

// Text is one message to the payer, as it was sent.
type Text struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Recording is one chat's log.
type Recording struct {
	Chat  flow.ChatID
	Lines []Line // by Seq
	Part  bool   // what others' payments did to the chat is left out
}

// turn is one turn of a recording: its cause, and what came of it.
type turn struct {
	cause, decided Line
	in             flow.Turn
	out            Outcome

	changed   string         // the message that this one changes, "" where it does not, or that is not known
	changedOf flow.SessionID // what that was about
}

// turns are the turns of a recording, in order.
func (r Recording) turns() ([]turn, error) {
	var all []turn
	for i, l := range r.Lines {
		if l.Kind != Decided {
			continue
		}
		t := turn{decided: l}
		c, found := slices.BinarySearchFunc(r.Lines[:i], l.Cause, func(x Line, seq int64) int { return cmp.Compare(x.Seq, seq) })
		if !found {
			return nil, fmt.Errorf("read line %d: its cause, line %d, is missing", l.Seq, l.Cause)
		}
		t.cause = r.Lines[c]
		if err := json.Unmarshal(t.cause.Data, &t.in); err != nil {
			return nil, fmt.Errorf("read line %d: %w", t.cause.Seq, err)
		}
		if err := json.Unmarshal(l.Data, &t.out); err != nil {
			return nil, fmt.Errorf("read line %d: %w", l.Seq, err)
		}
		if t.in.Heard == nil && t.in.News == nil {
			return nil, fmt.Errorf("read line %d: it does not hold what its decision depended on", t.cause.Seq)
		}
		if was, found := slices.BinarySearchFunc(all, t.in.Of, func(x turn, seq int64) int { return cmp.Compare(x.cause.Seq, seq) }); found && all[was].in.Heard != nil {
			t.changed, t.changedOf = all[was].said(), all[was].decided.Session
		}
		all = append(all, t)
	}
	return all, nil
}
