package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
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

func (d *DB) openPostgres(ctx context.Context, c Config) error {
	d.dialect = postgresDialect
	sep := "?"
	if strings.Contains(c.URL, "?") {
		sep = "&"
	}
	url := c.URL + sep + "search_path=" + c.Name
	d.gate = semaphore.NewWeighted(pgConns)
	var err error
	writing := url + "&idle_in_transaction_session_timeout=" + strconv.FormatInt(pausedWithin.Milliseconds(), 10)
	if d.write, err = sql.Open("pgx", writing); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	d.write.SetMaxOpenConns(pgConns)
	d.write.SetMaxIdleConns(pgConns)
	if err := d.migrate(ctx, c); err != nil {
		return errors.Join(fmt.Errorf("open %s: %w", c.Name, err), d.write.Close())
	}
	// Readers have connections of their own: a transaction that reads outside
	// itself must not wait for a place that only it can free.
	if d.read, err = sql.Open("pgx", url+"&default_transaction_read_only=on"); err != nil {
		return errors.Join(fmt.Errorf("open %s for reading: %w", c.Name, err), d.write.Close())
	}
	d.read.SetMaxOpenConns(readers)
	d.read.SetMaxIdleConns(readers)
	d.Reader = Reader{run: runner{sqlStatements{d.read}, d.dialect}}
	close(d.done)
	return nil
}

// updatePostgres tries a transaction until it meets no other. What is refused
// again and again gets the whole process for itself, so that it ends.
func (d *DB) updatePostgres(ctx context.Context, fn func(*Tx) error) error {
	var err error
	for try := range maxRetries {
		places := int64(1)
		if try >= aloneFrom {
			places = pgConns
		}
		var tx *Tx
		if tx, err = d.tryPostgres(ctx, places, fn); err == nil {
			tx.committed()
			return nil
		}
		if !again(err, try) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return fmt.Errorf("try the transaction again: %w", err)
		}
	}
	return storageError(err)
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
	raw, err := d.write.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
	if err != nil {
		return nil, storageError(err)
	}
	tx := &Tx{Reader: Reader{run: runner{sqlStatements{raw}, postgresDialect}}}
	if err := guarded(fn, tx); err != nil {
		return nil, errors.Join(err, raw.Rollback())
	}
	if err := raw.Commit(); err != nil {
		return nil, storageError(fmt.Errorf("commit: %w", err))
	}
	return tx, nil
}

// postgresBug says whether PostgreSQL refused a statement for what it says, by
// the class of its code: data, constraint, syntax or access. The classes are
// those of https://www.postgresql.org/docs/current/errcodes-appendix.html.
func postgresBug(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23") || strings.HasPrefix(pg.Code, "42"))
}
