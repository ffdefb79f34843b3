package store_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// refund is money of the first payment on its way back.
func refund(id flow.RefundID, amount flow.Kobo, status flow.RefundStatus) flow.Refund {
	return flow.Refund{
		ID: id, Project: "wsp_prj_1", Payment: "wsp_pay_001", Session: "wsp_sess_001", Charge: "wsp_chg_1", Credit: "rail-001", Amount: amount, Status: status,
		Origin: flow.OriginMerchant, Reference: string(id), CreatedAt: noon,
	}
}

func TestARefundComesBackAsItWasKeptAndCountsForItsPayment(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		s := session(1)
		s.Charge = "wsp_chg_1"
		keep(t, db, s)
		first := refund("wsp_rfd_1", 100_000, flow.RefundPending)
		first.Reason, first.Aside = "O'Neil; \"two\"\nlines", 40_000
		failed := refund("wsp_rfd_2", 200_000, flow.RefundFailed)
		failed.Refused, failed.PutBack, failed.Failures = true, true, 3
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddPayment(ctx, payment(1, s.ID, flow.Matched), settled()); err != nil {
				return err
			}
			if err := tx.SaveRefund(ctx, failed); err != nil {
				return err
			}
			return tx.SaveRefund(ctx, first)
		})
		read := func() flow.Refund {
			t.Helper()
			r, err := db.Refund(t.Context(), first.ID)
			must(t, err)
			return r
		}
		same(t, "the refund", first, read())
		first.Status, first.Reference, first.Tries, first.Held, first.Returned = flow.RefundProcessed, "wsp_rfd_1-2", 2, true, true
		first.Aside, first.Refused, first.PutBack, first.Failures = 30_000, true, false, 1
		first.RailTransactionID, first.Failure, first.SentAt, first.DoneAt = "B1", "once", noon.Add(time.Second), noon.Add(time.Minute)
		update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.SaveRefund(ctx, first) })
		same(t, "the changed refund", first, read())
		p, err := db.Payment(t.Context(), "wsp_pay_001")
		if err != nil || p.Refunded != 100_000 || p.Refundable() != 400_000 {
			t.Errorf("of the payment %d went back (%v)", p.Refunded, err)
		}
		for name, f := range map[string]store.RefundFilter{
			"all": {Limit: 9}, "one": {Limit: 1}, "a session's": {Session: s.ID, Limit: 9}, "a payment's": {Payment: p.ID, Limit: 9}, "in a state": {Status: flow.RefundFailed, Limit: 9},
			"older": {Before: "wsp_rfd_2", Limit: 9}, "of another payment": {Payment: "wsp_pay_002", Limit: 9}, "of another session": {Session: "wsp_sess_002", Limit: 9},
			"of then": {From: noon, Until: noon.Add(time.Millisecond), Limit: 9}, "of before": {Until: noon, Limit: 9}, "of later": {From: noon.Add(time.Millisecond), Limit: 9},
		} {
			f.Project = "wsp_prj_1"
			list, err := db.Refunds(t.Context(), f)
			want := map[string]int{"all": 2, "one": 1, "a session's": 2, "a payment's": 2, "in a state": 1, "older": 1, "of then": 2}[name]
			if err != nil || len(list) != want || name == "one" && list[0].ID != "wsp_rfd_2" {
				t.Errorf("%s: %v (%v)", name, list, err)
			}
		}
		if _, err := db.Refund(t.Context(), "wsp_rfd_9"); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("an unknown one: %v", err)
		}
	})
}

func TestTheStoreKeepsNoRefundThatCannotBe(t *testing.T) {
	storetest.Each(t, store.Checkout, func(t *testing.T, db *store.DB) {
		keep(t, db, session(1))
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddPayment(ctx, payment(1, "wsp_sess_001", flow.Matched), settled()); err != nil {
				return err
			}
			return tx.SaveRefund(ctx, refund("wsp_rfd_1", 1, flow.RefundPending))
		})
		for name, spoil := range map[string]func(*flow.Refund){
			"of nothing":               func(r *flow.Refund) { r.Amount = 0 },
			"with more aside than all": func(r *flow.Refund) { r.Aside = r.Amount + 1 },
			"of no payment":            func(r *flow.Refund) { r.Payment = "wsp_pay_009" },
			"of nobody":                func(r *flow.Refund) { r.Project = "" },
			"under another's name":     func(r *flow.Refund) { r.Reference = "wsp_rfd_1" },
			"done without a time":      func(r *flow.Refund) { r.Status = flow.RefundProcessed },
			"sent without a try":       func(r *flow.Refund) { r.Status = flow.RefundProcessing },
			"in a state of its own":    func(r *flow.Refund) { r.Status = "GONE" },
			"wanted by nobody":         func(r *flow.Refund) { r.Origin = "" },
		} {
			r := refund("wsp_rfd_2", 5, flow.RefundPending)
			spoil(&r)
			_ = refused(t, db, "a refund "+name, func(ctx context.Context, tx *store.Tx) error { return tx.SaveRefund(ctx, r) })
		}
	})
}
