package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

var errNo = errors.New("no")

// busy runs fn while the writer is held up, so that on SQLite everything fn
// queues lands in one batch. Whoever fn queues counts itself in.
func busy(t *testing.T, db *store.DB, fn func(wg *sync.WaitGroup)) {
	t.Helper()
	var holding, wg sync.WaitGroup
	holding.Add(1)
	release := make(chan struct{})
	wg.Go(func() {
		err := db.Update(t.Context(), func(*store.Tx) error {
			holding.Done()
			<-release
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	holding.Wait()
	fn(&wg)
	close(release)
	wg.Wait()
}

func TestAnErrorUndoesItsOwnWorkAlone(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const all = 12
		busy(t, db, func(wg *sync.WaitGroup) {
			for i := range all {
				wg.Go(func() {
					err := db.Update(t.Context(), func(tx *store.Tx) error {
						if _, err := tx.AddSession(t.Context(), session(i)); err != nil {
							return err
						}
						switch i % 3 {
						case 1:
							return errNo
						case 2:
							panic("a bug")
						}
						return nil
					})
					switch i % 3 {
					case 0:
						if err != nil {
							t.Errorf("unit %d: %v", i, err)
						}
					case 1:
						if !errors.Is(err, errNo) {
							t.Errorf("unit %d: %v", i, err)
						}
					case 2:
						if err == nil || !strings.Contains(err.Error(), "panic in a transaction: a bug") {
							t.Errorf("unit %d: %v", i, err)
						}
					}
				})
			}
		})
		for i := range all {
			_, err := db.Session(t.Context(), session(i).ID)
			if kept := err == nil; kept != (i%3 == 0) {
				t.Errorf("session %d kept: %v (%v)", i, kept, err)
			}
		}
	})
}

// long is a statement that takes its time.
const long = `INSERT INTO settings (name, value) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
 SELECT CAST(? AS BIGINT) || '/' || i, 'x' FROM n`

// What is only written may be refused later, while somebody else already asks: it
// must be whoever wrote it that is told, and nobody else who loses anything.
func TestWhatIsRefusedLateIsTheFaultOfWhoWroteIt(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const all = 12
		keep(t, db, session(100))
		err := db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAttempt(t.Context(), attempt(100, "wsp_sess_100")) })
		must(t, err)
		bad := func(i int) bool { return i%3 == 1 }
		busy(t, db, func(wg *sync.WaitGroup) {
			for i := range all {
				wg.Go(func() {
					err := db.Update(t.Context(), func(tx *store.Tx) error {
						if i%2 == 0 { // some ask before they write, some never do
							if _, err := tx.Session(t.Context(), "wsp_sess_100"); err != nil {
								return err
							}
						}
						of := flow.SessionID("wsp_sess_100")
						if bad(i) {
							of = "wsp_sess_999" // there is none
						}
						a := attempt(i, of)
						a.Status = flow.AttemptSuperseded
						return tx.SaveAttempt(t.Context(), a)
					})
					if (err != nil) != bad(i) || flow.CodeOf(err) == flow.CodeStorage {
						t.Errorf("unit %d: %v", i, err)
					}
				})
			}
		})
		for i := range all {
			_, err := db.Attempt(t.Context(), attempt(i, "").ID)
			if kept := err == nil; kept == bad(i) {
				t.Errorf("unit %d: kept %v, %v", i, kept, err)
			}
		}
	})
}

// The units of a batch read endpoints once for all of them: each must still see
// what those before it kept, and nothing of what was undone.
func TestABatchSeesOfEndpointsWhatIsKept(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const all = 30
		of := endpoint(1)
		must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEndpoint(t.Context(), of) }))
		var kept atomic.Int64
		busy(t, db, func(wg *sync.WaitGroup) {
			for i := range all {
				wg.Go(func() {
					var seen, again flow.Endpoint
					err := db.Update(t.Context(), func(tx *store.Tx) error {
						list, err := tx.Endpoints(t.Context(), of.Project)
						if err != nil || len(list) != 1 {
							return fmt.Errorf("%d endpoints, %w", len(list), err)
						}
						seen = list[0]
						if i%3 == 0 {
							return nil
						}
						e := seen
						e.Description = fmt.Sprint(e.Version + 1)
						if err := tx.ChangeEndpoint(t.Context(), &e); err != nil {
							return err
						}
						if list, err = tx.Endpoints(t.Context(), of.Project); err != nil || len(list) != 1 {
							return fmt.Errorf("%d endpoints, %w", len(list), err)
						}
						if again = list[0]; i%3 == 1 {
							return errNo
						}
						return nil
					})
					switch {
					case i%3 == 1 != errors.Is(err, errNo), i%3 != 1 && err != nil:
						t.Errorf("unit %d: %v", i, err)
					case i%3 != 0 && again.Version != seen.Version+1:
						t.Errorf("unit %d reads version %d of what it changed from %d", i, again.Version, seen.Version)
					case seen.Version > 1 && seen.Description != fmt.Sprint(seen.Version):
						t.Errorf("unit %d reads %q of version %d", i, seen.Description, seen.Version)
					}
					if err == nil && i%3 == 2 {
						kept.Add(1)
					}
				})
			}
		})
		list, err := db.Endpoints(t.Context(), of.Project)
		if err != nil || len(list) != 1 || list[0].Version != of.Version+kept.Load() {
			t.Errorf("after %d changes: %+v, %v", kept.Load(), list, err)
		}
	})
}

