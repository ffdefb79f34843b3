package store

import (
	"context"
	"fmt"

	"till/flow"
)

// SentTo is a delivery to an endpoint, with what it is about.
type SentTo struct {
	Sent

	Kind    flow.EventKind
	Session flow.SessionID
}

// lookedThrough is how many of an endpoint's newest deliveries are looked through
// for those that were given up: few of very many may be.
const lookedThrough = 2000

const sentToSQL = `SELECT d.id, d.event, d.endpoint, d.state, d.next_at, d.token, v.kind, v.session
 FROM (SELECT id, event, endpoint, state, next_at, token FROM deliveries WHERE endpoint = ? AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ?) d
 JOIN events v ON v.id = d.event`

// DeliveriesTo lists the deliveries to an endpoint from before an id on ("" is
// the beginning), newest first, each with so many of its newest tries. dead takes
// those alone that were given up, of the newest 2,000.
func (r Reader) DeliveriesTo(ctx context.Context, endpoint flow.EndpointID, before string, dead bool, limit, tries int) ([]SentTo, error) {
	through, where := limit, ``
	if dead {
		through, where = lookedThrough, ` WHERE d.state = 'dead'`
	}
	var list []SentTo
	err := r.run.each(ctx, sentToSQL+where+` ORDER BY d.id DESC LIMIT ?`, []any{string(endpoint), before, before, through, limit}, func(scan scanner) error {
		var d SentTo
		var next int64
		var token string
		if err := scan(&d.ID, &d.Event, &d.Endpoint, &d.State, &next, &token, &d.Kind, &d.Session); err != nil {
			return err
		}
		d.due(next, token)
		list = append(list, d)
		return nil
	})
	for i := 0; i < len(list) && err == nil; i++ {
		err = r.addTries(ctx, &list[i].Sent, tries)
	}
	if err != nil {
		return nil, fmt.Errorf("list the deliveries to %s: %w", endpoint, err)
	}
	return list, nil
}

// Outcomes says how many of an endpoint's newest deliveries are in which state.
func (r Reader) Outcomes(ctx context.Context, endpoint flow.EndpointID, newest int) (map[string]int, error) {
	out := map[string]int{}
	err := r.run.each(ctx, `SELECT d.state, COUNT(*) FROM (SELECT state FROM deliveries WHERE endpoint = ? ORDER BY id DESC LIMIT ?) d GROUP BY d.state`,
		[]any{string(endpoint), newest}, func(scan scanner) error {
			var state string
			var n int
			err := scan(&state, &n)
			out[state] = n
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("count the deliveries to %s: %w", endpoint, err)
	}
	return out, nil
}
