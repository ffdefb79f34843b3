package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"till/flow"
)

const refundColumns = `id, project, payment, session, amount, aside, status, origin, reason, reference, tries, held, returned, refused, put_back, failures, overpaid,
 rail_transaction_id, failure, created_at, sent_at, done_at`

const saveRefundSQL = `INSERT INTO refunds (` + refundColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (id) DO UPDATE SET aside = excluded.aside, status = excluded.status, reference = excluded.reference, tries = excluded.tries,
 held = excluded.held, returned = excluded.returned, refused = excluded.refused, put_back = excluded.put_back, failures = excluded.failures, overpaid = excluded.overpaid,
 rail_transaction_id = excluded.rail_transaction_id, failure = excluded.failure, sent_at = excluded.sent_at, done_at = excluded.done_at`

// SaveRefund keeps a refund, new or changed.
func (t *Tx) SaveRefund(ctx context.Context, r flow.Refund) error {
	err := t.run.put(ctx, saveRefundSQL, r.ID, r.Project, r.Payment, r.Session, r.Amount, r.Aside, r.Status, r.Origin, r.Reason, r.Reference, r.Tries,
		flag(r.Held), flag(r.Returned), flag(r.Refused), flag(r.PutBack), r.Failures, r.Overpaid, r.RailTransactionID, r.Failure, flow.Millis(r.CreatedAt), flow.Millis(r.SentAt), flow.Millis(r.DoneAt))
	if err != nil {
		return fmt.Errorf("save refund %s: %w", r.ID, err)
	}
	return nil
}

const selectRefundSQL = `SELECT ` + refundColumns + `,
 COALESCE((SELECT s.charge FROM sessions s WHERE s.id = refunds.session), ''),
 COALESCE((SELECT p.rail_transaction_id FROM payments p WHERE p.id = refunds.payment), '') FROM refunds`

// Refund reads a refund. Error: resource_not_found.
func (r Reader) Refund(ctx context.Context, id flow.RefundID) (flow.Refund, error) {
	list, err := r.refunds(ctx, selectRefundSQL+` WHERE id = ?`, string(id))
	return only(list, err, "refund", string(id))
}

// RefundOf reads a refund of a project; another project's does not exist.
func (r Reader) RefundOf(ctx context.Context, project flow.ProjectID, id flow.RefundID) (flow.Refund, error) {
	list, err := r.refunds(ctx, selectRefundSQL+r.run.ofProject(), string(project), string(id))
	return only(list, err, "refund", string(id))
}

// RefundFilter narrows a list of refunds; zero fields do not.
type RefundFilter struct {
	Project flow.ProjectID
	Status  flow.RefundStatus
	Payment flow.PaymentID
	Session flow.SessionID
	From    time.Time // when it was made
	Until   time.Time // exclusive
	Before  string    // an id: only older refunds
	Limit   int
}

const listRefundsSQL = selectRefundSQL + ` WHERE project = ? AND (? = '' OR status = ?) AND (? = '' OR payment = ?) AND (? = '' OR session = ?)
 AND (? = '' OR id < ?) AND created_at >= ? AND created_at < ? ORDER BY id DESC LIMIT ?`

// Refunds lists a project's refunds, newest first.
func (r Reader) Refunds(ctx context.Context, f RefundFilter) ([]flow.Refund, error) {
	args := []any{string(f.Project)}
	for _, narrow := range []string{string(f.Status), string(f.Payment), string(f.Session), f.Before} {
		args = append(args, narrow, narrow)
	}
	return r.refunds(ctx, listRefundsSQL, append(args, flow.Millis(f.From), cmp.Or(flow.Millis(f.Until), never), f.Limit)...)
}

func (r Reader) refunds(ctx context.Context, query string, args ...any) ([]flow.Refund, error) {
	return rowsOf(ctx, r.run, "read refunds", query, args, func(scan scanner) (b flow.Refund, err error) {
		var held, returned, refused, putBack, created, sent, done int64
		err = scan(&b.ID, &b.Project, &b.Payment, &b.Session, &b.Amount, &b.Aside, &b.Status, &b.Origin, &b.Reason, &b.Reference, &b.Tries, &held, &returned,
			&refused, &putBack, &b.Failures, &b.Overpaid, &b.RailTransactionID, &b.Failure, &created, &sent, &done, &b.Charge, &b.Credit)
		b.Refused, b.PutBack = refused == 1, putBack == 1
		b.Held, b.Returned, b.CreatedAt, b.SentAt, b.DoneAt = held == 1, returned == 1, flow.FromMillis(created), flow.FromMillis(sent), flow.FromMillis(done)
		return b, err
	})
}

const ownedSQL = `SELECT CAST(COALESCE((SELECT SUM(net) FROM settlement_items WHERE settlement = '' AND project = ?), 0)
 + COALESCE((SELECT SUM(i.net) FROM settlement_items i JOIN settlements b ON b.id = i.settlement WHERE b.project = ? AND b.created_at = 0 AND i.settlement <> ''), 0)
 - COALESCE((SELECT SUM(merchant_available) FROM ledger WHERE merchant_available <> 0 AND project = ?), 0) AS BIGINT)`

// Owned is what a project has of its own, pending and available, in kobo; negative
// where it owes us. It reads the lines that wait for their settlement, and not the
// whole ledger.
func (r Reader) Owned(ctx context.Context, project flow.ProjectID) (amount flow.Kobo, err error) {
	if _, err = r.run.one(ctx, ownedSQL, []any{string(project), string(project), string(project)}, &amount); err != nil {
		return 0, fmt.Errorf("sum up what a project owns: %w", err)
	}
	return amount, nil
}

// overdraftSQL adds up, for each payment whose own money waits for its settlement,
// what its refunds took beyond that money: at most our fee.
const overdraftSQL = `WITH waits AS (SELECT e.payment, i.kind, i.net FROM settlement_items i JOIN ledger e ON e.kind = i.kind AND e.subject = i.subject
 WHERE i.settlement = '' AND i.project = ? AND e.payment <> ''
 UNION ALL SELECT e.payment, i.kind, i.net FROM settlements b JOIN settlement_items i ON i.settlement = b.id AND i.settlement <> ''
 JOIN ledger e ON e.kind = i.kind AND e.subject = i.subject WHERE b.project = ? AND b.created_at = 0 AND e.payment <> ''),
 short AS (SELECT payment, -SUM(net) AS lacks, -SUM(CASE WHEN kind IN ('refund', 'refund_paid', 'refund_failed') THEN net ELSE 0 END) AS taken,
 (SELECT -SUM(l.fees) FROM ledger l WHERE l.payment = waits.payment AND l.payment <> '') AS fee FROM waits GROUP BY payment
 HAVING SUM(net) < 0 AND SUM(CASE WHEN kind IN ('payment', 'accept') THEN 1 ELSE 0 END) > 0),
 beyond AS (SELECT payment, fee, CASE WHEN lacks < taken THEN lacks ELSE taken END AS net FROM short WHERE taken > 0),
 owed AS (SELECT payment, net, CASE WHEN net < fee THEN net ELSE fee END AS fee FROM beyond)
 SELECT CAST(COALESCE(SUM(fee), 0) AS BIGINT), CAST(COALESCE(SUM(CASE WHEN payment = ? THEN fee ELSE 0 END), 0) AS BIGINT),
 CAST(COALESCE(SUM(CASE WHEN payment = ? THEN net - fee ELSE 0 END), 0) AS BIGINT) FROM owed`

// Overdraft is that of a project, whose refund of a payment was just taken. It reads
// the lines that wait for their settlement.
func (r Reader) Overdraft(ctx context.Context, project flow.ProjectID, payment flow.PaymentID) (over flow.Overdraft, err error) {
	args := []any{string(project), string(project), string(payment), string(payment)}
	if _, err = r.run.one(ctx, overdraftSQL, args, &over.Fees, &over.Own, &over.Beyond); err != nil {
		return flow.Overdraft{}, fmt.Errorf("sum up what refunds took beyond their payments: %w", err)
	}
	return over, nil
}
