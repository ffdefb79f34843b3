package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// BenchmarkUpdate is one small durable write. Sharing an fsync is what makes
// "at once" faster than "one by one" on SQLite; compare the two, not the days.
func BenchmarkUpdate(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(testing.TB, store.Schema) store.Config
	}{{"sqlite", storetest.SQLite}, {"postgres", storetest.Postgres}} {
		for _, callers := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("%s/%d-callers", kind.name, callers), func(b *testing.B) {
				db := storetest.Open(b, kind.open(b, store.Checkout))
				var id, left atomic.Int64
				write := func() {
					s := session(0)
					s.ID = flow.SessionID(fmt.Sprintf("wsp_sess_%09d", id.Add(1)))
					err := db.Update(b.Context(), func(tx *store.Tx) error {
						_, err := tx.AddSession(b.Context(), s)
						return err
					})
					if err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				b.ResetTimer() // starting PostgreSQL takes a second
				together(callers, func(int) {
					for left.Add(1) <= int64(b.N) {
						write()
					}
				})
			})
		}
	}
}
