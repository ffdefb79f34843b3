package store_test

import (
	"context"
	"fmt"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// A rule that is checked part by part looks at each row once, also where a part
// ends and in the last one.
func TestARuleLooksAtEachRowOnceInParts(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		count := 2*store.PartOf + 1
		list := make([]flow.Session, count)
		for i := range list {
			list[i] = session(i)
			list[i].Status, list[i].AmountPaid, list[i].PaidAt = flow.SessionPaid, list[i].Amount, noon // and nobody was told
		}
		keep(t, db, list...)
		faults, wrong, of, err := db.LedgerFaults(t.Context(), store.RuleSuccess, count)
		if err != nil || wrong != count || of != count {
			t.Fatalf("%d of %d are wrong, not all %d (%v)", wrong, of, count, err)
		}
		named := map[string]bool{}
		for _, f := range faults {
			named[f.ID] = true
		}
		if len(named) != count {
			t.Errorf("%d are named, not all %d", len(named), count)
		}
		if _, wrong, of, err := db.Reader.LedgerFaults(t.Context(), store.RulePaid, 1); err != nil || wrong != count || of != count {
			t.Errorf("%d of %d were paid by nothing, not all %d (%v)", wrong, of, count, err)
		}
	})
}

// So does one about each transaction, and so are the bank's movements read.
func TestTheLedgerIsReadInParts(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		count := 2*store.PartOf + 1
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i := range count { // of payments that are not there
				id, kind := fmt.Sprintf("wsp_pay_%06d", i), flow.EntryPayment
				if i%3 == 0 { // a part ends within a kind, too
					kind = flow.EntryReversal
				}
				err := tx.Post(ctx, flow.Entry{Kind: kind, Subject: id, Payment: flow.PaymentID(id), At: noon, RailID: "rail_" + id, Postings: []flow.Posting{
					{Account: flow.RailClearing, Amount: flow.Kobo(i + 1)}, {Account: flow.Unapplied, Amount: -flow.Kobo(i + 1)},
				}})
				if err != nil {
					return err
				}
			}
			return nil
		})
		faults, wrong, of, err := db.LedgerFaults(t.Context(), store.RuleStrays, count)
		if err != nil || wrong != count || of != count {
			t.Fatalf("%d of %d are of nothing, not all %d (%v)", wrong, of, count, err)
		}
		all, err := db.AllMovements(t.Context())
		if err != nil || len(all) != count {
			t.Fatalf("%d movements are read, not all %d (%v)", len(all), count, err)
		}
		named, moved := map[string]bool{}, map[string]bool{}
		sum := flow.Kobo(0)
		for i := range count {
			named[faults[i].ID], moved[all[i].RailTransactionID] = true, true
			sum += all[i].Amount
		}
		balances, err := db.Balances(t.Context(), "")
		if err != nil || len(named) != count || len(moved) != count || sum != balances[flow.RailClearing] {
			t.Errorf("%d are named and %d movements, of %d; they come to %d of %d kobo (%v)", len(named), len(moved), count, sum, balances[flow.RailClearing], err)
		}
		if _, wrong, of, err := db.LedgerFaults(t.Context(), store.RuleRows, 1); err != nil || wrong != 0 || of != count {
			t.Errorf("%d of %d do not sum to zero, of %d (%v)", wrong, of, count, err)
		}
	})
}
