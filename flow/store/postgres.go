package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/semaphore"

	"till/flow"
)

// pausedWithin is how long PostgreSQL waits for the next statement of a
// transaction before it undoes it and hangs up. A process that is paused in the
// middle of one would otherwise keep its rows from every other process for as
// long as it is paused, also from the one that takes its numbers over: so this
// is well within the time that a number is held for a process that says nothing.
// https://www.postgresql.org/docs/current/runtime-config-client.html
const pausedWithin = 5 * time.Second

// connectWithin is how many seconds it may take to connect: longer than that a
// server is not there.
const connectWithin = "5"

// readOnly has a connection change nothing.
const readOnly = "default_transaction_read_only=on"

// errPooled says that what answers for PostgreSQL passes on no setting of a connection:
// what Till keeps apart by schemas would all be one.
var errPooled = errors.New("a connection is not given the search_path that it asks for")

// dialled are connections to the schema of a name, with more settings. Each is looked at
// when it is made: a pooler may be told to drop what it does not know.
func dialled(c Config, settings ...string) (*sql.DB, error) {
	to, err := pgx.ParseConfig(strings.Join(append([]string{addressed(c)}, settings...), "&"))
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return stdlib.OpenDB(*to, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		var kept string
		err := conn.QueryRow(ctx, "SELECT current_setting('search_path')", pgx.QueryExecModeSimpleProtocol).Scan(&kept)
		if err == nil && kept != c.Name {
			err = errPooled
		}
		if err != nil {
			err = errors.Join(err, conn.Close(ctx)) // nobody else does
		}
		return err
	})), nil
}

// Pooled says whether an error is due to a pooler between us and PostgreSQL, which gives
// each transaction another connection: it refuses or drops what a connection is told to
// hold to, and what is prepared on one it asks another for.
// https://www.pgbouncer.org/features.html
func Pooled(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, errPooled) || ok && (pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter") || pg.Code == "42P05" || pg.Code == "26000")
}

// Connections is how many a process holds at most to one schema.
const Connections = pgConns + readers

// Crowded says whether PostgreSQL refused a connection because it has as many as it takes.
func Crowded(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53300" // too_many_connections, of the server, a database or a role
}

func (d *DB) openPostgres(ctx context.Context, c Config) error {
	d.dialect = postgresDialect
	d.gate = semaphore.NewWeighted(pgConns)
	d.life, d.leave = context.WithCancel(context.Background()) //nolint:forbidigo // as long as it is open: Close ends it
	var err error
	if d.write, err = dialled(c, "idle_in_transaction_session_timeout="+strconv.FormatInt(pausedWithin.Milliseconds(), 10)); err != nil {
		return err
	}
	d.write.SetMaxOpenConns(pgConns)
	d.write.SetMaxIdleConns(pgConns)
	if err := d.migrate(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), d.write.Close())
	}
	if err := d.sealAll(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), d.write.Close())
	}
	// Readers have connections of their own: a transaction that reads outside
	// itself must not wait for a place that only it can free.
	if d.read, err = dialled(c, readOnly); err != nil {
		return errors.Join(fmt.Errorf("open %s for reading: %w", c.Name, err), d.write.Close())
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	d.bound = &bound{queries: map[string]string{}}
	d.Reader = Reader{run: d.speaks(sqlStatements{d.read, d.bounded})}
	go d.writer(d.batchPostgres, func() error { return nil })
	return nil
}

// bounded is the context that a transaction of its own, or a read outside one, runs under.
func (d *DB) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(ctx, d.within)
	left := context.AfterFunc(d.life, end)
	return ctx, func() {
		left()
		end()
	}
}

// speaks is how statements are run on PostgreSQL.
func (d *DB) speaks(to statements) runner {
	return runner{statements: to, dialect: postgresDialect, bound: d.bound, keys: d.keys}
}

// errSingly says that a unit is to be run in a transaction of its own.
var errSingly = errors.New("run it by itself")

// batchPostgres commits units in one transaction. PostgreSQL takes two that read
// and write next to each other, as any two payments do, for a conflict and
// refuses one; what this process does at once is therefore done one after the
// other, with one commit. What cannot be kept together is run by itself.
func (d *DB) batchPostgres(units []*unit) {
	defer func() {
		for _, u := range units {
			close(u.done)
		}
	}()
	left := units
	for range batchTries {
		failed, err := d.togetherPostgres(left)
		if err == nil {
			return
		}
		if failed != nil {
			failed.err = errSingly
			left = slices.DeleteFunc(slices.Clone(left), func(u *unit) bool { return u == failed })
		} else if !again(err, maxTaken) && !postgresBug(err) { // whether it was committed may be unknown: nobody may guess
			d.refused(err)
			for _, u := range left {
				u.err = storageError(err)
			}
			return
		}
	}
	for _, u := range left {
		u.err = errSingly
	}
}

