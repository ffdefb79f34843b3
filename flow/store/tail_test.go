package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow/store"
	"till/flow/store/lite"
	"till/flow/store/storetest"
)

// gapless reads a file at every moment until written is closed: of two connections
// each begins before the other ends. None reads for long, which is until something
// was written, or for 20 ms where nothing can be.
func gapless(file string, written <-chan struct{}) (err error) {
	var conns [2]*lite.Conn
	for i := range conns {
		if conns[i], err = lite.Open("file:"+file+"?mode=rw", "busy_timeout(5000)"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, conns[i].Close()) }()
	}
	begin := func(conn *lite.Conn) error {
		if _, err := conn.Exec("BEGIN"); err != nil {
			return err
		}
		_, err := conn.Exec("SELECT COUNT(*) FROM settings")
		return err
	}
	if err := begin(conns[0]); err != nil {
		return err
	}
	for turn := 1; ; turn++ {
		if err := begin(conns[turn%2]); err != nil {
			return err
		}
		if _, err := conns[(turn+1)%2].Exec("COMMIT"); err != nil {
			return err
		}
		select {
		case _, more := <-written:
			if !more {
				_, err := conns[turn%2].Exec("COMMIT")
				return err
			}
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// The log does not grow without end while somebody reads at every moment, and
// nobody who writes is turned away for that.
func TestTheLogIsBoundedBesideReadersWithoutAGap(t *testing.T) {
	t.Parallel()
	ctx, c := context.Background(), storetest.SQLite(t, store.Checkout)
	db := storetest.Open(t, c)
	file, written := filepath.Join(c.Dir, c.Name+".db"), make(chan struct{}, 1)
	var all sync.WaitGroup
	all.Go(func() {
		if err := gapless(file, written); err != nil {
			t.Error(err)
		}
	})
	var most int64
	for n := range 160 {
		large := strings.Repeat(string(rune('a'+n%26)), 1<<20)
		err := db.Update(ctx, func(tx *store.Tx) error {
			return tx.Exec(ctx, "INSERT INTO settings (name, value) VALUES ('large', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", large)
		})
		if err != nil {
			t.Error(err)
			break
		}
		select {
		case written <- struct{}{}:
		default:
		}
		info, err := os.Stat(file + "-wal")
		if err != nil {
			t.Error(err)
			break
		}
		most = max(most, info.Size())
	}
	close(written)
	all.Wait()
	t.Logf("%d MiB at most", most>>20)
	if most > 64<<20 {
		t.Errorf("the log grew to %d MiB", most>>20)
	}
}
