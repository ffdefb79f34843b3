package checkout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/planted"
	"till/flow/replay"
	"till/flow/store"
)

// Hear takes in a payer's message. When it returns nil the message and all it
// led to are kept, and WhatsApp may be told that it was received. However often
// a message comes, it is heard once.
func (s *Service) Hear(ctx context.Context, in Inbound) error {
	// A message that comes again is the same work.
	ctx = flow.WithTrace(ctx, flow.NewTrace(in.Number+"/"+in.Person+"/"+in.Message))
	ctx = store.Unhurried(ctx) // what is turned away comes again, over a new line
	err := s.update(ctx, func(w *saving) error {
		row, err := w.chat(in)
		if err != nil {
			return err
		}
		if known, err := w.tx.Heard(ctx, row.ID, in.Message); planted.HeardTwice && known {
			in.Message += "'"
		} else if known || err != nil {
			return err
		}
		if own, err := w.echo(row, in); own || err != nil {
			return err
		}
		t := flow.Turn{Heard: &in.Intent, Fades: row.Fades > 0, Wrote: w.wrote(in), Came: in.Came, Edits: in.Edits, Revokes: in.Revokes, Off: s.cfg.Board.Killed(in.Number)}
		if t.Quoted, err = w.quoted(row, in.Quoted); err != nil {
			return err
		}
		if t.Unread, err = w.unread(row, in); err != nil {
			return err
		}
		if in.Intent.Kind == flow.MeansTakeover && !t.Off {
			if err := w.withdraw(row.ID); err != nil {
				return err
			}
		}
		if err := w.changes(row, &t); err != nil {
			return err
		}
		if t.Heard.Kind == flow.MeansCode {
			session, err := w.tx.SessionByCode(ctx, t.Heard.Code)
			if err != nil && !notFound(err) {
				return err
			}
			t.ByCode = session.ID
		}
		return w.turn(row, t, store.Line{Kind: replay.Heard, Message: in.Message})
	})
	return wrap("hear a message", err)
}

// chat finds or makes the chat of a message.
func (w *saving) chat(in Inbound) (store.ChatRow, error) {
	row, found, err := w.tx.ChatOf(w.ctx, in.Number, in.Person)
	if found { // a call or a reaction does not say everything
		in.Phone, in.Name = cmp.Or(in.Phone, row.Phone), cmp.Or(in.Name, row.Name)
		if in.Fades < 0 {
			in.Fades = row.Fades
		}
	}
	in.Fades = max(in.Fades, 0)
	if err != nil || found && row.Phone == in.Phone && row.Name == in.Name && row.Fades == in.Fades {
		return row, err
	}
	id, err := w.s.ids.New(flow.PrefixChat)
	if err != nil {
		return row, err
	}
	row, err = w.tx.AddChat(w.ctx, store.ChatRow{ID: flow.ChatID(id), Number: in.Number, Person: in.Person, Phone: in.Phone, Name: in.Name, Fades: in.Fades}, w.now)
	if err != nil || found {
		return row, err
	}
	return w.begins(row)
}

// turn takes one turn of a chat: it logs what happened, decides, logs the
// decision with the chat's new state, and keeps what is to be said and done.
func (w *saving) turn(row store.ChatRow, t flow.Turn, cause store.Line) error {
	chat, err := w.stands(row)
	if err != nil {
		return err
	}
	t.Chat, t.Now, t.Banks = chat, w.now, w.s.cfg.Banks
	if t.Checkouts, err = w.checkouts(t.Touches()...); err != nil {
		return err
	}
	if t.Kin, err = w.kin(row, t.Checkouts); err != nil {
		return err
	}
	about := cmp.Or(t.About, t.ByCode, t.Quoted, chat.Focus)
	cause.Stream, cause.At, cause.Session = string(row.ID), w.now, about
	if cause.Data, err = json.Marshal(t); err != nil {
		return fmt.Errorf("log a turn: %w", err)
	}
	seq, err := w.tx.Append(w.ctx, cause)
	if err != nil {
		return err
	}
	crashpoint.At(crashpoint.TurnHeard)
	d := replay.Outcome{Decision: flow.Decide(t), Rules: flow.RulesVersion, Copy: w.s.cfg.Copy, Build: w.s.cfg.Build}
	d.Chat.Seq = seq + 1
	about = cmp.Or(t.About, t.ByCode, d.Chat.Focus) // what is said is about where this leads, as 7 and a reminder do
	for i, say := range d.Says {
		d.Texts = append(d.Texts, replay.Text{ID: messageID(row.ID, d.Chat.Seq, i, w.now), Text: w.s.cfg.Words(say, w.now)})
	}
	var before *time.Time
	if due, ok := chat.Due(); ok && due.After(w.now) {
		before = &due
	}
	if err := w.decided(row, d, before, t.Heard, store.Line{Stream: string(row.ID), At: w.now, Kind: replay.Decided, Cause: seq, Session: about}); err != nil {
		return err
	}
	heard, says := t.Heard != nil, len(d.Texts)
	w.tx.After(func() {
		w.s.cfg.Log.LogAttrs(w.ctx, slog.LevelInfo, "turn", slog.String("chat", string(row.ID)), slog.String("session", string(about)),
			slog.Int64("line", seq), slog.Bool("heard", heard), slog.Int("says", says))
	})
	for _, e := range d.Effects {
		if err := w.effect(row, e); err != nil {
			return err
		}
	}
	if t.Heard != nil && (t.Heard.Kind == flow.MeansStop || chat.Stopped && !d.Chat.Stopped) {
		return w.everywhere(row, d.Chat.Stopped)
	}
	return nil
}

