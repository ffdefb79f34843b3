package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// full lets a database run out of pages so many times, and gives it more again. It
// returns how many writes were acknowledged and how many were refused.
func full(tb testing.TB, rounds int, random *rand.Rand) (kept, refused int) {
	tb.Helper()
	ctx, c, log := context.Background(), storetest.SQLite(tb, store.Checkout), &await.Log{}
	c.Log = slog.New(slog.NewTextHandler(log, nil))
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
		must(tb, err)
	}
	for round := range rounds {
		pages, err := db.Count(ctx, "SELECT page_count FROM pragma_page_count")
		must(tb, err)
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
	if told := strings.Count(log.String(), `could not be kept, and whoever asked for them was told so" database=`+c.Name+" error="); told < refused {
		tb.Errorf("%d writes were refused, and the log says of %d in which database:\n%s", refused, told, log)
	}
	return kept, refused
}

func TestAFullDatabaseKeepsWhatItAcknowledged(t *testing.T) {
	full(t, 5, rand.New(rand.NewPCG(1, 2)))
}

// Two callers share a commit, and the second is refused because of what the first
// wrote. Nothing of that is kept: neither may hold what it was told for true.
func TestARefusalThatRestsOnWhatIsLostIsNotBelieved(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	begun, release := make(chan bool), make(chan bool)
	answers := make([]error, 4)
	var wg sync.WaitGroup
	call := func(ctx context.Context, n int, fn func(tx *store.Tx) error) {
		wg.Go(func() { answers[n] = db.Update(ctx, fn) })
		await.Until(t, "it waits for the writer", func() bool { return db.Queued() >= n })
	}
	call(t.Context(), 0, func(*store.Tx) error { // whoever comes meanwhile shares the next commit
		begun <- true
		<-release
		return nil
	})
	<-begun
	gone, leave := context.WithCancel(t.Context())
	call(t.Context(), 1, func(tx *store.Tx) error {
		leave()
		if err := tx.Exec(t.Context(), "PRAGMA defer_foreign_keys = ON"); err != nil { // so that the commit fails
			return err
		}
		if err := tx.SaveAttempt(t.Context(), attempt(1, "wsp_sess_999")); err != nil {
			return err
		}
		return tx.SetSetting(t.Context(), "left", "nothing")
	})
	call(t.Context(), 2, func(tx *store.Tx) error {
		if left, err := tx.Setting(t.Context(), "left"); err != nil || left == "" {
			return err
		}
		return flow.Refuse(flow.CodeRefundExceeds, "There is nothing left.")
	})
	call(gone, 3, func(*store.Tx) error { return nil })
	close(release)
	wg.Wait()
	if err := answers[0]; err != nil {
		t.Errorf("the one before: %v", err)
	}
	for _, n := range []int{1, 2} {
		if flow.CodeOf(answers[n]) != flow.CodeStorage {
			t.Errorf("caller %d of a commit that failed is told: %v", n, answers[n])
		}
	}
	if err := answers[3]; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that went is told: %v", err)
	}
	if left, err := db.Setting(t.Context(), "left"); err != nil || left != "" {
		t.Errorf("kept is %q (%v)", left, err)
	}
}

// BenchmarkFaultDisk lets a database run out of pages fifty times.
func BenchmarkFaultDisk(b *testing.B) {
	const rounds = 50
	kept, refused := full(b, rounds, rand.New(rand.NewPCG(rand.Uint64(), 0)))
	fmt.Printf("out of pages %d times: %d writes acknowledged, 0 lost, %d refused as storage_unavailable, taken again without a restart\n", rounds, kept, refused)
}

// PostgreSQL without room, and one that may only be read, answer all the same: asked
// whether it takes anything, it says no for as long as it does not.
func TestAPostgreSQLThatKeepsNothingSaysSo(t *testing.T) {
	ctx, c := context.WithoutCancel(t.Context()), storetest.Postgres(t, store.Checkout)
	owner := storetest.Open(t, c)
	does := func(query string) {
		t.Helper()
		if err := owner.Update(ctx, func(tx *store.Tx) error { return tx.Exec(ctx, query) }); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	role := "only_" + c.Name
	does("CREATE ROLE " + role + " LOGIN SUPERUSER")
	t.Cleanup(func() { does("DROP ROLE " + role) })
	ours := c
	ours.URL = strings.Replace(c.URL, "user=till", "user="+role, 1)
	db := storetest.Open(t, ours)
	write := func() error {
		return db.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "a", "b") })
	}
	anew := func() { // what is set for a role is that of new connections
		does("DO $$ BEGIN PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '" + role + "'; END $$")
	}
	again := func() {
		t.Helper()
		await.Until(t, "it takes something again", func() bool { return db.Takes(ctx) == nil })
		if err := write(); err != nil {
			t.Error(err)
		}
	}
	again()

	does("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$")
	does("CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON settings EXECUTE FUNCTION full_disk()")
	for range 3 {
		if err := write(); flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("a full disk is told as: %v", err)
		}
		if err := db.Takes(ctx); flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("nothing is kept, and asked whether it takes anything it says: %v", err)
		}
	}
	does("DROP TRIGGER full_disk ON settings")
	again()

	does("ALTER ROLE " + role + " SET default_transaction_read_only = on")
	anew()
	await.Until(t, "it says that it may only be read, though nobody wrote", func() bool {
		err := db.Takes(ctx)
		return flow.CodeOf(err) == flow.CodeStorage && strings.Contains(err.Error(), "read-only")
	})
	if err := write(); flow.CodeOf(err) != flow.CodeStorage {
		t.Errorf("a database that may only be read is told as: %v", err)
	}
	does("ALTER ROLE " + role + " RESET default_transaction_read_only")
	anew()
	again()
}
