package store_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

var anew = flag.Bool("update", false, "write the shapes of the schemas anew")

// shape is what a database is made of, a line for each table.
func shape(t *testing.T, db *store.DB) string {
	t.Helper()
	columns, err := db.Columns(t.Context())
	must(t, err)
	slices.Sort(columns)
	var text strings.Builder
	table := ""
	for _, name := range columns {
		of, column, _ := strings.Cut(name, ".")
		if of != table {
			text.WriteString("\n" + of + ":")
			table = of
		}
		text.WriteString(" " + column)
	}
	return strings.TrimSpace(text.String()) + "\n"
}

// Both databases have the tables and columns that the program asks each database for.
func TestTheShapesOfTheSchemasGolden(t *testing.T) {
	for _, schema := range []store.Schema{store.Accounts, store.Checkout} {
		storetest.EachConfig(t, schema, func(t *testing.T, c store.Config) {
			file, got := filepath.Join("shape", string(schema)+".txt"), shape(t, storetest.Open(t, c))
			if *anew {
				must(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if got != string(want) {
				t.Errorf("%s is not what the migrations make (go test ./flow/store -run Golden -update):\n%s", file, got)
			}
		})
	}
}

// A database that says of itself that it is today's, and lacks a part of it, fails at
// whatever needs that part, maybe days after its start: it is refused at once, by name.
// A column that is there besides does not matter.
func TestADatabaseThatLacksAPartIsRefused(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		asIs := c
		asIs.AsIs = true
		db, err := store.Open(t.Context(), c)
		must(t, err)
		change := func(query string) {
			must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(context.WithoutCancel(t.Context()), query) }))
		}
		change("ALTER TABLE names ADD COLUMN another TEXT")
		storetest.Open(t, c)
		change("ALTER TABLE names DROP COLUMN amount")
		must(t, db.Close())
		for _, c := range []store.Config{c, asIs} {
			db, err := store.Open(t.Context(), c)
			if !errors.Is(err, store.ErrStrange) || !strings.Contains(err.Error(), "it lacks names.amount") {
				t.Errorf("as it is: %t: %v", c.AsIs, err)
			}
			if err == nil {
				must(t, db.Close())
			}
		}
	})
}

// One that a step does not fit, since it has already what that makes, is refused as
// such, and not as one that might be tried again.
func TestADatabaseThatAStepDoesNotFitIsRefused(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
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
