package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"till/flow/crashpoint"
)

// maxOwed is how many statements are sent at once at most.
const maxOwed = 256

// pipe is one transaction on PostgreSQL. What only writes is not waited for: it
// goes out together with the next statement whose answer is, so that a
// transaction waits for the server as often as it asks something, and not as
// often as it says something. What the server refuses of it is the error of that
// next statement, or of the transaction: blamed then says whose it was.
type pipe struct {
	conn  *pgx.Conn
	begin string
	// ctx is that of the whole; nil: each statement has its caller's.
	ctx   context.Context //nolint:containedctx // lives as long as the transaction
	begun bool
	owed  *pgx.Batch // to be sent
	whose []*unit    // for whom, each of owed
	unit  *unit      // for whom things are said now; nil where there is but one
	// blamed is the unit for whom something was said that the server refused.
	blamed *unit
	wrote  bool     // since it was last set to false something was sent that may have written
	early  []answer // what was read ahead
}

// The beginnings of transactions.
const (
	beginSerializable = "BEGIN ISOLATION LEVEL SERIALIZABLE"
	beginByRow        = "BEGIN ISOLATION LEVEL READ COMMITTED"
	beginView         = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// piped runs do with a transaction that has a connection of the pool for itself.
// do ends it by commit; what it leaves open is undone.
func piped(ctx context.Context, pool *sql.DB, begin string, do func(*pipe) error) error {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return storageError(fmt.Errorf("reach the database: %w", err))
	}
	err = conn.Raw(func(raw any) error {
		of, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("a connection is a %T", raw)
		}
		p := &pipe{conn: of.Conn(), begin: begin, owed: new(pgx.Batch)}
		err := do(p)
		if left := p.undo(ctx); left != nil {
			return errors.Join(err, left, driver.ErrBadConn) // nobody is to have it as it is
		}
		return err
	})
	if left := conn.Close(); !errors.Is(left, sql.ErrConnDone) {
		err = errors.Join(err, left)
	}
	return err
}

// of is the context that a statement runs under.
func (p *pipe) of(ctx context.Context) context.Context {
	if p.ctx != nil {
		return p.ctx
	}
	return ctx
}

// put keeps a statement that only writes until something is asked for.
func (p *pipe) put(ctx context.Context, query string, args []any) error {
	if p.owed.Len() >= maxOwed {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.early = nil
	p.owed.Queue(query, args...)
	p.whose = append(p.whose, p.unit)
	return nil
}

func (p *pipe) run(ctx context.Context, query string, args []any) (n int64, err error) {
	err = p.ask(ctx, query, args, true, func(rows pgx.Rows) error {
		rows.Close()
		n = rows.CommandTag().RowsAffected()
		return nil
	})
	return n, err
}

func (p *pipe) each(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	if a, ok := p.known(query, args); ok {
		return p.read(a, scan)
	}
	return p.ask(ctx, query, args, !strings.HasPrefix(query, "SELECT"), func(rows pgx.Rows) error {
		for rows.Next() {
			if err := scan(rows.Scan); err != nil {
				return err
			}
		}
		return nil
	})
}

// ask sends what is owed and a statement, and reads the answer to that.
func (p *pipe) ask(ctx context.Context, query string, args []any, writes bool, read func(pgx.Rows) error) error {
	if writes {
		p.wrote, p.early = true, nil
	}
	if p.begun && p.owed.Len() == 0 {
		rows, err := p.conn.Query(p.of(ctx), query, args...)
		return answered(rows, err, read)
	}
	return p.send(ctx, func(b *pgx.Batch) { b.Queue(query, args...) }, func(results pgx.BatchResults) error {
		rows, err := results.Query()
		return answered(rows, err, read)
	})
}

// answered reads rows to their end.
func answered(rows pgx.Rows, err error, read func(pgx.Rows) error) error {
	if err != nil {
		return storageError(err)
	}
	err = read(rows)
	rows.Close()
	if fault := rows.Err(); fault != nil && err == nil {
		err = storageError(fault)
	}
	return err
}

// flush sends what is owed.
func (p *pipe) flush(ctx context.Context) error {
	if p.owed.Len() == 0 {
		return nil
	}
	return p.send(ctx, func(*pgx.Batch) {}, func(pgx.BatchResults) error { return nil })
}

// send sends what is owed, and more behind it, in one go.
func (p *pipe) send(ctx context.Context, more func(*pgx.Batch), read func(pgx.BatchResults) error) (err error) {
	batch, whose := p.owed, p.whose
	p.owed, p.whose = new(pgx.Batch), nil
	p.wrote = p.wrote || slices.Contains(whose, p.unit)
	if !p.begun {
		begins := new(pgx.Batch)
		begins.Queue(p.begin)
		begins.QueuedQueries = append(begins.QueuedQueries, batch.QueuedQueries...)
		batch, whose, p.begun = begins, append([]*unit{nil}, whose...), true
	}
	more(batch)
	results := p.conn.SendBatch(p.of(ctx), batch)
	defer func() { err = errors.Join(err, storageError(results.Close())) }()
	for _, of := range whose {
		if _, err := results.Exec(); err != nil {
			p.blamed = of
			return storageError(err)
		}
	}
	p.blamed = p.unit
	return read(results)
}

// begins lets a unit begin: what follows is said for it.
func (p *pipe) begins(u *unit) { p.unit, p.blamed, p.wrote, p.early = u, u, false, nil }

// forget drops what is owed for the unit and was not sent.
func (p *pipe) forget() {
	mine := slices.Index(p.whose, p.unit)
	if mine >= 0 {
		p.owed.QueuedQueries, p.whose = p.owed.QueuedQueries[:mine], p.whose[:mine]
	}
	p.early = nil
}

// commit sends what is owed and keeps all of it.
func (p *pipe) commit(ctx context.Context) error {
	if !p.begun && p.owed.Len() == 0 {
		return nil
	}
	said := ""
	crashpoint.At(crashpoint.PipeCommit)
	err := p.send(ctx, func(b *pgx.Batch) { b.Queue("COMMIT") }, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		said = tag.String()
		return storageError(err)
	})
	switch {
	case err != nil:
		return fmt.Errorf("commit: %w", err)
	case said != "COMMIT": // a refusal that nobody looked at
		p.begun = false
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	}
	crashpoint.At(crashpoint.PipeKept)
	p.begun = false
	return nil
}

// undo ends the transaction without keeping it, if there is one.
func (p *pipe) undo(ctx context.Context) error {
	p.owed, p.whose, p.early = new(pgx.Batch), nil, nil
	if !p.begun {
		return nil
	}
	p.begun = false
	if p.conn.IsClosed() {
		return nil // the server undoes it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_, err := p.conn.Exec(ctx, "ROLLBACK")
	return err
}
