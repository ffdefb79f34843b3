package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// Filters are the searches that somebody keeps, by name.
func (r Reader) Filters(ctx context.Context, account, email string) ([]flow.Filter, error) {
	const query = `SELECT name, words, status, created_at FROM filters WHERE account = ? AND email = ? ORDER BY name LIMIT ?`
	return rowsOf(ctx, r.run, "read the searches that somebody keeps", query, []any{account, email, flow.MaxFilters}, func(scan scanner) (f flow.Filter, err error) {
		var at int64
		err = scan(&f.Name, &f.Words, &f.Status, &at)
		f.CreatedAt = flow.FromMillis(at)
		return f, err
	})
}

// KeepFilter keeps a search; one of the same name gives way.
func (t *Tx) KeepFilter(ctx context.Context, account, email string, f flow.Filter) error {
	if _, err := t.run.exec(ctx, `INSERT INTO filters (account, email, name, words, status, created_at) VALUES (?, ?, ?, ?, ?, ?)
 ON CONFLICT (account, email, name) DO UPDATE SET words = excluded.words, status = excluded.status, created_at = excluded.created_at`,
		account, email, f.Name, f.Words, f.Status, flow.Millis(f.CreatedAt)); err != nil {
		return fmt.Errorf("keep a search: %w", err)
	}
	return nil
}

// DropFilter forgets a search. It returns false where there was none of that name.
func (t *Tx) DropFilter(ctx context.Context, account, email, name string) (bool, error) {
	n, err := t.run.exec(ctx, `DELETE FROM filters WHERE account = ? AND email = ? AND name = ?`, account, email, name)
	if err != nil {
		return false, fmt.Errorf("forget a search: %w", err)
	}
	return n > 0, nil
}

// DropSearches forgets the searches of everybody that mean something, and says how many
// those were.
func (t *Tx) DropSearches(ctx context.Context, means func(account, name, words string) bool) (dropped int64, err error) {
	var meant [][]any
	err = t.run.each(ctx, `SELECT account, email, name, words FROM filters`, nil, func(scan scanner) error {
		var account, email, name, words string
		err := scan(&account, &email, &name, &words)
		if means(account, name, words) {
			meant = append(meant, []any{account, email, name})
		}
		return err
	})
	for _, key := range meant {
		if err == nil {
			_, err = t.run.exec(ctx, `DELETE FROM filters WHERE account = ? AND email = ? AND name = ?`, key...)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("forget searches: %w", err)
	}
	return int64(len(meant)), nil
}

// between narrows by a column of times, in milliseconds: from is in it, until is
// not. A zero time does not narrow.
func between(column string, from, until time.Time) (where string, args []any) {
	for _, bound := range []struct {
		at time.Time
		is string
	}{{from, ` >= ?`}, {until, ` < ?`}} {
		if !bound.at.IsZero() {
			where += ` AND ` + column + bound.is
			args = append(args, flow.Millis(bound.at))
		}
	}
	return where, args
}
