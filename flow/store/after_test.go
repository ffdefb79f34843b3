package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"till/flow/store"
	"till/flow/store/storetest"
)

func TestAfterRunsOnceTheWorkIsKeptAndOnlyThen(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		var ran []string
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.After(func() {
				_, err := db.Session(context.WithoutCancel(ctx), "wsp_sess_001")
				ran = append(ran, fmt.Sprint(err == nil))
			})
			_, err := tx.AddSession(ctx, session(1))
			return err
		})
		_ = refused(t, db, "what was refused", func(_ context.Context, tx *store.Tx) error {
			tx.After(func() { ran = append(ran, "refused") })
			return errNo
		})
		if got := strings.Join(ran, ","); got != "true" {
			t.Errorf("ran %s", got)
		}
	})
}

func TestAfterMayWriteAgain(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		var second error
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			tx.After(func() {
				second = db.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, "again", "yes") })
			})
			return nil
		})
		if second != nil {
			t.Error(second)
		}
	})
}
