package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"till/flow/store/lite"
)

// This file brings a database to the schema that this program knows, a step at a time.

// migrate brings the schema up to date, each step in a transaction of its own.
// A database from a newer program is refused. Two programs may do it at once.
func (d *DB) migrate(ctx context.Context, c Config) error {
	files, err := steps(c.Schema)
	if err != nil {
		return err
	}
	if c.AsIs {
		if err := d.migrated(ctx, len(files)); err != nil {
			return err
		}
		return d.known(ctx, c)
	}
	for range len(files) + 1 {
		done, err := d.step(ctx, c.Name, files)
		if err != nil {
			return err
		}
		if done {
			return d.known(ctx, c)
		}
	}
	return errors.New("the migrations do not end")
}

// ErrElsewhere says that a database was made under another name: test.db and live.db in
// each other's place would pay pretend money out.
var ErrElsewhere = errors.New("it was made as another database")

// madeAs is the setting that says under which name a database was made.
const madeAs = "made_as"

// MadeAs is the name under which a database was made, "" where it does not say so.
func (r Reader) MadeAs(ctx context.Context) (string, error) { return r.Setting(ctx, madeAs) }

// named refuses a database that was made under another name than it is opened by, and
// has one that may be changed and says nothing keep that. Errors: ErrElsewhere.
func (d *DB) named(ctx context.Context, c Config) error {
	tx := Tx{Reader: Reader{run: runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect}}}
	as, err := tx.MadeAs(ctx)
	switch {
	case err != nil || as == c.Name || as == "" && c.AsIs:
		return err
	case as != "":
		return fmt.Errorf("%w: %s", ErrElsewhere, as)
	}
	return tx.SetSetting(ctx, madeAs, c.Name)
}

// migrated refuses a database that another program made and that is not migrated
// to what this one knows.
func (d *DB) migrated(ctx context.Context, known int) error {
	r := Reader{run: runner{statements: sqlStatements{sqlRunner: d.write}, dialect: d.dialect}}
	version := 0
	made, err := r.hasTable(ctx, "schema_version")
	if err == nil && made {
		version, err = r.Version(ctx)
	}
	switch {
	case err != nil:
		return err
	case version > known:
		return newer(version, known)
	case version < known:
		return fmt.Errorf("%w (schema %d, this program knows %d)", ErrOlder, version, known)
	}
	return nil
}

// ErrNewer says that a database was made, or changed since, by a newer program.
var ErrNewer = errors.New("the data is of a newer Till")

// ErrGone says that a schema is not in its database any more, or may not be read.
var ErrGone = errors.New("the schema is gone")

// newer is the refusal of what a newer program made.
func newer(version, known int) error {
	return fmt.Errorf("%w (schema %d, this program knows %d): use that one", ErrNewer, version, known)
}

// Fits looks whether a database that was opened is of this program still: on
// PostgreSQL another may have changed it since. Errors: ErrNewer, ErrGone.
func (r Reader) Fits(ctx context.Context, s Schema) error {
	files, err := steps(s)
	if err != nil {
		return err
	}
	version, err := r.Version(ctx)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42P01" { // undefined_table
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err == nil && version > len(files) {
		err = newer(version, len(files))
	}
	return err
}

// notHere marks a statement that is for the other dialect.
const notHere = "{{not here}}"

// words of the migrations that differ between the dialects. A statement that
// holds {{sqlite}} or {{postgres}} is for that one alone.
func (d dialect) words() *strings.Replacer {
	if d == postgresDialect {
		return strings.NewReplacer("{{int}}", "BIGINT", "{{blob}}", "BYTEA", "{{strict}}", "", "{{postgres}}", "", "{{sqlite}}", notHere)
	}
	return strings.NewReplacer("{{int}}", "INTEGER", "{{blob}}", "BLOB", "{{strict}}", "STRICT", "{{sqlite}}", "", "{{postgres}}", notHere)
}

// migratesWithin is pausedWithin of a migration: nothing is served yet that it could keep
// waiting but other starts, and one that is undone is a start that failed.
const migratesWithin = "1min"

// step takes the next step, if there is one. It looks at the version only once
// it holds the lock: another program may have been faster.
func (d *DB) step(ctx context.Context, name string, files []string) (done bool, err error) {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("reach the database: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	run := runner{statements: sqlStatements{sqlRunner: tx}, dialect: d.dialect, keys: d.keys}
	if d.dialect == postgresDialect {
		// The schema's name is the program's own word, never input.
		for _, stmt := range []string{"SET LOCAL idle_in_transaction_session_timeout = '" + migratesWithin + "'", "SELECT pg_advisory_xact_lock(hashtext('till " + name + "'))", "CREATE SCHEMA IF NOT EXISTS " + name} {
			if _, err := run.exec(ctx, stmt); err != nil {
				return false, fmt.Errorf("make the schema %s: %w", name, err)
			}
		}
	}
	if _, err := run.exec(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)"); err != nil {
		return false, fmt.Errorf("read the schema's version: %w", err)
	}
	var version int
	if _, err := run.one(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_version", nil, &version); err != nil {
		return false, fmt.Errorf("read the schema's version: %w", err)
	}
	if version > len(files) {
		return false, newer(version, len(files))
	}
	if version < len(files) {
		err := d.apply(ctx, run, files[version], version+1)
		if lite.Bug(err) || postgresBug(err) { // what it says of other databases it does not say of this one
			err = fmt.Errorf("%w: %w", ErrStrange, err)
		}
		if err != nil {
			return false, fmt.Errorf("migrate by %s: %w", files[version], err)
		}
	}
	return version == len(files), tx.Commit()
}

func (d *DB) apply(ctx context.Context, run runner, file string, version int) error {
	text, err := migrations.ReadFile(file)
	if err != nil {
		return err
	}
	for stmt := range strings.SplitSeq(d.dialect.words().Replace(string(text)), ";\n") {
		stmt = strings.TrimSpace(stmt)
		if stmt == "" || strings.Contains(stmt, notHere) {
			continue
		}
		if _, err := run.exec(ctx, stmt); err != nil {
			return err
		}
	}
	if err := d.related(ctx, run); err != nil {
		return err
	}
	_, err = run.exec(ctx, "INSERT INTO schema_version (version) VALUES (?)", version)
	return err
}

// related refuses rows of SQLite that name others which are not there: while its
// schema changes, nothing else looks.
func (d *DB) related(ctx context.Context, run runner) error {
	if d.dialect != sqliteDialect {
		return nil
	}
	return run.each(ctx, "SELECT \"table\", rowid FROM pragma_foreign_key_check", nil, func(scan scanner) error {
		var table string
		var row int64
		if err := scan(&table, &row); err != nil {
			return err
		}
		return fmt.Errorf("row %d of %s names another that is not there", row, table)
	})
}
