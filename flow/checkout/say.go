package checkout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/store"
)

// How long a message that cannot be sent is tried. What is older would only
// confuse whoever reads it, and holds back what came after it; but whoever paid
// must hear what became of it, however long our number was away.
const (
	sayWithin   = 24 * time.Hour
	moneyWithin = 30 * 24 * time.Hour
)

// The bounds of sending.
const (
	// maxRefusals is how often the network may refuse a message before it is
	// given up: some refusals pass, as one for haste.
	maxRefusals = 3
	// refusedFor is how long news of money waits then, unless its payer writes
	// sooner: from then on the network may take what it did not.
	refusedFor = 6 * time.Hour
	// answerWaits is how long an answer to its payer waits behind it.
	answerWaits = time.Minute
	// awayFor is how long news of money waits for its next try when others are
	// given up: a number that is away for a day may be away for weeks.
	awayFor = 10 * time.Minute
	// sayAtOnce is how many messages one piece of work sends.
	sayAtOnce = 50
)

// What becomes of a message of ours; delivered and read come as ticks.
const (
	statePending = "pending"
	stateSent    = "sent"
	stateFailed  = "failed" // given up, or taken back
)

// ErrUndeliverable says of a message that the network will not take it, however
// often it is tried.
var ErrUndeliverable = errors.New("checkout: the network does not take the message")

// NotYetError says of a message that it must not be sent before some time has
// passed. It is no failure: the message was not sent, keeps its place in its
// chat, and is asked about again then.
type NotYetError struct{ Wait time.Duration }

func (e *NotYetError) Error() string {
	return fmt.Sprintf("checkout: not to be sent before %v have passed", e.Wait)
}

// said logs what became of a message of ours, and why where there is a reason.
func (w *saving) said(said store.Said, state, reason string) error {
	line, err := w.tx.Line(w.ctx, string(said.Chat), said.Seq)
	if err != nil {
		return err
	}
	next := store.Line{Stream: string(said.Chat), At: w.now, Kind: state, Cause: said.Seq, Session: line.Session, Message: said.ID}
	if reason != "" {
		if next.Data, err = json.Marshal(unsentBecause{reason}); err != nil {
			return fmt.Errorf("log a message: %w", err)
		}
	}
	if state == stateFailed { // it answers nobody, and what is said next is no answer that took so long
		w.tx.After(func() { w.s.replies.end(said.Chat, w.now) })
	}
	return w.tx.Write(w.ctx, next)
}

// unsentBecause is what the log keeps beside a message that was given up.
type unsentBecause struct {
	Reason string `json:"reason"`
}

// owed is what a chat is owed.
type owed struct {
	row    store.ChatRow
	says   []store.Said // at most sayAtOnce
	spoken bool         // something was sent to it before
}

// owedLasts is how long what a commit knew of a chat is good enough to send by:
// what is withdrawn meanwhile would be sent all the same.
const owedLasts = time.Second

// outbox is what a chat is owed.
func outbox(ctx context.Context, r store.Reader, id flow.ChatID) (*owed, error) {
	o := owed{}
	var err error
	if o.row, err = r.Chat(ctx, id); err != nil {
		return nil, err
	}
	if o.says, err = r.Owed(ctx, id, sayAtOnce); err != nil || len(o.says) == 0 {
		return &o, err
	}
	o.spoken, err = r.Spoken(ctx, id)
	return &o, err
}

// say sends what a chat is owed, in order. Nothing is sent past a message that
// could not be, until that one is given up. What is owed while this is done is
// a task again.
func (s *Service) say(ctx context.Context, j job) error {
	o := j.owed
	if o == nil {
		var err error
		if o, err = outbox(ctx, s.cfg.DB.Reader, flow.ChatID(j.Subject)); err != nil {
			return err
		}
	}
	row, owed, spoken := o.row, o.says, o.spoken
	dropped := int64(0) // the turn whose other messages are not sent either
	for i, said := range owed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if said.Seq == dropped {
			continue
		}
		if i > 0 { // a person may have taken the chat over while the one before was sent
			now, found, err := s.cfg.DB.Said(ctx, said.ID)
			if err != nil {
				return err
			}
			if !found || now.State != statePending {
				continue
			}
		}
		if stale, err := s.stale(ctx, row, said, lasts(owed[:i])); err != nil {
			return err
		} else if stale {
			dropped = said.Seq
			continue
		}
		o := Outgoing{Number: row.Number, Person: row.Person, ID: said.ID, Text: said.Text, Money: money(owed[i:]), First: !spoken, Fades: row.Fades}
		if err := s.cfg.Send(ctx, o); err != nil {
			if err := s.unsent(ctx, said, err); err != nil {
				return err
			}
			dropped = said.Seq
			continue
		}
		crashpoint.At(crashpoint.TurnSaid)
		s.countSaid(said)
		last := i == len(owed)-1 && len(owed) < sayAtOnce
		keep := context.WithoutCancel(ctx)
		if last { // nothing of this chat waits for it: should it get lost, the same message is sent again
			keep = store.Soon(keep)
		}
		err := s.update(keep, func(w *saving) error {
			if err := w.sent(said); err != nil || !last {
				return err
			}
			return w.tx.EndTask(w.ctx, j.Work)
		})
		if err != nil {
			return err
		}
		if last {
			return errEnded
		}
		spoken = true
	}
	if len(owed) == sayAtOnce { // there may be more
		return &NotYetError{}
	}
	return nil
}

