package sandbox

import (
	"fmt"
	"time"

	"till/flow"
	"till/flow/store/lite"
)

// notice is one message that the bank owes to Till.
type notice struct {
	id    int64
	tries int
	move  movement
}

// book keeps a movement and returns its number in the books.
func (b books) book(m movement) (int64, error) {
	var seq int64
	_, err := b.one(`INSERT INTO movements (id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason, reverses,
		collects) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?) RETURNING seq`, []any{
		m.ID, m.Kind, m.Reference, m.AccountNumber, m.Amount, m.Channel, m.ValueTime.UnixMilli(), m.PayerName, m.PayerBank, m.PayerAccount, m.NIPSessionID,
		m.Reason, m.Reverses, m.Collects,
	}, &seq)
	return seq, wrap("book a movement", err)
}

// transit keeps that a transfer is on its way, and whether it is sent back then.
func (b books) transit(seq int64, lands time.Time, returned bool) error {
	_, err := b.exec(`INSERT INTO transits (movement, lands_at, returned) VALUES (?, ?, ?)`, seq, lands.UnixMilli(), flag(returned))
	return err
}

const movementColumns = `m.seq, m.id, m.kind, m.reference, m.account, m.amount, m.channel, m.value_time, m.payer_name, m.payer_bank, m.payer_account, m.nip, m.reason,
 coalesce(m.reverses, ''), coalesce((SELECT s.value_time FROM movements s WHERE s.id = m.reverses AND s.kind = 'paid_out'), 0), m.collects, coalesce(t.lands_at, 0), coalesce(t.returned, 0)`

const movementTables = `movements m LEFT JOIN transits t ON t.movement = m.seq`

// scanMovement reads movementColumns, and what follows them into more. What a
// transfer is depends on the time: it is pending until it lands.
func scanMovement(now time.Time, scan lite.Scanner, more ...any) (movement, error) {
	var m movement
	var at, sent, lands, returned int64
	into := []any{
		&m.Seq, &m.ID, &m.Kind, &m.Reference, &m.AccountNumber, &m.Amount, &m.Channel, &at, &m.PayerName, &m.PayerBank,
		&m.PayerAccount, &m.NIPSessionID, &m.Reason, &m.Reverses, &sent, &m.Collects, &lands, &returned,
	}
	if err := scan(append(into, more...)...); err != nil {
		return movement{}, fmt.Errorf("read a movement: %w", err)
	}
	m.Currency = flow.Currency
	m.ValueTime = time.UnixMilli(at).UTC()
	if sent != 0 {
		m.SentAt = time.UnixMilli(sent).UTC()
	}
	switch {
	case now.UnixMilli() < lands:
		m.Kind = flow.Pending
	case returned != 0:
		m.Kind = flow.Returned
	}
	return m, nil
}

// movementByID finds a movement by the name Till knows it by.
func (b books) movementByID(id string, now time.Time) (movement, bool, error) {
	return b.movement(now, `m.id = ?`, id)
}

// movement finds one movement.
func (b books) movement(now time.Time, where string, args ...any) (movement, bool, error) {
	list, err := b.moves(now, where, args...)
	if err != nil || len(list) == 0 {
		return movement{}, false, err
	}
	return list[0], true, nil
}

// moves lists movements.
func (b books) moves(now time.Time, where string, args ...any) ([]movement, error) {
	out := []movement{}
	err := b.conn.Each(`SELECT `+movementColumns+` FROM `+movementTables+` WHERE `+where, args, func(scan lite.Scanner) error {
		m, err := scanMovement(now, scan)
		out = append(out, m)
		return err
	})
	return out, err
}

// reversed says whether a movement was taken back already.
func (b books) reversed(id string) (bool, error) {
	var n int
	_, err := b.one(`SELECT count(*) FROM movements WHERE reverses = ?`, []any{id}, &n)
	return n > 0, wrap("look up a reversal", err)
}

// came is what was paid in for a reference so far, in kobo, what is on its way
// included. What was taken back, or is sent back by itself, did not come.
func (b books) came(reference string) (amount int64, err error) {
	_, err = b.one(`SELECT coalesce(sum(m.amount), 0) FROM movements m WHERE m.reference = ? AND m.kind = 'credit'
		AND NOT EXISTS (SELECT 1 FROM movements r WHERE r.reverses = m.id) AND NOT EXISTS (SELECT 1 FROM transits t WHERE t.movement = m.seq AND t.returned = 1)`,
		[]any{reference}, &amount)
	return amount, wrap("sum up what was paid in", err)
}

// movements is a page of what was paid in for a reference, oldest first.
func (b books) movements(reference string, after int64, now time.Time) (out movements, err error) {
	out.Items, err = b.moves(now, `m.reference = ? AND m.seq > ? AND m.kind NOT IN ('paid_out', 'payout_failed') ORDER BY m.seq LIMIT ?`,
		reference, after, movesPage+1)
	if len(out.Items) > movesPage {
		out.Items = out.Items[:movesPage]
		out.Next = out.Items[movesPage-1].Seq
	}
	return out, err
}

// owe keeps that Till is to be told of a movement.
func (b books) owe(seq int64, state string, due time.Time) error {
	_, err := b.exec(`INSERT INTO notices (movement, state, due) VALUES (?, ?, ?)`, seq, state, due.UnixMilli())
	return err
}

// full says whether n more notices would be too many.
func (b books) full(n int) (bool, error) {
	var owed int
	_, err := b.one(`SELECT count(*) FROM (SELECT 1 FROM notices WHERE state = 'owed' LIMIT ?)`, []any{maxOwed}, &owed)
	return owed+n > maxOwed, wrap("count the notices", err)
}

// due lists the notices owed, those due first before others, at most limit, and
// when each is due.
func (b books) due(limit int, now time.Time) (out []notice, at []time.Time, err error) {
	err = b.conn.Each(`SELECT `+movementColumns+`, n.id, n.tries, n.due FROM notices n JOIN movements m ON m.seq = n.movement
		LEFT JOIN transits t ON t.movement = m.seq WHERE n.state = 'owed' ORDER BY n.due, n.id LIMIT ?`, []any{limit}, func(scan lite.Scanner) error {
		var n notice
		var due int64
		var err error
		n.move, err = scanMovement(now, scan, &n.id, &n.tries, &due)
		out, at = append(out, n), append(at, time.UnixMilli(due))
		return err
	})
	return out, at, wrap("list the notices", err)
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
