package store_test

import (
	"context"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestTheSettingsOfAProjectComeBackAsTheyWereKept(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		account := flow.Account{ID: "wsp_acc_1", Email: "ada@shop.test", PasswordHash: "x", Business: "Ada", CreatedAt: noon}
		project := flow.Project{ID: "wsp_prj_1", Account: account.ID, Name: "Ada Stores", KYC: flow.KYCNone, CreatedAt: noon}
		key := flow.Key{ID: "wsp_key_1", Project: project.ID, Environment: flow.Test, Kind: flow.SecretKey, Hash: "h", Hint: "sk_test_…", CreatedAt: noon}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.AddAccount(ctx, account, project, []flow.Key{key})
			return err
		})
		reads := func(want flow.Project) {
			t.Helper()
			one, err := db.Project(t.Context(), project.ID)
			must(t, err)
			same(t, "the project", want, one)
			list, err := db.Projects(t.Context(), account.ID, "", 9)
			must(t, err)
			same(t, "the projects", []flow.Project{want}, list)
			_, of, found, err := db.KeyByHash(t.Context(), "h")
			if err != nil || !found {
				t.Fatal(found, err)
			}
			same(t, "the key's project", want, of)
		}
		reads(project) // without settings
		project.Settings = flow.Settings{
			DisplayName: "Ọja \"Àda\" 🛒", Brand: "O'Neil; DROP TABLE projects", Lang: flow.Igbo, Underpayment: "accept", Overpayment: "refund_excess", LatePayment: "refund", SessionMinutes: 45,
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveSettings(ctx, project.ID, project.Settings)
		})
		reads(project)
		err := refused(t, db, "another project's settings", func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveSettings(ctx, "wsp_prj_9", flow.Settings{})
		})
		if flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("of no project: %v", err)
		}
	})
}
