package store_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func keyring(t *testing.T, keys ...byte) *store.Keyring {
	t.Helper()
	var list []store.SealingKey
	for _, k := range keys {
		list = append(list, key(k))
	}
	ring, err := store.NewKeyring(rand.Reader, list[0], list[1:]...)
	must(t, err)
	return ring
}

func key(k byte) store.SealingKey { return store.SealingKey{0: k, 9: 0x77} }

// sealedOpen opens a database as the start of a server does.
func sealedOpen(t *testing.T, c store.Config, keys ...byte) (*store.DB, error) {
	t.Helper()
	c.Keys, c.Seal, c.Secrets = keyring(t, keys...), true, []string{"pepper"}
	return store.Open(t.Context(), c)
}

// opened is sealedOpen for what must be opened, and closes it.
func opened(t *testing.T, c store.Config, do func(*store.DB), keys ...byte) {
	t.Helper()
	db, err := sealedOpen(t, c, keys...)
	must(t, err)
	do(db)
	must(t, db.Close())
}

// inTheClear keeps endpoints and a setting as programs did that sealed nothing.
func inTheClear(t *testing.T, c store.Config, count int) {
	t.Helper()
	c.Keys = keyring(t, 99)
	db := storetest.Open(t, c)
	endpoints(t, db, count)
	statement(t, db, `UPDATE endpoints SET secrets = '["whsec_'||id||'"]'`)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.SetSetting(ctx, "pepper", "pepper-in-the-clear"), tx.SetSetting(ctx, "colour", "green"))
	})
	must(t, db.Close())
}

// secrets are what endpoints sign with, by what a program reads.
func secrets(t *testing.T, db *store.DB) map[flow.EndpointID][]string {
	t.Helper()
	list, err := db.Endpoints(t.Context(), "wsp_prj_1")
	must(t, err)
	out := map[flow.EndpointID][]string{}
	for _, e := range list {
		out[e.ID] = e.Secrets
	}
	return out
}

func inClear(t *testing.T, db *store.DB) int {
	t.Helper()
	n, err := db.Count(t.Context(), `SELECT (SELECT COUNT(*) FROM endpoints WHERE secrets LIKE '%whsec%') + (SELECT COUNT(*) FROM settings WHERE value LIKE '%in-the-clear%')`)
	must(t, err)
	return n
}

func with(t *testing.T, c store.Config) store.Sealed {
	t.Helper()
	c.Secrets = []string{"pepper"}
	out, err := store.SealedWith(t.Context(), c)
	must(t, err)
	for _, n := range []byte{1, 200} { // 200 sealed nothing
		shut := out.Count
		if slices.Equal(out.Keys, []string{key(n).ID()}) {
			shut = 0
		} else if slices.Contains(out.Keys, key(n).ID()) {
			continue
		}
		c.Keys = keyring(t, n)
		must(t, store.Still(t.Context(), c, func(r store.Reader) error {
			still, err := r.SealedWith(t.Context(), c)
			if len(still.Shut) != shut || still.Count != out.Count || still.Clear != out.Clear || !slices.Equal(still.Keys, out.Keys) {
				t.Errorf("of %+v key %d opens all but %d: %+v", out, n, shut, still)
			}
			return err
		}))
	}
	return out
}

func TestWhatAnOlderProgramKeptInTheClearIsSealed(t *testing.T) {
	const many = 450 // more than two transactions seal
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		inTheClear(t, c, many)
		if got := with(t, c); got.Clear != many+1 || len(got.Keys) != 0 {
			t.Fatalf("before: %+v", got)
		}
		opened(t, c, func(db *store.DB) {
			if n := inClear(t, db); n != 0 {
				t.Errorf("%d secrets are in the clear", n)
			}
			got := secrets(t, db)
			for i := range many {
				if id := endpoint(i + 1).ID; !slices.Equal(got[id], []string{"whsec_" + string(id)}) {
					t.Errorf("%s signs with %v", id, got[id])
				}
			}
			if got, err := db.Secret(t.Context(), "pepper"); err != nil || got != "pepper-in-the-clear" {
				t.Errorf("the pepper is %q, %v", got, err)
			}
			if got, err := db.Setting(t.Context(), "colour"); err != nil || got != "green" {
				t.Errorf("the colour, no secret, is %q, %v", got, err)
			}
		}, 1)
		if got := with(t, c); got.Clear != 0 || !slices.Equal(got.Keys, []string{key(1).ID()}) {
			t.Errorf("after: %+v, want key %s", got, key(1).ID())
		}
	})
}

