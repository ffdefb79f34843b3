package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// Note is what a supporter wrote down about a session.
type Note struct {
	ID      string // note_…
	Session flow.SessionID
	Author  string // e-mail address
	Text    string
	At      time.Time
}

// AddNote keeps a note.
func (t *Tx) AddNote(ctx context.Context, n Note) error {
	if _, err := t.run.exec(ctx, `INSERT INTO notes (id, session, author, text, at) VALUES (?, ?, ?, ?, ?)`,
		n.ID, string(n.Session), n.Author, n.Text, flow.Millis(n.At)); err != nil {
		return fmt.Errorf("keep a note: %w", err)
	}
	return nil
}

// Notes reads the notes about a session, oldest first, at most limit of them.
func (r Reader) Notes(ctx context.Context, session flow.SessionID, limit int) ([]Note, error) {
	var list []Note
	err := r.run.each(ctx, `SELECT id, session, author, text, at FROM notes WHERE session = ? ORDER BY id LIMIT ?`, []any{string(session), limit}, func(scan scanner) error {
		var n Note
		var at int64
		err := scan(&n.ID, &n.Session, &n.Author, &n.Text, &at)
		n.At = flow.FromMillis(at)
		list = append(list, n)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the notes about %s: %w", session, err)
	}
	return list, nil
}
