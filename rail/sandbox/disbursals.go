package sandbox

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"till/flow"
)

// disbursal is an order to send money out as it is kept.
type disbursal struct {
	disbursement

	held    bool   // nothing becomes of it before the weather changes
	refused string // the code of its refusal, "" when it was taken on
	why     string
	takenAt time.Time
}

const disbursalColumns = `reference, kind, amount, credit, bank, account, account_name, narration, project, held, refused, why, taken_at`

func scanDisbursal(scan func(...any) error) (disbursal, error) {
	var d disbursal
	var at int64
	if err := scan(&d.Reference, &d.Kind, &d.Amount, &d.Credit, &d.BankCode, &d.AccountNumber, &d.AccountName, &d.Narration, &d.Project, &d.held,
		&d.refused, &d.why, &at); err != nil {
		return disbursal{}, fmt.Errorf("read a disbursement: %w", err)
	}
	d.takenAt = time.UnixMilli(at).UTC()
	return d, nil
}

// keep keeps a new order.
func (b books) keep(d disbursal) error {
	_, err := b.exec(`INSERT INTO disbursements (`+disbursalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, d.Reference, string(d.Kind),
		d.Amount, d.Credit, d.BankCode, d.AccountNumber, d.AccountName, d.Narration, string(d.Project), d.held, d.refused, d.why, d.takenAt.UnixMilli())
	return err
}

// disbursement finds an order by its reference.
func (b books) disbursement(reference string) (disbursal, bool, error) {
	d, err := scanDisbursal(b.tx.QueryRowContext(b.ctx, `SELECT `+disbursalColumns+` FROM disbursements WHERE reference = ?`, reference).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return disbursal{}, false, nil
	}
	return d, err == nil, err
}

// held lists the orders of a kind that wait for other weather.
func (b books) held(kind flow.DisbursementKind) (out []disbursal, err error) {
	rows, err := b.tx.QueryContext(b.ctx, `SELECT `+disbursalColumns+` FROM disbursements WHERE held = 1 AND kind = ? ORDER BY taken_at, reference LIMIT ?`,
		string(kind), maxHeld)
	if err != nil {
		return nil, fmt.Errorf("list what is held: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		d, err := scanDisbursal(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// holding counts the orders of a kind that wait for other weather.
func (b books) holding(kind flow.DisbursementKind) (int, error) {
	var n int
	if err := b.tx.QueryRowContext(b.ctx, `SELECT count(*) FROM disbursements WHERE held = 1 AND kind = ?`, string(kind)).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what is held: %w", err)
	}
	return n, nil
}

// letGo keeps that the orders of a kind wait no longer.
func (b books) letGo(kind flow.DisbursementKind) error {
	_, err := b.exec(`UPDATE disbursements SET held = 0 WHERE held = 1 AND kind = ?`, string(kind))
	return err
}

// sent is the last movement of an order that has landed by now.
func (b books) sent(reference string, now time.Time) (movement, bool, error) {
	m, err := scanMovement(now, b.tx.QueryRowContext(b.ctx, `SELECT `+movementColumns+` FROM `+movementTables+` WHERE m.reference = ?
		AND m.kind IN ('paid_out', 'payout_failed') AND t.lands_at <= ? ORDER BY m.seq DESC LIMIT 1`, reference, now.UnixMilli()).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return movement{}, false, nil
	}
	return m, err == nil, err
}

// refundable is what of a credit neither the payer's bank took back nor an
// earlier refund holds, in kobo. A refund that failed holds nothing.
func (b books) refundable(credit movement, now time.Time) (int64, error) {
	back, err := b.reversed(credit.ID)
	if err != nil || back {
		return 0, err
	}
	var held int64
	err = b.tx.QueryRowContext(b.ctx, `SELECT coalesce(sum(d.amount), 0) FROM disbursements d WHERE d.credit = ? AND d.refused = ''
		AND NOT EXISTS (SELECT 1 FROM movements m JOIN transits t ON t.movement = m.seq WHERE m.reference = d.reference AND m.kind = 'payout_failed'
		AND t.lands_at <= ?)`, credit.ID, now.UnixMilli()).Scan(&held)
	if err != nil {
		return 0, fmt.Errorf("sum up the refunds of a credit: %w", err)
	}
	return credit.Amount - held, nil
}

// balance is what lies at the bank, in kobo: what came in less what was taken
// back and what was taken on to be sent, until that fails.
func (b books) balance(now time.Time) (int64, error) {
	var lies int64
	err := b.tx.QueryRowContext(b.ctx, `SELECT came - went - (SELECT coalesce(sum(m.amount), 0) FROM transits t JOIN movements m ON m.seq = t.movement
		WHERE (t.lands_at > ? OR t.returned = 1) AND m.kind IN ('credit', 'payout_failed')) FROM totals`, now.UnixMilli()).Scan(&lies)
	if err != nil {
		return 0, fmt.Errorf("sum up the balance: %w", err)
	}
	return lies, nil
}

// about fills in whose session and money a call is about that names its order by
// reference alone.
func (b books) about(o *order) error {
	if o.Session != "" || o.Reference == "" {
		return nil
	}
	if o.credit == "" && o.project == "" {
		d, _, err := b.disbursement(o.Reference)
		if err != nil {
			return err
		}
		o.credit, o.project = d.Credit, d.Project
	}
	reference := o.Reference
	if o.credit != "" {
		m, _, err := b.movementByID(o.credit, time.Time{})
		if err != nil {
			return err
		}
		reference = m.Reference
		if o.project == "" {
			o.project = m.Collects
		}
	}
	m, _, err := b.instrumentBy("reference", reference)
	o.Session = m.Session
	return err
}
