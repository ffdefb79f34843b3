package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"till/flow"
)

// Step is one turn of a recording as people look at it: what came in, what was
// decided on it and why, and what the payer saw.
type Step struct {
	Seq     int64     // of the decision
	Cause   int64     // of the line that it was decided on
	At      time.Time // of that line
	Session flow.SessionID
	Heard   *flow.Intent // what a payer wrote, or
	News    *flow.News   // what happened

	Before, After         flow.TalkState // of Session; "" where the chat did not know it
	DeskBefore, DeskAfter flow.DeskState
	Why                   string // the rule that matched
	Effects               []flow.Effect
	Timers                []Timer // that ran afterwards, of Session and of the desk
	Bubbles               []Bubble

	In, Out json.RawMessage // both lines, without who the payer is and what was written
}

// Timer is when a chat does something by itself.
type Timer struct {
	Name string
	At   time.Time
}

// Bubble is one message on the payer's screen, and what became of it.
type Bubble struct {
	Shown

	ID     string    // WhatsApp's
	Reason string    // why it failed
	Sent   time.Time // zero for not yet
}

// Steps are the turns of a recording, in order: of the sessions that own says yes
// to, or all where it is nil. Nothing of other sessions is in them: a payer speaks
// of several merchants' payments in one chat. Errors: a line cannot be read.
func Steps(r Recording, own Owned) ([]Step, error) {
	turns, err := r.turns()
	if err != nil {
		return nil, err
	}
	became := r.receipts()
	var list []Step
	var before flow.Chat
	for _, t := range turns {
		if own == nil || own(t.decided.Session) {
			seen := t
			if own != nil {
				seen.in, seen.out = privateTurn(t.in, own), privateOutcome(t.out, own)
				if !own(t.changedOf) {
					seen.changed = ""
				}
			}
			s, err := seen.step(before)
			if err != nil {
				return nil, err
			}
			for i := range s.Bubbles {
				became[s.Bubbles[i].ID].on(&s.Bubbles[i])
			}
			list = append(list, s)
		}
		before = t.out.Chat
	}
	return list, nil
}

// receipts are the lines about what became of each message of ours, by its id.
type receipts []Line

func (r Recording) receipts() map[string]receipts {
	out := map[string]receipts{}
	for _, l := range r.Lines {
		if slices.Contains([]string{Sent, Delivered, Read, Failed}, l.Kind) {
			out[l.Message] = append(out[l.Message], l)
		}
	}
	return out
}

// on tells a bubble what became of it.
func (list receipts) on(b *Bubble) {
	for _, l := range list {
		b.State = l.Kind
		switch l.Kind {
		case Sent:
			b.Sent = l.At
		case Failed:
			var because struct{ Reason string }
			if json.Unmarshal(l.Data, &because) == nil {
				b.Reason = because.Reason
			}
		}
	}
}

// step is a turn as people look at it.
func (t turn) step(before flow.Chat) (Step, error) {
	s := Step{
		Seq: t.decided.Seq, Cause: t.cause.Seq, At: t.cause.At, Session: t.decided.Session, Heard: t.in.Heard, News: t.in.News,
		DeskBefore: before.Desk.State, DeskAfter: t.out.Chat.Desk.State, Why: t.out.Why,
	}
	was, _ := before.Talk(s.Session)
	is, _ := t.out.Chat.Talk(s.Session)
	s.Before, s.After = was.State, is.State
	for _, timer := range []struct {
		name string
		at   int64
	}{
		{"nudge", is.Timers.Nudge},
		{"remind", is.Timers.Remind},
		{"ask the bank", is.Timers.Poll},
		{"close", is.Timers.Close},
		{"hand-off", t.out.Chat.Desk.Due},
	} {
		if timer.at != 0 {
			s.Timers = append(s.Timers, Timer{timer.name, flow.FromMillis(timer.at)})
		}
	}
	slices.SortStableFunc(s.Timers, func(a, b Timer) int { return a.At.Compare(b.At) })
	s.Effects, s.Bubbles = t.out.Effects, t.bubbles()
	err := s.raw(t)
	return s, err
}

// bubbles are the messages of a turn.
func (t turn) bubbles() []Bubble {
	var out []Bubble
	for i, shown := range t.shown(nil) {
		b := Bubble{Shown: shown, ID: t.cause.Message}
		n := i // of our messages
		if t.in.Heard != nil {
			n--
		}
		if n >= 0 {
			b.ID = t.out.Texts[n].ID
		}
		out = append(out, b)
	}
	return out
}

// raw keeps both lines of a turn as JSON, without who the payer is and what was
// written.
func (s *Step) raw(t turn) error {
	var err error
	if s.In, err = json.MarshalIndent(redactedTurn(t.in), "", "  "); err != nil {
		return fmt.Errorf("show line %d: %w", s.Cause, err)
	}
	out := redactedOutcome(t.out)
	out.Chat = redactedChat(out.Chat)
	if s.Out, err = json.MarshalIndent(out, "", "  "); err != nil {
		return fmt.Errorf("show line %d: %w", s.Seq, err)
	}
	return nil
}
