package store_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Nobody changes the ledger, not even by a statement of their own.
func TestTheLedgerIsNeverChanged(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			return tx.AddPayment(ctx, payment(1, "wsp_sess_001", flow.Matched), settled())
		})
		queries := []string{"UPDATE ledger SET created_at = 1", "UPDATE ledger SET rail_id = 'x'", "DELETE FROM ledger", "DELETE FROM ledger WHERE subject = 'wsp_pay_001'"}
		if !db.Postgres() { // which knows no other way to put a row in the place of one
			queries = append(queries, "REPLACE INTO ledger SELECT * FROM ledger")
		}
		for _, query := range queries {
			err := refused(t, db, query, func(ctx context.Context, tx *store.Tx) error { return tx.Exec(ctx, query) })
			if err == nil || !strings.Contains(err.Error(), "never changed") {
				t.Errorf("%s: %v", query, err)
			}
		}
		if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM ledger WHERE rail_id = 'rail-001' AND value_at = ?", flow.Millis(noon.Add(minute))); err != nil || n != 1 {
			t.Errorf("%d rows are as they were (%v)", n, err)
		}
	})
}

const minute = 60_000_000_000

// A view is of one moment, whatever is written meanwhile.
func TestAViewIsOfOneMoment(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		err := db.View(t.Context(), func(r store.Reader) error {
			before, err := r.Count(t.Context(), "SELECT COUNT(*) FROM sessions")
			if err != nil {
				return err
			}
			keep(t, db, session(2))
			after, err := r.Count(t.Context(), "SELECT COUNT(*) FROM sessions")
			if before != 1 || after != 1 {
				t.Errorf("%d sessions, and then %d", before, after)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM sessions"); err != nil || n != 2 {
			t.Errorf("%d sessions are kept (%v)", n, err)
		}
	})
}

// What was kept before there was a ledger of one row a transaction comes over
// whole: sessions, attempts, watches, payments and what was posted for them and
// for what the bank took back.
func TestPostingsOfTheTenthSchemaAreTakenAlong(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("migration", "checkout", "*.sql"))
	must(t, err)
	slices.Sort(files)
	older := files[:slices.IndexFunc(files, func(f string) bool { return strings.HasSuffix(f, "0011_ledger.sql") })]
	storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
		oldCheckouts(t, c, older)
		db := storetest.Open(t, c)
		s, err := db.Session(t.Context(), "s1")
		if err != nil || s.Status != flow.SessionPaid || s.AmountPaid != 500_000 {
			t.Errorf("the session: %+v (%v)", s, err)
		}
		if a, err := db.Attempts(t.Context(), "s1"); err != nil || len(a) != 1 {
			t.Errorf("the attempts: %+v (%v)", a, err)
		}
		if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM watches WHERE session = 's1' AND chat = 'c1'"); err != nil || n != 1 {
			t.Errorf("%d watches (%v)", n, err)
		}
		moved, err := db.MovementsNamed(t.Context(), []string{"T1", "R1"})
		if err != nil || len(moved) != 2 || moved[0].Amount != 500_000 || moved[0].Payment != "p1" || moved[0].ValueAt.UnixMilli() != 7 ||
			moved[1].Amount != -500_000 || moved[1].Kind != flow.MoveReversal || moved[1].ValueAt.UnixMilli() != 9 {
			t.Errorf("the movements: %+v (%v)", moved, err)
		}
		for _, rule := range []string{store.RuleRows, store.RuleProjects, store.RulePayments, store.RuleReversals, store.RuleStrays, store.RulePending} {
			if list, wrong, _, err := db.LedgerFaults(t.Context(), rule, 9); err != nil || wrong != 0 {
				t.Errorf("%s: %+v (%v)", rule, list, err)
			}
		}
		// A part that was released is the merchant's under its own name, and what
		// waits for a decision goes back by itself.
		for id, want := range map[flow.PaymentID][3]int64{"p2": {200_000, 0, 0}, "p3": {300_000, 0, 0}, "p4": {0, 500_000, 8 + 86_400_000}} {
			p, err := db.Payment(t.Context(), id)
			if got := [3]int64{int64(p.Applied), int64(p.Unapplied), flow.Millis(p.ReturnsAt)}; err != nil || got != want {
				t.Errorf("%s: %v, not %v (%v)", id, got, want, err)
			}
		}
		if b, err := db.Balance(t.Context(), "wsp_prj_2"); err != nil || b != (flow.Balance{Pending: 482_500, Fees: 17_500, Unapplied: 500_000}) {
			t.Errorf("the balance: %+v (%v)", b, err)
		}
		if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM tasks WHERE kind = 'payment.return' AND subject = 'p4'"); err != nil || n != 1 {
			t.Errorf("%d tasks (%v)", n, err)
		}
		// Rows still cannot name others that are not there.
		_ = refused(t, db, "an attempt of no session", func(ctx context.Context, tx *store.Tx) error {
			return tx.SaveAttempt(ctx, attempt(9, "wsp_sess_none"))
		})
		_ = refused(t, db, "a session less that is watched", func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, "DELETE FROM sessions WHERE id = 's1'")
		})
		_ = refused(t, db, "a change of what came over", func(ctx context.Context, tx *store.Tx) error { return tx.Exec(ctx, "UPDATE ledger SET fees = 0") })
	})
}

