package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"till/flow"
)

// A payer speaks of several merchants' payments in one chat, and a decision is
// kept with all that it depended on. This file leaves of that what one of the
// merchants may see.

// Owned says of a session whether it is of whoever looks.
type Owned func(flow.SessionID) bool

// elsewhere stands for a message about a payment of somebody else's.
const elsewhere = "(of another payment)"

// keptForLater is the message that names two payments: the one that is spoken of
// now, and the one that is kept.
const keptForLater = "parked"

// Part is a recording without what is not of the sessions that own says yes to.
// One that is of no other sessions is left as it is; of another the lines that
// belong to no session are left out too, and it cannot be decided again.
func Part(r Recording, own Owned) (Recording, error) {
	whole := func(l Line) bool { return l.Session == "" || own(l.Session) }
	if !slices.ContainsFunc(r.Lines, func(l Line) bool { return !whole(l) || mentions(l.Data, own) }) {
		return r, nil
	}
	out := Recording{Chat: r.Chat, Part: true}
	for _, l := range r.Lines {
		if l.Session == "" || !own(l.Session) {
			continue
		}
		data, err := Private(l.Kind, l.Data, own)
		if err != nil {
			return out, fmt.Errorf("read line %d: %w", l.Seq, err)
		}
		l.Data = data
		out.Lines = append(out.Lines, l)
	}
	return out, nil
}

// Private is what a line of a chat's log holds, without other sessions than
// those that own says yes to.
func Private(kind string, data json.RawMessage, own Owned) (json.RawMessage, error) {
	if !mentions(data, own) {
		return data, nil
	}
	var kept any
	switch kind {
	case Heard, News:
		var t flow.Turn
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, fmt.Errorf("read a turn: %w", err)
		}
		kept = privateTurn(t, own)
	case Decided:
		var o Outcome
		if err := json.Unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("read a decision: %w", err)
		}
		kept = privateOutcome(o, own)
	default:
		kept = struct{}{}
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil, fmt.Errorf("keep a part of a line: %w", err)
	}
	return text, nil
}

// mentions says whether a text names a session that is not one of own's. Nothing
// of a session stands in a line that does not name it.
func mentions(text []byte, own Owned) bool {
	for {
		i := bytes.Index(text, []byte(flow.PrefixSession))
		if i < 0 {
			return false
		}
		text = text[i:]
		n := len(flow.PrefixSession)
		for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] >= 'a' && text[n] <= 'z') {
			n++
		}
		if !own(flow.SessionID(text[:n])) {
			return true
		}
		text = text[n:]
	}
}

// only is a session that own says yes to, "" for another.
func only(id flow.SessionID, own Owned) flow.SessionID {
	if own(id) {
		return id
	}
	return ""
}

func privateTurn(t flow.Turn, own Owned) flow.Turn {
	all := t.Checkouts
	t.Checkouts = map[flow.SessionID]flow.Checkout{}
	for id, co := range all {
		if own(id) {
			t.Checkouts[id] = co
		}
	}
	t.About, t.ByCode, t.Quoted = only(t.About, own), only(t.ByCode, own), only(t.Quoted, own)
	t.Kin = slices.DeleteFunc(slices.Clone(t.Kin), func(id flow.ChatID) bool { // that they paid another merchant too
		for _, co := range t.Checkouts {
			if slices.ContainsFunc(co.Attempts, func(a flow.Attempt) bool { return a.Chat == id }) {
				return false
			}
		}
		return true
	})
	return t
}

func privateOutcome(o Outcome, own Owned) Outcome {
	foreign := func(t flow.Talk) bool { return !own(t.Session) }
	shared := slices.ContainsFunc(o.Chat.Talks, foreign)
	o.Chat.Talks = slices.DeleteFunc(slices.Clone(o.Chat.Talks), foreign)
	if o.Chat.Focus != "" && !own(o.Chat.Focus) { // who answers, and why, is another's matter too
		o.Chat.Focus, o.Chat.Desk.By, o.Chat.Flag = "", "", ""
	}
	o.Chat.Desk.About = only(o.Chat.Desk.About, own)
	o.Effects = slices.DeleteFunc(slices.Clone(o.Effects), func(e flow.Effect) bool { return !own(e.Session) })
	o.Says, o.Texts = slices.Clone(o.Says), slices.Clone(o.Texts)
	for i := range o.Says {
		if !shared || o.Says[i].Key != keptForLater {
			continue
		}
		o.Says[i].Args = nil
		if i < len(o.Texts) {
			o.Texts[i].Text = elsewhere
		}
	}
	return o
}

// Private is a difference as those may see it whom the sessions that own says yes
// to are of: where the turn names others, what differs is not told.
func (d Difference) Private(s Step, own Owned) Difference {
	hides := slices.ContainsFunc(s.Bubbles, func(b Bubble) bool { return b.Text == elsewhere })
	if hides || mentions([]byte(d.Was+" "+d.Is), own) {
		d.Was, d.Is = elsewhere, elsewhere
	}
	return d
}
