package store

import (
	"context"
	"errors"

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

// viewPostgres begins with the first question and not before it: a view of two waits three
// times for the server, not four.
func (d *DB) viewPostgres(ctx context.Context, fn func(Reader) error) error {
	return piped(ctx, d.read, beginView, func(p *pipe) error {
		return fn(Reader{run: d.speaks(p)}) // what it leaves open is undone: nothing was written
	})
}
