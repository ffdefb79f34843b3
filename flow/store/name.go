package store

import (
	"context"
	"fmt"
	"strings"

	"till/flow"
)

// addNames keeps the words of the name of a session's customer, which it is found
// by.
func (t *Tx) addNames(ctx context.Context, s flow.Session) error {
	words := flow.NameWords(s.CustomerName)
	if len(words) == 0 {
		return nil
	}
	name := nameOf(words)
	args := make([]any, 0, 5*len(words))
	for _, w := range words {
		args = append(args, string(s.Project), w, string(s.ID), name, int64(s.Amount))
	}
	query := `INSERT INTO names (project, word, session, name, amount) VALUES ` + strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?), ", len(words)), ", ") + ` ON CONFLICT DO NOTHING`
	if err := t.run.put(ctx, query, args...); err != nil {
		return fmt.Errorf("keep the words of a name: %w", err)
	}
	return nil
}

// AddNames keeps that a session is found by another name too: of who opened it in
// a chat, or of who paid for it. Beside a word that two names have, both stand.
func (t *Tx) AddNames(ctx context.Context, session flow.SessionID, name string) error {
	words := flow.NameWords(name)
	for _, w := range words {
		if err := t.run.put(ctx, `INSERT INTO names (project, word, session, name, amount)
 SELECT s.project, ?, s.id, ?, s.amount FROM sessions s WHERE s.id = ?
 ON CONFLICT (project, word, session) DO UPDATE SET name = names.name || '`+nameEnd+`' || excluded.name WHERE names.name || ' ' NOT LIKE '%' || excluded.name || ' %'`, w, nameOf(words), string(session)); err != nil {
			return fmt.Errorf("keep the words of a name: %w", err)
		}
	}
	return nil
}

// nameEnd stands between two names: no word holds it.
const nameEnd = " /"

// forgetName takes a name out of those that a session is found by.
func (t *Tx) forgetName(ctx context.Context, s flow.Session, name string) error {
	own := nameOf(flow.NameWords(name))
	if err := t.run.put(ctx, `DELETE FROM names WHERE project = ? AND session = ? AND name = ?`, string(s.Project), string(s.ID), own); err != nil {
		return err
	}
	// Where others stand beside the same word they stay: what is left begins and ends with what stands between names.
	left, one := `replace('`+nameEnd+`' || name || '`+nameEnd+`', ?, '`+nameEnd+`')`, nameEnd+own+nameEnd
	return t.run.put(ctx, `UPDATE names SET name = substr(`+left+`, 3, length(`+left+`) - 4) WHERE project = ? AND session = ? AND '`+nameEnd+`' || name || '`+nameEnd+`' LIKE ?`,
		one, one, string(s.Project), string(s.ID), "%"+one+"%")
}

// nameOf is a name as it stands beside its words: each word follows a space.
func nameOf(words []string) string { return " " + strings.Join(words, " ") }
