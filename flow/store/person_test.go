package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Who is shut out, or takes another password, ends their own logins: those of their
// account's others, of another account and of operators go on.
func TestNobodyElseIsShutOut(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for _, account := range []string{"wsp_acc_1", "wsp_acc_2"} {
				a := flow.Account{ID: account, Email: account + "@shop.test", PasswordHash: "old", Business: "Ada Stores", CreatedAt: noon}
				p := flow.Project{ID: flow.ProjectID("wsp_prj_of_" + account), Account: account, Name: "Ada Stores", KYC: flow.KYCNone, CreatedAt: noon}
				if _, err := tx.AddAccount(ctx, a, p, nil); err != nil {
					return err
				}
				if err := tx.AddToken(ctx, flow.Token{Hash: "token of " + account, Account: account, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}, 3); err != nil {
					return err
				}
			}
			for id, account := range map[string]string{"wsp_usr_1": "wsp_acc_1", "wsp_usr_2": "wsp_acc_1", "wsp_usr_3": "wsp_acc_2", "wsp_usr_4": ""} {
				p := flow.Person{ID: id, Account: account, Email: id + "@shop.test", PasswordHash: "old", Role: flow.RoleSupport, CreatedAt: noon}
				if account == "" {
					p.Role = flow.RoleOperator
				}
				if _, err := tx.AddPerson(ctx, p); err != nil {
					return err
				}
			}
			for _, v := range []flow.Visit{
				{Hash: "owner", Account: "wsp_acc_1", Role: flow.RoleOwner},
				{Hash: "owner too", Account: "wsp_acc_1", Role: flow.RoleOwner},
				{Hash: "other owner", Account: "wsp_acc_2", Role: flow.RoleOwner},
				{Hash: "operator", Role: flow.RoleOperator},
				{Hash: "one", Account: "wsp_acc_1", Person: "wsp_usr_1", Role: flow.RoleSupport},
				{Hash: "two", Account: "wsp_acc_1", Person: "wsp_usr_2", Role: flow.RoleSupport},
			} {
				v.Email, v.CreatedAt, v.ExpiresAt = v.Hash+"@shop.test", noon, noon.Add(time.Hour)
				if err := tx.AddVisit(ctx, v, 9); err != nil {
					return err
				}
			}
			return nil
		})
		ended := func(hash string) bool {
			t.Helper()
			v, found, err := db.Visit(t.Context(), hash)
			if err != nil || !found {
				t.Fatalf("%s: %v (%v)", hash, found, err)
			}
			return !v.EndedAt.IsZero()
		}
		goOn := func(when string, hashes ...string) {
			t.Helper()
			for _, hash := range hashes {
				if ended(hash) {
					t.Errorf("%s: the login of %s is over", when, hash)
				}
			}
		}
		shutOut := func(account, id string) (done bool) {
			t.Helper()
			update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				done, err = tx.EndPerson(ctx, account, id, noon.Add(time.Minute))
				return err
			})
			return done
		}
		if shutOut("wsp_acc_2", "wsp_usr_1") || shutOut("", "wsp_usr_1") {
			t.Error("another account shuts somebody out")
		}
		goOn("shut out by another account", "one")
		if !shutOut("wsp_acc_1", "wsp_usr_1") || shutOut("wsp_acc_1", "wsp_usr_1") || !ended("one") {
			t.Error("who is shut out is not, or twice")
		}
		goOn("one is shut out", "two", "owner", "owner too", "other owner", "operator")
		list, err := db.People(t.Context(), "wsp_acc_1", 9)
		if err != nil || len(list) != 2 || list[1].EndedAt.IsZero() || !list[0].EndedAt.IsZero() {
			t.Errorf("of the account are %+v (%v)", list, err)
		}

		changes := func(v flow.Visit, old string) (done bool) {
			t.Helper()
			update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
				done, err = tx.ChangePassword(ctx, v, old, "new", noon.Add(time.Minute))
				return err
			})
			return done
		}
		two := flow.Visit{Hash: "two", Account: "wsp_acc_1", Person: "wsp_usr_2", Role: flow.RoleSupport}
		owner := flow.Visit{Hash: "owner", Account: "wsp_acc_1", Role: flow.RoleOwner}
		if changes(two, "another") || changes(owner, "another") || !changes(two, "old") || changes(two, "old") {
			t.Error("a password is changed by who does not know the old one, or is not")
		}
		goOn("somebody of the account takes another password", "two", "owner", "owner too", "other owner", "operator")
		revoked := func(account string) bool {
			t.Helper()
			k, found, err := db.TokenByHash(t.Context(), "token of "+account)
			if err != nil || !found {
				t.Fatalf("%v (%v)", found, err)
			}
			return !k.RevokedAt.IsZero()
		}
		if revoked("wsp_acc_1") {
			t.Error("the owner's token is over with another's password")
		}
		if !changes(owner, "old") || !ended("owner too") || !revoked("wsp_acc_1") || revoked("wsp_acc_2") {
			t.Errorf("the owner takes another password: another login is over: %v, their token: %v, another account's: %v", ended("owner too"), revoked("wsp_acc_1"), revoked("wsp_acc_2"))
		}
		goOn("the owner takes another password", "owner", "two", "other owner", "operator")
		for _, email := range []string{"wsp_usr_3@shop.test", "wsp_usr_4@shop.test"} {
			if p, found, err := db.PersonByEmail(t.Context(), email); err != nil || !found || p.PasswordHash != "old" || !p.EndedAt.IsZero() {
				t.Errorf("another became %+v (%v)", p, err)
			}
		}
		if a, err := db.Account(t.Context(), "wsp_acc_2"); err != nil || a.PasswordHash != "old" {
			t.Errorf("another account became %+v (%v)", a, err)
		}
	})
}
