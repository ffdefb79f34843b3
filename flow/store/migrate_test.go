package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

func TestADatabaseIsOpenedAgainWithWhatItHeld(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		first, err := store.Open(t.Context(), c)
		must(t, err)
		keep(t, first, session(1))
		must(t, first.Close())
		if _, err := storetest.Open(t, c).Session(t.Context(), "wsp_sess_001"); err != nil {
			t.Error(err)
		}
	})
}

func TestADatabaseOfANewerProgramIsRefused(t *testing.T) {
	for _, schema := range []store.Schema{store.Checkout, store.Accounts} {
		storetest.EachEmpty(t, schema, func(t *testing.T, c store.Config) {
			db, err := store.Open(t.Context(), c)
			must(t, err)
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				return tx.Exec(ctx, "INSERT INTO schema_version (version) VALUES (99)")
			})
			must(t, db.Close())
			_, err = store.Open(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), "newer Till") {
				t.Errorf("opened a newer database: %v", err)
			}
		})
	}
}

// What a command beside a server opens stays as it is, whichever program made it.
func TestADatabaseThatIsToStayAsItIsIsNotMigrated(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		asIs := c
		asIs.AsIs = true
		if _, err := store.Open(t.Context(), asIs); !errors.Is(err, store.ErrOlder) {
			t.Errorf("one that nothing was made in: %v", err)
		}
		db, err := store.Open(t.Context(), c)
		must(t, err)
		must(t, db.Close())
		storetest.Open(t, asIs)
		if db, err = store.Open(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		was, err := db.Version(t.Context())
		must(t, err)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, "DELETE FROM schema_version WHERE version = ?", was)
		})
		if _, err := store.Open(t.Context(), asIs); !errors.Is(err, store.ErrOlder) {
			t.Errorf("an older one: %v", err)
		}
		if is, err := db.Version(t.Context()); err != nil || is != was-1 {
			t.Errorf("it was of schema %d, and is of %d, %v", was-1, is, err)
		}
		must(t, db.Close())
	})
}

// A step that fails in its middle leaves nothing of itself: once what is in its way is
// gone, it is taken whole.
func TestAStepThatFailsInItsMiddleLeavesNothing(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("migration", "accounts", "*.sql"))
	must(t, err)
	slices.Sort(files)
	before := slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, "_filters.sql") })
	storetest.EachEmpty(t, store.Accounts, func(t *testing.T, c store.Config) {
		madeBy(t, c, files[:before], "CREATE TABLE audit_of_actor (in_its_way BIGINT)") // an index of that step
		if _, err := store.Open(t.Context(), c); !errors.Is(err, store.ErrStrange) {
			t.Errorf("it says: %v", err)
		}
		must(t, store.Look(t.Context(), c, func(r store.Reader) error {
			if is, err := r.Version(t.Context()); err != nil || is != before {
				t.Errorf("it was of schema %d, and is of %d (%v)", before, is, err)
			}
			if n, err := r.Count(t.Context(), "SELECT COUNT(*) FROM filters"); err == nil {
				t.Errorf("what the step made before it failed is there, with %d rows", n)
			}
			return nil
		}))
		outside(t, c, "DROP TABLE audit_of_actor")
		storetest.Open(t, c)
	})
}

func TestManyProgramsMayOpenANewDatabaseAtOnce(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				db, err := store.Open(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

func TestADirectoryMayHaveAnyName(t *testing.T) {
	c := storetest.EmptySQLite(t, store.Accounts)
	c.Dir = filepath.Join(c.Dir, "50% off? #1")
	must(t, os.Mkdir(c.Dir, 0o700))
	storetest.Open(t, c)
	if _, err := os.Stat(filepath.Join(c.Dir, "accounts.db")); err != nil {
		t.Error(err)
	}
}

func TestADatabaseThatCannotBeReachedIsAnError(t *testing.T) {
	for name, c := range map[string]store.Config{
		"no such directory": {Schema: store.Checkout, Dir: filepath.Join(t.TempDir(), "missing"), Name: "test"},
		"no such server":    {Schema: store.Checkout, URL: "postgres://till@127.0.0.1:1/none?connect_timeout=1", Name: "test"},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := store.Open(t.Context(), c)
			if err == nil {
				_ = db.Close()
				t.Error("opened")
			}
		})
	}
}

// On a machine that is busy a migration comes to its next statement late, and is not
// undone for it as what takes money is; one that is paused keeps others out for a while.
func TestAMigrationHasLongerForItsNextStatement(t *testing.T) {
	c := storetest.EmptyPostgres(t, store.Checkout)
	setting := "current_setting('idle_in_transaction_session_timeout')"
	outside(t, c, "CREATE SCHEMA "+c.Name+";\nCREATE TABLE schema_version (version BIGINT NOT NULL);\nCREATE TABLE seen (within TEXT);\n"+
		"CREATE FUNCTION see() RETURNS trigger AS $$ BEGIN INSERT INTO seen VALUES ("+setting+"); RETURN NEW; END $$ LANGUAGE plpgsql;\n"+
		"CREATE TRIGGER sees BEFORE INSERT ON schema_version FOR EACH ROW EXECUTE FUNCTION see()")
	db := storetest.Open(t, c)
	for what, query := range map[string]string{
		"a migration":   "SELECT COUNT(*) FROM seen WHERE within <> '1min'",
		"a transaction": "SELECT COUNT(*) WHERE " + setting + " <> '5s'",
	} {
		n := doing(t, db, func(ctx context.Context, tx *store.Tx) (int, error) { return tx.Count(ctx, query) })
		if n != 0 {
			t.Errorf("%s has another time, %d times", what, n)
		}
	}
	if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM seen"); err != nil || n == 0 {
		t.Errorf("%d migrations were seen (%v)", n, err)
	}
}
