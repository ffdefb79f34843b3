package store_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

// The work of which the log is torn: one after the other, and together.
const (
	tornAlone    = 150
	tornTogether = 150
)

// lefts are how many transactions there are, by one of their rows.
func lefts(ctx context.Context, r store.Reader) (int, error) {
	return r.Count(ctx, "SELECT COUNT(*) FROM settings WHERE name LIKE 'left %'")
}

// numbered writes one transaction of two rows, which has the next number.
func numbered(ctx context.Context, db *store.DB) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		n, err := lefts(ctx, tx.Reader)
		if err != nil {
			return err
		}
		for _, side := range []string{"left ", "right "} {
			if err := tx.SetSetting(ctx, fmt.Sprint(side, n+1), strconv.Itoa(n+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// torn tears the log of a database at random bytes, so many times, as a power cut
// does: it ends there, or what comes after is not what was written. It returns how
// many different states were found.
func torn(tb testing.TB, cuts int, random *rand.Rand) int {
	tb.Helper()
	ctx, c := context.Background(), storetest.SQLite(tb, store.Checkout)
	db := storetest.Open(tb, c)
	for range tornAlone {
		must(tb, numbered(ctx, db))
	}
	var group sync.WaitGroup
	for range tornTogether {
		group.Go(func() {
			if err := numbered(ctx, db); err != nil {
				tb.Error(err)
			}
		})
	}
	group.Wait()
	file := filepath.Join(c.Dir, c.Name+".db")
	whole, err := os.ReadFile(file)
	must(tb, err)
	log, err := os.ReadFile(file + "-wal")
	if err != nil || len(log) < 100<<10 {
		tb.Fatalf("a log of %d bytes: %v", len(log), err)
	}
	states := map[int]bool{}
	for n := range cuts {
		at := random.IntN(len(log) + 1)
		rest := bytes.Clone(log[:at])
		switch n % 3 {
		case 1: // the file had its length before its contents
			rest = append(rest, make([]byte, len(log)-at)...)
		case 2: // one sector is of something else
			rest = append(rest, log[at:]...)
			for i := at; i < min(at+512, len(rest)); i++ {
				rest[i] = byte(random.IntN(256))
			}
		}
		states[recovered(tb, whole, rest)] = true
	}
	if got := recovered(tb, whole, log); got != tornAlone+tornTogether {
		tb.Errorf("of the whole log %d transactions are there", got)
	}
	return len(states)
}

// recovered opens a database with a log, and returns how many transactions are there:
// the first so many, each of them whole.
func recovered(tb testing.TB, file, log []byte) int {
	tb.Helper()
	ctx, dir := context.Background(), tb.TempDir()
	path := filepath.Join(dir, "checkout.db")
	must(tb, os.WriteFile(path, file, 0o600))
	must(tb, os.WriteFile(path+"-wal", log, 0o600))
	db, err := store.Open(ctx, store.Config{Schema: store.Checkout, Dir: dir, Name: "checkout"})
	if err != nil {
		tb.Fatalf("a torn log: %v", err)
	}
	n, err := lefts(ctx, db.Reader)
	must(tb, err)
	for side := range map[string]bool{"left": true, "right": true} {
		if there, err := db.Count(ctx, "SELECT COUNT(*) FROM settings WHERE name LIKE ? AND CAST(value AS BIGINT) BETWEEN 1 AND ?", side+" %", n); err != nil || there != n {
			tb.Errorf("of the first %d transactions %d have their %s row (%v)", n, there, side, err)
		}
		if more, err := db.Count(ctx, "SELECT COUNT(*) FROM settings WHERE name LIKE ?", side+" %"); err != nil || more != n {
			tb.Errorf("%d transactions are there, and %d rows on the %s (%v)", n, more, side, err)
		}
	}
	if err := numbered(ctx, db); err != nil {
		tb.Errorf("it takes nothing more: %v", err)
	}
	must(tb, db.Close())
	sound(tb, path)
	_ = os.RemoveAll(dir)
	return n
}

// sound has SQLite look at every page of a file.
func sound(tb testing.TB, path string) {
	tb.Helper()
	raw, err := sql.Open("sqlite", "file:"+path)
	must(tb, err)
	defer raw.Close()
	var verdict string
	if err := raw.QueryRowContext(context.Background(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		tb.Errorf("integrity_check: %s %v", verdict, err)
	}
}

func TestOfATornLogTheFirstTransactionsAreThereWhole(t *testing.T) {
	if states := torn(t, 15, rand.New(rand.NewPCG(1, 2))); states < 3 {
		t.Errorf("only %d different states were found", states)
	}
}

// BenchmarkFaultWal tears the log a thousand times.
func BenchmarkFaultWal(b *testing.B) {
	const cuts = 1000
	seed := rand.Uint64()
	states := torn(b, cuts, rand.New(rand.NewPCG(seed, 0)))
	fmt.Printf("torn at random bytes %d times (seed %d): %d different states, each the first transactions and all of their rows\n", cuts, seed, states)
}
