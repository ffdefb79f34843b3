package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"till/flow/store/lite"
)

// Inspection is what a look at a database found, without changing it.
type Inspection struct {
	// Version is the schema that it has, Known the one that this program makes of it.
	Version, Known int
	// Pending are the migrations that would bring it there, by name, in order.
	Pending []string
	// Lacks are the columns that it should have by its version and has not, where that is
	// this program's.
	Lacks []string
	// As is the name under which it was made, "" where it does not say so.
	As string
	// Faults are what SQLite finds wrong in the file, at most a few. Only a deep
	// inspection looks for them.
	Faults []string
	// Size and Log are the bytes of an SQLite file and of its log.
	Size, Log int64
	// Clock is what a database server's clock said at the moment Asked by ours;
	// zero for SQLite, which has none.
	Clock, Asked time.Time
}

// maxFaults is how many faults of a file are told: one is enough to restore it.
const maxFaults = 5

// ErrUnmade says that a database is there and nothing was ever made in it.
var ErrUnmade = errors.New("nothing was ever made in it")

// Inspect looks at a database as it is: it neither makes nor migrates one. deep
// also has SQLite read every page, which takes seconds for each GB. Errors:
// fs.ErrNotExist for a file that is not there, ErrUnmade; what is pending is all then.
func Inspect(ctx context.Context, c Config, deep bool, now func() time.Time) (out Inspection, err error) {
	files, err := steps(c.Schema)
	if err != nil {
		return out, err
	}
	out.Known = len(files)
	for _, f := range files {
		out.Pending = append(out.Pending, path.Base(f))
	}
	if c.URL == "" {
		file := filepath.Join(c.Dir, c.Name+".db")
		info, err := os.Stat(file)
		if err != nil {
			return out, fmt.Errorf("look at %s: %w", c.Name, err)
		}
		out.Size = info.Size()
		if log, err := os.Stat(file + "-wal"); err == nil {
			out.Log = log.Size()
		}
	}
	err = Look(ctx, c, func(r Reader) error {
		made, err := r.made(ctx, c.Name)
		if err == nil && !made {
			err = ErrUnmade
		}
		if err != nil {
			return err
		}
		if out.Version, err = r.Version(ctx); err != nil {
			return err
		}
		out.Pending = out.Pending[min(out.Version, out.Known):]
		if out.Version == out.Known {
			if out.Lacks, err = r.Lacks(ctx, c.Schema); err == nil && len(out.Lacks) == 0 {
				out.As, err = r.MadeAs(ctx)
			}
			if err != nil {
				return err
			}
		}
		if r.run.dialect == postgresDialect {
			out.Asked = now()
			out.Clock, _, err = r.Clock(ctx)
			return err
		}
		if !deep {
			return nil
		}
		return r.run.each(ctx, fmt.Sprintf("PRAGMA quick_check(%d)", maxFaults), nil, func(scan scanner) error {
			var fault string
			err := scan(&fault)
			if fault != "ok" {
				out.Faults = append(out.Faults, fault)
			}
			return err
		})
	})
	return out, err
}

// Clock is what the clock of a database's server says; false for SQLite, which has
// none.
func (r Reader) Clock(ctx context.Context) (time.Time, bool, error) {
	if r.run.dialect != postgresDialect {
		return time.Time{}, false, nil
	}
	var ms int64
	if _, err := r.run.one(ctx, "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)", nil, &ms); err != nil {
		return time.Time{}, false, fmt.Errorf("ask the database's clock: %w", err)
	}
	return time.UnixMilli(ms), true, nil
}

