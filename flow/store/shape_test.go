package store_test

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow/store"
	"till/flow/store/storetest"
)

var anew = flag.Bool("update", false, "write the shapes of the schemas anew")

// Both databases have the tables and columns that the program asks each database for, and
// each the guards of its own.
func TestTheShapesOfTheSchemasGolden(t *testing.T) {
	for _, schema := range []store.Schema{store.Accounts, store.Checkout} {
		storetest.EachEmpty(t, schema, func(t *testing.T, c store.Config) {
			file := filepath.Join("shape", string(schema)+".txt")
			parts, own, err := storetest.Open(t, c).Parts(t.Context())
			must(t, err)
			want, err := os.ReadFile(file)
			must(t, err)
			got := map[string]string{}
			for of, names := range parts {
				got[of] = of + ": " + strings.Join(names, " ") + "\n"
			}
			for line := range strings.Lines(string(want)) {
				if of, _, _ := strings.Cut(line, ": "); strings.Contains(of, " ") && !strings.HasPrefix(of, own) {
					got[of] = line // the other database's
				}
			}
			var text strings.Builder
			for _, guard := range []bool{false, true} {
				for _, of := range slices.Sorted(maps.Keys(got)) {
					if strings.Contains(of, " ") == guard {
						text.WriteString(got[of])
					}
				}
			}
			if *anew {
				must(t, os.WriteFile(file, []byte(text.String()), 0o600))
			} else if text.String() != string(want) {
				t.Errorf("%s is not what the migrations make (go test ./flow/store -run Golden -update):\n%s", file, text.String())
			}
		})
	}
}

// A database that says of itself that it is today's, and lacks a part of it, fails at
// whatever needs that part, maybe days after its start, and one without a guard fails at
// nothing: it is refused at once, by name. What is there besides does not matter, nor an
// index that guards nothing.
func TestADatabaseThatLacksAPartIsRefused(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		asIs := c
		asIs.AsIs = true
		db, err := store.Open(t.Context(), c)
		must(t, err)
		gone := map[string]string{
			"names.amount":                 "ALTER TABLE names DROP COLUMN amount",
			"unique index event_once":      "DROP INDEX event_once",
			"trigger ledger_never_changes": "DROP TRIGGER ledger_never_changes",
		}
		if db.Postgres() {
			gone = map[string]string{
				"names.amount":                      gone["names.amount"],
				"unique index event_once":           gone["unique index event_once"],
				"trigger ledger_stays":              "ALTER TABLE ledger DISABLE TRIGGER ledger_stays",
				"check ledger_check":                "ALTER TABLE ledger DROP CONSTRAINT ledger_check",
				"unique index log_pkey":             "ALTER TABLE log DROP CONSTRAINT log_pkey",
				"foreign key attempts_session_fkey": "ALTER TABLE attempts DROP CONSTRAINT attempts_session_fkey",
			}
		}
		change := func(query string) {
			must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(context.WithoutCancel(t.Context()), query) }))
		}
		change("ALTER TABLE names ADD COLUMN another TEXT")
		change("DROP INDEX chat_person")
		storetest.Open(t, c)
		lacked := slices.Sorted(maps.Keys(gone))
		for i, part := range lacked {
			change(gone[part])
			if got, err := db.Lacks(t.Context(), store.Checkout); err != nil || !slices.Equal(got, lacked[:i+1]) {
				t.Errorf("without %s it lacks %q (%v)", part, got, err)
			}
			if i > 0 {
				continue
			}
			for _, c := range []store.Config{c, asIs} {
				other, err := store.Open(t.Context(), c)
				if !errors.Is(err, store.ErrStrange) || !strings.Contains(err.Error(), "it lacks "+part) {
					t.Errorf("as it is: %t: %v", c.AsIs, err)
				}
				if err == nil {
					must(t, other.Close())
				}
			}
		}
		must(t, db.Close())
	})
}

// What is looked at says what it lacks, also where that is what says under which name it was made.
func TestALookSaysWhatADatabaseLacks(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		db, err := store.Open(t.Context(), c)
		must(t, err)
		must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), "DROP TABLE settings") }))
		must(t, db.Close())
		got, err := store.Inspect(t.Context(), c, true, func() time.Time { return noon })
		if err != nil || !slices.Contains(got.Lacks, "settings.value") {
			t.Errorf("it lacks %q, %v", got.Lacks, err)
		}
	})
}

// A database says under which name it was made. One that was made before any did says so
// from its next start on, and not where nothing of it is to be changed.
func TestADatabaseIsOpenedByItsOwnName(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		asIs := c
		asIs.AsIs = true
		made := func(c store.Config, change string, args ...any) (as string) {
			db, err := store.Open(t.Context(), c)
			must(t, err)
			as, err = db.MadeAs(t.Context())
			must(t, err)
			must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), change, args...) }))
			must(t, db.Close())
			return as
		}
		if as := made(c, "DELETE FROM settings WHERE name = 'made_as'"); as != c.Name {
			t.Errorf("%q was made as %q", c.Name, as)
		}
		if as := made(asIs, "DELETE FROM settings WHERE name = 'made_as'"); as != "" {
			t.Errorf("who only looks wrote %q", as)
		}
		if as := made(c, "UPDATE settings SET value = 'another' WHERE name = 'made_as'"); as != c.Name {
			t.Errorf("%q says from its next start on that it is %q", c.Name, as)
		}
		for _, c := range []store.Config{c, asIs} {
			if _, err := store.Open(t.Context(), c); !errors.Is(err, store.ErrElsewhere) || !strings.HasSuffix(err.Error(), ": another") {
				t.Errorf("as it is: %t: %v", c.AsIs, err)
			}
		}
	})
}

// One that a step does not fit, since it has already what that makes, is refused as
// such, and not as one that might be tried again.
func TestADatabaseThatAStepDoesNotFitIsRefused(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		db, err := store.Open(t.Context(), c)
		must(t, err)
		was, err := db.Version(t.Context())
		must(t, err)
		must(t, db.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Exec(t.Context(), "DELETE FROM schema_version WHERE version > ?", was-2)
		}))
		must(t, db.Close())
		if _, err := store.Open(t.Context(), c); !errors.Is(err, store.ErrStrange) {
			t.Errorf("it says: %v", err)
		}
		err = store.Look(t.Context(), c, func(r store.Reader) error {
			if is, err := r.Version(t.Context()); err != nil || is != was-2 {
				t.Errorf("it was of schema %d, and is of %d (%v)", was-2, is, err)
			}
			return nil
		})
		must(t, err)
	})
}
