package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"till/flow"
)

// dialect is which database is spoken to.
type dialect int

const (
	sqliteDialect dialect = iota
	postgresDialect
)

// statements runs statements: connections of SQLite, or of database/sql.
type statements interface {
	run(ctx context.Context, query string, args []any) (touched int64, err error)
	// put is run for what nobody waits for: it may be refused later, at the latest
	// when the transaction is committed.
	put(ctx context.Context, query string, args []any) error
	each(ctx context.Context, query string, args []any, scan func(scanner) error) error
}

// runner runs statements in the words of its dialect.
type runner struct {
	statements statements
	dialect    dialect
	bound      *bound   // of a PostgreSQL that is spoken to all day; nil: none
	steady     *steady  // of a batch; nil: none
	keys       *Keyring // nil: what is sealed cannot be read
}

// maxBound is how many queries are remembered as PostgreSQL wants them.
const maxBound = 1024

// bound remembers queries as PostgreSQL wants them: the program has few, and
// writes them all day.
type bound struct {
	mu      sync.RWMutex
	queries map[string]string
}

func (b *bound) query(query string) string {
	b.mu.RLock()
	is, ok := b.queries[query]
	b.mu.RUnlock()
	if ok {
		return is
	}
	is = numbered(query)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queries) < maxBound {
		b.queries[query] = is
	}
	return is
}

// bind is a query in the words of the dialect.
func (r runner) bind(query string) string {
	switch {
	case r.dialect == sqliteDialect:
		return query
	case r.bound != nil:
		return r.bound.query(query)
	}
	return numbered(query)
}

// numbered turns ? into $1, $2, … for PostgreSQL. No query holds a ? of its own.
func numbered(query string) string {
	var b strings.Builder
	n := 0
	for _, c := range query {
		if c != '?' {
			b.WriteRune(c)
			continue
		}
		n++
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// exec runs a statement and returns how many rows it touched.
func (r runner) exec(ctx context.Context, query string, args ...any) (int64, error) {
	r.steady.wrote(query)
	return r.statements.run(ctx, r.bind(query), args)
}

// put runs a statement whose refusal may come later, with the next one or the
// commit. args must not be changed any more.
func (r runner) put(ctx context.Context, query string, args ...any) error {
	r.steady.wrote(query)
	return r.statements.put(ctx, r.bind(query), args)
}

// scanner reads the columns of one row.
type scanner = func(dest ...any) error

// each calls scan for every row of a query.
func (r runner) each(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	if !strings.HasPrefix(query, "SELECT") {
		r.steady.wrote(query)
	}
	return r.statements.each(ctx, r.bind(query), args, scan)
}

// rowsOf reads every row of a query by scan. what it does stands in an error.
func rowsOf[T any](ctx context.Context, r runner, what, query string, args []any, scan func(scanner) (T, error)) (list []T, err error) {
	err = r.each(ctx, query, args, func(s scanner) error {
		one, err := scan(s)
		if err == nil {
			list = append(list, one)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}

// valuesOf reads the one column of a query, as rowsOf does its rows.
func valuesOf[T any](ctx context.Context, r runner, what, query string, args ...any) ([]T, error) {
	return rowsOf(ctx, r, what, query, args, func(scan scanner) (one T, err error) {
		err = scan(&one)
		return one, err
	})
}

// first is the first of the rows that were read; found is false where there is none.
func first[T any](list []T, failure error) (one T, found bool, err error) {
	if failure != nil || len(list) == 0 {
		return one, false, failure
	}
	return list[0], true, nil
}

// only is the row that was read of a thing. Error: resource_not_found.
func only[T any](list []T, failure error, what, id string) (T, error) {
	one, found, err := first(list, failure)
	if err == nil && !found {
		err = missing(what, id)
	}
	return one, err
}

// ofProject finds one row of a project by its id. Another project's takes as long to be
// refused as one that never was: SQLite is led past the index of ids, by which it would read
// the row to see whose it is, to the one of each project's (make fault-timing tells the
// difference), and told that it need not look for a second. PostgreSQL would plan a range anew
// each time.
func (r runner) ofProject() string {
	if r.dialect == postgresDialect {
		return ` WHERE project = ? AND id = ?`
	}
	return ` WHERE project = ?1 AND id BETWEEN ?2 AND ?2 LIMIT 1`
}

// one reads the first row of a query; found is false where there is none.
func (r runner) one(ctx context.Context, query string, args []any, dest ...any) (found bool, err error) {
	err = r.each(ctx, query, args, func(scan scanner) error {
		if found {
			return nil
		}
		found = true
		return scan(dest...)
	})
	return found, err
}

// sqlRunner is a pool or a transaction of database/sql.
type sqlRunner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// sqlStatements runs statements by database/sql.
type sqlStatements struct {
	sqlRunner

	within func(context.Context) (context.Context, context.CancelFunc) // how long each may take; nil: as long as its caller waits
}

// bounded is the context that a statement runs under.
func (s sqlStatements) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.within == nil {
		return ctx, func() {}
	}
	return s.within(ctx)
}

func (s sqlStatements) run(ctx context.Context, query string, args []any) (int64, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	res, err := s.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, storageError(err)
	}
	return res.RowsAffected()
}

func (s sqlStatements) put(ctx context.Context, query string, args []any) error {
	_, err := s.run(ctx, query, args)
	return err
}

func (s sqlStatements) each(ctx context.Context, query string, args []any, scan func(scanner) error) (err error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	rows, err := s.QueryContext(ctx, query, args...)
	if err != nil {
		return storageError(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return storageError(rows.Err())
}

// Reader reads; it cannot write.
type Reader struct{ run runner }

// Tx is a transaction: what it writes is kept whole or not at all.
type Tx struct {
	Reader

	after []func()
}

// After runs f once the transaction is committed, in the caller's goroutine.
func (t *Tx) After(f func()) { t.after = append(t.after, f) }

func (t *Tx) committed() {
	for _, f := range t.after {
		f()
	}
}

// missing is the refusal for a row that is not there.
func missing(what, id string) error {
	return flow.Refuse(flow.CodeNotFound, "There is no %s %q.", what, id)
}
