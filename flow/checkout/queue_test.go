package checkout_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Whoever has very many passwords hashed at once, as an owner may who adds people, keeps
// nobody from logging in who comes from elsewhere.
func TestManyPasswordsFromOneAddressKeepNobodyElseOut(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t, store.Accounts))
	a, _ := desk(t, db)
	const email, password = "ada@shop.test", "correct horse battery"
	_, err := a.AddPerson(t.Context(), "wsp_acc_1", email, password, flow.RoleSupport, "192.0.2.1")
	must(t, err)
	release := holdHashers(t, a)
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var refused atomic.Int32
	for i := range 80 {
		all.Go(func() {
			_, err := a.AddPerson(ctx, "wsp_acc_2", fmt.Sprintf("p%d@other.test", i), password, flow.RoleSupport, "198.51.100.7")
			switch {
			case flow.CodeOf(err) == flow.CodeRateLimited:
				refused.Add(1)
			case err != nil && ctx.Err() == nil:
				t.Error(err)
			}
		})
	}
	await.Until(t, "more are there than wait", func() bool { return refused.Load() >= 16 })
	entered := make(chan error, 1)
	go func() {
		_, err := a.Enter(t.Context(), email, password, "192.0.2.1")
		entered <- err
	}()
	await.Until(t, "whoever logs in waits, or is refused", func() bool { return a.Hashing("192.0.2.1") == 1 || len(entered) == 1 })
	for _, goOn := range release {
		goOn()
	}
	if err := <-entered; err != nil {
		t.Errorf("whoever logs in from elsewhere: %v", err)
	}
	leave()
	all.Wait()
	if a.Hashing("192.0.2.1")+a.Hashing("198.51.100.7") != 0 {
		t.Error("some have their place still")
	}
}

// holdHashers has everybody wait who has a password hashed; each of what it returns lets
// one go on.
func holdHashers(t *testing.T, a *checkout.Accounts) (release []func()) {
	t.Helper()
	for range 2 {
		done, err := a.Turn(t.Context(), "")
		must(t, err)
		release = append(release, done)
	}
	return release
}

// Addresses take turns, however many wait from one. Who waits no longer has none.
func TestAddressesTakeTurnsAtHavingPasswordsHashed(t *testing.T) {
	t.Parallel()
	a := checkout.NewAccounts(nil, time.Now, nil)
	release := holdHashers(t, a)
	var turns []string
	var mu sync.Mutex // of turns
	var all sync.WaitGroup
	waits := func(ctx context.Context, address, name string) {
		before := a.Hashing(address)
		all.Go(func() {
			done, err := a.Turn(ctx, address)
			if err != nil {
				return
			}
			mu.Lock()
			turns = append(turns, name)
			mu.Unlock()
			done()
		})
		await.Until(t, name+" waits", func() bool { return a.Hashing(address) > before })
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits(t.Context(), "here", "1st of here")
	waits(t.Context(), "here", "2nd of here")
	waits(ctx, "nowhere", "who left")
	waits(t.Context(), "there", "1st of there")
	waits(t.Context(), "here", "3rd of here")
	cancel()
	await.Until(t, "who left is gone", func() bool { return a.Hashing("nowhere") == 0 })
	release[0]() // one at a time
	all.Wait()
	release[1]()
	if want := []string{"1st of here", "1st of there", "2nd of here", "3rd of here"}; !slices.Equal(turns, want) {
		t.Errorf("the turns were %q, not %q", turns, want)
	}
	for range 2 { // and nobody's hasher is lost
		done, err := a.Turn(t.Context(), "here")
		must(t, err)
		defer done()
	}
}
