package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// maxNumbers bounds how many numbers of one environment are read.
const maxNumbers = 1000

const numberSQL = `SELECT n.slot, n.number, n.state, n.detail, n.since, n.until, n.phone_seen, n.weight, n.daily_chats, n.holder, n.token, n.held_until,
 COALESCE((SELECT s.state FROM switches s WHERE s.kind = 'number' AND s.name = n.number), ''),
 COALESCE((SELECT MAX(m.created_at) FROM switches s JOIN switch_moves m ON m.kind = s.kind AND m.name = s.name WHERE s.kind = 'number' AND s.name = n.number), 0),
 (SELECT COUNT(*) FROM chats c WHERE c.number = n.number AND c.created_at >= ?)
 FROM numbers n`

// Numbers reads our numbers, with the chats that each has begun since a moment.
func (r Reader) Numbers(ctx context.Context, since time.Time) ([]flow.Number, error) {
	return r.numbers(ctx, numberSQL+` ORDER BY n.slot LIMIT ?`, flow.Millis(since), maxNumbers)
}

// Number reads a number by its slot; found is false where there is none.
func (r Reader) Number(ctx context.Context, slot int) (n flow.Number, found bool, err error) {
	return first(r.numbers(ctx, numberSQL+` WHERE n.slot = ?`, 0, slot))
}

func (r Reader) numbers(ctx context.Context, query string, args ...any) ([]flow.Number, error) {
	return rowsOf(ctx, r.run, "read the numbers", query, args, func(scan scanner) (n flow.Number, err error) {
		var since, until, seen, held, switched int64
		err = scan(&n.Slot, &n.Digits, &n.State, &n.Detail, &since, &until, &seen, &n.Weight, &n.DailyChats, &n.Holder, &n.Token, &held,
			&n.Switch, &switched, &n.ChatsToday)
		n.Since, n.Until, n.PhoneSeen, n.HeldUntil = flow.FromMillis(since), flow.FromMillis(until), flow.FromMillis(seen), flow.FromMillis(held)
		n.Switched = flow.FromMillis(switched)
		return n, err
	})
}

// NumberToken is the token of the newest lease of a number, 0 where there was none.
func (r Reader) NumberToken(ctx context.Context, slot int) (token int64, err error) {
	if _, err = r.run.one(ctx, `SELECT token FROM numbers WHERE slot = ?`, []any{slot}, &token); err != nil {
		return 0, fmt.Errorf("read who holds number %d: %w", slot, err)
	}
	return token, nil
}

// AddNumber keeps a place for a number, unless there is one.
func (t *Tx) AddNumber(ctx context.Context, slot int, now time.Time) error {
	err := t.run.put(ctx, `INSERT INTO numbers (slot, number, state, detail, since, until, phone_seen, weight, daily_chats, holder, token, held_until)
 VALUES (?, '', ?, '', ?, 0, 0, 1, 0, '', 0, 0) ON CONFLICT DO NOTHING`, slot, flow.NumberOffline, flow.Millis(now))
	return wrapNumber("keep", slot, err)
}

func wrapNumber(doing string, slot int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s number %d: %w", doing, slot, err)
}

// TakeNumber gives a number to a process under a token that no lease before had.
// It returns false, and changes nothing, while another process holds it; heir
// names one that is known to be dead, "" for none.
func (t *Tx) TakeNumber(ctx context.Context, n flow.Number, heir string, now time.Time) (bool, error) {
	// What lasts is kept until the new holder says otherwise: it goes by that.
	changed, err := t.run.exec(ctx, `UPDATE numbers SET holder = ?, token = ?, held_until = ?,
 state = CASE WHEN state IN ('logged-out', 'temp-banned', 'timelocked', 'mute') THEN state ELSE 'connecting' END
 WHERE slot = ? AND token < ? AND (holder IN ('', ?, ?) OR held_until <= ?)`,
		n.Holder, n.Token, flow.Millis(n.HeldUntil), n.Slot, n.Token, n.Holder, heir, flow.Millis(now))
	return changed > 0, wrapNumber("take", n.Slot, err)
}