// decided keeps a decision: its line, the chat's place, and its messages. before
// is when a timer of the chat was due until now, nil for never; heard is what the
// payer meant, nil where it was no message that led to this.
func (w *saving) decided(row store.ChatRow, d replay.Outcome, before *time.Time, heard *flow.Intent, line store.Line) error {
	var err error
	if line.Data, err = json.Marshal(d); err != nil {
		return fmt.Errorf("log a decision: %w", err)
	}
	if err := w.tx.Write(w.ctx, line); err != nil {
		return err
	}
	if err := w.tx.SetDecided(w.ctx, row.ID, d.Chat.Seq, d.Chat.Desk, d.Chat.Flag); err != nil {
		return err
	}
	if due, ok := d.Chat.Due(); ok && (before == nil || due.Before(*before)) { // one that is later is found by the earlier
		if err := w.owe(flow.TaskTimer, string(row.ID), due); err != nil {
			return err
		}
	}
	if heard != nil {
		w.countHeard(row.ID, *heard, len(d.Texts) > 0)
	}
	for i, text := range d.Texts {
		said := store.Said{ID: text.ID, Chat: row.ID, Seq: d.Chat.Seq, Bubble: i, Key: d.Says[i].Key, Text: text.Text}
		if err := w.tx.AddSaid(w.ctx, said, w.now); err != nil {
			return err
		}
	}
	chat := d.Chat
	w.tx.After(func() { w.s.remember(chat) })
	if len(d.Texts) == 0 {
		if heard == nil {
			return nil
		}
		// What the network did not take it may take from now on.
		if owed, err := w.tx.Owed(w.ctx, row.ID, 1); err != nil || len(owed) == 0 {
			return err
		}
	}
	return w.owe(flow.TaskSay, string(row.ID), w.now)
}

// remember puts a chat where live talks stand. Whatever goes wrong there costs
// one query later.
func (s *Service) remember(chat flow.Chat) {
	if s.cfg.Places == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), placePatience) //nolint:forbidigo // the command is over; this must not outlive it by much
	defer cancel()
	s.cfg.Places.Put(ctx, chat)
}

// placePatience is how long the memory of live talks may take.
const placePatience = 100 * time.Millisecond

// stands is where a chat stands: as remembered if that is not stale, else as
// the log has it.
func (w *saving) stands(row store.ChatRow) (flow.Chat, error) {
	fresh := flow.Chat{ID: row.ID, Number: row.Number, Person: row.Person, Phone: row.Phone, Name: row.Name}
	if row.Decided == 0 {
		return fresh, nil
	}
	if w.s.cfg.Places != nil {
		ctx, cancel := context.WithTimeout(w.ctx, placePatience)
		chat, ok := w.s.cfg.Places.Get(ctx, row.ID)
		cancel()
		if ok && chat.Seq == row.Decided && chat.ID == row.ID && chat.Number == row.Number && chat.Person == row.Person {
			chat.Phone, chat.Name = row.Phone, row.Name
			return chat, nil
		}
	}
	return logged(w.ctx, w.tx.Reader, row)
}

// logged is where a chat that was spoken in stands, as its log has it.
func logged(ctx context.Context, r store.Reader, row store.ChatRow) (flow.Chat, error) {
	line, err := r.Line(ctx, string(row.ID), row.Decided)
	if err != nil {
		return flow.Chat{}, err
	}
	var d replay.Outcome
	if err := json.Unmarshal(line.Data, &d); err != nil {
		return flow.Chat{}, fmt.Errorf("read where chat %s stands: %w", row.ID, err)
	}
	d.Chat.Phone, d.Chat.Name = row.Phone, row.Name
	return d.Chat, nil
}

