package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// Who asks for some payments is told of these, and of no other's.
func TestPaymentsAreListedAsTheyAreAskedFor(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		others := session(3)
		others.Project = "wsp_prj_2"
		keep(t, db, session(1), session(2), others)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for n, p := range []flow.Payment{
				payment(1, "wsp_sess_001", flow.Matched), payment(2, "wsp_sess_001", flow.Duplicate), payment(3, "wsp_sess_002", flow.Matched),
				payment(4, "wsp_sess_003", flow.Matched),
			} {
				if p.ReceivedAt = noon.Add(time.Duration(n+1) * time.Hour); n == 3 {
					p.Project = "wsp_prj_2"
				}
				if err := tx.AddPayment(ctx, p, aside()); err != nil {
					return err
				}
			}
			return nil
		})
		for _, c := range []struct {
			f    store.PaymentFilter
			want string
		}{
			{store.PaymentFilter{}, "3 2 1"},
			{store.PaymentFilter{Match: flow.Matched}, "3 1"},
			{store.PaymentFilter{Match: flow.Late}, ""},
			{store.PaymentFilter{Session: "wsp_sess_001"}, "2 1"},
			{store.PaymentFilter{Session: "wsp_sess_003"}, ""}, // another project's
			{store.PaymentFilter{From: noon.Add(2 * time.Hour)}, "3 2"},
			{store.PaymentFilter{Before: noon.Add(2 * time.Hour)}, "1"},
			{store.PaymentFilter{From: noon.Add(2 * time.Hour), Before: noon.Add(3 * time.Hour)}, "2"},
			{store.PaymentFilter{Older: "wsp_pay_003"}, "2 1"},
			{store.PaymentFilter{Older: "wsp_pay_003", Match: flow.Matched, Session: "wsp_sess_001"}, "1"},
			{store.PaymentFilter{Limit: 1}, "3"},
		} {
			if c.f.Project = "wsp_prj_1"; c.f.Limit == 0 {
				c.f.Limit = 9
			}
			list, err := db.PaymentsOf(t.Context(), c.f)
			got := ""
			for i, p := range list {
				got += map[bool]string{true: " "}[i > 0] + string(p.ID[len("wsp_pay_00"):])
			}
			if err != nil || got != c.want {
				t.Errorf("%+v reads %q (%v), not %q", c.f, got, err, c.want)
			}
		}
	})
}

// What was decided about a payment is open again with nothing left of it. One that
// waits already keeps its time.
func TestAPaymentThatIsDecidedAboutOnceMoreIsAsItCame(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		came := payment(1, "wsp_sess_001", flow.Late)
		came.Fee, came.Applied = 0, 0
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.AddPayment(ctx, came, aside()) })
		decided := came
		decided.Resolution, decided.ResolvedAt, decided.ResolvedBy, decided.ResolvedWhy = flow.ResolvedRefunded, noon.Add(time.Hour), "wsp_key_1", "too late"
		read := func() flow.Payment {
			t.Helper()
			p, err := db.Payment(t.Context(), came.ID)
			must(t, err)
			p.Unapplied = 0 // the ledger's
			return p
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.DecidePayment(ctx, decided) })
		same(t, "the decision", decided, read())
		again := came
		again.ReturnsAt = noon.Add(24 * time.Hour)
		for _, returns := range []time.Time{again.ReturnsAt, noon.Add(48 * time.Hour)} {
			update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.ReopenPayment(ctx, came.ID, returns) })
			same(t, "what is open again", again, read())
		}
	})
}

