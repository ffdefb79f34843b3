package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// TestMilestones keeps the first time that a project met each.
func TestMilestones(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		at := time.UnixMilli(1_800_000_000_000).UTC()
		account := flow.Account{ID: "wsp_acc_1", Email: "ada@example.com", PasswordHash: "x", Business: "Ada", CreatedAt: at}
		project := flow.Project{ID: "wsp_prj_1", Account: account.ID, Name: "Ada", KYC: flow.KYCNone, CreatedAt: at}
		must(t, db.Update(ctx, func(tx *store.Tx) error {
			if _, err := tx.AddAccount(ctx, account, project, nil); err != nil {
				return err
			}
			for i, m := range []flow.Met{{Milestone: flow.MilestoneKey, At: at}, {Milestone: flow.MilestoneKey, At: at.Add(time.Hour), SaidBy: "ada"}} {
				if err := tx.SaveMet(ctx, project.ID, m); err != nil {
					t.Errorf("keep number %d", i)
					return err
				}
			}
			return nil
		}))
		met, err := db.Milestones(ctx, project.ID)
		if want := (flow.Met{Milestone: flow.MilestoneKey, At: at}); err != nil || len(met) != 1 || met[flow.MilestoneKey] != want {
			t.Errorf("what was met is %v (%v)", met, err)
		}
	})
}

// TestWhoWasShutOutComesBack adds somebody again, to their own account alone.
func TestWhoWasShutOutComesBack(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		at := time.UnixMilli(1_800_000_000_000).UTC()
		p := flow.Person{ID: "wsp_usr_1", Account: "wsp_acc_1", Email: "dev@example.com", PasswordHash: "x", Role: flow.RoleDeveloper, CreatedAt: at}
		add := func(p flow.Person) (added bool) {
			t.Helper()
			must(t, db.Update(ctx, func(tx *store.Tx) (err error) { added, err = tx.AddPerson(ctx, p); return err }))
			return added
		}
		if !add(p) || add(p) {
			t.Fatal("somebody is added once")
		}
		must(t, db.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error { _, err := tx.EndPerson(ctx, p.Account, p.ID, at); return err }))
		other := p
		other.ID, other.Account = "wsp_usr_2", "wsp_acc_2"
		if add(other) {
			t.Error("another account took the address over")
		}
		p.ID, p.PasswordHash, p.Role = "wsp_usr_3", "y", flow.RoleSupport
		if !add(p) {
			t.Fatal("they cannot come back")
		}
		if got, found, err := db.PersonByEmail(ctx, p.Email); err != nil || !found || got != p {
			t.Errorf("who came back is %+v (%v)", got, err)
		}
	})
}

// TestNothingIsThereYet asks both databases what no row answers: the queries hold
// in each.
func TestNothingIsThereYet(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for _, dead := range []bool{false, true} {
			if list, err := db.DeliveriesTo(ctx, "wsp_we_1", "", dead, 10, 3); err != nil || len(list) != 0 {
				t.Errorf("deliveries: %v (%v)", list, err)
			}
		}
		if n, err := db.Outcomes(ctx, "wsp_we_1", 100); err != nil || len(n) != 0 {
			t.Errorf("outcomes: %v (%v)", n, err)
		}
		if had, err := db.HasDelivered(ctx, "wsp_prj_1", flow.MilestoneWebhook.Proof()); err != nil || had {
			t.Errorf("delivered: %v (%v)", had, err)
		}
		if had, err := db.HasCall(ctx, "wsp_prj_1"); err != nil || had {
			t.Errorf("call: %v (%v)", had, err)
		}
	})
}

// What an endpoint took is of the project and the kind that it was of, and once it did.
func TestWhatAProjectMetIsItsOwn(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		endpoints(t, db, 1)
		ids := oweMany(t, db, 1, 0, 1) // of money that paid
		other := event(9, "", flow.SessionExpiredKind)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.AddEvent(ctx, other) })
		had := func(project flow.ProjectID, m flow.Milestone) bool {
			t.Helper()
			is, err := db.HasDelivered(t.Context(), project, m.Proof())
			must(t, err)
			return is
		}
		if had("wsp_prj_1", flow.MilestoneWebhook) {
			t.Error("what is owed is not delivered")
		}
		statement(t, db, "UPDATE deliveries SET state = 'delivered', next_at = 0, done_at = 7 WHERE id = '"+ids[0]+"'")
		if !had("wsp_prj_1", flow.MilestoneWebhook) || had("wsp_prj_1", flow.MilestoneEnded) || had("wsp_prj_2", flow.MilestoneWebhook) {
			t.Error("what is delivered is another's, or of another kind")
		}
		for _, ear := range flow.OwnEars() {
			statement(t, db, "UPDATE endpoints SET description = '"+ear+"'")
			if had("wsp_prj_1", flow.MilestoneWebhook) {
				t.Errorf("what %q took is a merchant's", ear)
			}
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveCall(ctx, "wsp_prj_1", "k", store.KeptCall{Hash: "h", At: noon})
		})
		for scope, want := range map[string]bool{"wsp_prj_1": true, "wsp_prj_2": false} {
			if is, err := db.HasCall(t.Context(), scope); err != nil || is != want {
				t.Errorf("a call of %s: %v (%v)", scope, is, err)
			}
		}
	})
}
