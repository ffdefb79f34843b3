package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"till/flow"
)

// Line is one line of the log.
type Line struct {
	Stream  string // a chat, or a session that no chat watches
	Seq     int64
	At      time.Time
	Kind    string
	Cause   int64 // the line that led to it, 0 for none
	Session flow.SessionID
	Message string // WhatsApp's id, where the line is about a message
	Data    json.RawMessage
}

// ChatRow is a chat as it is kept: its state stands in the log.
type ChatRow struct {
	ID      flow.ChatID
	Number  string
	Person  string
	Phone   flow.Phone
	Name    string
	Decided int64     // the line of the log that holds the chat's state, 0 for none
	Desk    flow.Desk // only State, By and Since
	Flag    string
	Fades   time.Duration // how long the chat keeps its messages, 0 for ever
}

const chatColumns = `id, number, person, phone, name, decided, desk, desk_by, desk_since, flag, fades`

// AddChat keeps a new chat, or returns the one there is already, with what is known of
// its person by now.
func (t *Tx) AddChat(ctx context.Context, c ChatRow, now time.Time) (ChatRow, error) {
	err := t.run.put(ctx, `INSERT INTO chats (id, number, person, phone, name, decided, created_at) VALUES (?, ?, ?, ?, ?, 0, ?) ON CONFLICT DO NOTHING`,
		c.ID, c.Number, c.Person, string(c.Phone), c.Name, flow.Millis(now))
	if err != nil {
		return ChatRow{}, fmt.Errorf("keep a chat: %w", err)
	}
	kept, found, err := t.ChatOf(ctx, c.Number, c.Person)
	if err != nil {
		return ChatRow{}, err
	}
	if !found {
		return ChatRow{}, fmt.Errorf("keep a chat: the id %s is taken", c.ID)
	}
	if c.Phone, c.Name = cmp.Or(c.Phone, kept.Phone), cmp.Or(c.Name, kept.Name); c.Phone != kept.Phone || c.Name != kept.Name {
		if err := t.run.put(ctx, `UPDATE chats SET phone = ?, name = ? WHERE id = ?`, string(c.Phone), c.Name, kept.ID); err != nil {
			return ChatRow{}, fmt.Errorf("keep a chat's phone and name: %w", err)
		}
		kept.Phone, kept.Name = c.Phone, c.Name
	}
	if c.Fades != kept.Fades {
		if err := t.run.put(ctx, `UPDATE chats SET fades = ? WHERE id = ?`, int64(c.Fades/time.Second), kept.ID); err != nil {
			return ChatRow{}, fmt.Errorf("keep how long a chat keeps its messages: %w", err)
		}
		kept.Fades = c.Fades
	}
	return kept, nil
}

// ChatOf reads the chat of a person with one of our numbers.
func (r Reader) ChatOf(ctx context.Context, number, person string) (ChatRow, bool, error) {
	return r.chat(ctx, `number = ? AND person = ?`, number, person)
}

// ChatsOfPerson are the chats of a person with our numbers, oldest first.
func (r Reader) ChatsOfPerson(ctx context.Context, person string) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE person = ? ORDER BY id LIMIT ?`, person, maxNumbers)
}

// Chat reads a chat by its id.
func (r Reader) Chat(ctx context.Context, id flow.ChatID) (ChatRow, error) {
	c, found, err := r.chat(ctx, `id = ?`, string(id))
	if err == nil && !found {
		err = missing("chat", string(id))
	}
	return c, err
}

func (r Reader) chat(ctx context.Context, where string, args ...any) (ChatRow, bool, error) {
	return first(r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE `+where, args...))
}

// Watch makes a chat observe a session.
func (t *Tx) Watch(ctx context.Context, session flow.SessionID, chat flow.ChatID) error {
	err := t.run.put(ctx, `INSERT INTO watches (session, chat) VALUES (?, ?) ON CONFLICT DO NOTHING`, session, chat)
	if err != nil {
		return fmt.Errorf("let chat %s watch %s: %w", chat, session, err)
	}
	return nil
}

// Watchers are the chats that observe a session.
func (r Reader) Watchers(ctx context.Context, session flow.SessionID) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE id IN (SELECT chat FROM watches WHERE session = ?) ORDER BY id`, string(session))
}

// deskFirst has the one first that waits longest for a person, then those that a
// person has, then those that the bot has and somebody should look at; last those that
// nobody came for, which wait without an end.
const deskFirst = ` ORDER BY CASE WHEN flag = '` + flow.NobodyComes + `' THEN 3 WHEN desk = 'waiting' THEN 0 WHEN desk = '' THEN 2 ELSE 1 END, desk_since, id LIMIT ?`

// Desk is the queue of the chats that a person has or should look at, the one
// that waits longest first; at most limit of them.
func (r Reader) Desk(ctx context.Context, limit int) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE desk <> '' OR flag <> ''`+deskFirst, limit)
}

