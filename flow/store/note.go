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
	if err := t.run.put(ctx, `INSERT INTO notes (id, session, author, text, at) VALUES (?, ?, ?, ?, ?)`,
		n.ID, string(n.Session), n.Author, n.Text, flow.Millis(n.At)); err != nil {
		return fmt.Errorf("keep a note: %w", err)
	}
	return nil
}

// Notes reads the notes about a session, oldest first, at most limit of them.
func (r Reader) Notes(ctx context.Context, session flow.SessionID, limit int) ([]Note, error) {
	const query = `SELECT id, session, author, text, at FROM notes WHERE session = ? ORDER BY id LIMIT ?`
	return rowsOf(ctx, r.run, "read the notes about "+string(session), query, []any{string(session), limit}, func(scan scanner) (n Note, err error) {
		var at int64
		err = scan(&n.ID, &n.Session, &n.Author, &n.Text, &at)
		n.At = flow.FromMillis(at)
		return n, err
	})
}

// LastAgain is when a payer of a session was last sent their instructions again
// because a supporter wanted it, zero for never.
func (r Reader) LastAgain(ctx context.Context, session flow.SessionID) (time.Time, error) {
	var ms int64
	_, err := r.run.one(ctx, `SELECT COALESCE(MAX(at), 0) FROM log WHERE session = ? AND session <> '' AND kind = 'news' AND data LIKE '%"Kind":"again"%'`,
		[]any{string(session)}, &ms)
	if err != nil {
		return time.Time{}, fmt.Errorf("read when %s was said again: %w", session, err)
	}
	return flow.FromMillis(ms), nil
}

// TasksOf reads the work that is owed to some subjects, whoever holds it now.
func (r Reader) TasksOf(ctx context.Context, subjects []string) ([]flow.Task, error) {
	kinds := []flow.TaskKind{
		flow.TaskStart, flow.TaskCheck, flow.TaskSay, flow.TaskSlow, flow.TaskTimer, flow.TaskExpireAttempt, flow.TaskExpireSession, flow.TaskReturn,
		flow.TaskRefund,
	}
	args := make([]any, 0, len(kinds)+len(subjects))
	for _, k := range kinds {
		args = append(args, string(k))
	}
	args = append(args, anys(subjects)...)
	query := `SELECT kind, subject, due, attempts FROM tasks WHERE kind IN (` + marks(len(kinds)) + `) AND subject IN (` + marks(len(subjects)) + `)`
	return rowsOf(ctx, r.run, "read what is due", query, args, func(scan scanner) (t flow.Task, err error) {
		var due int64
		err = scan(&t.Kind, &t.Subject, &due, &t.Attempts)
		t.Due = flow.FromMillis(due)
		return t, err
	})
}
