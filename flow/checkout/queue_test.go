package checkout_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Whoever has very many passwords hashed at once, as an owner may who adds people, keeps
// nobody from logging in who comes from elsewhere.
func TestManyPasswordsFromOneAddressKeepNobodyElseOut(t *testing.T) {
	t.Parallel()
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		a, _ := desk(t, db)
		ctx := context.WithoutCancel(t.Context())
		const email, password = "ada@shop.test", "correct horse battery"
		_, err := a.AddPerson(ctx, "wsp_acc_1", email, password, flow.RoleSupport, "192.0.2.1")
		must(t, err)
		release := a.HoldHashers()
		var all sync.WaitGroup
		var refused atomic.Int32
		for i := range 80 {
			all.Go(func() {
				_, err := a.AddPerson(ctx, "wsp_acc_2", fmt.Sprintf("p%d@other.test", i), password, flow.RoleSupport, "198.51.100.7")
				switch {
				case flow.CodeOf(err) == flow.CodeRateLimited:
					refused.Add(1)
				case err != nil:
					t.Error(err)
				}
			})
		}
		await.Until(t, "more are there than wait", func() bool { return refused.Load() >= 16 })
		entered := make(chan error, 1)
		go func() {
			_, err := a.Enter(ctx, email, password, "192.0.2.1")
			entered <- err
		}()
		await.Until(t, "whoever logs in waits, or is refused", func() bool { return a.Hashing("192.0.2.1") == 1 || len(entered) == 1 })
		release()
		if err := <-entered; err != nil {
			t.Errorf("whoever logs in from elsewhere: %v", err)
		}
		all.Wait()
		if a.Hashing("192.0.2.1")+a.Hashing("198.51.100.7") != 0 {
			t.Error("some have their place still")
		}
	})
}
