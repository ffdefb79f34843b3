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
		record

		SessionID flow.SessionID `json:"sessionId"`
		Payment   *record        `json:"payment"`
	} `json:"data"`
}

// readEvent reads the body of an event; false for none.
func readEvent(body []byte) (says eventSays, ok bool) {
	err := json.Unmarshal(body, &says)
	return says, err == nil
}

// record is the beginning of what an event tells of: a session, a payment, a refund, a
// settlement.
type record struct {
	ID          string `json:"id"`
	AmountMinor string `json:"amountMinor"`
}

// isOf says whether a body is that of an event whose session asks for an amount.
func (b eventSays) isOf(e flow.Event, amount flow.Kobo) bool {
	if b.ID != e.ID || b.Event != e.Kind || b.CreatedAt != flow.Stamp(e.CreatedAt) || b.Sequence != e.Sequence {
		return false
	}
	session, asks := b.Data.SessionID, strings.HasPrefix(string(e.Kind), "charge.")
	if strings.HasPrefix(string(e.Kind), "session.") {
		session, asks = flow.SessionID(b.Data.ID), true
	}
	return session == e.Session && (!asks || session == "" || b.Data.AmountMinor == amount.Minor())
}

// recorded are the tables of what events tell of beside sessions, by how their kinds
// begin.
var recorded = map[string]string{"payment": "payments", "refund": "refunds", "settlement": "settlements"}

// tells is what else an event tells of that a table has: in table, "" for nothing.
func (b eventSays) tells() (table string, of record) {
	begin, _, _ := strings.Cut(string(b.Event), ".")
	if table = recorded[begin]; table != "" {
		return table, b.Data.record
	}
	if b.Data.Payment != nil {
		return recorded["payment"], *b.Data.Payment
	}
	return "", record{}
}

const eventsSaySQL = `SELECT e.id, e.kind, e.session, e.sequence, e.created_at, e.body, COALESCE((SELECT s.amount FROM sessions s WHERE s.id = e.session), 0)
 FROM events e WHERE e.id > ? ORDER BY e.id LIMIT ?`

// telling is an event that tells of what a table has.
type telling struct {
	event flow.Event
	of    record
}

// misspoken lists the events whose body is not that of their row, or tells of what is
// not so.
func (r Reader) misspoken(ctx context.Context, most int) (list []LedgerFault, wrong, of int, err error) {
	found := func(e flow.Event) {
		if wrong++; len(list) < most {
			list = append(list, LedgerFault{ID: string(e.ID), At: e.CreatedAt, Expects: 1})
		}
	}
	for after, more := flow.EventID(""), true; more; {
		seen := 0
		told := map[string][]telling{} // by table
		err := r.run.each(ctx, eventsSaySQL, []any{after, partOf}, func(scan scanner) error {
			var e flow.Event
			var at int64
			var amount flow.Kobo
			if err := scan(&e.ID, &e.Kind, &e.Session, &e.Sequence, &at, &e.Body, &amount); err != nil {
				return err
			}
			e.CreatedAt, after = flow.FromMillis(at), e.ID
			seen++
			says, ok := readEvent(e.Body)
			if !ok || !says.isOf(e, amount) {
				found(e)
				return nil
			}
			if table, of := says.tells(); table != "" {
				e.Body = nil // it is read
				told[table] = append(told[table], telling{e, of})
			}
			return nil
		})
		for table, tellings := range told {
			if err == nil {
				err = r.untold(ctx, table, tellings, found)
			}
		}
		if err != nil {
			return nil, 0, 0, fmt.Errorf("check what events say: %w", err)
		}
		of, more = of+seen, seen == partOf
	}
	return list, wrong, of, nil
}

// untold finds the events that tell of what their table does not have, or has with
// another amount.
func (r Reader) untold(ctx context.Context, table string, tellings []telling, found func(flow.Event)) error {
	amounts := map[string]string{}
	ids := make([]string, 0, len(tellings))
	for _, t := range tellings {
		if !strings.Contains(t.of.ID, "\x00") { // which no row has, and PostgreSQL refuses to look for
			ids = append(ids, t.of.ID)
		}
	}
	for part := range r.run.parts(ids) {
		err := r.run.each(ctx, `SELECT id, amount FROM `+table+` WHERE id IN (`+part.marks+`)`, part.args, func(scan scanner) error {
			var id string
			var amount flow.Kobo
			err := scan(&id, &amount)
			amounts[id] = amount.Minor()
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, t := range tellings {
		if amount, there := amounts[t.of.ID]; !there || amount != t.of.AmountMinor {
			found(t.event)
		}
	}
	return nil
}
