package checkout_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Whoever was shut out takes nobody's place: an account that has had as many people as
// it may have at once goes on, and sees all who may log in.
func TestWhoWasShutOutTakesNobodysPlace(t *testing.T) {
	t.Parallel()
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		const most, account = 200, "wsp_acc_1"
		a, _ := desk(t, db)
		began := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
		must(t, db.Update(t.Context(), func(tx *store.Tx) error {
			for i := range most {
				p := flow.Person{
					ID: fmt.Sprintf("wsp_per_%03d", i), Account: account, Email: fmt.Sprintf("p%d@shop.test", i), PasswordHash: "x", Role: flow.RoleSupport,
					CreatedAt: began,
				}
				if _, err := tx.AddPerson(context.WithoutCancel(t.Context()), p); err != nil {
					return err
				}
			}
			return nil
		}))
		add := func(email string) error {
			_, err := a.AddPerson(context.WithoutCancel(t.Context()), account, email, "correct horse battery", flow.RoleSupport, "")
			return err
		}
		if err := add("new@shop.test"); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("one more than there may be: %v", err)
		}
		must(t, a.EndPerson(t.Context(), account, "wsp_per_007"))
		if err := add("new@shop.test"); err != nil {
			t.Errorf("one more after one was shut out: %v", err)
		}
		list, err := a.People(t.Context(), account)
		must(t, err)
		works, shown := 0, false
		for _, p := range list {
			if p.EndedAt.IsZero() {
				works, shown = works+1, shown || p.Email == "new@shop.test"
			}
		}
		if works != most || !shown {
			t.Errorf("%d of %d who may log in are listed; the new one: %v", works, most, shown)
		}
		if err := add("newer@shop.test"); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("one more than there may be, again: %v", err)
		}
	})
}

// What was done within one millisecond is read in the order in which it was done: an act,
// that it was refused, and the next one.
func TestActsOfOneMomentStandInTheirOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		const acts = 12
		a, _ := desk(t, db)
		for i := range acts {
			must(t, a.Audit(t.Context(), flow.Audited{Actor: "obi@shop.test", Role: flow.RoleSupport, Action: "payment.accept", Subject: fmt.Sprint(i), Reason: "he asked"}, true))
		}
		list, _, err := a.Audits(t.Context(), store.AuditFilter{Limit: 2 * acts})
		must(t, err)
		for i, one := range list {
			if len(list) != acts || one.Subject != fmt.Sprint(acts-1-i) {
				t.Fatalf("the newest but %d of %d is act %s", i, len(list), one.Subject)
			}
		}
	})
}
