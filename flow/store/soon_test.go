package store_test

import (
	"context"
	"errors"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

// What is in no hurry is kept all the same: alone, with others, beside one that
// fails, and when the store closes.
func TestSoonIsKept(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		set := func(ctx context.Context, name string, then error) error {
			return db.Update(ctx, func(tx *store.Tx) error {
				if err := tx.SetSetting(ctx, name, "kept"); err != nil {
					return err
				}
				return then
			})
		}
		kept := func(name string) bool {
			t.Helper()
			v, err := db.Setting(t.Context(), name)
			must(t, err)
			return v == "kept"
		}
		slow := store.Soon(t.Context())
		if err := set(slow, "alone", nil); err != nil || !kept("alone") {
			t.Errorf("alone: %v", err)
		}
		results := make(chan error, 3)
		go func() { results <- set(slow, "with", nil) }()
		go func() { results <- set(slow, "failing", errNo) }()
		go func() { results <- set(t.Context(), "hurry", nil) }()
		failed := 0
		for range cap(results) {
			if err := <-results; errors.Is(err, errNo) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if failed != 1 || !kept("with") || !kept("hurry") || kept("failing") {
			t.Errorf("%d failed; with %v, hurry %v, failing %v", failed, kept("with"), kept("hurry"), kept("failing"))
		}
		go func() { results <- set(slow, "at the end", nil) }()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		<-results // kept or refused, but answered
	})
}
