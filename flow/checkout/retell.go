package checkout

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/replay"
	"till/flow/store"
)

// The bounds of a conversation that is told again.
const (
	maxRetold   = 6_000 // lines of its log
	maxSessions = 50    // whose money and webhooks are told with it, the newest
)

// What surprises whoever looks at a conversation again.
const (
	longAnswer = 10 * time.Second // between a message and what was said to it
	longGap    = 10 * time.Minute // in which nothing happened
)

// Scene is one turn of a conversation with all that happened from it to the
// next one.
type Scene struct {
	replay.Step

	N          int    // counts the scenes that are shown, from 1
	Told       Moment // what happened, told, where no payer wrote
	Calls      []BankCall
	Around     []Moment // what the bank and the clock told, and events
	Entries    []flow.Entry
	Tries      []store.Tried
	Surprises  []string // why somebody should look here
	Difference *replay.Difference
}

// BankCall is a call to the bank: that it was begun, or how it ended.
type BankCall struct {
	At      time.Time
	What    string
	Took    time.Duration // 0 for one that begins
	Outcome string        // "" for one that begins
	Failed  bool
}

// Retelling is a conversation told again, and whether it would be decided again
// as it was.
type Retelling struct {
	Scenes []Scene
	Report replay.Report
	Long   bool // the log is too long to be decided again here; what is told is its end
}

// Matches says whether every turn came out as it did.
func (r Retelling) Matches() bool { return !r.Long && r.Report.Worst() == replay.Same }

// Retell tells a chat again, of one session where that is named. Of what is not
// the project's nothing is told; "" sees all. Errors: resource_not_found.
func (s *Service) Retell(ctx context.Context, project flow.ProjectID, chat flow.ChatID, session flow.SessionID) (Retelling, error) {
	row, err := s.chatOf(ctx, project, chat)
	if err != nil {
		return Retelling{}, err
	}
	out, rec, err := s.recorded(ctx, row, maxRetold)
	if err != nil {
		return out, err
	}
	own, err := s.ownIn(ctx, project, session, rec)
	if err != nil {
		return out, err
	}
	steps, err := replay.Steps(rec, own)
	if err != nil {
		return out, err
	}
	out.Scenes = make([]Scene, len(steps))
	for i, step := range steps {
		out.Scenes[i] = Scene{Step: step, N: i + 1}
	}
	if !out.Long {
		if out.Report, err = replay.Verify(rec, s.cfg.Words); err != nil {
			return out, err
		}
	}
	out.around(rec, own)
	if err := out.money(ctx, s.cfg.DB.Reader); err != nil {
		return out, err
	}
	out.surprises()
	return out, nil
}

// recorded reads a chat's log, or the end of it where it is longer than most.
func (s *Service) recorded(ctx context.Context, row store.ChatRow, most int) (Retelling, replay.Recording, error) {
	out, rec := Retelling{}, replay.Recording{Chat: row.ID}
	lines, err := s.cfg.DB.StreamEnd(ctx, string(row.ID), most)
	if err != nil {
		return out, rec, err
	}
	if len(lines) > 0 {
		out.Long = lines[0].Seq != 1
	}
	for _, l := range lines {
		if out.Long && l.Kind == replay.Decided && l.Cause < lines[0].Seq {
			continue // its cause is not among them
		}
		rec.Lines = append(rec.Lines, replay.Line{Seq: l.Seq, At: l.At, Kind: l.Kind, Cause: l.Cause, Session: l.Session, Message: l.Message, Data: l.Data})
	}
	return out, rec, nil
}

// ownIn says which sessions of a recording are told of; nil for all.
func (s *Service) ownIn(ctx context.Context, project flow.ProjectID, session flow.SessionID, rec replay.Recording) (func(flow.SessionID) bool, error) {
	if session != "" {
		return func(id flow.SessionID) bool { return id == session }, nil
	}
	if project == "" {
		return nil, nil // nobody is left out
	}
	var ids []flow.SessionID
	for _, l := range rec.Lines {
		if l.Session != "" && !slices.Contains(ids, l.Session) {
			ids = append(ids, l.Session)
		}
	}
	owned, err := s.OwnedSessions(ctx, project, ids)
	return func(id flow.SessionID) bool { return owned[id] }, err
}

// at is the scene that a moment belongs to: the last that had begun by then.
func (r *Retelling) at(t time.Time) *Scene {
	i, _ := slices.BinarySearchFunc(r.Scenes, t, func(s Scene, t time.Time) int {
		if s.At.After(t) {
			return 1
		}
		return -1
	})
	return &r.Scenes[max(i-1, 0)]
}

