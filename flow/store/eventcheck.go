package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"till/flow"
)

// eventSays is what the body of an event says that its row and its session say too.
type eventSays struct {
	ID        flow.EventID   `json:"id"`
	Event     flow.EventKind `json:"event"`
	CreatedAt string         `json:"createdAt"`
	Sequence  int64          `json:"sequence"`
	Data      struct {
		ID          flow.SessionID `json:"id"` // of a session, where it tells of one
		SessionID   flow.SessionID `json:"sessionId"`
		AmountMinor string         `json:"amountMinor"`
	} `json:"data"`
}

// isOf says whether a body is that of an event whose session asks for an amount.
func (b eventSays) isOf(e flow.Event, amount flow.Kobo) bool {
	if b.ID != e.ID || b.Event != e.Kind || b.CreatedAt != flow.Stamp(e.CreatedAt) || b.Sequence != e.Sequence {
		return false
	}
	session, asks := b.Data.SessionID, strings.HasPrefix(string(e.Kind), "charge.")
	if strings.HasPrefix(string(e.Kind), "session.") {
		session, asks = b.Data.ID, true
	}
	return session == e.Session && (!asks || session == "" || b.Data.AmountMinor == amount.Minor())
}

const eventsSaySQL = `SELECT e.id, e.kind, e.session, e.sequence, e.created_at, e.body, COALESCE((SELECT s.amount FROM sessions s WHERE s.id = e.session), 0)
 FROM events e WHERE e.id > ? ORDER BY e.id LIMIT ?`

// misspoken lists the events whose body is not that of their row.
func (r Reader) misspoken(ctx context.Context, most int) (list []LedgerFault, wrong, of int, err error) {
	for after, more := flow.EventID(""), true; more; {
		seen := 0
		err := r.run.each(ctx, eventsSaySQL, []any{after, partOf}, func(scan scanner) error {
			var e flow.Event
			var at int64
			var amount flow.Kobo
			if err := scan(&e.ID, &e.Kind, &e.Session, &e.Sequence, &at, &e.Body, &amount); err != nil {
				return err
			}
			e.CreatedAt, after = flow.FromMillis(at), e.ID
			seen++
			var says eventSays
			if err := json.Unmarshal(e.Body, &says); err == nil && says.isOf(e, amount) {
				return nil
			}
			if wrong++; len(list) < most {
				list = append(list, LedgerFault{ID: string(e.ID), At: e.CreatedAt, Expects: 1})
			}
			return nil
		})
		if err != nil {
			return nil, 0, 0, fmt.Errorf("check what events say: %w", err)
		}
		of, more = of+seen, seen == partOf
	}
	return list, wrong, of, nil
}