// stale withdraws a reminder that comes too late to be one, what waited too long
// behind news of money, and whatever is owed to somebody who was forgotten, with the
// rest of its turn.
func (s *Service) stale(ctx context.Context, to store.ChatRow, said store.Said, behind bool) (stale bool, err error) {
	age := s.cfg.Now().Sub(said.At)
	late, why := flow.Stale(said.Key, age), "it would have come too late"
	if Forgotten(to.Person) {
		late, why = true, "its payer was forgotten, and nobody knows where to send it"
	}
	if !late && (!behind || age < sayWithin) {
		return false, nil
	}
	err = s.update(context.WithoutCancel(ctx), func(w *saving) error {
		group, err := w.tx.Group(w.ctx, said.Chat, said.Seq)
		if stale = late || !lasts(group); err != nil || !stale {
			return err
		}
		return w.withdrawn(group, why)
	})
	return stale, err
}

// money says whether one of the messages that a chat is owed tells of money. If
// so, what must go out before it is in as much of a hurry.
func money(owed []store.Said) bool {
	return slices.ContainsFunc(owed, func(s store.Said) bool { return flow.MoneyNews(s.Key) })
}

// lasts says whether one of these messages is worth being read however late.
func lasts(list []store.Said) bool {
	return slices.ContainsFunc(list, func(s store.Said) bool { return flow.Lasts(s.Key) })
}

// sent keeps that a message of ours was sent.
func (w *saving) sent(said store.Said) error {
	moved, err := w.tx.MarkSaid(w.ctx, said.ID, stateSent)
	if err != nil || !moved {
		return err
	}
	return w.said(said, stateSent, "")
}

// unsent is what follows when a message was not sent: it is tried again, which
// the returned error asks for, or given up with the rest of its turn: what
// stands below a message that is missing could mislead. News of money that the
// network refuses waits for a word of its payer.
func (s *Service) unsent(ctx context.Context, said store.Said, why error) error {
	if _, later := errors.AsType[*NotYetError](why); later || ctx.Err() != nil {
		return why
	}
	why = fmt.Errorf("send message %s: %w", said.ID, why)
	keep := context.WithoutCancel(ctx)
	again, parked, away, answer, reason, lost := false, false, false, false, unsentLate, 0
	err := s.update(keep, func(w *saving) error {
		turn, err := w.tx.Group(w.ctx, said.Chat, said.Seq)
		if err != nil {
			return err
		}
		within, news := sayWithin, lasts(turn)
		if news {
			within = moneyWithin
		}
		age, refusals := w.now.Sub(said.At), said.Refusals+1
		refused := errors.Is(why, ErrUndeliverable)
		parked, answer = age < within && refused && news && refusals >= maxRefusals, false
		if parked { // it gives way to what its payer's last word is answered with
			if answer, err = w.answers(said); err != nil {
				return err
			}
			parked = refusals == maxRefusals || !answer
		}
		again = age < within && (!refused || refusals < maxRefusals || parked)
		away = again && !refused && age >= sayWithin
		if refused {
			reason = unsentRefused
		}
		lost = len(turn)
		switch {
		case !again:
			return w.unsaid(turn, said, why)
		case refused:
			return w.tx.RefuseSaid(w.ctx, said.ID)
		}
		return nil
	})
	about := []slog.Attr{slog.String("chat", string(said.Chat)), slog.String("message", said.ID), slog.String("error", why.Error())}
	switch {
	case err != nil:
		return errors.Join(why, err)
	case away:
		return &NotYetError{Wait: awayFor}
	case again && !parked:
		return why
	case parked:
		if said.Refusals+1 == maxRefusals { // once, however often it is tried now and then
			s.cfg.Meter.Unsent(unsentParked, lost)
		}
		s.cfg.Log.LogAttrs(keep, slog.LevelWarn, "the network does not take news of money: it waits for a word of its payer", about...)
		if answer {
			return &NotYetError{Wait: answerWaits}
		}
		return &NotYetError{Wait: refusedFor}
	}
	s.cfg.Meter.Unsent(reason, lost)
	s.cfg.Log.LogAttrs(keep, slog.LevelError, "a message to a payer is given up, and what was to follow it", about...)
	return nil
}

// answers says whether a chat is owed, behind a message, what its payer's last word
// is answered with.
func (w *saving) answers(said store.Said) (bool, error) {
	row, err := w.tx.Chat(w.ctx, said.Chat)
	if err != nil {
		return false, err
	}
	chat, err := w.stands(row)
	if err != nil {
		return false, err
	}
	owed, err := w.tx.Owed(w.ctx, said.Chat, sayAtOnce)
	return slices.ContainsFunc(owed, func(o store.Said) bool { return o.Seq > said.Seq && flow.Millis(o.At) == chat.Wrote }), err
}

// unsaid keeps that a message is given up, and the rest of its turn with it.
func (w *saving) unsaid(turn []store.Said, said store.Said, why error) error {
	for _, g := range turn {
		reason := "an earlier message of the same turn was not sent"
		if g.ID == said.ID {
			reason = why.Error()
		}
		if _, err := w.tx.MarkSaid(w.ctx, g.ID, stateFailed); err != nil {
			return err
		}
		if err := w.said(g, stateFailed, reason); err != nil {
			return err
		}
	}
	return nil
}