// around tells each scene of the lines that belong to it.
func (r *Retelling) around(rec replay.Recording, own func(flow.SessionID) bool) {
	if len(r.Scenes) == 0 {
		return
	}
	for i := range r.Scenes {
		if s := &r.Scenes[i]; s.News != nil {
			s.Told = toldNews(*s.News)
		}
	}
	for _, l := range rec.Lines {
		if ofChat(l.Kind) || own != nil && !own(l.Session) {
			continue
		}
		scene := r.at(l.At)
		if strings.HasPrefix(l.Kind, "rail.") {
			scene.Calls = append(scene.Calls, bankCall(l))
			continue
		}
		line := store.Line{At: l.At, Seq: l.Seq, Kind: l.Kind, Session: l.Session, Data: l.Data}
		moments := tellLine(line)
		if told := (teller{}).line(line); len(moments) > 0 && !strings.HasSuffix(told, wordless) { // nothing stands below it here
			moments[0].Told = told
		}
		scene.Around = append(scene.Around, moments...)
	}
	for _, d := range r.Report.Differences {
		for j := range r.Scenes {
			if r.Scenes[j].Seq != d.Seq {
				continue
			}
			if own != nil {
				d = d.Private(r.Scenes[j].Step, own)
			}
			r.Scenes[j].Difference = &d
		}
	}
}

// toldNews says for people what happened outside a chat.
func toldNews(n flow.News) Moment {
	m := Moment{Who: "till", What: strings.ReplaceAll(string(n.Kind), "_", " "), Why: n.Reason}
	if money := n.Money(); money > 0 {
		m.What += " " + money.Naira()
	}
	if n.By != "" {
		m.Who = n.By
	}
	if n.Kind == flow.NewsReply { // it is in the bubble
		m.Why = ""
	}
	return m
}

// bankCall reads a line about a call to the bank.
func bankCall(l replay.Line) BankCall {
	var kept railLine
	call := BankCall{At: l.At, What: "call"}
	if json.Unmarshal(l.Data, &kept) != nil {
		return call
	}
	subject := string(kept.Attempt) + string(kept.Refund)
	if l.Kind == "rail.call" {
		call.What = strings.TrimSpace(strings.Join([]string{kept.Operation, string(kept.Method), subject}, " "))
		return call
	}
	call.What, call.Outcome, call.Took = "answer about "+subject, kept.Outcome, time.Duration(kept.Millis)*time.Millisecond
	call.Failed = !slices.Contains([]string{"ok", string(flow.DisbursementPending), string(flow.DisbursementDone)}, kept.Outcome)
	return call
}

// money tells each scene what was posted and which webhooks were sent.
func (r *Retelling) money(ctx context.Context, reader store.Reader) error {
	var ids []flow.SessionID
	for _, s := range slices.Backward(r.Scenes) {
		if s.Session != "" && !slices.Contains(ids, s.Session) && len(ids) < maxSessions {
			ids = append(ids, s.Session)
		}
	}
	for _, id := range ids {
		posted, err := reader.Ledger(ctx, id)
		if err != nil {
			return err
		}
		for _, e := range posted {
			scene := r.at(e.At)
			scene.Entries = append(scene.Entries, e)
		}
		tries, err := reader.Tries(ctx, id, maxTriesTold)
		if err != nil {
			return err
		}
		for _, t := range tries {
			scene := r.at(t.At)
			scene.Tries = append(scene.Tries, t)
		}
	}
	return nil
}

// surprises marks where somebody should look.
func (r *Retelling) surprises() {
	for i := range r.Scenes {
		s := &r.Scenes[i]
		mark := func(format string, args ...any) { s.Surprises = append(s.Surprises, fmt.Sprintf(format, args...)) }
		if s.Difference != nil {
			mark("it would be decided otherwise now: %s", s.Difference.Verdict)
		}
		if i > 0 && s.At.Sub(r.Scenes[i-1].At) >= longGap {
			mark("nothing happened for %s before it", s.At.Sub(r.Scenes[i-1].At).Round(time.Minute))
		}
		if h := s.Heard; h != nil && s.DeskAfter != flow.DeskClaimed && s.DeskAfter != flow.DeskDevice { // else a person reads it
			switch {
			case h.Kind == flow.MeansNothing:
				mark("it was not understood")
			case s.Before == s.After && s.DeskBefore == s.DeskAfter && len(s.Bubbles) < 2 && len(s.Effects) == 0 && h.Kind != flow.MeansNote && h.Kind != flow.MeansTakeover:
				mark("nothing came of it: %s", s.Why)
			}
		}
		for _, b := range s.Bubbles {
			switch {
			case b.State == replay.Failed:
				mark("a message was given up: %s", b.Reason)
			case !b.FromPayer && !b.Sent.IsZero() && b.Sent.Sub(s.At) >= longAnswer:
				mark("a message left only after %s", b.Sent.Sub(s.At).Round(time.Second))
			}
		}
		answers := map[string]int{}
		for _, c := range s.Calls {
			if c.Failed {
				mark("the bank did not do it: %s", c.Outcome)
			}
			if answers[c.What]++; answers[c.What] == 2 {
				mark("the bank was called again")
			}
		}
		for _, t := range s.Tries {
			if t.Status < http.StatusOK || t.Status >= http.StatusMultipleChoices {
				mark("a webhook was not taken")
			} else if t.N > 1 {
				mark("a webhook was sent again")
			}
		}
	}
}
