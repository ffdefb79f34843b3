package store_test

import (
	"context"
	"errors"
	"testing"

	"till/flow"
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

func TestABugIsNotCalledAnOutage(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		err := db.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveAttempt(t.Context(), attempt(1, "wsp_sess_999")) })
		if err == nil || errors.Is(err, &flow.Error{Code: flow.CodeStorage}) {
			t.Errorf("an attempt of no session: %v", err)
		}
	})
}
