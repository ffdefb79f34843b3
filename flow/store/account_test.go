package store_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// merchant keeps an account with a project and these keys.
func merchant(t *testing.T, db *store.DB, n int, keys ...flow.Key) flow.Project {
	t.Helper()
	a := flow.Account{ID: fmt.Sprintf("wsp_acc_%d", n), Email: fmt.Sprintf("m%d@example.com", n), PasswordHash: "$argon2id$", Business: "Ada", CreatedAt: noon}
	p := flow.Project{ID: flow.ProjectID(fmt.Sprintf("wsp_prj_%d", n)), Account: a.ID, Name: "Ada", KYC: flow.KYCNone, CreatedAt: noon}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		added, err := tx.AddAccount(ctx, a, p, keys)
		if err == nil && !added {
			t.Error("the address is taken")
		}
		return err
	})
	got, found, err := db.AccountByEmail(t.Context(), a.Email)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	same(t, "the account", a, got)
	return p
}

func apiKey(n int, project flow.ProjectID) flow.Key {
	return flow.Key{
		ID: fmt.Sprintf("wsp_key_%d", n), Project: project, Environment: flow.Live, Kind: flow.PublicKey, Hash: fmt.Sprintf("hash %d", n), Hint: "pk_live_…abcd",
		CreatedAt: noon, ExpiresAt: noon.Add(time.Hour), RevokedAt: noon.Add(2 * time.Hour), LastUsedAt: noon.Add(3 * time.Hour),
	}
}

func TestKeysAreKeptCountedAndEnded(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		p := merchant(t, db, 1, apiKey(1, "wsp_prj_1"))
		works, ends := apiKey(2, p.ID), apiKey(3, p.ID)
		works.ExpiresAt, works.RevokedAt, works.LastUsedAt, ends.RevokedAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddKey(ctx, works); err != nil {
				return err
			}
			return tx.AddKey(ctx, ends)
		})
		for _, c := range []struct {
			at   time.Time
			want int
		}{{noon, 2}, {noon.Add(time.Hour), 1}} {
			if n, err := db.CountKeys(t.Context(), p.ID, c.at); err != nil || n != c.want {
				t.Errorf("%d keys work at %v: %v", n, c.at, err)
			}
		}
		page, err := db.Keys(t.Context(), p.ID, "", 2)
		must(t, err)
		same(t, "the first page", []flow.Key{ends, works}, page)
		if page, err = db.Keys(t.Context(), p.ID, works.ID, 2); err != nil {
			t.Fatal(err)
		}
		same(t, "the second page", []flow.Key{apiKey(1, p.ID)}, page)

		works.ExpiresAt, works.RevokedAt, works.LastUsedAt = noon.Add(5*time.Hour), noon.Add(6*time.Hour), noon.Add(7*time.Hour)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.EndKey(ctx, works); err != nil {
				return err
			}
			return tx.NoteKeyUse(ctx, map[string]time.Time{works.ID: works.LastUsedAt, "wsp_key_none": noon})
		})
		update(t, db, func(ctx context.Context, tx *store.Tx) error { // an older use changes nothing
			return tx.NoteKeyUse(ctx, map[string]time.Time{works.ID: noon})
		})
		got, err := db.Key(t.Context(), p.ID, works.ID)
		must(t, err)
		same(t, "the ended key", works, got)
		if _, err := db.Key(t.Context(), "wsp_prj_2", works.ID); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another project's key: %v", err)
		}
		other := works
		other.Project = "wsp_prj_2"
		if err := refused(t, db, "the end of another project's key", func(ctx context.Context, tx *store.Tx) error { return tx.EndKey(ctx, other) }); flow.CodeOf(err) != flow.CodeNotFound {
			t.Error(err)
		}
		_ = refused(t, db, "a key twice", func(ctx context.Context, tx *store.Tx) error { return tx.AddKey(ctx, works) })
		_ = refused(t, db, "a key of no project", func(ctx context.Context, tx *store.Tx) error { return tx.AddKey(ctx, apiKey(9, "wsp_prj_9")) })
	})
}

func TestTokensAreKeptAndFew(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		p := merchant(t, db, 1)
		other := merchant(t, db, 2)
		token := func(n int, account string) flow.Token {
			at := noon.Add(time.Duration(n) * time.Minute)
			return flow.Token{Hash: fmt.Sprintf("%s %d", account, n), Account: account, CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
		}
		add := func(k flow.Token) {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.AddToken(ctx, k, 3) })
		}
		add(token(0, other.Account))
		for n := range 5 {
			add(token(n, p.Account))
		}
		for n := range 5 {
			k, found, err := db.TokenByHash(t.Context(), token(n, p.Account).Hash)
			if err != nil || found != (n >= 2) {
				t.Errorf("token %d: %v %v", n, found, err)
			}
			if found {
				same(t, "the token", token(n, p.Account), k)
			}
		}
		if _, found, err := db.TokenByHash(t.Context(), token(0, other.Account).Hash); err != nil || !found {
			t.Errorf("another account's token was dropped: %v", err)
		}
		late := token(24*60, p.Account) // a day later the others are long over
		add(late)
		if _, found, err := db.TokenByHash(t.Context(), token(4, p.Account).Hash); err != nil || found {
			t.Errorf("a token that is long over is kept: %v", err)
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.RevokeToken(ctx, late.Hash, noon) })
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.RevokeToken(ctx, late.Hash, noon.Add(time.Hour))
		})
		late.RevokedAt = noon
		k, _, err := db.TokenByHash(t.Context(), late.Hash)
		must(t, err)
		same(t, "the revoked token", late, k)
	})
}

