package store_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// hold takes the write lock of an SQLite file away from everybody else.
func hold(t *testing.T, file string) (let func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file)
	must(t, err)
	conn, err := db.Conn(t.Context())
	if err == nil {
		_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	}
	must(t, err)
	return func() {
		_, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK")
		if err := errors.Join(err, conn.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Another process holds the file. Who stops waiting is let go, and what they
// wanted is never done behind their back; who comes late does not wait for those
// before as well.
func TestWhoDoesNotWaitForABusyFileIsLetGo(t *testing.T) {
	c := storetest.SQLite(t, store.Checkout)
	db := storetest.Open(t, c)
	let := hold(t, c.Dir+"/"+c.Name+".db")
	var ran atomic.Int32
	write := func(ctx context.Context) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			ran.Add(1)
			return tx.SetSetting(ctx, "a", "b")
		})
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := write(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with no time left: %v", err)
	}
	// The first is with the writer, and the second comes when it has half waited.
	began := time.Now()
	waited := make(chan time.Duration, 2)
	wait := func() {
		from := time.Now()
		if err := write(t.Context()); flow.CodeOf(err) != flow.CodeStorage {
			t.Errorf("a file that is held: %v", err)
		}
		waited <- time.Since(from)
	}
	go wait()
	half := time.NewTimer(2 * time.Second)
	<-half.C
	go wait()
	for range 2 {
		if d := <-waited; d > 6*time.Second {
			t.Errorf("one waited for %s", d)
		}
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("%d were run after %s of a file that is held", n, time.Since(began))
	}
	let()
	if err := write(t.Context()); err != nil || ran.Load() != 1 {
		t.Errorf("once it is let go: %v, and %d were run", err, ran.Load())
	}
}
