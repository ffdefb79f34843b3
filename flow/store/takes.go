package store

import (
	"context"
	"strings"
)

// Takes says whether something would be kept now: an error is that of an Update.
// While the last that was to be kept was not, as on a full disk, it tries with a
// row that it takes away again; where all is well it writes nothing.
func (d *DB) Takes(ctx context.Context) error {
	err := d.Update(ctx, func(tx *Tx) error {
		if !d.lost.Load() {
			return nil
		}
		// More than fits into what a page has left.
		err := tx.run.put(ctx, `INSERT INTO settings (name, value) VALUES ('tried', ?)`, strings.Repeat("-", 2*sqlitePage))
		if err != nil {
			return err
		}
		return tx.run.put(ctx, `DELETE FROM settings WHERE name = 'tried'`)
	})
	if err == nil {
		d.lost.Store(false)
	}
	return err
}

// UnderWay is how many updates have not returned. One of them may be committed
// already, and what it does after that still to be done.
func (d *DB) UnderWay() int { return int(d.under.Load()) }

// Queued is how many updates wait for the one writer; those of PostgreSQL that
// run by themselves wait elsewhere.
func (d *DB) Queued() int { return len(d.units) + len(d.later) }
