package replay

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"till/flow"
)

// Shown is one message on the payer's screen.
type Shown struct {
	At        time.Time
	FromPayer bool
	By        string // of one that the bot did not write: the agent's name, or Agent where none is known
	Text      string
	State     string // of one of ours: sent, delivered, read or typed
}

// Agent is an agent whose name is not known.
const Agent = "agent"

// The states of what no line tells the fate of.
const (
	fromPayer = "written" // by the payer, who has it on the screen
	Typed     = "typed"   // by somebody on the phone of our number
)

// shown are the messages of one turn.
func (t turn) shown(became map[string]string) []Shown {
	var out []Shown
	switch in := t.in.Heard; {
	case in == nil:
	case in.Kind == flow.MeansTakeover:
		out = append(out, Shown{At: t.cause.At, By: Agent, Text: t.heard(), State: Typed})
	default:
		out = append(out, Shown{At: t.cause.At, FromPayer: true, Text: t.heard(), State: fromPayer})
	}
	for i, text := range t.out.Texts {
		s := Shown{At: t.decided.At, Text: text.Text, State: became[text.ID]}
		if i < len(t.out.Says) && t.out.Says[i].Key == SayAgent {
			s.By = Agent
			if t.in.News != nil {
				s.By = cmp.Or(t.in.News.By, Agent)
			}
		}
		out = append(out, s)
	}
	return out
}

// heard is what came in, as people read it.
func (t turn) heard() string {
	was := ""
	if t.changed != "" {
		was = "“" + Quoted(t.changed) + "”"
	}
	if t.in.Revokes != "" {
		return strings.TrimSuffix("(took back a message: "+was, ": ") + ")"
	}
	if was != "" {
		return t.said() + " (was " + was + ")"
	}
	return t.said()
}

// said is what came in, without what was there before.
func (t turn) said() string {
	return cmp.Or(strings.TrimSpace(Marks(t.in)+t.in.Heard.Text), "("+string(t.in.Heard.Kind)+")")
}

// Marks say what a message is beside its text: that it takes the place of another
// one, and what came with it.
func Marks(t flow.Turn) string {
	marks := ""
	if t.Edits != "" {
		marks = "(edited) "
	}
	if t.Came != "" {
		marks += fmt.Sprintf("[%s] ", t.Came)
	}
	return marks
}

// longestQuote is how much is quoted of a message where another one changes it, or
// only its fate is told.
const longestQuote = 40

// Quoted is the beginning of a message.
func Quoted(text string) string {
	first, _, more := strings.Cut(text, "\n")
	if runes := []rune(first); len(runes) > longestQuote {
		first, more = string(runes[:longestQuote]), true
	}
	if more {
		first += "…"
	}
	return first
}

// Conversation is what the payer wrote and what was said to them, in order; of
// one session alone where it is named, because a payer speaks of other merchants'
// payments in the same chat. The state of a message that has not left is "not
// sent".
func Conversation(r Recording, session flow.SessionID) ([]Shown, error) {
	turns, err := r.turns()
	if err != nil {
		return nil, err
	}
	became := r.became()
	var out []Shown
	for _, t := range turns {
		if session != "" && t.decided.Session != session {
			continue
		}
		if session != "" && t.changedOf != session {
			t.changed = ""
		}
		for _, s := range t.shown(became) {
			s.State = cmp.Or(s.State, "not sent")
			out = append(out, s)
		}
	}
	return out, nil
}