// checkouts reads the sessions that a turn may touch.
func (w *saving) checkouts(ids ...flow.SessionID) (map[flow.SessionID]flow.Checkout, error) {
	out := map[flow.SessionID]flow.Checkout{}
	for _, id := range ids {
		if _, have := out[id]; have || id == "" {
			continue
		}
		session, err := w.tx.Session(w.ctx, id)
		if err != nil {
			return nil, err
		}
		v, err := w.s.view(w.ctx, w.tx.Reader, session)
		if err != nil {
			return nil, err
		}
		out[id] = flow.Look(session, v.Attempts, v.Payments, v.Offers)
	}
	return out, nil
}

// effect does what a decision asks for beside saying something.
func (w *saving) effect(row store.ChatRow, e flow.Effect) error {
	switch e.Kind {
	case flow.DoWatch:
		if planted.EagerChat {
			if _, _, err := w.begin(e.Session, flow.Ask{Method: flow.BankTransfer, Chat: row.ID}, true); err != nil {
				return err
			}
		}
		if err := w.tx.AddNames(w.ctx, e.Session, row.Name); err != nil {
			return err
		}
		return w.watch(e.Session, row.ID)
	case flow.DoOpen:
		return w.open(row, e)
	case flow.DoSupersede:
		return w.supersede(e.Attempt)
	case flow.DoCheck:
		return w.ask(row, e.Session)
	case flow.DoCancel:
		session, err := w.tx.Session(w.ctx, e.Session)
		if err != nil {
			return err
		}
		if session.Status != flow.SessionPending { // money came first, or is on its way: that is told already
			return nil
		}
		_, err = w.close(session, flow.Cancel)
		return err
	}
	return fmt.Errorf("a decision asks for %q, which nobody does", e.Kind)
}

// open makes the lazy call of a method that was chosen in a chat.
func (w *saving) open(row store.ChatRow, e flow.Effect) error {
	a, fresh, err := w.begin(e.Session, flow.Ask{Method: e.Method, Chat: row.ID}, true)
	no, refused := errors.AsType[*flow.Error](err)
	switch {
	case refused && no.Code != flow.CodeStorage && no.Code != flow.CodeInternal: // by a rule, which its payer is told
		return w.tellChat(row.ID, e.Session, flow.News{Kind: flow.NewsRefused, Reason: no.Message})
	case err != nil:
		return err
	case a.Instructions != nil:
		return w.tellChat(row.ID, e.Session, flow.News{Kind: flow.NewsOpened, Attempt: a.ID})
	case !fresh: // another call is under way; its answer is told to every chat
		if err := w.owe(flow.TaskStart, string(a.ID), w.now); err != nil {
			return err
		}
	}
	return w.owe(flow.TaskSlow, string(a.ID), w.now.Add(flow.SlowAfter))
}

func (w *saving) supersede(id flow.AttemptID) error {
	if id == "" {
		return nil
	}
	a, session, err := w.attemptWith(id)
	if err != nil {
		return err
	}
	change, err := flow.Supersede(a)
	if err != nil {
		return err
	}
	return w.save(change, session)
}

// spread tells every chat that watches a session what happened to it.
func (w *saving) spread(session flow.SessionID, n flow.News) error {
	chats, err := w.watchers(session)
	if err != nil {
		return err
	}
	for _, id := range chats {
		if err := w.tellChat(id, session, n); err != nil {
			return err
		}
	}
	return nil
}

// waiting tells only the chats whose talk about a session is in a state.
func (w *saving) waiting(session flow.SessionID, state flow.TalkState, n flow.News) error {
	if ids, known := w.watching[session]; known && len(ids) == 0 {
		return nil
	}
	chats, err := w.tx.Watchers(w.ctx, session)
	if err != nil {
		return err
	}
	for _, row := range chats {
		chat, err := w.stands(row)
		if err != nil {
			return err
		}
		if t, ok := chat.Talk(session); ok && t.State == state {
			if err := w.tellChat(row.ID, session, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellChat takes a turn of a chat over news of one of its sessions.
func (w *saving) tellChat(id flow.ChatID, session flow.SessionID, n flow.News) error {
	row, err := w.tx.Chat(w.ctx, id)
	if err != nil {
		return err
	}
	return w.turn(row, flow.Turn{News: &n, About: session}, store.Line{Kind: replay.News})
}
