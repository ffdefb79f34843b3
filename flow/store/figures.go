package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// LedgerPlace is a place in the ledger's order; the zero place is before all.
type LedgerPlace struct{ kind, subject string }

// ledgerNewest is how many of the newest transactions of each kind LedgerNewest
// looks at.
const ledgerNewest = 500

// LedgerOff is by how many kobo the transactions behind a place do not sum to
// zero, and the place of the last one that was looked at: the zero place once
// there are no more. The table itself refuses such a row; that it did is worth
// proving again and again, a stretch at a time, for a reading of all of them would
// keep a processor busy for seconds.
func (r Reader) LedgerOff(ctx context.Context, after LedgerPlace, limit int) (off flow.Kobo, next LedgerPlace, err error) {
	args := []any{after.kind, after.subject}
	within := ``
	found, err := r.run.one(ctx, `SELECT kind, subject FROM ledger WHERE (kind, subject) > (?, ?) ORDER BY kind, subject LIMIT 1 OFFSET ?`,
		append(args, limit-1), &next.kind, &next.subject)
	if err != nil {
		return 0, after, fmt.Errorf("read the ledger: %w", err)
	}
	if found {
		within, args = ` AND (kind, subject) <= (?, ?)`, append(args, next.kind, next.subject)
	} else {
		next = LedgerPlace{}
	}
	_, err = r.run.one(ctx, `SELECT CAST(COALESCE(SUM(ABS(`+lineSum+`)), 0) AS BIGINT) FROM ledger WHERE (kind, subject) > (?, ?)`+within, args, &off)
	if err != nil {
		return 0, after, fmt.Errorf("read the ledger: %w", err)
	}
	return off, next, nil
}

// LedgerNewest is LedgerOff of the newest transactions of each kind.
func (r Reader) LedgerNewest(ctx context.Context) (off flow.Kobo, err error) {
	for _, kind := range flow.EntryKinds() {
		var of flow.Kobo
		_, err := r.run.one(ctx, `SELECT CAST(COALESCE(SUM(ABS(off)), 0) AS BIGINT) FROM (SELECT `+lineSum+` AS off FROM ledger WHERE kind = ? ORDER BY subject DESC LIMIT ?) AS newest`,
			[]any{string(kind), ledgerNewest}, &of)
		if err != nil {
			return 0, fmt.Errorf("read the ledger: %w", err)
		}
		off += of
	}
	return off, nil
}

// backlogCounted is how far a backlog is counted, and how many messages are looked
// at for the oldest.
const backlogCounted = 20_000

// Backlog is how many deliveries are owed by their schedule, at most twenty
// thousand, and when the oldest of those was made: zero where there is none. Held is how many
// wait for endpoints that do not answer or are disabled, counted as far.
func (r Reader) Backlog(ctx context.Context) (owed, held int, oldest time.Time, err error) {
	var at int64
	_, err = r.run.one(ctx, `SELECT COUNT(*), COALESCE(MIN(d.created_at), 0) FROM (SELECT created_at FROM deliveries WHERE state = 'pending' ORDER BY next_at LIMIT ?) AS d`,
		[]any{backlogCounted}, &owed, &at)
	if err == nil {
		_, err = r.run.one(ctx, `SELECT COUNT(*) FROM (SELECT 1 AS one FROM deliveries WHERE state = 'held' LIMIT ?) AS d`, []any{backlogCounted}, &held)
	}
	if err != nil {
		return 0, 0, time.Time{}, fmt.Errorf("count the deliveries that are owed: %w", err)
	}
	return owed, held, flow.FromMillis(at), nil
}

// Whoever is enabled and has something held is to be looked at: what is held for
// others, their merchant disabled.
const heldBackSQL = `SELECT COALESCE(MIN(there.made), 0) FROM (SELECT (SELECT MIN(d.created_at) FROM deliveries d WHERE d.state = 'held' AND d.endpoint = e.id) AS made
 FROM endpoints e WHERE e.wake_at > 0 ORDER BY e.wake_at LIMIT ?) AS there`

// HeldBack is when the oldest delivery was made that is held for an endpoint which
// is enabled and does not answer, zero where there is none. It looks at twenty
// thousand endpoints at most.
func (r Reader) HeldBack(ctx context.Context) (oldest time.Time, err error) {
	var at int64
	if _, err = r.run.one(ctx, heldBackSQL, []any{backlogCounted}, &at); err != nil {
		return time.Time{}, fmt.Errorf("look for the oldest delivery that is held: %w", err)
	}
	return flow.FromMillis(at), nil
}

// Messages of a number that an operator switched off wait because of that, and
// those of a chat in which one was refused too often because of its payer.
const outboxSQL = `SELECT COALESCE(MIN(y.created_at), 0) FROM (SELECT chat, created_at FROM says WHERE state = 'pending' ORDER BY chat, seq, bubble LIMIT ?) AS y
 CROSS JOIN chats c WHERE c.id = y.chat AND c.number NOT IN (SELECT name FROM switches WHERE kind = 'number' AND state = 'kill')
 AND NOT EXISTS (SELECT 1 FROM says p WHERE p.chat = y.chat AND p.state = 'pending' AND p.refusals >= ?)`

// Outbox is when the oldest message to a payer was written that is to go out and
// has not, zero where there is none; chats in which one was refused so often are
// passed over. It looks at twenty thousand at most.
func (r Reader) Outbox(ctx context.Context, refused int) (oldest time.Time, err error) {
	var at int64
	if _, err = r.run.one(ctx, outboxSQL, []any{backlogCounted, refused}, &at); err != nil {
		return time.Time{}, fmt.Errorf("look for the oldest message that is not sent: %w", err)
	}
	return flow.FromMillis(at), nil
}

// The first condition is that of the index; chats that are only marked have no
// time, and are passed over by the second.
const calledSQL = `SELECT desk_since FROM chats WHERE (desk <> '' OR flag <> '') AND desk_since > 0 AND desk = 'waiting' AND flag <> '` + flow.NobodyComes + `' ORDER BY desk_since LIMIT 1`

// Called is since when a person is waited for in the chat that has waited longest
// without one, zero where there is none. Where nobody came in two hours the bot answers,
// and whoever may still come has no time to come in.
func (r Reader) Called(ctx context.Context) (since time.Time, err error) {
	var at int64
	if _, err = r.run.one(ctx, calledSQL, nil, &at); err != nil {
		return time.Time{}, fmt.Errorf("look for who waits for a person: %w", err)
	}
	return flow.FromMillis(at), nil
}
