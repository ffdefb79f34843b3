package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// full lets a database run out of pages so many times, and gives it more again. It
// returns how many writes were acknowledged and how many were refused.
func full(tb testing.TB, rounds int, random *rand.Rand) (kept, refused int) {
	tb.Helper()
	ctx, c := context.Background(), storetest.SQLite(tb, store.Checkout)
	db := storetest.Open(tb, c)
	filler := strings.Repeat("x", 3000)
	write := func(name string) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.SetSetting(ctx, name, filler); err != nil {
				return err
			}
			return tx.SetSetting(ctx, name+" too", filler)
		})
	}
	limit := func(pages int) {
		err := db.Update(ctx, func(tx *store.Tx) error { return tx.Exec(ctx, fmt.Sprint("PRAGMA max_page_count = ", pages)) })
		if err != nil {
			tb.Fatal(err)
		}
	}
	for round := range rounds {
		pages, err := db.Count(ctx, "SELECT page_count FROM pragma_page_count")
		if err != nil {
			tb.Fatal(err)
		}
		limit(pages + 1 + random.IntN(20))
		for n := 0; ; n++ {
			err := write(fmt.Sprintf("full %d-%d", round, n))
			if err == nil && n < 100 {
				kept++
				continue
			}
			if flow.CodeOf(err) != flow.CodeStorage {
				tb.Fatalf("a full disk is told as: %v", err)
			}
			refused++
			if err := db.Takes(ctx); flow.CodeOf(err) != flow.CodeStorage {
				tb.Errorf("nothing is kept, and asked whether it takes anything it says: %v", err)
			}
			break
		}
		limit(1 << 30)
		if err := db.Takes(ctx); err != nil {
			tb.Errorf("there is room again, and asked whether it takes anything it says: %v", err)
		}
		if err := write(fmt.Sprint("full ", round, " again")); err != nil {
			tb.Errorf("there is room again, and: %v", err)
		}
		kept++
	}
	if there, err := db.Count(ctx, "SELECT COUNT(*) FROM settings WHERE name LIKE 'full %'"); err != nil || there != 2*kept {
		tb.Errorf("%d writes of two rows were acknowledged, and %d rows are there (%v)", kept, there, err)
	}
	sound(tb, c.Dir+"/"+c.Name+".db")
	return kept, refused
}

func TestAFullDatabaseKeepsWhatItAcknowledged(t *testing.T) {
	full(t, 5, rand.New(rand.NewPCG(1, 2)))
}

// BenchmarkFaultDisk lets a database run out of pages fifty times.
func BenchmarkFaultDisk(b *testing.B) {
	const rounds = 50
	kept, refused := full(b, rounds, rand.New(rand.NewPCG(rand.Uint64(), 0)))
	fmt.Printf("out of pages %d times: %d writes acknowledged, 0 lost, %d refused as storage_unavailable, taken again without a restart\n", rounds, kept, refused)
}
