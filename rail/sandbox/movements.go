package sandbox

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"till/flow"
)

// notice is one message that the bank owes to Till.
type notice struct {
	id    int64
	tries int
	move  movement
}

// book keeps a movement and returns its number in the books.
func (b books) book(m movement) (int64, error) {
	var taken any
	if m.Reverses != "" {
		taken = m.Reverses
	}
	res, err := b.exec(`INSERT INTO movements (id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason, reverses,
		collects) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, m.ID, string(m.Kind), m.Reference, m.AccountNumber, m.Amount, string(m.Channel),
		m.ValueTime.UnixMilli(), m.PayerName, m.PayerBank, m.PayerAccount, m.NIPSessionID, m.Reason, taken, string(m.Collects))
	if err != nil {
		return 0, err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return 0, fmt.Errorf("book a movement: %w", err)
	}
	return seq, nil
}

// transit keeps that a transfer is on its way, and whether it is sent back then.
func (b books) transit(seq int64, lands time.Time, returned bool) error {
	_, err := b.exec(`INSERT INTO transits (movement, lands_at, returned) VALUES (?, ?, ?)`, seq, lands.UnixMilli(), returned)
	return err
}

const movementColumns = `m.seq, m.id, m.kind, m.reference, m.account, m.amount, m.channel, m.value_time, m.payer_name, m.payer_bank, m.payer_account, m.nip, m.reason,
 coalesce(m.reverses, ''), m.collects, coalesce(t.lands_at, 0), coalesce(t.returned, 0)`

const movementTables = `movements m LEFT JOIN transits t ON t.movement = m.seq`

// scanMovement reads movementColumns, and what follows them into more. What a
// transfer is depends on the time: it is pending until it lands.
func scanMovement(now time.Time, scan func(...any) error, more ...any) (movement, error) {
	var m movement
	var at, lands int64
	var returned bool
	into := []any{
		&m.Seq, &m.ID, &m.Kind, &m.Reference, &m.AccountNumber, &m.Amount, &m.Channel, &at, &m.PayerName, &m.PayerBank,
		&m.PayerAccount, &m.NIPSessionID, &m.Reason, &m.Reverses, &m.Collects, &lands, &returned,
	}
	if err := scan(append(into, more...)...); err != nil {
		return movement{}, fmt.Errorf("read a movement: %w", err)
	}
	m.ValueTime = time.UnixMilli(at).UTC()
	switch {
	case now.UnixMilli() < lands:
		m.Kind = flow.Pending
	case returned:
		m.Kind = flow.Returned
	}
	return m, nil
}

// movementByID finds a movement by the name Till knows it by.
func (b books) movementByID(id string, now time.Time) (movement, bool, error) {
	m, err := scanMovement(now, b.tx.QueryRowContext(b.ctx, `SELECT `+movementColumns+` FROM `+movementTables+` WHERE m.id = ?`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return movement{}, false, nil
	}
	return m, err == nil, err
}

// reversed says whether a movement was taken back already.
func (b books) reversed(id string) (bool, error) {
	var n int
	if err := b.tx.QueryRowContext(b.ctx, `SELECT count(*) FROM movements WHERE reverses = ?`, id).Scan(&n); err != nil {
		return false, fmt.Errorf("look up a reversal: %w", err)
	}
	return n > 0, nil
}

// movements is a page of what was paid in for a reference, oldest first.
func (b books) movements(reference string, after int64, now time.Time) (out movements, err error) {
	rows, err := b.tx.QueryContext(b.ctx, `SELECT `+movementColumns+` FROM `+movementTables+` WHERE m.reference = ? AND m.seq > ? AND m.kind NOT IN ('paid_out', 'payout_failed') ORDER BY m.seq LIMIT ?`,
		reference, after, movesPage+1)
	if err != nil {
		return movements{}, fmt.Errorf("list movements: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	out.Items = []movement{}
	for rows.Next() {
		m, err := scanMovement(now, rows.Scan)
		if err != nil {
			return movements{}, err
		}
		out.Items = append(out.Items, m)
	}
	if len(out.Items) > movesPage {
		out.Items = out.Items[:movesPage]
		out.Next = out.Items[movesPage-1].Seq
	}
	return out, rows.Err()
}

// owe keeps that Till is to be told of a movement.
func (b books) owe(seq int64, state string, due time.Time) error {
	_, err := b.exec(`INSERT INTO notices (movement, state, due) VALUES (?, ?, ?)`, seq, state, due.UnixMilli())
	return err
}

// full says whether n more notices would be too many.
func (b books) full(n int) (bool, error) {
	var owed int
	err := b.tx.QueryRowContext(b.ctx, `SELECT count(*) FROM (SELECT 1 FROM notices WHERE state = 'owed' LIMIT ?)`, maxOwed).Scan(&owed)
	if err != nil {
		return false, fmt.Errorf("count the notices: %w", err)
	}
	return owed+n > maxOwed, nil
}

// due lists the notices owed, those due first before others, at most limit, and
// when each is due.
func (b books) due(limit int, now time.Time) (out []notice, at []time.Time, err error) {
	rows, err := b.tx.QueryContext(b.ctx, `SELECT `+movementColumns+`, n.id, n.tries, n.due FROM notices n JOIN movements m ON m.seq = n.movement
		LEFT JOIN transits t ON t.movement = m.seq WHERE n.state = 'owed' ORDER BY n.due, n.id LIMIT ?`, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("list the notices: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n notice
		var due int64
		if n.move, err = scanMovement(now, rows.Scan, &n.id, &n.tries, &due); err != nil {
			return nil, nil, err
		}
		out = append(out, n)
		at = append(at, time.UnixMilli(due))
	}
	return out, at, rows.Err()
}

// told ends a notice: Till has it.
func (b books) told(id int64) error {
	_, err := b.exec(`DELETE FROM notices WHERE id = ?`, id)
	return err
}

// putOff keeps that a try failed, and when or whether the next one is.
func (b books) putOff(id int64, tries int, due time.Time, state string) error {
	_, err := b.exec(`UPDATE notices SET tries = ?, due = ?, state = ? WHERE id = ?`, tries, due.UnixMilli(), state, id)
	return err
}

// owedNow makes every notice owed due at a time.
func (b books) owedNow(at time.Time) error {
	_, err := b.exec(`UPDATE notices SET due = ? WHERE state = 'owed' AND tries > 0`, at.UnixMilli())
	return err
}
