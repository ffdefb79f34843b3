package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

func TestASearchIsKeptOnceUnderItsName(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		keep := func(email string, f flow.Filter) {
			t.Helper()
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.KeepFilter(ctx, "wsp_acc_1", email, f) })
		}
		late := flow.Filter{Name: "O'Neil; DROP TABLE filters", Words: "4500 yesterday", Status: flow.SessionPaid, CreatedAt: noon}
		keep("ada@shop.test", late)
		keep("ada@shop.test", flow.Filter{Name: "a first", Words: "x", CreatedAt: noon})
		keep("obi@shop.test", flow.Filter{Name: "a first", Words: "another's", CreatedAt: noon})
		late.Words, late.Status, late.CreatedAt = "4600", "", noon.Add(time.Hour)
		keep("ada@shop.test", late)
		read := func(account, email string) []flow.Filter {
			t.Helper()
			list, err := db.Filters(t.Context(), account, email)
			must(t, err)
			return list
		}
		list := read("wsp_acc_1", "ada@shop.test")
		if len(list) != 2 || list[1].Words != "x" && list[0].Words != "x" {
			t.Fatalf("%+v", list)
		}
		for _, f := range list {
			if f.Name == late.Name {
				same(t, "the search", late, f)
			}
		}
		if other := read("", "ada@shop.test"); len(other) != 0 {
			t.Errorf("an operator of the same address has %+v", other)
		}
		for i, want := range []bool{true, false} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error {
				dropped, err := tx.DropFilter(ctx, "wsp_acc_1", "ada@shop.test", late.Name)
				if dropped != want {
					t.Errorf("time %d: dropped %v", i, dropped)
				}
				return err
			})
		}
		if mine, others := read("wsp_acc_1", "ada@shop.test"), read("wsp_acc_1", "obi@shop.test"); len(mine) != 1 || len(others) != 1 {
			t.Errorf("left are %+v and %+v", mine, others)
		}
	})
}

// The audit log is read by who did what to what, by family of acts, and by when.
func TestTheAuditLogIsFiltered(t *testing.T) {
	storetest.Each(t, store.Accounts, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, a := range []flow.Audited{
				{Actor: "ada", Action: "payment.accept"},
				{Actor: "ada", Action: "payment.send_back"},
				{Actor: "ada", Action: "paymentlike"},
				{Actor: "ada", Action: "a%.x"},
				{Actor: "ada", Action: "number.kill", Subject: "1"},
				{Actor: "ada", Action: "number.resume", Subject: "1"},
				{Actor: "obi", Action: "number.kill", Subject: "2"},
			} {
				a.ID, a.At, a.Role = fmt.Sprint("aud_", i), noon.Add(time.Duration(i)*time.Hour), flow.RoleOperator
				if err := tx.AddAudit(ctx, a); err != nil {
					return err
				}
			}
			return nil
		})
		for _, c := range []struct {
			f    store.AuditFilter
			want string
		}{
			{store.AuditFilter{}, "6543210"},
			{store.AuditFilter{Actor: "ada"}, "543210"},
			{store.AuditFilter{Action: "number.kill"}, "64"},
			{store.AuditFilter{Actor: "ada", Action: "number.kill"}, "4"},
			{store.AuditFilter{Subject: "2"}, "6"},
			{store.AuditFilter{Actor: "ada", Before: "aud_1"}, "0"},
			{store.AuditFilter{Action: "payment"}, "10"},
			{store.AuditFilter{Action: "payment.accept"}, "0"},
			{store.AuditFilter{Action: "a%"}, "3"},
			{store.AuditFilter{Action: "%"}, ""},
			{store.AuditFilter{From: noon.Add(time.Hour)}, "654321"},
			{store.AuditFilter{Until: noon.Add(time.Hour)}, "0"},
			{store.AuditFilter{From: noon, Until: noon.Add(2 * time.Hour), Action: "payment"}, "10"},
			{store.AuditFilter{Actor: "ada", Action: "payment", Before: "aud_1", From: noon}, "0"},
		} {
			c.f.Limit = 10
			list, err := db.Audit(t.Context(), c.f)
			got := ""
			for _, a := range list {
				got += a.ID[len("aud_"):]
			}
			if err != nil || got != c.want {
				t.Errorf("%+v reads %q (%v), not %q", c.f, got, err, c.want)
			}
		}
	})
}
