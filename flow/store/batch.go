package store

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"till/flow"
	"till/flow/crashpoint"
	"till/flow/planted"
	"till/flow/store/lite"
)

// batch commits units in one transaction.
func (d *DB) batch(w *lite.Conn, units []*unit) {
	err := d.together(w, units, one)
	if errors.Is(err, errAgain) {
		err = d.together(w, units, oneAlone)
	}
	if err != nil {
		d.lost.Store(true)
		d.log.Error("changes could not be kept, and whoever asked for them was told so", slog.String("error", err.Error()))
	}
	crashpoint.At(crashpoint.BatchKept)
	for _, u := range units {
		// A refusal may rest on what another unit wrote, which was never kept.
		if err != nil && (u.err == nil || u.tx != nil) {
			u.err = &flow.Error{Code: flow.CodeStorage, Message: notNow, Err: err}
		}
		close(u.done)
	}
}

// together runs units in one transaction. An error means that none is kept.
func (d *DB) together(w *lite.Conn, units []*unit, run func(*lite.Conn, *unit) error) error {
	_, err := w.Exec("BEGIN IMMEDIATE")
	if err != nil {
		return err
	}
	w.Inside = true
	read := new(steady)
	for _, u := range units {
		crashpoint.At(crashpoint.BatchUnit)
		u.tx, u.err = nil, u.begin()
		if u.err != nil {
			u.err = fmt.Errorf("begin a transaction: %w", u.err)
			continue
		}
		u.tx = &Tx{Reader: Reader{run: runner{statements: liteWriter{w}, dialect: sqliteDialect, keys: u.keys, steady: read}}}
		if err = run(w, u); err != nil {
			break
		}
	}
	if planted.LostCommit && err == nil && len(units) > 1 {
		w.Inside = false
		return w.Undo()
	}
	if err == nil {
		done := d.commits()
		crashpoint.At(crashpoint.BatchCommit)
		_, err = w.Exec("COMMIT")
		done()
	}
	w.Inside = false
	if err != nil {
		err = errors.Join(err, w.Undo())
	}
	return err
}

// errAgain says that the units of a batch must be run again, each to be undone
// by itself.
var errAgain = errors.New("a unit is to be undone")

// one runs a unit. To undo it alone SQLite would have to keep what it writes
// over, for every unit; few fail once they have written, so that then all are
// run again.
func one(w *lite.Conn, u *unit) error {
	w.Wrote = false
	u.err = guarded(u.run, u.tx)
	if u.err != nil && w.Wrote || w.Undone() {
		return errAgain
	}
	return nil
}

// oneAlone runs a unit in a savepoint of its own, so that its failure undoes it
// alone. An error means that the whole transaction is gone: out of space, out
// of memory and the like make SQLite undo all of it.
func oneAlone(w *lite.Conn, u *unit) error {
	if _, err := w.Exec("SAVEPOINT one"); err != nil {
		return err
	}
	u.err = guarded(u.run, u.tx)
	if u.err != nil {
		if _, err := w.Exec("ROLLBACK TO one"); err != nil {
			return fmt.Errorf("%w, after: %s", err, u.err.Error())
		}
		u.tx.run.steady.forget() // it may have read what it wrote
	}
	_, err := w.Exec("RELEASE one")
	return err
}

// guarded runs fn and turns a panic into an error with its stack, so that one
// caller's bug does not take the writer with it.
func guarded(fn func(*Tx) error, tx *Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic in a transaction: %v\n%s", r, debug.Stack())
		}
	}()
	return fn(tx)
}
