package checkout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// toldOf tells a line of the log, and what was said by it.
func toldOf(l store.Line) []Moment {
	m := Moment{At: l.At, Who: "till", What: l.Kind}
	switch {
	case l.Kind == replay.Heard:
		var t flow.Turn
		if json.Unmarshal(l.Data, &t) == nil && t.Heard != nil {
			m.Who, m.What, m.Why = "payer", wrote(t), understood(*t.Heard)
			if t.Heard.Kind == flow.MeansTakeover {
				m.Who = replay.Agent
			}
			if t.Of != 0 {
				m.Why += fmt.Sprintf(", of #%d", t.Of)
			}
		}
	case l.Kind == replay.News:
		var t flow.Turn
		if json.Unmarshal(l.Data, &t) == nil && t.News != nil {
			m.What, m.Why = "news for the chat: "+string(t.News.Kind), t.News.Reason
			if t.News.By != "" {
				m.Who, m.What = t.News.By, string(t.News.Kind)
			}
		}
	case l.Kind == replay.Decided:
		return tellDecision(l)
	case ofMessage(l.Kind):
		m.Who, m.What, m.Why = "whatsapp", "message "+l.Kind, l.Message
		var because unsentBecause
		if json.Unmarshal(l.Data, &because) == nil && because.Reason != "" {
			m.Why += ": " + because.Reason
		}
	case strings.HasPrefix(l.Kind, "bank."):
		m.Who = "bank"
		m.What = tellBank(l)
	case l.Kind == cancelled:
		m.Who, m.What, m.Why = "merchant", "cancelled", "by "+byOf(l)
	case l.Kind == expired:
		m.Who, m.What, m.Why = "merchant", "expired", "by "+byOf(l)
		switch byOf(l) {
		case flow.ByClock:
			m.Who, m.Why = flow.ByClock, "its time was over at "+endOf(l)
		case flow.ByOperator:
			m.Who = "till"
		}
	default:
		m.What, m.Why = l.Kind, compact(l.Data)
	}
	return []Moment{m}
}

// byOf is the id of the key that a session was cancelled with, or what ended its time.
func byOf(l store.Line) string {
	var c cancelledBy
	if json.Unmarshal(l.Data, &c) != nil {
		return ""
	}
	return c.By
}

// endOf is when a session's time was over.
func endOf(l store.Line) string {
	var e expiredBy
	if json.Unmarshal(l.Data, &e) != nil {
		return ""
	}
	return e.Until
}

// wrote is what a payer sent, and as what.
func wrote(t flow.Turn) string {
	marks := replay.Marks(t)
	if t.Heard.Text == "" && marks != "" {
		return strings.TrimSpace(marks)
	}
	return marks + strconv.Quote(t.Heard.Text)
}

// understood is what a message was taken for.
func understood(in flow.Intent) string {
	how := "understood as"
	if in.Guess {
		how = "guessed to be"
	}
	parts := []string{how, string(in.Kind), string(in.Method), in.Bank, string(in.Lang)}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}

func tellDecision(l store.Line) []Moment {
	var d replay.Outcome
	if err := json.Unmarshal(l.Data, &d); err != nil {
		return []Moment{{At: l.At, Who: "till", What: "a decision that cannot be read", Why: err.Error()}}
	}
	state := "no session"
	if t, ok := d.Chat.Talk(l.Session); ok {
		state = string(t.State)
	}
	story := []Moment{{At: l.At, Who: "till", What: "→ " + state, Why: d.Why}}
	for i, text := range d.Texts {
		m := Moment{At: l.At, Who: "bot", What: text.Text, Why: d.Says[i].Key}
		if m.Why == replay.SayAgent {
			m.Who = cmp.Or(d.Chat.Desk.By, replay.Agent)
		}
		story = append(story, m)
	}
	return story
}
