package store

import (
	"context"
	"fmt"

	"till/flow"
)

const reversalColumns = `rail_transaction_id, reverses, payment, project, session, amount, taken_at, received_at`

const saveReversalSQL = `INSERT INTO reversals (` + reversalColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (rail_transaction_id) DO UPDATE SET payment = excluded.payment, project = excluded.project, session = excluded.session
 WHERE reversals.payment = ''`

// SaveTakenBack keeps money that a bank took back, and posts it once its payment
// is known. One that was posted already is refused.
func (t *Tx) SaveTakenBack(ctx context.Context, b flow.TakenBack) error {
	n, err := t.run.exec(ctx, saveReversalSQL, b.RailTransactionID, b.Reverses, string(b.Payment), string(b.Project), string(b.Session), b.Amount,
		flow.Millis(b.At), flow.Millis(b.ReceivedAt))
	if err != nil {
		return fmt.Errorf("keep the reversal %s: %w", b.RailTransactionID, err)
	}
	if n != 1 {
		return fmt.Errorf("keep the reversal %s: it was posted before", b.RailTransactionID)
	}
	if b.Payment == "" {
		return nil
	}
	return t.Post(ctx, flow.Entry{
		Kind: flow.EntryReversal, Subject: b.RailTransactionID, Payment: b.Payment, Project: b.Project, At: b.ReceivedAt, Postings: b.Postings,
		RailID: b.RailTransactionID, ValueAt: b.At,
	})
}

// TakenBack reads what is kept of a reversal by the rail's name for it; found is
// false where it is new.
func (r Reader) TakenBack(ctx context.Context, id string) (b flow.TakenBack, found bool, err error) {
	return first(r.reversals(ctx, `SELECT `+reversalColumns+` FROM reversals WHERE rail_transaction_id = ?`, id))
}

// TakenBackBefore reads the reversals that were heard of before their credit, and
// may be of one by this name or, where the rail did not say, of this session.
func (r Reader) TakenBackBefore(ctx context.Context, transaction string, session flow.SessionID) ([]flow.TakenBack, error) {
	return r.reversals(ctx, `SELECT `+reversalColumns+` FROM reversals WHERE payment = '' AND (reverses = ? OR reverses = '' AND session = ?)
 ORDER BY reverses DESC, received_at, rail_transaction_id`, transaction, string(session))
}

func (r Reader) reversals(ctx context.Context, query string, args ...string) ([]flow.TakenBack, error) {
	return rowsOf(ctx, r.run, "read reversals", query, anys(args), func(scan scanner) (b flow.TakenBack, err error) {
		var at, received int64
		err = scan(&b.RailTransactionID, &b.Reverses, &b.Payment, &b.Project, &b.Session, &b.Amount, &at, &received)
		b.At, b.ReceivedAt = flow.FromMillis(at), flow.FromMillis(received)
		return b, err
	})
}
