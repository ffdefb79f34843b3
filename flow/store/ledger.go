package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"till/flow"
	"till/flow/crashpoint"
)

// errImbalance is a ledger transaction that does not sum to zero: a bug.
var errImbalance = errors.New("the ledger lines do not sum to zero")

// accountColumns are the ledger's columns of amounts, as flow.LedgerAccounts.
const accountColumns = `rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled`

const insertEntrySQL = `INSERT INTO ledger (kind, subject, payment, project, ` + accountColumns + `, created_at, rail_id, value_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// Post keeps a ledger transaction. One that does not sum to zero, that moves
// nothing or that was posted before is refused.
func (t *Tx) Post(ctx context.Context, e flow.Entry) error {
	args := []any{string(e.Kind), e.Subject, string(e.Payment), string(e.Project)}
	var total flow.Kobo
	moves := false
	for _, account := range flow.LedgerAccounts() {
		var amount flow.Kobo
		for _, line := range e.Postings {
			if line.Account == account {
				amount += line.Amount
			}
		}
		total += amount
		moves = moves || amount != 0
		args = append(args, amount)
	}
	for _, line := range e.Postings {
		if !slices.Contains(flow.LedgerAccounts(), line.Account) {
			return fmt.Errorf("post %s %s: there is no account %q", e.Kind, e.Subject, line.Account)
		}
	}
	if total != 0 || !moves {
		return fmt.Errorf("post %s %s (off by %d kobo): %w", e.Kind, e.Subject, total, errImbalance)
	}
	if err := t.run.put(ctx, insertEntrySQL, append(args, flow.Millis(e.At), e.RailID, flow.Millis(valueTime(e)))...); err != nil {
		return fmt.Errorf("post %s %s: %w", e.Kind, e.Subject, err)
	}
	crashpoint.At(crashpoint.LedgerLine)
	return t.waits(ctx, e)
}

// valueTime is when a transaction moved something at the rail, zero where it did
// not.
func valueTime(e flow.Entry) time.Time {
	moved := slices.ContainsFunc(e.Postings, func(line flow.Posting) bool { return line.Account == flow.RailClearing })
	switch {
	case !moved:
		return time.Time{}
	case e.ValueAt.UnixMilli() <= 0: // the bank gave none
		return e.At
	}
	return e.ValueAt
}

// Posted says whether the ledger has a transaction of a kind about a subject.
func (r Reader) Posted(ctx context.Context, kind flow.EntryKind, subject string) (bool, error) {
	n := 0
	if _, err := r.run.one(ctx, `SELECT COUNT(*) FROM ledger WHERE kind = ? AND subject = ?`, []any{string(kind), subject}, &n); err != nil {
		return false, fmt.Errorf("look for the entry %s %s: %w", kind, subject, err)
	}
	return n > 0, nil
}

const selectEntrySQL = `SELECT kind, subject, payment, project, ` + accountColumns + `, created_at, rail_id, value_at FROM ledger`

// Ledger reads the transactions about a session's payments, in the order of the
// payments, each one's oldest first.
func (r Reader) Ledger(ctx context.Context, session flow.SessionID) ([]flow.Entry, error) {
	return r.entries(ctx, selectEntrySQL+` WHERE payment <> '' AND payment IN (SELECT id FROM payments WHERE session = ? AND session <> '')
 ORDER BY payment, CASE WHEN kind = 'payment' THEN 0 ELSE 1 END, created_at, kind, subject`, string(session))
}

// Booked reads everything that was posted for a payment, oldest first.
func (r Reader) Booked(ctx context.Context, payment flow.PaymentID) ([]flow.Posting, error) {
	entries, err := r.entries(ctx, selectEntrySQL+` WHERE payment = ? AND payment <> '' ORDER BY CASE WHEN kind = 'payment' THEN 0 ELSE 1 END, created_at, kind, subject`, string(payment))
	if err != nil {
		return nil, err
	}
	var list []flow.Posting
	for _, e := range entries {
		list = append(list, e.Postings...)
	}
	return list, nil
}

func (r Reader) entries(ctx context.Context, query string, args ...any) ([]flow.Entry, error) {
	accounts := flow.LedgerAccounts()
	return rowsOf(ctx, r.run, "read the ledger", query, args, func(scan scanner) (e flow.Entry, err error) {
		var at, valueAt int64
		amounts := make([]flow.Kobo, len(accounts))
		into := []any{&e.Kind, &e.Subject, &e.Payment, &e.Project}
		for i := range amounts {
			into = append(into, &amounts[i])
		}
		if err = scan(append(into, &at, &e.RailID, &valueAt)...); err != nil {
			return e, err
		}
		e.At, e.ValueAt = flow.FromMillis(at), flow.FromMillis(valueAt)
		for i, amount := range amounts {
			if amount != 0 {
				e.Postings = append(e.Postings, flow.Posting{Account: accounts[i], Amount: amount})
			}
		}
		return e, nil
	})
}

// balanceSQL adds up every transaction of a project: what is owed is negative in
// the ledger, and positive here.
const balanceSQL = `SELECT CAST(COALESCE(-SUM(merchant_pending), 0) AS BIGINT), CAST(COALESCE(-SUM(merchant_available), 0) AS BIGINT),
 CAST(COALESCE(-SUM(unapplied), 0) AS BIGINT), CAST(COALESCE(-SUM(refunds_payable), 0) AS BIGINT), CAST(COALESCE(-SUM(settled), 0) AS BIGINT),
 CAST(COALESCE(-SUM(fees), 0) AS BIGINT) FROM ledger WHERE project = ?`

// Balance is what the ledger holds for a project.
func (r Reader) Balance(ctx context.Context, project flow.ProjectID) (flow.Balance, error) {
	var b flow.Balance
	_, err := r.run.one(ctx, balanceSQL, []any{string(project)}, &b.Pending, &b.Available, &b.Unapplied, &b.RefundsPayable, &b.Settling, &b.Fees)
	if err != nil {
		return flow.Balance{}, fmt.Errorf("read a balance: %w", err)
	}
	return b, nil
}
