package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"till/flow/store/lite"
)

// View runs fn on what is kept at one moment: whatever is written meanwhile, fn
// sees none of it, and nobody who writes waits for fn.
func (d *DB) View(ctx context.Context, fn func(Reader) error) error {
	if d.dialect == postgresDialect {
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer context.AfterFunc(d.life, end)()
		return d.viewPostgres(ctx, fn)
	}
	return d.readers.with(ctx, func(l *lite.Conn) (err error) {
		if _, err := l.Exec("BEGIN"); err != nil {
			return err
		}
		defer func() {
			_, ended := l.Exec("ROLLBACK") // nothing was written
			err = errors.Join(err, ended)
		}()
		return fn(Reader{run: runner{statements: liteWriter{l}, dialect: sqliteDialect, keys: d.keys}})
	})
}

func (d *DB) viewPostgres(ctx context.Context, fn func(Reader) error) (err error) {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return storageError(fmt.Errorf("begin to read: %w", err))
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // nothing was written
	return fn(Reader{run: d.speaks(sqlStatements{sqlRunner: tx})})
}
