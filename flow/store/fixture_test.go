package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// noon is when everything in these tests happens.
var noon = time.Date(2026, 3, 2, 12, 0, 0, int(345*time.Millisecond), time.UTC)

// must ends a test that cannot go on after an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// update runs fn in a transaction and fails the test when it is refused.
func update(tb testing.TB, db *store.DB, fn func(ctx context.Context, tx *store.Tx) error) {
	tb.Helper()
	ctx := tb.Context()
	must(tb, db.Update(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }))
}

// refused runs fn in a transaction that must be refused, and returns why.
func refused(tb testing.TB, db *store.DB, what string, fn func(ctx context.Context, tx *store.Tx) error) error {
	tb.Helper()
	ctx := tb.Context()
	err := db.Update(ctx, func(tx *store.Tx) error { return fn(ctx, tx) })
	if err == nil {
		tb.Errorf("the store kept %s", what)
	}
	return err
}

// session is a session with nothing unusual about it.
func session(n int) flow.Session {
	return flow.Session{
		ID: flow.SessionID(fmt.Sprintf("wsp_sess_%03d", n)), Project: "wsp_prj_1", Merchant: "Ada Stores", Mode: flow.Headless, Amount: 500_000,
		Status: flow.SessionPending, AllowedMethods: flow.Methods(), CustomerEmail: "payer@example.com", Policy: flow.DefaultPolicy(),
		CreatedAt: noon, ExpiresAt: noon.Add(24 * time.Hour),
	}
}

// attempt is a transfer attempt of a session.
func attempt(n int, of flow.SessionID) flow.Attempt {
	return flow.Attempt{
		ID: flow.AttemptID(fmt.Sprintf("wsp_att_%03d", n)), Session: of, Method: flow.BankTransfer, Reference: fmt.Sprintf("wsp_ref_%03d", n),
		Amount: 500_000, Status: flow.AttemptActive, CreatedAt: noon, ExpiresAt: noon.Add(30 * time.Minute),
	}
}

// payment is money for a session, with its outcome.
func payment(n int, of flow.SessionID, match flow.MatchStatus) flow.Payment {
	return flow.Payment{
		ID: flow.PaymentID(fmt.Sprintf("wsp_pay_%03d", n)), Project: "wsp_prj_1", Session: of, Attempt: "wsp_att_001", Amount: 500_000, Fee: 17_500,
		Channel: flow.BankTransfer, PaidAt: noon.Add(time.Minute), ReceivedAt: noon.Add(2 * time.Minute),
		Payer: flow.PaidBy{Name: "OBI ADE", BankName: "Wema", AccountNumberMasked: "******1234"}, NIPSessionID: "000013", RailTransactionID: fmt.Sprintf("rail-%03d", n),
		Match: match, Applied: 500_000,
	}
}

// settled are the lines of a payment.
func settled() []flow.Posting {
	return []flow.Posting{{Account: flow.RailClearing, Amount: 500_000}, {Account: flow.MerchantPending, Amount: -482_500}, {Account: flow.Fees, Amount: -17_500}}
}

// aside are the lines of money that is not applied.
func aside() []flow.Posting {
	return []flow.Posting{{Account: flow.RailClearing, Amount: 500_000}, {Account: flow.Unapplied, Amount: -500_000}}
}

// keep adds sessions that a test needs.
func keep(tb testing.TB, db *store.DB, sessions ...flow.Session) {
	tb.Helper()
	update(tb, db, func(ctx context.Context, tx *store.Tx) error {
		for _, s := range sessions {
			if added, err := tx.AddSession(ctx, s); err != nil || !added {
				return fmt.Errorf("add %s: %v %w", s.ID, added, err)
			}
		}
		return nil
	})
}

// event is a fact about a session.
func event(n int, of flow.SessionID, kind flow.EventKind) flow.Event {
	return flow.Event{
		ID: flow.EventID(fmt.Sprintf("evt_%03d", n)), Kind: kind, Project: "wsp_prj_1", Session: of, Sequence: int64(n), CreatedAt: noon,
		Body: []byte(`{"n":"é"}`),
	}
}

// endpoint is where a merchant is told.
func endpoint(n int) flow.Endpoint {
	return flow.Endpoint{
		ID: flow.EndpointID(fmt.Sprintf("wsp_we_%03d", n)), Project: "wsp_prj_1", URL: fmt.Sprintf("https://shop.example/%d", n), Description: "orders",
		Events: []flow.EventKind{flow.ChargeSuccess}, Secrets: []string{"whsec_new", "whsec_old"}, Status: flow.EndpointEnabled, CreatedAt: noon,
	}
}