// Version is the schema that a database has.
func (r Reader) Version(ctx context.Context) (version int, err error) {
	if _, err := r.run.one(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_version", nil, &version); err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// Version is the schema that this program makes.
func (s Schema) Version() (int, error) {
	files, err := steps(s)
	return len(files), err
}

// steps are the migrations of a schema, in order.
func steps(s Schema) ([]string, error) {
	files, err := fs.Glob(migrations, "migration/"+string(s)+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	return files, nil
}

// Look reads in a database as it is, whatever its schema: it neither makes nor
// migrates one. Errors: fs.ErrNotExist for a file that is not there.
func Look(ctx context.Context, c Config, look func(Reader) error) (err error) {
	if c.URL != "" {
		db, err := dialled(c, readOnly)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if err := db.PingContext(ctx); err != nil {
			return fmt.Errorf("reach the database: %w", err)
		}
		return look(Reader{run: runner{statements: sqlStatements{sqlRunner: db}, dialect: postgresDialect, keys: c.Keys}})
	}
	file := filepath.Join(c.Dir, c.Name+".db")
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("look at %s: %w", c.Name, err)
	}
	few := newLiteReaders("file:"+inURI.Replace(file)+"?mode=rw", 1)
	defer func() { err = errors.Join(err, few.close()) }()
	return look(Reader{run: runner{statements: few, dialect: sqliteDialect, keys: c.Keys}})
}

// Made says whether anything was ever made in a database. Errors: fs.ErrNotExist for a
// file that is not there.
func Made(ctx context.Context, c Config) (made bool, err error) {
	err = Look(ctx, c, func(r Reader) error {
		made, err = r.made(ctx, c.Name)
		return err
	})
	return made, err
}

// made says whether anything was ever made in a database of a name. PostgreSQL says so to
// roles too that may not look at what it is.
func (r Reader) made(ctx context.Context, name string) (bool, error) {
	if r.run.dialect != postgresDialect {
		return r.hasTable(ctx, "schema_version")
	}
	n := 0
	_, err := r.run.one(ctx, "SELECT COUNT(*) FROM pg_tables WHERE schemaname = ? AND tablename = 'schema_version'", []any{strings.ToLower(name)}, &n)
	return n > 0, err
}

// addressed is a PostgreSQL address that leads to the schema of a name. What the address
// itself says of a time to connect within stands before ours and counts.
func addressed(c Config) string {
	sep := "?"
	if strings.Contains(c.URL, "?") {
		sep = "&"
	}
	return c.URL + sep + "search_path=" + c.Name + "&connect_timeout=" + connectWithin
}

// CopySQLite writes what an SQLite file holds at one moment to a new file,
// beside whoever works with it; nobody waits for it. It is not made for
// PostgreSQL, which has tools of its own. Once ctx ends the copy does, and what is
// there of it is for the caller to remove.
func CopySQLite(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("copy a database: %w", err)
	}
	db, err := lite.Open("file:"+inURI.Replace(from)+"?mode=rw", "busy_timeout(5000)")
	if err != nil {
		return fmt.Errorf("copy %s: %w", filepath.Base(from), err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	done := db.Until(ctx)
	_, err = db.Exec("VACUUM INTO ?", to)
	done()
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", filepath.Base(from), err)
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("copy %s: %w", filepath.Base(from), err)
	}
	return errors.Join(f.Sync(), f.Close())
}

// Unopened says whether an error is that of a file which the system did not let us
// open, as another user's or one of a disk that cannot be written: it says nothing
// of what is in it, which may be whole.
func Unopened(err error) bool {
	return lite.Unopened(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Damaged says whether an error is that a file of SQLite's is damaged.
func Damaged(err error) bool { return lite.Damaged(err) }

// Full says whether an error is that of a disk with no room left.
func Full(err error) bool { return lite.Full(err) || errors.Is(err, syscall.ENOSPC) }

// CheckSQLite has SQLite read every page of a file and says what is wrong with
// it, nil for a whole one. It changes no byte of it.
func CheckSQLite(file string) (faults []string, err error) {
	db, err := lite.Open("file:"+inURI.Replace(file)+"?mode=ro", "busy_timeout(5000)", "query_only(1)")
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", filepath.Base(file), err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.Each(fmt.Sprintf("PRAGMA integrity_check(%d)", maxFaults), nil, func(scan lite.Scanner) error {
		var fault string
		err := scan(&fault)
		if fault != "ok" {
			faults = append(faults, fault)
		}
		return err
	})
	return faults, err
}