// HoldNumber makes a lease last until a moment; false says that it is lost.
func (t *Tx) HoldNumber(ctx context.Context, slot int, token int64, until time.Time) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE numbers SET held_until = ? WHERE slot = ? AND token = ? AND holder <> ''`, flow.Millis(until), slot, token)
	return n > 0, wrapNumber("hold", slot, err)
}

// DropNumber ends a lease, if it still is the newest.
func (t *Tx) DropNumber(ctx context.Context, slot int, token int64) error {
	err := t.run.put(ctx, `UPDATE numbers SET holder = '', held_until = 0 WHERE slot = ? AND token = ?`, slot, token)
	return wrapNumber("let go of", slot, err)
}

// ReportNumber keeps what a number says of itself, if its holder's lease is
// still the newest. A number that is not known now stays as it was known.
func (t *Tx) ReportNumber(ctx context.Context, n flow.Number) (bool, error) {
	changed, err := t.run.exec(ctx, `UPDATE numbers SET number = CASE WHEN ? = '' THEN number ELSE ? END, state = ?, detail = ?, since = ?, until = ?,
 phone_seen = CASE WHEN phone_seen > ? THEN phone_seen ELSE ? END WHERE slot = ? AND token = ?`,
		n.Digits, n.Digits, n.State, n.Detail, flow.Millis(n.Since), flow.Millis(n.Until), flow.Millis(n.PhoneSeen), flow.Millis(n.PhoneSeen), n.Slot, n.Token)
	return changed > 0, wrapNumber("keep the state of", n.Slot, err)
}

// SetNumberBounds keeps a number's share of new chats and its bound for a day.
func (t *Tx) SetNumberBounds(ctx context.Context, slot, weight, dailyChats int) error {
	err := t.run.put(ctx, `UPDATE numbers SET weight = ?, daily_chats = ? WHERE slot = ?`, weight, dailyChats, slot)
	return wrapNumber("bound", slot, err)
}

// Switches reads what is switched off, by kind and name.
func (r Reader) Switches(ctx context.Context) (map[flow.SwitchKind]map[string]string, error) {
	out := map[flow.SwitchKind]map[string]string{}
	err := r.run.each(ctx, `SELECT kind, name, state FROM switches`, nil, func(scan scanner) error {
		var kind flow.SwitchKind
		var name, state string
		if err := scan(&kind, &name, &state); err != nil {
			return err
		}
		if out[kind] == nil {
			out[kind] = map[string]string{}
		}
		out[kind][name] = state
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the switches: %w", err)
	}
	return out, nil
}

// MoveSwitch moves a switch and keeps who did it and why. It returns the move
// with where the switch stood before.
func (t *Tx) MoveSwitch(ctx context.Context, m flow.SwitchMove) (flow.SwitchMove, error) {
	_, err := t.run.one(ctx, `SELECT state FROM switches WHERE kind = ? AND name = ?`, []any{m.Kind, m.Name}, &m.From)
	if err == nil {
		err = t.run.put(ctx, `DELETE FROM switches WHERE kind = ? AND name = ?`, m.Kind, m.Name)
	}
	if err == nil && m.To != "" {
		err = t.run.put(ctx, `INSERT INTO switches (kind, name, state) VALUES (?, ?, ?)`, m.Kind, m.Name, m.To)
	}
	if err == nil {
		err = t.run.put(ctx, `INSERT INTO switch_moves (seq, kind, name, state_from, state_to, reason, who, created_at)
 VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM switch_moves), ?, ?, ?, ?, ?, ?, ?)`, m.Kind, m.Name, m.From, m.To, m.Reason, m.By, flow.Millis(m.At))
	}
	if err != nil {
		return m, fmt.Errorf("switch the %s %s: %w", m.Kind, m.Name, err)
	}
	return m, nil
}

// SwitchMoves reads the last acts of operators, oldest first.
func (r Reader) SwitchMoves(ctx context.Context, limit int) ([]flow.SwitchMove, error) {
	const query = `SELECT kind, name, state_from, state_to, reason, who, created_at FROM
 (SELECT seq, kind, name, state_from, state_to, reason, who, created_at FROM switch_moves ORDER BY seq DESC LIMIT ?) AS last ORDER BY seq`
	return rowsOf(ctx, r.run, "read what was switched", query, []any{limit}, func(scan scanner) (m flow.SwitchMove, err error) {
		var at int64
		err = scan(&m.Kind, &m.Name, &m.From, &m.To, &m.Reason, &m.By, &at)
		m.At = flow.FromMillis(at)
		return m, err
	})
}
