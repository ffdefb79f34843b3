package main

import (
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// momentJSON is one line of a story, for programs.
type momentJSON struct {
	At   string `json:"at"`
	Who  string `json:"who"`
	What string `json:"what"`
	Why  string `json:"why"`
	Line string `json:"line,omitempty"`
}

func storyJSON(story []checkout.Moment) []momentJSON {
	out := make([]momentJSON, 0, len(story))
	for _, m := range story {
		out = append(out, momentJSON{flow.Stamp(m.At), m.Who, m.What, m.Why, m.Line})
	}
	return out
}

// reportJSON is what came of deciding a chat again, for programs.
type reportJSON struct {
	Chat        flow.ChatID      `json:"chat"`
	Turns       int              `json:"turns"`
	Texts       int              `json:"texts"`
	Gone        int              `json:"gone"` // texts that are not kept any more
	Verdict     replay.Verdict   `json:"verdict"`
	Rules       []int            `json:"rules"`
	Copies      []string         `json:"copies"`
	Differences []differenceJSON `json:"differences"`
}

type differenceJSON struct {
	Line    int64          `json:"line"`
	At      string         `json:"at"`
	Cause   string         `json:"cause"`
	Verdict replay.Verdict `json:"verdict"`
	Was     string         `json:"was"`
	Is      string         `json:"is"`
}

func recordReport(r replay.Report) reportJSON {
	out := reportJSON{r.Chat, r.Turns, r.Texts, r.Gone, r.Worst(), r.Rules, r.Copies, make([]differenceJSON, 0, len(r.Differences))}
	for _, d := range r.Differences {
		out.Differences = append(out.Differences, differenceJSON{d.Seq, flow.Stamp(d.At), d.Cause, d.Verdict, d.Was, d.Is})
	}
	return out
}

// standJSON is how a conversation stood after a line, for programs.
type standJSON struct {
	Chat      flow.ChatID    `json:"chat"`
	Line      int64          `json:"line"`
	At        string         `json:"at"`
	Why       string         `json:"why"`
	Desk      string         `json:"desk"`
	Sessions  []talkJSON     `json:"sessions"`
	NextTimer *string        `json:"nextTimer"`
	Live      []payableJSON  `json:"live"`
	Screen    []sentenceJSON `json:"screen"`
	Pending   []string       `json:"pending"`
}

type talkJSON struct {
	Session flow.SessionID `json:"session"`
	State   string         `json:"state"`
	Focus   bool           `json:"focus"`
}

type payableJSON struct {
	Attempt     flow.AttemptID `json:"attempt"`
	Method      flow.Method    `json:"method"`
	AmountMinor string         `json:"amountMinor"`
	ExpiresAt   string         `json:"expiresAt"`
}

type sentenceJSON struct {
	At        string `json:"at,omitempty"`
	FromPayer bool   `json:"fromPayer"`
	By        string `json:"by,omitempty"` // the agent who wrote it, where it was neither the payer nor the bot
	State     string `json:"state"`
	Text      string `json:"text"`
}

func recordStand(r replay.Recording, line int64) (standJSON, error) {
	m, err := replay.At(r, line)
	if err != nil {
		return standJSON{}, err
	}
	out := standJSON{
		Chat: r.Chat, Line: m.Seq, At: flow.Stamp(m.At), Why: m.Why, Desk: string(m.Chat.Desk.State), NextTimer: flow.StampOrNull(m.Due),
		Sessions: []talkJSON{}, Live: []payableJSON{}, Screen: []sentenceJSON{}, Pending: []string{},
	}
	for _, t := range m.Chat.Talks {
		out.Sessions = append(out.Sessions, talkJSON{t.Session, string(t.State), t.Session == m.Chat.Focus})
	}
	for _, a := range m.Live {
		out.Live = append(out.Live, payableJSON{a.ID, a.Method, a.Amount.Minor(), flow.Stamp(a.ExpiresAt)})
	}
	for _, s := range m.Screen {
		out.Screen = append(out.Screen, sentenceJSON{FromPayer: s.FromPayer, By: s.By, State: s.State, Text: s.Text})
	}
	for _, s := range m.Pending {
		out.Pending = append(out.Pending, s.Text)
	}
	return out, nil
}

// conversationJSON is what the payer wrote and read, for programs.
type conversationJSON struct {
	Chat  flow.ChatID    `json:"chat"`
	Lines []sentenceJSON `json:"lines"`
}

func recordConversation(r replay.Recording, session flow.SessionID) (conversationJSON, error) {
	lines, err := replay.Conversation(r, session)
	out := conversationJSON{Chat: r.Chat, Lines: make([]sentenceJSON, 0, len(lines))}
	for _, l := range lines {
		out.Lines = append(out.Lines, sentenceJSON{l.At.UTC().Format(time.RFC3339Nano), l.FromPayer, l.By, l.State, l.Text})
	}
	return out, err
}

// asJSON does what was asked for with the chats of a conversation, for programs.
func (c *replayCmd) asJSON(w *world, list []replay.Recording, tell func() ([]checkout.Moment, error)) error {
	switch {
	case c.At != nil:
		return recordEach(w, list, func(r replay.Recording) (standJSON, error) { return recordStand(r, *c.At) })
	case c.Text:
		return recordEach(w, list, func(r replay.Recording) (conversationJSON, error) { return recordConversation(r, c.session()) })
	}
	story, err := tell()
	if err != nil {
		return err
	}
	return printJSON(w, storyJSON(story))
}

// recordEach prints one array with what is made of each chat.
func recordEach[T any](w *world, list []replay.Recording, of func(replay.Recording) (T, error)) error {
	all := make([]T, 0, len(list))
	for _, r := range list {
		one, err := of(r)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return printJSON(w, all)
}