// What was in the clear is gone from the file, not only from its rows.
func TestNoPageOfAFileHoldsWhatWasInTheClear(t *testing.T) {
	c := storetest.SQLite(t, store.Checkout)
	inTheClear(t, c, 300)
	found := func() (in []string) {
		files, err := filepath.Glob(filepath.Join(c.Dir, c.Name+".db*"))
		must(t, err)
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("whsec_")) || bytes.Contains(text, []byte("in-the-clear")) {
				in = append(in, file)
			}
		}
		return in
	}
	if found() == nil {
		t.Fatal("the test looks in the wrong place")
	}
	opened(t, c, func(*store.DB) {
		if in := found(); in != nil {
			t.Errorf("secrets stand in the clear in %v", in)
		}
	}, 1)
}

func TestAKeyIsChangedForAnotherWithoutLosingASecret(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		want := []string{"whsec_new", "whsec_old"}
		opened(t, c, func(db *store.DB) {
			endpoints(t, db, 250)
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SetSecret(ctx, "another", "value") })
		}, 1)
		opened(t, c, func(db *store.DB) {
			for id, got := range secrets(t, db) {
				if !slices.Equal(got, want) {
					t.Errorf("%s signs with %v", id, got)
				}
			}
		}, 2, 1)
		if got := with(t, c); !slices.Equal(got.Keys, []string{key(2).ID()}) {
			t.Errorf("sealed with %v, want only %s", got.Keys, key(2).ID())
		}
		opened(t, c, func(db *store.DB) { // the old key is not needed any more
			if got, err := db.Secret(t.Context(), "another"); err != nil || got != "value" {
				t.Errorf("the setting is %q, %v", got, err)
			}
			if got := secrets(t, db)[endpoint(250).ID]; !slices.Equal(got, want) {
				t.Errorf("signs with %v", got)
			}
		}, 2)
		if _, err := sealedOpen(t, c, 3); !errors.Is(err, store.ErrKey) || !strings.Contains(err.Error(), key(2).ID()) {
			t.Errorf("opened with a wrong key: %v", err)
		}
	})
}

// Starts that end in the middle, or that several processes make at once, leave
// no secret lost.
func TestSealingMayBeCutShortAndDoneByManyAtOnce(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		inTheClear(t, c, 450)
		for after := time.Millisecond; ; after *= 2 { // each start gets further
			ctx, cancel := context.WithTimeout(t.Context(), after)
			cut := c
			cut.Keys, cut.Seal, cut.Secrets = keyring(t, 1), true, []string{"pepper"}
			db, err := store.Open(ctx, cut)
			cancel()
			if err == nil {
				must(t, db.Close())
				break
			}
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { opened(t, c, func(*store.DB) {}, 2, 1) })
		}
		wg.Wait()
		opened(t, c, func(db *store.DB) {
			for id, got := range secrets(t, db) {
				if !slices.Equal(got, []string{"whsec_" + string(id)}) {
					t.Errorf("%s signs with %v", id, got)
				}
			}
		}, 2)
		if got := with(t, c); got.Clear != 0 || !slices.Equal(got.Keys, []string{key(2).ID()}) {
			t.Errorf("after: %+v", got)
		}
	})
}

// A sealed secret is only good where it was kept: nobody can have one endpoint
// sign with what another's merchant knows. Nothing is sent to such an endpoint,
// and nothing else fails because of it.
func TestASecretThatWasMovedOrChangedIsNone(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		opened(t, c, func(db *store.DB) {
			endpoints(t, db, 4)
			for _, change := range []string{
				"(SELECT o.secrets FROM endpoints o WHERE o.id = 'wsp_we_001') WHERE id = 'wsp_we_002'",
				"SUBSTR(secrets, 1, 40) WHERE id = 'wsp_we_003'",
			} {
				statement(t, db, "UPDATE endpoints SET secrets = "+change)
			}
			got := secrets(t, db)
			for id, want := range map[flow.EndpointID]int{"wsp_we_001": 2, "wsp_we_002": 0, "wsp_we_003": 0, "wsp_we_004": 2} {
				if len(got[id]) != want {
					t.Errorf("%s signs with %d secrets, want %d", id, len(got[id]), want)
				}
			}
			oweMany(t, db, 2, 1, 1)
			claimed := doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
				return tx.ClaimDeliveries(ctx, "L1", []string{"dlv_00001"}, noon, noon.Add(time.Minute))
			})
			if len(claimed) != 1 || len(claimed[0].Secrets) != 0 {
				t.Errorf("claimed %+v", claimed)
			}
			update(t, db, func(ctx context.Context, tx *store.Tx) error { // what its merchant changes keeps what it has
				e, err := tx.Endpoint(ctx, "wsp_prj_1", "wsp_we_004")
				if err != nil {
					return err
				}
				e.Secrets, e.Description = nil, "another"
				return tx.ChangeEndpoint(ctx, &e)
			})
			if got := secrets(t, db)["wsp_we_004"]; len(got) != 2 {
				t.Errorf("a new description leaves %v", got)
			}
		}, 1)
	})
}

