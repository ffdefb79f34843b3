package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// EventFilter narrows a list of events. Zero fields do not, but Project does.
type EventFilter struct {
	Project flow.ProjectID
	Kind    flow.EventKind
	Session flow.SessionID
	From    time.Time // made then or later
	Until   time.Time // made before
	Before  EventPlace
	Limit   int
}

// EventPlace is where an event stands among those of its project.
type EventPlace struct {
	At time.Time
	ID flow.EventID
}

// never is later than anything that is kept, in milliseconds.
const never = 1 << 62

// ProjectEvents lists a project's events, newest first.
func (r Reader) ProjectEvents(ctx context.Context, f EventFilter) ([]flow.Event, error) {
	until, at, id := cmp.Or(flow.Millis(f.Until), never), flow.Millis(f.Before.At), f.Before.ID
	if id == "" {
		at = never
	}
	where, args := ` WHERE project = ? AND created_at >= ? AND created_at < ? AND (created_at, id) < (?, ?)`,
		[]any{string(f.Project), flow.Millis(f.From), until, at, string(id)}
	if f.Kind != "" {
		where, args = where+` AND kind = ?`, append(args, string(f.Kind))
	}
	if f.Session != "" {
		where, args = where+` AND session = ?`, append(args, string(f.Session))
	}
	list, err := r.events(ctx, where+` ORDER BY created_at DESC, id DESC LIMIT ?`, append(args, f.Limit))
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return list, nil
}

// events reads events.
func (r Reader) events(ctx context.Context, where string, args []any) ([]flow.Event, error) {
	var list []flow.Event
	err := r.run.each(ctx, `SELECT id, kind, project, session, sequence, body, created_at FROM events`+where, args, func(scan scanner) error {
		var e flow.Event
		var at int64
		if err := scan(&e.ID, &e.Kind, &e.Project, &e.Session, &e.Sequence, &e.Body, &at); err != nil {
			return err
		}
		e.CreatedAt = flow.FromMillis(at)
		list = append(list, e)
		return nil
	})
	return list, err
}

// Event reads an event of a project. Errors: resource_not_found.
func (r Reader) Event(ctx context.Context, project flow.ProjectID, id flow.EventID) (flow.Event, error) {
	list, err := r.events(ctx, ` WHERE id = ? AND project = ?`, []any{string(id), string(project)})
	if err != nil {
		return flow.Event{}, fmt.Errorf("read event %s: %w", id, err)
	}
	return only(list, nil, "event", string(id))
}

// Standing says of each of some events how many of its deliveries are in which
// state.
func (r Reader) Standing(ctx context.Context, ids []flow.EventID) (map[flow.EventID]map[string]int, error) {
	out := make(map[flow.EventID]map[string]int, len(ids))
	if len(ids) == 0 {
		return out, nil
	}
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		args = append(args, string(id))
	}
	err := r.run.each(ctx, `SELECT event, state, COUNT(*) FROM deliveries WHERE event IN (`+marks(len(ids))+`) GROUP BY event, state`,
		args, func(scan scanner) error {
			var id flow.EventID
			var state string
			var n int
			if err := scan(&id, &state, &n); err != nil {
				return err
			}
			if out[id] == nil {
				out[id] = map[string]int{}
			}
			out[id][state] = n
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("count deliveries: %w", err)
	}
	return out, nil
}

// marks are so many places for values.
func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// Sent is a delivery as it stands, with its newest tries.
type Sent struct {
	ID       string
	Event    flow.EventID
	Endpoint flow.EndpointID
	URL      string // of the endpoint, by now
	State    string
	Next     time.Time // when it is tried next; zero while it is being tried, and where that is not known
	Count    int       // of all tries
	Tries    []SentTry // oldest first
}

// SentTry is one try of a delivery: what was sent, and what came back.
type SentTry struct {
	N         int
	At        time.Time
	Cause     string
	URL       string
	SignedAt  time.Time // zero where nothing was sent
	Signature string
	Status    int // of the answer, 0 where there was none
	Reason    string
	Body      []byte
	Took      time.Duration
}

const sentSQL = `SELECT d.id, d.event, d.endpoint, e.url, d.state, d.next_at, d.token FROM deliveries d JOIN endpoints e ON e.id = d.endpoint`

// Deliveries lists the deliveries of an event from behind an id on, each with so
// many of its newest tries.
func (r Reader) Deliveries(ctx context.Context, event flow.EventID, after string, limit, tries int) ([]Sent, error) {
	var list []Sent
	err := r.run.each(ctx, sentSQL+` WHERE d.event = ? AND d.id > ? ORDER BY d.id LIMIT ?`, []any{string(event), after, limit}, func(scan scanner) error {
		var d Sent
		var next int64
		var token string
		if err := scan(&d.ID, &d.Event, &d.Endpoint, &d.URL, &d.State, &next, &token); err != nil {
			return err
		}
		d.due(next, token)
		list = append(list, d)
		return nil
	})
	for i := 0; i < len(list) && err == nil; i++ {
		err = r.addTries(ctx, &list[i], tries)
	}
	if err != nil {
		return nil, fmt.Errorf("list the deliveries of %s: %w", event, err)
	}
	return list, nil
}

