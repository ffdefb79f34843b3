package sandbox

import (
	"cmp"
	"time"

	"till/flow"
	"till/flow/store/lite"
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

func scanDisbursal(scan lite.Scanner) (disbursal, error) {
	var d disbursal
	var at, held int64
	err := scan(&d.Reference, &d.Kind, &d.Amount, &d.Credit, &d.BankCode, &d.AccountNumber, &d.AccountName, &d.Narration, &d.Project, &held, &d.refused, &d.why, &at)
	d.held, d.takenAt = held != 0, time.UnixMilli(at).UTC()
	return d, err
}

// keep keeps a new order.
func (b books) keep(d disbursal) error {
	_, err := b.exec(`INSERT INTO disbursements (`+disbursalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, d.Reference, d.Kind,
		d.Amount, d.Credit, d.BankCode, d.AccountNumber, d.AccountName, d.Narration, d.Project, flag(d.held), d.refused, d.why, d.takenAt.UnixMilli())
	return err
}

// flag is how the books keep yes and no.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// disbursement finds an order by its reference.
func (b books) disbursement(reference string) (d disbursal, found bool, err error) {
	list, err := b.disbursals(`SELECT `+disbursalColumns+` FROM disbursements WHERE reference = ?`, reference)
	if err != nil || len(list) == 0 {
		return disbursal{}, false, err
	}
	return list[0], true, nil
}

// held lists the orders of a kind that wait for other weather.
func (b books) held(kind flow.DisbursementKind) ([]disbursal, error) {
	return b.disbursals(`SELECT `+disbursalColumns+` FROM disbursements WHERE held = 1 AND kind = ? ORDER BY taken_at, reference LIMIT ?`, kind, maxHeld)
}

func (b books) disbursals(query string, args ...any) (out []disbursal, err error) {
	err = b.conn.Each(query, args, func(scan lite.Scanner) error {
		d, err := scanDisbursal(scan)
		out = append(out, d)
		return err
	})
	return out, wrap("read disbursements", err)
}

// holding counts the orders of a kind that wait for other weather.
func (b books) holding(kind flow.DisbursementKind) (int, error) {
	var n int
	_, err := b.one(`SELECT count(*) FROM disbursements WHERE held = 1 AND kind = ?`, []any{kind}, &n)
	return n, wrap("count what is held", err)
}

// letGo keeps that the orders of a kind wait no longer.
func (b books) letGo(kind flow.DisbursementKind) error {
	_, err := b.exec(`UPDATE disbursements SET held = 0 WHERE held = 1 AND kind = ?`, kind)
	return err
}

// sent is the last movement of an order that has landed by now.
func (b books) sent(reference string, now time.Time) (movement, bool, error) {
	return b.movement(now, `m.reference = ? AND m.kind IN ('paid_out', 'payout_failed') AND t.lands_at <= ? ORDER BY m.seq DESC LIMIT 1`,
		reference, now.UnixMilli())
}

// refundable is what of a credit neither the payer's bank took back nor an
// earlier refund holds, in kobo. A refund that failed holds nothing.
func (b books) refundable(credit movement, now time.Time) (int64, error) {
	back, err := b.reversed(credit.ID)
	if err != nil || back {
		return 0, err
	}
	var held int64
	_, err = b.one(`SELECT coalesce(sum(d.amount), 0) FROM disbursements d WHERE d.credit = ? AND d.refused = ''
		AND NOT EXISTS (SELECT 1 FROM movements m JOIN transits t ON t.movement = m.seq WHERE m.reference = d.reference AND m.kind = 'payout_failed'
		AND t.lands_at <= ?)`, []any{credit.ID, now.UnixMilli()}, &held)
	return credit.Amount - held, wrap("sum up the refunds of a credit", err)
}

// balance is what lies at the bank, in kobo: what came in less what was taken
// back and what was taken on to be sent, until that fails.
func (b books) balance(now time.Time) (int64, error) {
	var lies int64
	_, err := b.one(`SELECT came - went - (SELECT coalesce(sum(m.amount), 0) FROM transits t JOIN movements m ON m.seq = t.movement
		WHERE (t.lands_at > ? OR t.returned = 1) AND m.kind IN ('credit', 'payout_failed')) FROM totals`, []any{now.UnixMilli()}, &lies)
	return lies, wrap("sum up the balance", err)
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
		o.project = cmp.Or(o.project, m.Collects)
	}
	m, _, err := b.instrumentBy("reference", reference)
	o.Session = m.Session
	return err
}
