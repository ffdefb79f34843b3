package checkout_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// When a key was used is written also where the store refused it at first: a minute
// may pass before the key is used again, or that was the last time.
func TestAUseThatCouldNotBeWrittenIsWrittenLater(t *testing.T) {
	t.Parallel()
	at := storetest.SQLite(t, store.Accounts)
	db, err := store.Open(t.Context(), at)
	must(t, err)
	now := time.Date(2026, 11, 21, 15, 5, 0, 0, time.UTC)
	a := checkout.NewAccounts(db, func() time.Time { return now }, rand.Reader)
	up, err := a.Demo(t.Context(), "owner@example.com", "Ada Stores", func(checkout.SignedUp) error { return nil })
	must(t, err)
	beside, err := sql.Open("sqlite", "file:"+filepath.Join(at.Dir, at.Name+".db")+"?_pragma=busy_timeout(5000)")
	must(t, err)
	change := func(query string) {
		_, err := beside.ExecContext(t.Context(), query)
		must(t, err)
	}
	change(`CREATE TRIGGER unused BEFORE UPDATE OF last_used_at ON keys BEGIN SELECT RAISE(ABORT, 'not now'); END`)
	use := func(text string) flow.Key {
		k, _, err := a.Authenticate(t.Context(), text)
		must(t, err)
		return k
	}
	secret := use(up.SecretKey)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_ = a.Run(ctx) // at the end of which uses are written, but for what is refused
	change(`DROP TRIGGER unused`)
	public := use(up.PublicKey)
	_ = a.Run(ctx)
	for _, k := range []flow.Key{secret, public} {
		kept, err := a.Key(t.Context(), up.Project, k.ID)
		if err != nil || !kept.LastUsedAt.Equal(now) {
			t.Errorf("the %s key was last used %v (%v)", k.Kind, kept.LastUsedAt, err)
		}
	}
	must(t, errors.Join(beside.Close(), db.Close()))
}
