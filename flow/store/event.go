package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

const insertEventSQL = `INSERT INTO events (id, kind, project, session, sequence, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`

// AddEvent keeps an event.
func (t *Tx) AddEvent(ctx context.Context, e flow.Event) error {
	_, err := t.run.exec(ctx, insertEventSQL, e.ID, e.Kind, e.Project, e.Session, e.Sequence, e.Body, flow.Millis(e.CreatedAt))
	if err != nil {
		return fmt.Errorf("keep event %s: %w", e.ID, err)
	}
	return nil
}

// Events are the events of a session, in their order.
func (r Reader) Events(ctx context.Context, session flow.SessionID) ([]flow.Event, error) {
	var list []flow.Event
	err := r.run.each(ctx, `SELECT id, kind, project, session, sequence, body, created_at FROM events WHERE session = ? ORDER BY sequence`,
		[]any{string(session)}, func(scan scanner) error {
			var e flow.Event
			var at int64
			if err := scan(&e.ID, &e.Kind, &e.Project, &e.Session, &e.Sequence, &e.Body, &at); err != nil {
				return err
			}
			e.CreatedAt = flow.FromMillis(at)
			list = append(list, e)
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", session, err)
	}
	return list, nil
}

const endpointColumns = `id, project, url, description, events, secrets, status, created_at`

// AddEndpoint keeps a webhook endpoint.
func (t *Tx) AddEndpoint(ctx context.Context, e flow.Endpoint) error {
	texts, err := jsonTexts(e.Events, e.Secrets)
	if err != nil {
		return fmt.Errorf("keep endpoint %s: %w", e.ID, err)
	}
	_, err = t.run.exec(ctx, `INSERT INTO endpoints (`+endpointColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.Project, e.URL, e.Description, texts[0], texts[1], e.Status, flow.Millis(e.CreatedAt))
	if err != nil {
		return fmt.Errorf("keep endpoint %s: %w", e.ID, err)
	}
	return nil
}

// DisableEndpoint ends an endpoint that said it is gone, and holds what it is
// still owed.
func (t *Tx) DisableEndpoint(ctx context.Context, id flow.EndpointID) error {
	if _, err := t.run.exec(ctx, `UPDATE endpoints SET status = 'DISABLED' WHERE id = ?`, id); err != nil {
		return fmt.Errorf("disable endpoint %s: %w", id, err)
	}
	if _, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'held', token = '' WHERE endpoint = ? AND state = 'pending'`, id); err != nil {
		return fmt.Errorf("hold the deliveries of endpoint %s: %w", id, err)
	}
	return nil
}

// Endpoints are a project's endpoints, oldest first.
func (r Reader) Endpoints(ctx context.Context, project flow.ProjectID) ([]flow.Endpoint, error) {
	return r.endpoints(ctx, `SELECT `+endpointColumns+` FROM endpoints WHERE project = ? ORDER BY id`, string(project))
}

func (r Reader) endpoints(ctx context.Context, query, arg string) ([]flow.Endpoint, error) {
	var list []flow.Endpoint
	err := r.run.each(ctx, query, []any{arg}, func(scan scanner) error {
		var e flow.Endpoint
		var events, secrets string
		var at int64
		if err := scan(&e.ID, &e.Project, &e.URL, &e.Description, &events, &secrets, &e.Status, &at); err != nil {
			return err
		}
		e.CreatedAt = flow.FromMillis(at)
		list = append(list, e)
		last := &list[len(list)-1]
		return fromTexts([]string{events, secrets}, &last.Events, &last.Secrets)
	})
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	return list, nil
}

// AddDelivery keeps that an event is owed to an endpoint. It is born with a
// lease, which ends at a time: whoever made it sends it right after the commit.
func (t *Tx) AddDelivery(ctx context.Context, d flow.Delivery, ends time.Time) error {
	_, err := t.run.exec(ctx, `INSERT INTO deliveries (id, event, endpoint, state, attempts, next_at, token, done_at)
 VALUES (?, ?, ?, 'pending', 0, ?, ?, 0)`, d.ID, d.Event, d.Endpoint, flow.Millis(ends), d.Lease)
	if err != nil {
		return fmt.Errorf("keep delivery %s: %w", d.ID, err)
	}
	return nil
}

const claimDeliveriesSQL = `UPDATE deliveries SET next_at = ?, token = ? WHERE state = 'pending' AND next_at <= ? AND id IN
 (SELECT id FROM deliveries WHERE state = 'pending' AND next_at <= ? ORDER BY next_at LIMIT ?)`

const claimedDeliveriesSQL = `SELECT d.id, d.event, d.endpoint, e.url, e.secrets, v.body, d.attempts, d.token FROM deliveries d
 JOIN endpoints e ON e.id = d.endpoint JOIN events v ON v.id = d.event
 WHERE d.state = 'pending' AND d.token = ?`

// ClaimDeliveries takes deliveries that are due, until ends. The lease must be
// a name that was never used before.
func (t *Tx) ClaimDeliveries(ctx context.Context, lease string, now, ends time.Time, limit int) ([]flow.Delivery, error) {
	n, err := t.run.exec(ctx, claimDeliveriesSQL, flow.Millis(ends), lease, flow.Millis(now), flow.Millis(now), limit)
	if err != nil {
		return nil, fmt.Errorf("claim deliveries: %w", err)
	}
	if n == 0 {
		return nil, nil
	}
	var list []flow.Delivery
	err = t.run.each(ctx, claimedDeliveriesSQL, []any{lease}, func(scan scanner) error {
		var d flow.Delivery
		var secrets string
		if err := scan(&d.ID, &d.Event, &d.Endpoint, &d.URL, &secrets, &d.Body, &d.Attempts, &d.Lease); err != nil {
			return err
		}
		list = append(list, d)
		return fromTexts([]string{secrets}, &list[len(list)-1].Secrets)
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return list, nil
}

// Tried is one kept try of a delivery.
type Tried struct {
	Delivery string
	Event    flow.EventID
	Kind     flow.EventKind
	URL      string
	N        int
	At       time.Time
	Status   int
	Reason   string
	Body     []byte
	Took     time.Duration
}

// EndTry keeps what became of a try and what follows. state is delivered, dead
// or pending; a pending one is due again at next. A try that somebody else's
// lease overtook only leaves its record, unless it delivered.
func (t *Tx) EndTry(ctx context.Context, d flow.Delivery, v flow.Verdict, state string, now, next time.Time) error {
	done := int64(0)
	if state != "pending" {
		done = flow.Millis(now)
	}
	_, err := t.run.exec(ctx, `UPDATE deliveries SET state = ?, attempts = attempts + 1, next_at = ?, token = '', done_at = ?
 WHERE id = ? AND (state = 'pending' AND token = ? OR state IN ('pending', 'held') AND ? = 'delivered')`, state, flow.Millis(next), done, d.ID, d.Lease, state)
	if err != nil {
		return fmt.Errorf("end a try of delivery %s: %w", d.ID, err)
	}
	_, err = t.run.exec(ctx, `INSERT INTO delivery_attempts (delivery, n, at, status, reason, body, micros)
 SELECT ?, COALESCE(MAX(n), 0) + 1, ?, ?, ?, ?, ? FROM delivery_attempts WHERE delivery = ?`,
		d.ID, flow.Millis(now), v.Status, v.Reason, notNil(v.Body), v.Duration.Microseconds(), d.ID)
	if err != nil {
		return fmt.Errorf("record a try of delivery %s: %w", d.ID, err)
	}
	return nil
}

const triesSQL = `SELECT a.delivery, d.event, v.kind, e.url, a.n, a.at, a.status, a.reason, a.body, a.micros FROM delivery_attempts a
 JOIN deliveries d ON d.id = a.delivery JOIN events v ON v.id = d.event JOIN endpoints e ON e.id = d.endpoint
 WHERE v.session = ? ORDER BY a.at, a.n`

// Tries are the tries to deliver a session's events, oldest first.
func (r Reader) Tries(ctx context.Context, session flow.SessionID) ([]Tried, error) {
	var list []Tried
	err := r.run.each(ctx, triesSQL, []any{string(session)}, func(scan scanner) error {
		var a Tried
		var at, micros int64
		if err := scan(&a.Delivery, &a.Event, &a.Kind, &a.URL, &a.N, &at, &a.Status, &a.Reason, &a.Body, &micros); err != nil {
			return err
		}
		a.At, a.Took = flow.FromMillis(at), time.Duration(micros)*time.Microsecond
		list = append(list, a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of %s: %w", session, err)
	}
	return list, nil
}

// NextDelivery is when the next delivery is due, false where none is owed.
func (r Reader) NextDelivery(ctx context.Context) (time.Time, bool, error) {
	return r.earliest(ctx, `SELECT COALESCE(MIN(next_at), 0) FROM deliveries WHERE state = 'pending'`)
}

// earliest reads one time; false for 0.
func (r Reader) earliest(ctx context.Context, query string) (time.Time, bool, error) {
	var ms int64
	if _, err := r.run.one(ctx, query, nil, &ms); err != nil {
		return time.Time{}, false, fmt.Errorf("read what is due next: %w", err)
	}
	return flow.FromMillis(ms), ms != 0, nil
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
