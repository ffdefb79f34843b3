package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/planted"
)

const insertEventSQL = `INSERT INTO events (id, kind, project, session, sequence, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`

// AddEvent keeps an event.
func (t *Tx) AddEvent(ctx context.Context, e flow.Event) error {
	err := t.run.put(ctx, insertEventSQL, e.ID, e.Kind, e.Project, e.Session, e.Sequence, e.Body, flow.Millis(e.CreatedAt))
	if err != nil {
		return fmt.Errorf("keep event %s: %w", e.ID, err)
	}
	return nil
}

// Events are the events of a session, in their order.
func (r Reader) Events(ctx context.Context, session flow.SessionID) ([]flow.Event, error) {
	list, err := r.events(ctx, ` WHERE session = ? ORDER BY sequence`, []any{string(session)})
	if err != nil {
		return nil, fmt.Errorf("read the events of %s: %w", session, err)
	}
	return list, nil
}

const endpointColumns = `id, project, url, description, events, secrets, status, created_at, version, failures, failing_since, open_since,
 probes, disabled_at, disabled_reason, deleted_at, retiring, max_per_second`

// AddEndpoint keeps a webhook endpoint.
func (t *Tx) AddEndpoint(ctx context.Context, e flow.Endpoint) error {
	texts, err := jsonTexts(e.Events, e.Secrets)
	if err == nil {
		texts[1], err = t.seal(ctx, secretsOf(string(e.ID)), texts[1])
	}
	if err != nil {
		return fmt.Errorf("keep endpoint %s: %w", e.ID, err)
	}
	err = t.run.put(ctx, `INSERT INTO endpoints (id, project, url, description, events, secrets, status, created_at, max_per_second) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.ID, e.Project, e.URL, e.Description, texts[0], texts[1], e.Status, flow.Millis(e.CreatedAt), e.MaxPerSecond)
	if err != nil {
		return fmt.Errorf("keep endpoint %s: %w", e.ID, err)
	}
	return nil
}

// Endpoints are a project's endpoints, oldest first.
func (r Reader) Endpoints(ctx context.Context, project flow.ProjectID) ([]flow.Endpoint, error) {
	if list, ok := r.run.steady.known(project); ok {
		return list, nil
	}
	query := `SELECT ` + endpointColumns + ` FROM endpoints WHERE project = ? AND deleted_at = 0 ORDER BY id`
	if planted.OthersWebhook {
		query = strings.Replace(query, "project = ?", "? <> ''", 1)
	}
	list, err := r.endpoints(ctx, query, string(project))
	if err == nil {
		r.run.steady.keep(project, list)
	}
	return list, err
}

func (r Reader) endpoints(ctx context.Context, query string, args ...any) ([]flow.Endpoint, error) {
	return rowsOf(ctx, r.run, "read endpoints", query, args, func(scan scanner) (e flow.Endpoint, err error) {
		var events, secrets, retiring string
		var made, failing, open, disabled, deleted int64
		if err = scan(&e.ID, &e.Project, &e.URL, &e.Description, &events, &secrets, &e.Status, &made, &e.Version, &e.Failures, &failing, &open,
			&e.Probes, &disabled, &e.DisabledReason, &deleted, &retiring, &e.MaxPerSecond); err != nil {
			return e, err
		}
		e.CreatedAt, e.FailingSince, e.OpenSince = flow.FromMillis(made), flow.FromMillis(failing), flow.FromMillis(open)
		e.DisabledAt, e.DeletedAt = flow.FromMillis(disabled), flow.FromMillis(deleted)
		if err = fromTexts([]string{events}, &e.Events); err == nil {
			err = r.run.readSecrets(&e, e.ID, secrets, retiring)
		}
		return e, err
	})
}

// EventsOf lists the events of a session, the newest first, at most limit of them.
func (r Reader) EventsOf(ctx context.Context, session flow.SessionID, limit int) ([]flow.Event, error) {
	list, err := r.events(ctx, ` WHERE session = ? AND session <> '' ORDER BY sequence DESC LIMIT ?`, []any{string(session), limit})
	if err != nil {
		return nil, fmt.Errorf("list the events of %s: %w", session, err)
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
	Cause    string
	Status   int
	Reason   string
	Body     []byte
	Took     time.Duration
}

const selectTriesSQL = `SELECT a.delivery, d.event, v.kind, e.url, a.n, a.at, a.cause, a.status, a.reason, a.body, a.micros FROM delivery_attempts a
 JOIN deliveries d ON d.id = a.delivery JOIN events v ON v.id = d.event JOIN endpoints e ON e.id = d.endpoint
 WHERE v.session = ? AND v.session <> ''`

// Tries are the newest tries to deliver a session's events, at most so many,
// oldest first.
func (r Reader) Tries(ctx context.Context, session flow.SessionID, limit int) ([]Tried, error) {
	list, err := r.tries(ctx, selectTriesSQL+` ORDER BY a.at DESC, a.n DESC, a.delivery DESC LIMIT ?`, string(session), limit)
	slices.Reverse(list)
	return list, err
}

// TriesFrom are the first tries from a time on, at most so many, oldest first.
func (r Reader) TriesFrom(ctx context.Context, session flow.SessionID, from time.Time, limit int) ([]Tried, error) {
	return r.tries(ctx, selectTriesSQL+` AND a.at >= ? ORDER BY a.at, a.n, a.delivery LIMIT ?`, string(session), flow.Millis(from), limit)
}

func (r Reader) tries(ctx context.Context, query string, args ...any) ([]Tried, error) {
	return rowsOf(ctx, r.run, "read tries of webhooks", query, args, func(scan scanner) (a Tried, err error) {
		var at, micros int64
		err = scan(&a.Delivery, &a.Event, &a.Kind, &a.URL, &a.N, &at, &a.Cause, &a.Status, &a.Reason, &a.Body, &micros)
		a.At, a.Took = flow.FromMillis(at), time.Duration(micros)*time.Microsecond
		return a, err
	})
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