func TestWithoutAKeyNothingSecretIsKeptInTheClear(t *testing.T) {
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		c.Keys = nil
		db := storetest.Open(t, c)
		refused(t, db, "a secret in the clear", func(ctx context.Context, tx *store.Tx) error { return tx.AddEndpoint(ctx, endpoint(1)) })
		refused(t, db, "a setting in the clear", func(ctx context.Context, tx *store.Tx) error { return tx.SetSecret(ctx, "pepper", "x") })
		keep(t, db, session(1)) // and everything else is
		c.Seal = true
		if _, err := store.Open(t.Context(), c); err == nil {
			t.Error("a server started without a key")
		}
	})
}

func TestAKeyIsReadFromHexAndTellsOnlyItsName(t *testing.T) {
	k, err := store.ParseSealingKey(" " + strings.Repeat("5e", 32) + "\n")
	must(t, err)
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%v %+v %#v %s", k, k, k, k), k.ID(), k.LogValue().String()} {
		if strings.Contains(text, "5e5e") || !strings.Contains(text, k.ID()) {
			t.Errorf("it prints as %s", text)
		}
	}
	for _, bad := range []string{"", "5e", strings.Repeat("5", 63), strings.Repeat("xy", 32), strings.Repeat("5e", 33)} {
		if _, err := store.ParseSealingKey(bad); err == nil {
			t.Errorf("%q was taken for a key", bad)
		}
	}
}

func TestADatabaseThatIsNotThereHasNoSecrets(t *testing.T) {
	if _, err := store.SealedWith(t.Context(), store.Config{Schema: store.Checkout, Dir: t.TempDir(), Name: "test"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	c := storetest.Postgres(t, store.Checkout)
	if got, err := store.SealedWith(t.Context(), c); err != nil || len(got.Keys)+got.Clear != 0 {
		t.Errorf("an empty schema has %+v, %v", got, err)
	}
}

// What a claim costs beside the same with nothing sealed: the opened secret is
// remembered.
func BenchmarkReadAnEndpoint(b *testing.B) {
	for _, name := range []string{"sealed", "clear"} {
		b.Run(name, func(b *testing.B) {
			db := storetest.Open(b, storetest.SQLite(b, store.Checkout))
			update(b, db, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.AddEndpoint(ctx, endpoint(1)); err != nil || name == "sealed" {
					return err
				}
				return tx.Exec(ctx, `UPDATE endpoints SET secrets = '["whsec_new","whsec_old"]'`)
			})
			for b.Loop() {
				if _, err := db.Endpoints(b.Context(), "wsp_prj_1"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A wipe that is cut off before it forgets that it is due has wiped, and is due
// still; a second one does no harm.
func TestAWipeIsDueUntilItIsDone(t *testing.T) {
	c := storetest.SQLite(t, store.Checkout)
	db, err := store.Open(t.Context(), c)
	must(t, err)
	const gone = "what-was-deleted-and-is-to-be-wiped"
	for _, stmt := range []string{
		"INSERT INTO settings (name, value) VALUES ('a', '" + strings.Repeat(gone, 500) + "')", "DELETE FROM settings WHERE name = 'a'",
		"CREATE TRIGGER cut BEFORE DELETE ON settings BEGIN SELECT RAISE(ABORT, 'cut off'); END",
	} {
		statement(t, db, stmt)
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.OweWipe(ctx) })
	must(t, db.Close())
	still := func() bool {
		files, err := filepath.Glob(filepath.Join(c.Dir, "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		return slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && bytes.Contains(text, []byte(gone))
		})
	}
	if !still() {
		t.Fatal("there is nothing to wipe")
	}
	if err := store.Wipe(t.Context(), c); err == nil {
		t.Error("it was not cut off")
	}
	if still() {
		t.Error("it forgets that it is due before it is done")
	}
	db = storetest.Open(t, c)
	if due, err := db.Setting(t.Context(), "wipe_due"); err != nil || due == "" {
		t.Errorf("it is due: %q (%v)", due, err)
	}
	statement(t, db, "DROP TRIGGER cut")
	for range 2 {
		if err := store.Wipe(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	if due, err := db.Setting(t.Context(), "wipe_due"); err != nil || due != "" {
		t.Errorf("once it is done it is due: %q (%v)", due, err)
	}
}