func TestTheKYCMovesFromWhereItIs(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		p := merchant(t, db, 1)
		_ = merchant(t, db, 2)
		details := flow.KYCDetails{LegalName: "Àdá Ltd", RegistrationNumber: "RC 1", Address: "1 Ọjà\nLagos", ContactName: "Ada", ContactPhone: "2348031234567", Website: "https://ada.example"}
		submitted := flow.KYCMove{Project: p.ID, From: flow.KYCNone, To: flow.KYCSubmitted, At: noon, Details: details}
		approved := flow.KYCMove{Project: p.ID, From: flow.KYCSubmitted, To: flow.KYCApproved, At: noon.Add(time.Hour), Reason: "known"}
		for _, c := range []struct {
			move flow.KYCMove
			want bool
		}{{approved, false}, {submitted, true}, {submitted, false}, {approved, true}, {flow.KYCMove{Project: "wsp_prj_9", From: flow.KYCNone, To: flow.KYCSubmitted}, false}} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				moved, err := tx.MoveKYC(ctx, c.move)
				if moved != c.want {
					t.Errorf("%s -> %s: %v", c.move.From, c.move.To, moved)
				}
				return err
			})
		}
		moves, err := db.KYCMoves(t.Context(), p.ID, 10)
		must(t, err)
		same(t, "the moves", []flow.KYCMove{submitted, approved}, moves)
		if moves, err = db.KYCMoves(t.Context(), p.ID, 1); err != nil {
			t.Fatal(err)
		}
		same(t, "the last move", []flow.KYCMove{approved}, moves)
		p.KYC = flow.KYCApproved
		got, err := db.Project(t.Context(), p.ID)
		must(t, err)
		same(t, "the project", p, got)
		if _, err := db.Project(t.Context(), "wsp_prj_9"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Error(err)
		}
		all, err := db.Merchants(t.Context(), "", "", 1)
		if err != nil || len(all) != 1 || all[0].Project != p || all[0].Account.Email != "m1@example.com" {
			t.Errorf("the merchants: %+v %v", all, err)
		}
		if all, err = db.Merchants(t.Context(), "", p.ID, 5); err != nil || len(all) != 1 || all[0].Project.ID != "wsp_prj_2" {
			t.Errorf("the merchants after the first: %+v %v", all, err)
		}
		if all, err = db.Merchants(t.Context(), flow.KYCSubmitted, "", 5); err != nil || len(all) != 0 {
			t.Errorf("the merchants that handed in: %+v %v", all, err)
		}
		if all, err = db.Merchants(t.Context(), p.KYC, "", 5); err != nil || len(all) != 1 || all[0].Project != p {
			t.Errorf("the merchants in the state %s: %+v %v", p.KYC, all, err)
		}
		if one, err := db.Merchant(t.Context(), p.ID); err != nil || one.Project != p {
			t.Errorf("the merchant: %+v %v", one, err)
		}
		if _, err := db.Merchant(t.Context(), "wsp_prj_9"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Error(err)
		}
		if n, err := db.CountProjects(t.Context(), p.Account); err != nil || n != 1 {
			t.Error(n, err)
		}
		if list, err := db.Projects(t.Context(), p.Account, "", 5); err != nil || len(list) != 1 || list[0] != p {
			t.Errorf("the projects: %+v %v", list, err)
		}
		if list, err := db.Projects(t.Context(), p.Account, p.ID, 5); err != nil || len(list) != 0 {
			t.Errorf("the projects before the first: %+v %v", list, err)
		}
		_ = refused(t, db, "a state that is none", func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, "UPDATE projects SET kyc = 'FINE'")
		})
	})
}

// Accounts of the first schema are still there in the newest, known by their
// address in lower case, with keys that work and nothing decided about them.
func TestAccountsOfTheFirstSchemaAreTakenAlong(t *testing.T) {
	first := []string{filepath.Join("migration", "accounts", "0001_accounts.sql")}
	storetest.EachEmpty(t, store.Accounts, func(t *testing.T, c store.Config) {
		madeBy(t, c, first, "INSERT INTO accounts VALUES ('a1', 'Ada@Example.com', 'x', 'Ada', 1), ('a2', 'Obi@Example.com', 'x', 'Obi', 1), ('a3', 'obi@example.com', 'x', 'Obi', 1);\n"+
			"INSERT INTO projects VALUES ('p1', 'a1', 'Ada', 1);\nINSERT INTO keys VALUES ('k1', 'p1', 'test', 'secret', 'h1', 'sk', 1, 0, 0)")
		db := storetest.Open(t, c)
		for email, id := range map[string]string{"ada@example.com": "a1", "obi@example.com": "a3", "Obi@Example.com": "a2"} {
			if a, found, err := db.AccountByEmail(t.Context(), email); err != nil || !found || a.ID != id {
				t.Errorf("%s is %q: %v %v", email, a.ID, found, err)
			}
		}
		k, p, found, err := db.KeyByHash(t.Context(), "h1")
		if err != nil || !found || p.KYC != flow.KYCNone || !k.LastUsedAt.IsZero() || k.Status(noon) != flow.KeyActive {
			t.Errorf("the key: %+v %+v %v %v", k, p, found, err)
		}
	})
}