func TestACallerWhoGoesAwayTakesNobodyElsesWorkAlong(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		busy(t, db, func(wg *sync.WaitGroup) {
			for i := range 9 {
				wg.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					err := db.Update(ctx, func(tx *store.Tx) error {
						if i%3 == 1 { // somewhere in the middle of a long statement
							defer time.AfterFunc(10*time.Millisecond, cancel).Stop()
							if err := tx.Exec(ctx, long, i); err != nil {
								return err
							}
						}
						_, err := tx.AddSession(ctx, session(i))
						return err
					})
					_, read := db.Session(t.Context(), session(i).ID)
					if (err == nil) != (read == nil) {
						t.Errorf("unit %d was told %v, but its row: %v", i, err, read)
					}
					if i%3 != 1 && err != nil {
						t.Errorf("unit %d: %v", i, err)
					}
				})
			}
		})
	})
}

func TestWhoHasGoneBeforeTheWorkBeginsIsNotServed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 { // a choice between two ready channels is a coin toss
			err := db.Update(ctx, func(*store.Tx) error {
				t.Error("ran")
				return nil
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})
}

func TestWhoGoesWhileQueuedIsNotServed(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	busy(t, db, func(*sync.WaitGroup) {
		go func() {
			waiting <- db.Update(ctx, func(*store.Tx) error { return nil })
		}()
		// Queued or not yet: either way it has gone before its turn.
		cancel()
	})
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWhenSQLiteUndoesABatchNobodyIsToldThatItWasKept(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t, store.Checkout))
	const all = 8
	var told [all]error
	busy(t, db, func(wg *sync.WaitGroup) {
		for i := range all {
			wg.Go(func() {
				told[i] = db.Update(t.Context(), func(tx *store.Tx) error {
					s := session(i)
					if i%2 == 1 { // far more than there is room for
						if err := tx.Exec(t.Context(), "PRAGMA max_page_count = 1"); err != nil {
							return err
						}
						s.Description = strings.Repeat("x", 1<<20)
					}
					_, err := tx.AddSession(t.Context(), s)
					return err
				})
			})
		}
	})
	lost := 0
	for i, err := range told {
		_, read := db.Session(t.Context(), session(i).ID)
		if (err == nil) != (read == nil) {
			t.Errorf("unit %d was told %v, but its row: %v", i, err, read)
		}
		if err != nil {
			lost++
			if flow.CodeOf(err) != flow.CodeStorage {
				t.Errorf("unit %d was told %v", i, err)
			}
		}
	}
	if lost == 0 {
		t.Error("the store was never full: this test proves nothing")
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.Exec(ctx, "PRAGMA max_page_count = 1000000") })
	keep(t, db, session(100)) // and the writer lives
}

func TestCloseFinishesWhatIsQueued(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		db, err := store.Open(t.Context(), c)
		must(t, err)
		const all = 10
		var told [all]error
		closed := make(chan error, 1)
		busy(t, db, func(wg *sync.WaitGroup) {
			var running sync.WaitGroup
			running.Add(all)
			for i := range all {
				wg.Go(func() {
					running.Done()
					told[i] = db.Update(t.Context(), func(tx *store.Tx) error {
						_, err := tx.AddSession(t.Context(), session(i))
						return err
					})
				})
			}
			running.Wait()
			go func() { closed <- db.Close() }()
		})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		again := storetest.Open(t, c)
		for i, err := range told {
			_, read := again.Session(t.Context(), session(i).ID)
			if (err == nil) != (read == nil) {
				t.Errorf("unit %d was told %v, but its row: %v", i, err, read)
			}
		}
		if err := db.Update(t.Context(), func(*store.Tx) error { return nil }); flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("a closed store said %v", err)
		}
	})
}

func TestTheReaderCannotWrite(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		err := db.Exec(t.Context(), "INSERT INTO settings (name, value) VALUES ('a', 'b')")
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), "read") {
			t.Errorf("wrote through the reader: %v", err)
		}
	})
}

func TestATransactionReadsItsOwnWrites(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if _, err := tx.AddSession(ctx, session(1)); err != nil {
				return err
			}
			if _, err := db.Session(ctx, "wsp_sess_001"); flow.CodeOf(err) != flow.CodeNotFound {
				t.Errorf("others saw it before it was kept: %v", err)
			}
			_, err := tx.Session(ctx, "wsp_sess_001")
			return err
		})
	})
}

func TestMoreCallersThanABatchHoldsAreAllServed(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		const callers = store.BatchSize + 100
		var kept atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				err := db.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), fmt.Sprint(i), "yes") })
				if err != nil {
					t.Error(err)
					return
				}
				kept.Add(1)
			})
		}
		wg.Wait()
		if kept.Load() != callers {
			t.Errorf("%d of %d were served", kept.Load(), callers)
		}
	})
}