func (r Reader) chats(ctx context.Context, query string, args ...any) ([]ChatRow, error) {
	return rowsOf(ctx, r.run, "read chats", query, args, func(scan scanner) (c ChatRow, err error) {
		var fades int64
		err = scan(&c.ID, &c.Number, &c.Person, &c.Phone, &c.Name, &c.Decided, &c.Desk.State, &c.Desk.By, &c.Desk.Since, &c.Flag, &fades)
		c.Fades = time.Duration(fades) * time.Second
		return c, err
	})
}

// Heard says whether a message was heard in a chat before.
func (r Reader) Heard(ctx context.Context, chat flow.ChatID, message string) (bool, error) {
	var one int
	found, err := r.run.one(ctx, `SELECT 1 FROM log WHERE stream = ? AND message = ? AND kind = 'heard'`, []any{string(chat), message}, &one)
	if err != nil {
		return false, fmt.Errorf("look a message up: %w", err)
	}
	return found, nil
}

// HeardLine reads the line of a message that was heard in a chat.
func (r Reader) HeardLine(ctx context.Context, chat flow.ChatID, message string) (Line, bool, error) {
	return first(r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? AND message = ? AND kind = 'heard'`, string(chat), message))
}

const (
	putLineSQL = `INSERT INTO log (stream, seq, at, kind, cause, session, message, data)
 SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ?, ?, ? FROM log WHERE stream = ?`
	insertLineSQL = putLineSQL + ` RETURNING seq`
)

// Append writes a line at the end of its stream and returns its number.
func (t *Tx) Append(ctx context.Context, l Line) (int64, error) {
	if len(l.Data) == 0 {
		l.Data = json.RawMessage("{}")
	}
	var seq int64
	_, err := t.run.one(ctx, insertLineSQL, []any{l.Stream, flow.Millis(l.At), l.Kind, l.Cause, l.Session, l.Message, string(l.Data), l.Stream}, &seq)
	if err != nil {
		return 0, fmt.Errorf("write the log: %w", err)
	}
	return seq, nil
}

// Write is Append for whoever does not need the line's number, and does not wait
// for it.
func (t *Tx) Write(ctx context.Context, l Line) error {
	if len(l.Data) == 0 {
		l.Data = json.RawMessage("{}")
	}
	err := t.run.put(ctx, putLineSQL, l.Stream, flow.Millis(l.At), l.Kind, l.Cause, l.Session, l.Message, string(l.Data), l.Stream)
	if err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// SetDecided keeps which line of its log holds a chat's state, and what of it a
// chat is looked for by.
func (t *Tx) SetDecided(ctx context.Context, chat flow.ChatID, line int64, desk flow.Desk, flag string) error {
	err := t.run.put(ctx, `UPDATE chats SET decided = ?, desk = ?, desk_by = ?, desk_since = ?, flag = ? WHERE id = ?`,
		line, desk.State, desk.By, desk.Since, flag, chat)
	if err != nil {
		return fmt.Errorf("keep where chat %s stands: %w", chat, err)
	}
	return nil
}

const lineColumns = `stream, seq, at, kind, cause, session, message, data`

// Line reads one line of a stream.
func (r Reader) Line(ctx context.Context, stream string, seq int64) (Line, error) {
	list, err := r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? AND seq = ?`, stream, seq)
	return only(list, err, "log line", fmt.Sprintf("%s/%d", stream, seq))
}

// Lines reads a stream from its beginning.
func (r Reader) Lines(ctx context.Context, stream string) ([]Line, error) {
	return r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? ORDER BY seq`, stream)
}

// SessionLines reads every line about a session, in the order of time.
func (r Reader) SessionLines(ctx context.Context, session flow.SessionID) ([]Line, error) {
	return r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE session = ? AND session <> '' ORDER BY at, stream, seq`, string(session))
}

