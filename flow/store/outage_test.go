package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A server that goes away in the middle of a transaction is the store's fault,
// whatever the transaction was about to do. What is asked wrongly stays a bug.
func TestAServerThatGoesAwayInTheMiddleIsTheStoresFault(t *testing.T) {
	c, line := storetest.Through(t, storetest.Postgres(t, store.Checkout))
	db := storetest.Open(t, c)
	keep(t, db, session(1))
	for name, then := range map[string]func(ctx context.Context, tx *store.Tx) error{
		"write": func(ctx context.Context, tx *store.Tx) error { return tx.SetSetting(ctx, "a", "b") },
		"read":  func(ctx context.Context, tx *store.Tx) error { _, err := tx.Session(ctx, "wsp_sess_001"); return err },
		"end":   func(context.Context, *store.Tx) error { return nil },
	} {
		line.Mend()
		began := false
		for range 100 { // a connection that broke off while it was idle costs a try
			err := db.Update(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.Session(t.Context(), "wsp_sess_001"); err != nil {
					return err
				}
				began = true
				line.Cut()
				return then(t.Context(), tx)
			})
			if flow.CodeOf(err) != flow.CodeStorage {
				t.Errorf("%s: %v", name, err)
			}
			if began {
				break
			}
		}
		if !began {
			t.Errorf("%s: no transaction begins after the outage", name)
		}
	}
}

// A server that is gone without a word holds nobody for longer than they may take:
// neither who reads nor who writes, and none of the places of those who write.
func TestAServerThatFallsSilentIsWaitedForOnlySoLong(t *testing.T) {
	c, line := storetest.Through(t, storetest.Postgres(t, store.Checkout))
	c.Within = 500 * time.Millisecond
	db := storetest.Open(t, c)
	keep(t, db, session(1))
	ctx := context.WithoutCancel(t.Context()) // its callers wait for ever
	read := func() error {
		_, err := db.Session(ctx, "wsp_sess_001")
		return err
	}
	write := func(ctx context.Context) func() error {
		return func() error {
			return db.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "a", "b") })
		}
	}
	half := func() error { // the line falls silent once it has begun
		return db.Update(store.Rowwise(ctx), func(tx *store.Tx) error {
			if err := tx.SetSetting(ctx, "a", "half"); err != nil {
				return err
			}
			if _, err := tx.Session(ctx, "wsp_sess_001"); err != nil {
				return err
			}
			line.Hush()
			return nil
		})
	}
	// One after the other what is open, then what is to be opened anew; and more of
	// them than there are places.
	calls := []func() error{half, read, write(ctx)}
	for range 20 {
		calls = append(calls, write(store.Unhurried(store.Rowwise(ctx))), read)
	}
	ended := make(chan error, len(calls))
	go func() {
		ended <- calls[0]()
		for _, call := range calls[1:] {
			go func() { ended <- call() }()
		}
	}()
	over := time.NewTimer(await.Patience)
	defer over.Stop()
	for n := range calls {
		select {
		case err := <-ended:
			if flow.CodeOf(err) != flow.CodeStorage {
				t.Errorf("a server that is silent: %v", err)
			}
		case <-over.C:
			line.Mend()
			t.Fatalf("%d wait for ever", len(calls)-n)
		}
	}
	line.Mend()
	await.Until(t, "it goes on by itself", func() bool {
		return errors.Join(read(), write(ctx)(), write(store.Rowwise(ctx))()) == nil
	})
}

// A server that is gone without a word keeps no store from being closed: what it is
// asked by then, whoever asked has left.
func TestAServerThatFallsSilentKeepsNobodyFromEnding(t *testing.T) {
	c, line := storetest.Through(t, storetest.Postgres(t, store.Checkout))
	c.Within = time.Hour
	db, err := store.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, db, session(1))
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- db.Update(ctx, func(tx *store.Tx) error {
			line.Hush()
			leave()
			_, err := tx.Session(t.Context(), "wsp_sess_001")
			return err
		})
	}()
	<-ctx.Done()
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	over := time.NewTimer(await.Patience)
	defer over.Stop()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-over.C:
		line.Mend()
		t.Error("it is never closed")
	}
	if err := <-ended; err == nil {
		t.Error("what was not answered is said to be kept")
	}
}

// A process that is paused in the middle of a transaction must not keep what it
// wrote to from the others: they go on, and nothing of it is kept when it wakes.
func TestAPausedTransactionHoldsNobodyUp(t *testing.T) {
	c := storetest.Postgres(t, store.Checkout)
	paused, other := storetest.Open(t, c), storetest.Open(t, c)
	keep(t, other, session(1))
	count := func(ctx context.Context, db *store.DB, by int64, then func()) error {
		return db.Update(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(ctx, "wsp_sess_001")
			if err != nil {
				return err
			}
			s.Sequence += by
			if err := tx.SaveSession(ctx, &s); err != nil {
				return err
			}
			_, err = tx.Session(ctx, s.ID) // so that the server has what was written
			then()
			return err
		})
	}
	wrote, woken, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	first, wake := sync.OnceFunc(func() { close(wrote) }), sync.OnceFunc(func() { close(woken) })
	defer wake()
	go func() {
		ended <- count(t.Context(), paused, 10, func() {
			first()
			<-woken
		})
	}()
	<-wrote
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	if err := count(ctx, other, 1, func() {}); err != nil {
		t.Fatalf("another process is held up: %v", err)
	}
	wake()
	if err := <-ended; flow.CodeOf(err) != flow.CodeStorage {
		t.Errorf("the one that was paused: %v", err)
	}
	if s, err := other.Session(t.Context(), "wsp_sess_001"); err != nil || s.Sequence != 1 {
		t.Errorf("counted %d (%v)", s.Sequence, err)
	}
}

func TestABugIsNotCalledAnOutage(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		err := db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAttempt(t.Context(), attempt(1, "wsp_sess_999")) })
		if err == nil || errors.Is(err, &flow.Error{Code: flow.CodeStorage}) {
			t.Errorf("an attempt of no session: %v", err)
		}
	})
}