// oldCheckouts makes a database by the first migrations, with one of everything.
func oldCheckouts(t *testing.T, c store.Config, files []string) {
	t.Helper()
	madeBy(t, c, files, `INSERT INTO sessions VALUES ('s1', 'wsp_prj_1', 'Ada', 'chat', 500000, 500000, 'PAID', '["REVERSED"]', '["bank_transfer"]', 'a@example.com', '', '', '', '', '{}', '', '{}', '', '', '', 0, 2, 3, 1, 100, 7, 1);
INSERT INTO attempts VALUES ('a1', 's1', 'bank_transfer', 'ref1', 500000, 'SUCCEEDED', 1, '', '', '', '', '', 1, 50);
INSERT INTO chats (id, number, person, phone, name, decided, created_at) VALUES ('c1', 'n', 'ada', '', '', 0, 1);
INSERT INTO watches VALUES ('s1', 'c1');
INSERT INTO payments VALUES ('p1', 'wsp_prj_1', 's1', 'a1', 500000, 17500, 'bank_transfer', 7, 8, '{}', '', 'T1', 'MATCHED');
INSERT INTO postings VALUES ('p1', 1, 'wsp_prj_1', 'rail_clearing', 500000, 8, ''), ('p1', 2, 'wsp_prj_1', 'merchant_pending', -482500, 8, ''), ('p1', 3, 'wsp_prj_1', 'fees', -17500, 8, '');
INSERT INTO sessions VALUES ('s2', 'wsp_prj_2', 'Ada', 'chat', 500000, 500000, 'PAID', '[]', '["bank_transfer"]', 'a@example.com', '', '', '', '', '{}', '', '{}', '', '', '', 0, 2, 3, 1, 100, 7, 1),
 ('s3', 'wsp_prj_2', 'Ada', 'chat', 500000, 0, 'EXPIRED', '["PAID_LATE"]', '["bank_transfer"]', 'a@example.com', '', '', '', '', '{}', '', '{}', '', '', '', 0, 2, 3, 1, 100, 0, 1);
INSERT INTO payments VALUES ('p2', 'wsp_prj_2', 's2', 'a2', 200000, 0, 'bank_transfer', 7, 8, '{}', '', 'T2', 'PARTIAL'), ('p3', 'wsp_prj_2', 's2', 'a2', 300000, 17500, 'bank_transfer', 7, 8, '{}', '', 'T3', 'MATCHED'),
 ('p4', 'wsp_prj_2', 's3', 'a3', 500000, 0, 'bank_transfer', 7, 8, '{}', '', 'T4', 'LATE');
INSERT INTO postings VALUES ('p2', 1, 'wsp_prj_2', 'rail_clearing', 200000, 8, ''), ('p2', 2, 'wsp_prj_2', 'unapplied', -200000, 8, ''),
 ('p3', 1, 'wsp_prj_2', 'rail_clearing', 300000, 8, ''), ('p3', 2, 'wsp_prj_2', 'unapplied', 200000, 8, ''), ('p3', 3, 'wsp_prj_2', 'merchant_pending', -482500, 8, ''), ('p3', 4, 'wsp_prj_2', 'fees', -17500, 8, ''),
 ('p4', 1, 'wsp_prj_2', 'rail_clearing', 500000, 8, ''), ('p4', 2, 'wsp_prj_2', 'unapplied', -500000, 8, '');
INSERT INTO reversals VALUES ('R1', 'T1', 'p1', 'wsp_prj_1', 's1', 500000, 9, 10);
INSERT INTO postings VALUES ('p1', 4, 'wsp_prj_1', 'rail_clearing', -500000, 10, 'R1'), ('p1', 5, 'wsp_prj_1', 'merchant_pending', 482500, 10, 'R1'), ('p1', 6, 'wsp_prj_1', 'fees', 17500, 10, 'R1')`)
}
