package store_test

import (
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