// togetherPostgres runs units in one transaction. An error means that none is
// kept; it names the unit that it is due to, where it is due to one.
func (d *DB) togetherPostgres(units []*unit) (failed *unit, err error) {
	ctx, cancel := context.WithTimeout(d.life, d.within)
	defer cancel()
	if err := d.gate.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer d.gate.Release(1)
	err = piped(ctx, d.write, beginSerializable, func(p *pipe) error {
		run := d.speaks(p)
		run.steady = new(steady)
		p.ctx = ctx // none of the callers takes the transaction along when it goes
		for _, u := range units {
			if u.err = u.begin(); u.err != nil {
				u.err = fmt.Errorf("begin a transaction: %w", u.err)
				continue
			}
			p.begins(u)
			u.tx = &Tx{Reader: Reader{run: run}}
			u.err = guarded(u.run, u.tx)
			if u.err == nil {
				continue
			}
			if !p.wrote && !fromPostgres(u.err) && flow.CodeOf(u.err) != flow.CodeStorage {
				p.forget() // nothing of it was sent
				continue
			}
			if !again(u.err, maxTaken) && !p.conn.IsClosed() { // else it is nobody's fault
				failed = p.blamed
			}
			return u.err
		}
		p.begins(nil)
		done := d.commits()
		err := p.commit(ctx)
		done()
		if postgresBug(err) && !again(err, maxTaken) {
			failed = p.blamed
		}
		return err
	})
	return failed, err
}

// fromPostgres says whether an error is a refusal by the server.
func fromPostgres(err error) bool {
	_, ok := errors.AsType[*pgconn.PgError](err)
	return ok
}

// updatePostgres tries a transaction until it meets no other. What is refused
// again and again gets the whole process for itself, so that it ends.
func (d *DB) updatePostgres(ctx context.Context, fn func(*Tx) error) error {
	var err error
	for try := range maxRetries {
		var tx *Tx
		if tx, err = d.tryPostgres(ctx, places(ctx, try), fn); err == nil {
			tx.committed()
			return nil
		}
		if !again(err, try) {
			d.refused(err)
			return err
		}
		if err := pause(ctx, try); err != nil {
			return fmt.Errorf("try the transaction again: %w", err)
		}
	}
	return storageError(err)
}

// refused remembers where PostgreSQL keeps nothing any more.
func (d *DB) refused(err error) {
	if keepsNothing(err) {
		d.lost.Store(true)
	}
}

// again says whether PostgreSQL refused a transaction only because of another.
func again(err error, try int) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	return pg.Code == "40001" || pg.Code == "40P01" || pg.Code == "23505" && try < maxTaken
}

func (d *DB) tryPostgres(ctx context.Context, places int64, fn func(*Tx) error) (*Tx, error) {
	waits, cancel := context.WithTimeout(ctx, patient(ctx))
	defer cancel()
	if err := d.gate.Acquire(waits, places); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("wait for the store: %w", ctx.Err())
		}
		return nil, flow.Refuse(flow.CodeStorage, "The store is busy. Try again.")
	}
	defer d.gate.Release(places)
	ctx, end := d.bounded(ctx)
	defer end()
	var tx *Tx
	err := piped(ctx, d.write, begins(ctx), func(p *pipe) error {
		p.ctx = ctx // whatever fn passes on
		tx = &Tx{Reader: Reader{run: d.speaks(p)}}
		if err := guarded(fn, tx); err != nil {
			return err
		}
		defer d.commits()()
		return p.commit(ctx)
	})
	if err != nil {
		return nil, err
	}
	return tx, nil
}

// byRow is the key under which a context says so.
type byRow struct{}

// Rowwise is a context whose updates hang on nothing but the rows that they
// change, each by a condition of its own. PostgreSQL then need not watch what
// they read, and refuses no other transaction because of them.
// https://www.postgresql.org/docs/current/transaction-iso.html
func Rowwise(ctx context.Context) context.Context { return context.WithValue(ctx, byRow{}, true) }

// rowwise says whether a context is one.
func rowwise(ctx context.Context) bool { return ctx.Value(byRow{}) != nil }

// places is how many of the gate's a transaction of its own needs: what PostgreSQL
// watches runs alone in this process, or it would only be refused again.
func places(ctx context.Context, try int) int64 {
	if rowwise(ctx) && try < aloneFrom {
		return 1
	}
	return pgConns
}

func begins(ctx context.Context) string {
	if rowwise(ctx) {
		return beginByRow
	}
	return beginSerializable
}

// postgresBug says whether PostgreSQL refused a statement for what it says, by
// the class of its code: data, constraint, syntax or access. The classes are
// those of https://www.postgresql.org/docs/current/errcodes-appendix.html.
func postgresBug(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "42"))
}
