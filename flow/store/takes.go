package store

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Takes says whether something would be kept now: an error is that of an Update.
// While the last that was to be kept was not, as on a full disk, it tries with a
// row that it takes away again; where all is well it writes nothing.
func (d *DB) Takes(ctx context.Context) error {
	lost := d.lost.Load()
	err := d.Update(ctx, func(tx *Tx) error {
		if err := tx.writes(ctx); err != nil || !lost {
			return err
		}
		return tx.run.put(ctx, `INSERT INTO settings (name, value) VALUES ('tried', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, d.trial())
	})
	if err == nil && lost { // not before: SQLite writes nothing of what is gone by the end of its transaction
		err = d.Update(ctx, func(tx *Tx) error { return tx.run.put(ctx, `DELETE FROM settings WHERE name = 'tried'`) })
	}
	if err == nil {
		d.lost.Store(false)
	}
	return err
}

// trialPages is how many pages a trial takes: more than any call changes, or there could
// be room for the one and none for the other.
const trialPages = 64

// trial is what the last pages of a disk have no room for. PostgreSQL would make little
// of what repeats itself.
func (d *DB) trial() string {
	if d.dialect == sqliteDialect {
		return strings.Repeat("-", trialPages*sqlitePage)
	}
	raw := make([]byte, trialPages*postgresPage)
	_, _ = rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

// postgresPage is how large a page of a PostgreSQL table is.
const postgresPage = 8192

// errOnlyRead says that PostgreSQL lets nobody write, as one that stands by does.
var errOnlyRead = errors.New("the database is read-only")

// writes asks PostgreSQL whether it lets anybody write. SQLite is told apart by what
// became of the last that was to be kept.
func (t *Tx) writes(ctx context.Context) error {
	if t.run.dialect == sqliteDialect {
		return nil
	}
	only := ""
	if _, err := t.run.one(ctx, `SELECT current_setting('transaction_read_only')`, nil, &only); err != nil {
		return err
	}
	if only == "on" {
		return storageError(errOnlyRead)
	}
	return nil
}

// keepsNothing says whether PostgreSQL refused something because it can keep nothing:
// it has no room, may only be read, or its disk fails.
// https://www.postgresql.org/docs/current/errcodes-appendix.html
func keepsNothing(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "25006" || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "58"))
}

// UnderWay is how many updates have not returned. One of them may be committed
// already, and what it does after that still to be done.
func (d *DB) UnderWay() int { return int(d.under.Load()) }

// Queued is how many updates wait for the one writer; those of PostgreSQL that
// run by themselves wait elsewhere.
func (d *DB) Queued() int { return len(d.units) + len(d.later) }