// A page of settlements begins after the one before it.
func TestSettlementsAreReadPageByPage(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for n, status := range []flow.SettlementStatus{flow.SettlementSucceeded, flow.SettlementPending, flow.SettlementProcessing} {
				b := flow.Settlement{
					ID: flow.SettlementID(fmt.Sprint("wsp_stl_", n)), Project: "wsp_prj_1", SettlesOn: flow.DateOf(noon).Plus(n), Status: status, Amount: 100, Lines: 1,
					To: flow.BankAccount{BankCode: "999", Number: "0000000001", Name: "ADA"}, BankName: "Till Test Bank", Tries: 1, CreatedAt: noon, SentAt: noon,
				}
				if status == flow.SettlementSucceeded {
					b.RailTransactionID, b.DoneAt = "out-1", noon
				}
				if status == flow.SettlementPending {
					b.Tries, b.SentAt = 0, time.Time{}
				}
				if err := tx.SaveSettlement(ctx, b); err != nil {
					return err
				}
			}
			return nil
		})
		got, before := "", ""
		for range 4 {
			list, err := db.Settlements(t.Context(), store.SettlementFilter{Project: "wsp_prj_1", Before: before, Limit: 1})
			must(t, err)
			for _, b := range list {
				got, before = got+string(b.ID)+" ", string(b.ID)
			}
		}
		if got != "wsp_stl_2 wsp_stl_1 wsp_stl_0 " {
			t.Errorf("the pages are %s", got)
		}
		for name, f := range map[string]store.SettlementFilter{
			"of then": {From: noon, Until: noon.Add(time.Millisecond)}, "of before": {Until: noon}, "of later": {From: noon.Add(time.Millisecond)},
			"in a state": {Status: flow.SettlementPending},
		} {
			f.Project, f.Limit = "wsp_prj_1", 9
			list, err := db.Settlements(t.Context(), f)
			if want := map[string]int{"of then": 3, "in a state": 1}[name]; err != nil || len(list) != want {
				t.Errorf("%s: %+v (%v)", name, list, err)
			}
		}
		open, after := "", flow.SettlementID("")
		for range 3 {
			list, err := db.OpenSettlements(t.Context(), after, 1)
			must(t, err)
			for _, b := range list {
				open, after = open+string(b.ID)+" ", b.ID
			}
		}
		if open != "wsp_stl_1 wsp_stl_2 " {
			t.Errorf("the bank has not said the last word about %s", open)
		}
	})
}

// What does not sum to zero, or moves nothing, is no transaction of the ledger.
func TestTheLedgerTakesNothingThatIsOff(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		for name, lines := range map[string][]flow.Posting{
			"a kobo too much":          {{Account: flow.RailClearing, Amount: 500_001}, {Account: flow.Unapplied, Amount: -500_000}},
			"one side":                 {{Account: flow.MerchantAvailable, Amount: -500_000}},
			"nothing":                  nil,
			"nothing, twice":           {{Account: flow.RailClearing}, {Account: flow.Unapplied}},
			"there and back":           {{Account: flow.Fees, Amount: 5}, {Account: flow.Fees, Amount: -5}},
			"an account there is none": {{Account: "nobody", Amount: 5}, {Account: flow.Fees, Amount: -5}},
		} {
			e := flow.Entry{Kind: flow.EntryPayment, Subject: "wsp_pay_1", Payment: "wsp_pay_1", Project: "wsp_prj_1", At: noon, Postings: lines}
			_ = refused(t, db, name, func(ctx context.Context, tx *store.Tx) error { return tx.Post(ctx, e) })
		}
	})
}

// What came is counted by the hour in which it came, that of the project that asks alone.
func TestMoneyIsCountedByTheHourInWhichItCame(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			for i, after := range []time.Duration{-time.Millisecond, 0, time.Hour - time.Millisecond, time.Hour, 3*time.Hour + time.Minute, 2 * time.Hour} {
				p := payment(i, "wsp_sess_001", flow.Duplicate)
				p.ReceivedAt = noon.Add(after)
				p.ID = flow.PaymentID(flow.FirstID(flow.PrefixPayment, p.ReceivedAt))
				if i == 5 {
					p.Project = "wsp_prj_2"
				}
				if err := tx.AddPayment(ctx, p, aside()); err != nil {
					return err
				}
			}
			return nil
		})
		amount := payment(1, "", flow.Duplicate).Amount
		want := []store.Came{
			{From: noon, Payments: 2, Amount: 2 * amount}, {From: noon.Add(time.Hour), Payments: 1, Amount: amount}, {From: noon.Add(3 * time.Hour), Payments: 1, Amount: amount},
		}
		got, err := db.CameByHour(t.Context(), "wsp_prj_1", noon)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v (%v)", got, err)
		}
	})
}
