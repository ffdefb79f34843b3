package store_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A look at a database says what it is, finds what is kept, and changes nothing:
// not even one that is not there.
func TestALookChangesNothing(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		if c.URL == "" {
			if _, err := store.Inspect(t.Context(), c, true, time.Now); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a look at nothing: %v", err)
			}
			if _, err := os.Stat(filepath.Join(c.Dir, c.Name+".db")); err == nil {
				t.Error("the look made the file")
			}
		}
		db := storetest.Open(t, c)
		keep(t, db, session(1))
		got, err := store.Inspect(t.Context(), c, true, time.Now)
		if err != nil || got.Version == 0 || got.Version != got.Known || len(got.Pending) != 0 || len(got.Faults) != 0 {
			t.Errorf("a whole database: %+v, %v", got, err)
		}
		if server := c.URL != ""; server != !got.Clock.IsZero() || server && got.Asked.Sub(got.Clock).Abs() > time.Minute {
			t.Errorf("its clock says %s at %s", got.Clock, got.Asked)
		}
		err = store.Look(t.Context(), c, func(r store.Reader) error {
			_, err := r.Session(t.Context(), "wsp_sess_001")
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// What a database lacks of this program's schema is named in order.
func TestALookNamesWhatIsPending(t *testing.T) {
	storetest.EachEmpty(t, store.Accounts, func(t *testing.T, c store.Config) {
		update(t, storetest.Open(t, c), func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, "DELETE FROM schema_version WHERE version > 3")
		})
		got, err := store.Inspect(t.Context(), c, false, time.Now)
		if err != nil || got.Version != 3 || len(got.Pending) != got.Known-3 || got.Pending[0] != "0004_settlement_accounts.sql" {
			t.Errorf("an older database: %+v, %v", got, err)
		}
	})
}

// Whoever is told to stop does not copy to the end.
func TestACopyEndsWithWhoAsksForIt(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "large.db"), filepath.Join(dir, "copy.db")
	db, err := sql.Open("sqlite", "file:"+from)
	must(t, err)
	_, err = db.ExecContext(t.Context(), `CREATE TABLE t AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 256) SELECT zeroblob(1 << 20) AS x FROM n`)
	must(t, errors.Join(err, db.Close()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.CopySQLite(ctx, from, to) }()
	await.Until(t, "the copy is begun", func() bool { info, err := os.Stat(to); return err == nil && info.Size() > 0 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("told to stop, it ends with %v", err)
	}
}

// A copy of a database that is written to holds what was committed when it was
// made, whole.
func TestACopyIsWhole(t *testing.T) {
	c := storetest.SQLite(t, store.Checkout)
	db := storetest.Open(t, c)
	keep(t, db, session(1))
	dir := t.TempDir()
	must(t, store.CopySQLite(t.Context(), filepath.Join(c.Dir, c.Name+".db"), filepath.Join(dir, c.Name+".db")))
	keep(t, db, session(2))
	if faults, err := store.CheckSQLite(filepath.Join(dir, c.Name+".db")); err != nil || len(faults) > 0 {
		t.Errorf("the copy: %v, %v", faults, err)
	}
	c.Dir = dir
	other := storetest.Open(t, c)
	if _, err := other.Session(t.Context(), "wsp_sess_001"); err != nil {
		t.Error(err)
	}
	if _, err := other.Session(t.Context(), "wsp_sess_002"); flow.CodeOf(err) != flow.CodeNotFound {
		t.Errorf("what came after the copy is in it: %v", err)
	}
	if err := store.CopySQLite(t.Context(), filepath.Join(dir, "none.db"), filepath.Join(dir, "made.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
}
