//go:build unix

package checkout_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// plainConns is how many connections bare commits have on PostgreSQL.
const plainConns = 32

// openBare opens a database for commit, with what its rows point to.
func (e *hookEngine) openBare(b *testing.B) {
	b.Helper()
	at := e.place()
	e.bare = storetest.Open(b, at)
	if at.URL != "" {
		sep := "?"
		if strings.Contains(at.URL, "?") {
			sep = "&"
		}
		var err error
		if e.plain, err = sql.Open("pgx", at.URL+sep+"search_path="+at.Name); err != nil {
			b.Fatal(err)
		}
		e.plain.SetMaxOpenConns(plainConns)
		e.plain.SetMaxIdleConns(plainConns)
		b.Cleanup(func() { _ = e.plain.Close() })
	}
	err := e.bare.Update(b.Context(), func(tx *store.Tx) error {
		return tx.AddEndpoint(b.Context(), flow.Endpoint{
			ID: "wsp_we_1", Project: project, URL: "http://127.0.0.1:1/hook", Secrets: []string{hookSecret}, Status: flow.EndpointEnabled, CreatedAt: time.Now(),
		})
	})
	must(b, err)
}

// commit is the rate at which a payment, its event and a delivery of it are kept,
// in one transaction for each, without any rule: by the bare store on SQLite, whose
// commits only a program that gathers them makes often; on PostgreSQL by nothing of
// Till's, one statement after the other on as many connections as are worth it.
func (e *hookEngine) commit(b *testing.B, producers, n int) float64 {
	b.Helper()
	now := time.Now()
	body := make([]byte, len(e.body))
	spent := atOnce(b, producers, n, func(int) error {
		var names [3]string
		for k, prefix := range []string{flow.PrefixPayment, flow.PrefixEvent, flow.PrefixDelivery} {
			var err error
			if names[k], err = e.rig.ids.New(prefix); err != nil {
				return err
			}
		}
		return e.rig.repeated(func() error {
			if e.plain != nil {
				return plainRows(b.Context(), e.plain, names, body, now.UnixMilli())
			}
			return e.bare.Update(b.Context(), func(tx *store.Tx) error { return keepRows(b.Context(), tx, names, body, now) })
		})
	})
	return float64(n) / spent.Seconds()
}

// booked is a payment of a session that nothing else is known of.
func booked(id string, of flow.ProjectID, now time.Time) (flow.Payment, []flow.Posting) {
	p := flow.Payment{
		ID: flow.PaymentID(id), Project: of, Session: flow.SessionID(id), Attempt: "wsp_att_1", Amount: 500_000, Fee: 17_500, Channel: flow.BankTransfer,
		PaidAt: now, ReceivedAt: now, RailTransactionID: id, Match: flow.Matched,
	}
	return p, []flow.Posting{
		{Account: flow.RailClearing, Amount: 500_000}, {Account: flow.MerchantPending, Amount: -482_500}, {Account: flow.Fees, Amount: -17_500},
	}
}

func keepRows(ctx context.Context, tx *store.Tx, names [3]string, body []byte, now time.Time) error {
	p, postings := booked(names[0], project, now)
	if err := tx.AddPayment(ctx, p, postings); err != nil {
		return err
	}
	e := flow.Event{ID: flow.EventID(names[1]), Kind: flow.ChargeSuccess, Project: project, Session: p.Session, Sequence: 1, Body: body, CreatedAt: now}
	if err := tx.AddEvent(ctx, e); err != nil {
		return err
	}
	return tx.AddDelivery(ctx, flow.Delivery{ID: names[2], Event: e.ID, Endpoint: "wsp_we_1"}, now, now.Add(time.Hour))
}

// plainRows keeps what keepRows does, by database/sql alone.
func plainRows(ctx context.Context, db *sql.DB, names [3]string, body []byte, now int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // of what was not committed
	for _, row := range []struct {
		into, values string
		args         []any
	}{
		{
			"payments (id, project, session, attempt, amount, fee, channel, paid_at, received_at, payer, nip_session, rail_transaction_id, match_status)",
			"$1, $2, $3, 'wsp_att_1', 500000, 17500, 'bank_transfer', $4, $5, '{}', '', $6, 'MATCHED'",
			[]any{names[0], string(project), names[0], now, now, names[0]},
		},
		{
			"ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at, rail_id, value_at)",
			"'payment', $1, $2, $3, 500000, -482500, 0, -17500, 0, 0, 0, $4, $5, $6",
			[]any{names[0], names[0], string(project), now, names[0], now},
		},
		{"settlement_items (kind, subject, settlement, project, net, created_at)", "'payment', $1, '', $2, 482500, $3", []any{names[0], string(project), now}},
		{"events (id, kind, project, session, sequence, body, created_at)", "$1, 'charge.success', $2, $3, 1, $4, $5", []any{names[1], string(project), names[0], body, now}},
		{
			"deliveries (id, event, endpoint, state, attempts, next_at, token, done_at, created_at, cause, back_to, back_at)",
			"$1, $2, 'wsp_we_1', 'pending', 0, $3, '', 0, $4, 'auto', '', 0",
			[]any{names[2], names[1], now + time.Hour.Milliseconds(), now},
		},
	} {
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+row.into+" VALUES ("+row.values+")", row.args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}
