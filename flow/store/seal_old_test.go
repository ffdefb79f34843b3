package store_test

import (
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A process that runs on with the old key seals nothing that others could not open.
func TestAProcessWithTheOldKeySealsNothingNew(t *testing.T) {
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		opened(t, c, func(old *store.DB) {
			set := func(db *store.DB, name string) error {
				return db.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSecret(t.Context(), name, "value") })
			}
			must(t, set(old, "before"))
			opened(t, c, func(db *store.DB) {
				err := set(old, "after")
				if flow.CodeOf(err) != flow.CodeStorage || !strings.Contains(err.Error(), "Start it again with the new TILL_SECRETS_KEY") {
					t.Errorf("the key was changed, and the old one seals: %v", err)
				}
				if err := old.Update(t.Context(), func(tx *store.Tx) error { return tx.AddEndpoint(t.Context(), endpoint(1)) }); flow.CodeOf(err) != flow.CodeStorage {
					t.Errorf("an endpoint is kept: %v", err)
				}
				if err := set(db, "after"); err != nil {
					t.Error(err)
				}
			}, 2, 1)
			if got := with(t, c); !slices.Equal(got.Keys, []string{key(2).ID()}) {
				t.Errorf("sealed with %v", got.Keys)
			}
		}, 1)
	})
}