// due takes in when a delivery is tried next, and who is trying it.
func (d *Sent) due(next int64, token string) {
	if token == "" && d.State == flow.DeliveryPending {
		d.Next = flow.FromMillis(next)
	}
}

// addTries reads so many of a delivery's newest tries, and how many there were.
func (r Reader) addTries(ctx context.Context, d *Sent, limit int) error {
	err := r.run.each(ctx, `SELECT n, at, cause, url, signed_at, signature, status, reason, body, micros FROM delivery_attempts
 WHERE delivery = ? ORDER BY n DESC LIMIT ?`, []any{d.ID, limit}, func(scan scanner) error {
		var a SentTry
		var at, signed, micros int64
		if err := scan(&a.N, &at, &a.Cause, &a.URL, &signed, &a.Signature, &a.Status, &a.Reason, &a.Body, &micros); err != nil {
			return err
		}
		a.At, a.SignedAt, a.Took = flow.FromMillis(at), flow.FromMillis(signed), time.Duration(micros)*time.Microsecond
		d.Tries = append(d.Tries, a)
		return nil
	})
	if slices.Reverse(d.Tries); len(d.Tries) > 0 {
		d.Count = d.Tries[len(d.Tries)-1].N
	}
	return err
}

// Owed is what is known of one event and one endpoint: Delivery is "" where the
// event was never for it.
type Owed struct {
	Event    flow.EventID
	Kind     flow.EventKind
	At       time.Time
	Delivery string
	State    string
	Tries    int // that were made; 0 where OwedOf reads it
}

const replayableSQL = `SELECT v.id, v.kind, v.created_at, COALESCE(d.id, ''), COALESCE(d.state, ''),
 COALESCE((SELECT MAX(a.n) FROM delivery_attempts a WHERE a.delivery = d.id), 0) FROM events v LEFT JOIN deliveries d ON d.event = v.id AND d.endpoint = ?`

// Stretch is a stretch of time of a project's events, for one endpoint.
type Stretch struct {
	To          flow.Endpoint
	Kinds       []flow.EventKind // at least one
	From, Until time.Time        // made from the first on and before the second
	Failed      bool             // only what was given up
}

// Replayable lists the events of a stretch that can be sent again, oldest first:
// none that is on its way.
func (r Reader) Replayable(ctx context.Context, s Stretch, limit int) ([]Owed, error) {
	query, args := ` WHERE v.project = ? AND v.created_at >= ? AND v.created_at < ? AND v.kind IN (`+marks(len(s.Kinds))+`)`,
		[]any{string(s.To.Project), flow.Millis(s.From), flow.Millis(s.Until)}
	for _, k := range s.Kinds {
		args = append(args, string(k))
	}
	if s.Failed {
		query += ` AND d.state = 'dead'`
	} else {
		query += ` AND (d.id IS NULL OR d.state IN ('dead', 'delivered', 'cancelled'))`
	}
	return r.replayable(ctx, s.To.ID, query+` ORDER BY v.created_at, v.id LIMIT ?`, append(args, limit))
}

// Unmoved are those of what Replayable listed for an endpoint that stand as they did
// then: what was put on its way since is not among them, also once it was sent.
func (r Reader) Unmoved(ctx context.Context, to flow.EndpointID, list []Owed) ([]Owed, error) {
	ids, still := make([]string, 0, len(list)), make(map[Owed]bool, len(list))
	for _, o := range list {
		ids = append(ids, string(o.Event))
	}
	for part := range r.run.parts(ids) {
		now, err := r.replayable(ctx, to, ` WHERE v.id IN (`+part.marks+`)`, part.args)
		if err != nil {
			return nil, err
		}
		for _, o := range now {
			still[o] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(o Owed) bool { return !still[o] }), nil
}

// replayable reads events as they stand with an endpoint.
func (r Reader) replayable(ctx context.Context, to flow.EndpointID, where string, args []any) ([]Owed, error) {
	what := "look for what to send " + string(to) + " again"
	return rowsOf(ctx, r.run, what, replayableSQL+where, append([]any{string(to)}, args...), func(scan scanner) (o Owed, err error) {
		var at int64
		err = scan(&o.Event, &o.Kind, &at, &o.Delivery, &o.State, &o.Tries)
		o.At = flow.FromMillis(at)
		return o, err
	})
}

// OwedOf reads what is known of one event and each endpoint that it was for.
func (r Reader) OwedOf(ctx context.Context, event flow.EventID) (map[flow.EndpointID]Owed, error) {
	out := map[flow.EndpointID]Owed{}
	err := r.run.each(ctx, `SELECT id, endpoint, state FROM deliveries WHERE event = ?`, []any{string(event)}, func(scan scanner) error {
		o := Owed{Event: event}
		var to flow.EndpointID
		if err := scan(&o.Delivery, &to, &o.State); err != nil {
			return err
		}
		out[to] = o
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what is owed of %s: %w", event, err)
	}
	return out, nil
}
