package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// LastLine is the number of the last line of a stream and when it was written, 0
// where it has none.
func (r Reader) LastLine(ctx context.Context, stream string) (seq int64, at time.Time, err error) {
	var ms int64
	if _, err := r.run.one(ctx, `SELECT seq, at FROM log WHERE stream = ? ORDER BY seq DESC LIMIT 1`, []any{stream}, &seq, &ms); err != nil {
		return 0, time.Time{}, fmt.Errorf("read the end of the log of %s: %w", stream, err)
	}
	return seq, flow.FromMillis(ms), nil
}

// LinesBehind are lines of a stream behind one, at most so many.
func (r Reader) LinesBehind(ctx context.Context, stream string, after int64, limit int) ([]Line, error) {
	return r.lines(ctx, `SELECT `+lineColumns+` FROM log WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?`, stream, after, limit)
}

// Worn is up to which line of its log the words of a chat were taken, 0 for none.
func (r Reader) Worn(ctx context.Context, chat flow.ChatID) (line int64, err error) {
	if _, err := r.run.one(ctx, `SELECT worn FROM chats WHERE id = ?`, []any{string(chat)}, &line); err != nil {
		return 0, fmt.Errorf("read how much of chat %s is worn: %w", chat, err)
	}
	return line, nil
}

// Wear takes the texts of the messages that were decided on in some lines of a
// chat's log, those behind the first and up to the last, and keeps that the words
// are gone up to there. A message that is not sent yet stays.
func (t *Tx) Wear(ctx context.Context, chat flow.ChatID, after, last int64) error {
	err := t.run.put(ctx, `UPDATE says SET text = '' WHERE chat = ? AND seq > ? AND seq <= ? AND state <> 'pending'`, string(chat), after, last)
	if err == nil {
		err = t.run.put(ctx, `UPDATE chats SET worn = ? WHERE id = ?`, last, string(chat))
	}
	if err != nil {
		return fmt.Errorf("take the words of chat %s: %w", chat, err)
	}
	return nil
}

// WearAnswers takes what endpoints answered before a time, of so many tries at most,
// the oldest first, and says of how many. That they were tried, and how it went, stays.
func (t *Tx) WearAnswers(ctx context.Context, before time.Time, most int) (int, error) {
	n, err := t.run.exec(ctx, `UPDATE delivery_attempts SET body = `+t.run.dialect.noBytes()+` WHERE (delivery, n) IN
 (SELECT delivery, n FROM delivery_attempts WHERE length(body) > 0 AND at < ? ORDER BY at LIMIT ?)`, flow.Millis(before), most)
	if err != nil {
		return 0, fmt.Errorf("take what endpoints answered: %w", err)
	}
	return int(n), nil
}
