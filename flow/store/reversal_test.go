package store_test

import (
	"context"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// takenBack is all of a payment, taken back.
func takenBack(of flow.PaymentID) flow.TakenBack {
	b := flow.TakenBack{
		RailTransactionID: "back-001", Reverses: "rail-001", Payment: of, Project: "wsp_prj_1", Session: "wsp_sess_001", Amount: 500_000,
		At: noon, ReceivedAt: noon,
	}
	for _, line := range settled() {
		b.Postings = append(b.Postings, flow.Posting{Account: line.Account, Amount: -line.Amount})
	}
	return b
}

func TestAReversalIsKeptAndPostedOnce(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		keep(t, db, session(1))
		early := takenBack("")
		early.Postings, early.Project, early.Session = nil, "", "" // nobody knows of what
		save := func(b flow.TakenBack) func(context.Context, *store.Tx) error {
			return func(ctx context.Context, tx *store.Tx) error { return tx.SaveTakenBack(ctx, b) }
		}
		if _, found, err := db.TakenBack(ctx, "back-001"); found || err != nil {
			t.Fatalf("found %v, %v", found, err)
		}
		update(t, db, save(early))
		waiting, err := db.TakenBackBefore(ctx, "rail-001", "wsp_sess_001")
		if err != nil || len(waiting) != 1 {
			t.Fatalf("%+v, %v", waiting, err)
		}
		same(t, "the reversal", early, waiting[0])
		if others, err := db.TakenBackBefore(ctx, "rail-002", ""); err != nil || len(others) != 0 {
			t.Errorf("of another payment: %+v, %v", others, err)
		}
		p := payment(1, "wsp_sess_001", flow.Matched)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddPayment(ctx, p, settled()); err != nil {
				return err
			}
			return tx.SaveTakenBack(ctx, takenBack(p.ID))
		})
		posted := takenBack(p.ID)
		posted.Postings = nil // they stand in the ledger
		if read, found, err := db.TakenBack(ctx, "back-001"); err != nil || !found {
			t.Errorf("%v, %v", found, err)
		} else {
			same(t, "the reversal", posted, read)
		}
		if waiting, err := db.TakenBackBefore(ctx, "rail-001", "wsp_sess_001"); err != nil || len(waiting) != 0 {
			t.Errorf("it still waits: %+v, %v", waiting, err)
		}
		if err := refused(t, db, "a reversal that is posted twice", save(takenBack(p.ID))); err != nil && !strings.Contains(err.Error(), "before") {
			t.Error(err)
		}
		unequal := takenBack(p.ID)
		unequal.RailTransactionID, unequal.Postings = "back-002", unequal.Postings[:2]
		refused(t, db, "a reversal whose lines do not sum to zero", save(unequal))
		nameless := takenBack(p.ID)
		nameless.RailTransactionID = ""
		refused(t, db, "a reversal without a name", save(nameless))
		lines, err := db.Ledger(ctx, "wsp_sess_001")
		if err != nil || len(lines) != 2 || lines[1].Kind != flow.EntryReversal || lines[1].Subject != "back-001" {
			t.Fatalf("%+v, %v", lines, err)
		}
		for i, line := range lines[1].Postings {
			if was := lines[0].Postings[i]; line.Account != was.Account || line.Amount != -was.Amount {
				t.Errorf("line %d is %+v", i, line)
			}
		}
		p.Reversed, p.Lost, p.FeeBack = 500_000, 482_500, 17_500
		if list, err := db.Payments(ctx, "wsp_sess_001"); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		} else {
			same(t, "the payment", p, list[0])
		}
		of, err := db.PaymentsFor(ctx, []string{"wsp_sess_001", "wsp_sess_none"})
		if err != nil || len(of) != 1 || len(of["wsp_sess_001"]) != 1 {
			t.Errorf("the payments of sessions are %+v, %v", of, err)
		} else {
			same(t, "the payment of a session", p, of["wsp_sess_001"][0])
		}
	})
}