// NewestLines are the newest lines about a session, at most so many, in the order
// of time.
func (r Reader) NewestLines(ctx context.Context, session flow.SessionID, limit int) ([]Line, error) {
	list, err := r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE session = ? AND session <> '' ORDER BY at DESC, stream DESC, seq DESC LIMIT ?`, string(session), limit)
	slices.Reverse(list)
	return list, err
}

const linesFromSQL = `SELECT ` + lineColumns + ` FROM log WHERE session = ? AND session <> '' AND at >= ? ORDER BY at, stream, seq LIMIT ?`

// LinesFrom are the first lines about a session from a time on, at most so many, in
// the order of time.
func (r Reader) LinesFrom(ctx context.Context, session flow.SessionID, from time.Time, limit int) ([]Line, error) {
	return r.lines(ctx, linesFromSQL, string(session), flow.Millis(from), limit)
}

// Spoke are the chats whose payers wrote about a session, in the order in which
// they did first.
func (r Reader) Spoke(ctx context.Context, session flow.SessionID) ([]string, error) {
	const query = `SELECT stream FROM log WHERE session = ? AND session <> '' AND kind = 'heard' GROUP BY stream ORDER BY MIN(at), stream`
	return valuesOf[string](ctx, r.run, "read who spoke of "+string(session), query, string(session))
}

func (r Reader) lines(ctx context.Context, query string, args ...any) ([]Line, error) {
	return rowsOf(ctx, r.run, "read the log", query, args, func(scan scanner) (l Line, err error) {
		var at int64
		var data string
		err = scan(&l.Stream, &l.Seq, &at, &l.Kind, &l.Cause, &l.Session, &l.Message, &data)
		l.At, l.Data = flow.FromMillis(at), json.RawMessage(data)
		return l, err
	})
}

// Said is one message to a payer, as it is kept.
type Said struct {
	ID     string // WhatsApp's id, fixed before the first try
	Chat   flow.ChatID
	Seq    int64 // of the turn's line in the log
	Bubble int
	Key    string
	Text   string
	State  string
	At     time.Time // when it was decided on

	Refusals int // how often the network said that it will not take it
}

// AddSaid keeps a message that is to be sent.
func (t *Tx) AddSaid(ctx context.Context, s Said, now time.Time) error {
	err := t.run.put(ctx, `INSERT INTO says (id, chat, seq, bubble, key, text, state, created_at) VALUES (?, ?, ?, ?, ?, ?, 'pending', ?)`,
		s.ID, s.Chat, s.Seq, s.Bubble, s.Key, s.Text, flow.Millis(now))
	if err != nil {
		return fmt.Errorf("keep a message: %w", err)
	}
	return nil
}

const saidColumns = `id, chat, seq, bubble, key, text, state, refusals, created_at`

// Owed are the messages of a chat that are not sent yet, in the order in which
// they go out, at most limit of them.
func (r Reader) Owed(ctx context.Context, chat flow.ChatID, limit int) ([]Said, error) {
	return r.says(ctx, `SELECT `+saidColumns+` FROM says WHERE chat = ? AND state = 'pending' ORDER BY seq, bubble LIMIT ?`, string(chat), limit)
}

// Group are the messages of one turn that are not sent yet.
func (r Reader) Group(ctx context.Context, chat flow.ChatID, seq int64) ([]Said, error) {
	return r.says(ctx, `SELECT `+saidColumns+` FROM says WHERE chat = ? AND seq = ? AND state = 'pending' ORDER BY bubble`, string(chat), seq)
}

// Spoken says whether a message was ever sent to a chat.
func (r Reader) Spoken(ctx context.Context, chat flow.ChatID) (bool, error) {
	var one int
	found, err := r.run.one(ctx, `SELECT 1 FROM says WHERE chat = ? AND state IN ('sent', 'delivered', 'read') LIMIT 1`, []any{string(chat)}, &one)
	if err != nil {
		return false, fmt.Errorf("look up whether chat %s was written to: %w", chat, err)
	}
	return found, nil
}

// Said reads a message by WhatsApp's id.
func (r Reader) Said(ctx context.Context, id string) (Said, bool, error) {
	return first(r.says(ctx, `SELECT `+saidColumns+` FROM says WHERE id = ?`, id))
}

func (r Reader) says(ctx context.Context, query string, args ...any) ([]Said, error) {
	return rowsOf(ctx, r.run, "read messages", query, args, func(scan scanner) (s Said, err error) {
		var at int64
		err = scan(&s.ID, &s.Chat, &s.Seq, &s.Bubble, &s.Key, &s.Text, &s.State, &s.Refusals, &at)
		s.At = flow.FromMillis(at)
		return s, err
	})
}

// RefuseSaid counts that the network would not take a message.
func (t *Tx) RefuseSaid(ctx context.Context, id string) error {
	if err := t.run.put(ctx, `UPDATE says SET refusals = refusals + 1 WHERE id = ?`, id); err != nil {
		return fmt.Errorf("count a refusal: %w", err)
	}
	return nil
}

// MarkSaid moves a message on; it returns false where it was there already or
// further. One that was given up while it was on its way may have been sent all
// the same.
func (t *Tx) MarkSaid(ctx context.Context, id, state string) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE says SET state = ? WHERE id = ? AND CASE state WHEN 'pending' THEN 0 WHEN 'failed' THEN 1 WHEN 'sent' THEN 2
 WHEN 'delivered' THEN 3 ELSE 4 END < CASE ? WHEN 'failed' THEN 1 WHEN 'sent' THEN 2 WHEN 'delivered' THEN 3 ELSE 4 END`, state, id, state)
	if err != nil {
		return false, fmt.Errorf("mark a message: %w", err)
	}
	return n == 1, nil
}
