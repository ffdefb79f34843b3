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

// AddDelivery keeps that an event is owed to an endpoint. One with a lease, which
// ends at a time, is sent by whoever made it right after the commit; without one
// it is due at that time.
func (t *Tx) AddDelivery(ctx context.Context, d flow.Delivery, now, due time.Time) error {
	return t.addDelivery(ctx, d, flow.DeliveryPending, now, due)
}

// AddHeldDelivery keeps that an event is owed to an endpoint that is not sent
// anything now.
func (t *Tx) AddHeldDelivery(ctx context.Context, d flow.Delivery, now time.Time) error {
	return t.addDelivery(ctx, d, flow.DeliveryHeld, now, now)
}

func (t *Tx) addDelivery(ctx context.Context, d flow.Delivery, state string, now, due time.Time) error {
	backTo := ""
	if d.ByHand() { // there is no schedule that it could go back to
		backTo = flow.DeliveryDead
	}
	err := t.run.put(ctx, `INSERT INTO deliveries (id, event, endpoint, state, attempts, next_at, token, done_at, created_at, cause, back_to, back_at)
 VALUES (?, ?, ?, ?, 0, ?, ?, 0, ?, ?, ?, 0)`, d.ID, d.Event, d.Endpoint, state, flow.Millis(due), d.Lease, flow.Millis(now), cause(d), backTo)
	if err != nil {
		return fmt.Errorf("keep delivery %s: %w", d.ID, err)
	}
	return nil
}

func cause(d flow.Delivery) string {
	return cmp.Or(d.Cause, flow.CauseAuto)
}

// RedoDelivery makes a delivery due that is asked for by hand, whatever became
// of it before, and says whether there is one. If the try fails the delivery goes
// back to where it was, so that it spends none of its schedule. The lease must be
// a name that was never used before, or "" for anybody.
func (t *Tx) RedoDelivery(ctx context.Context, event flow.EventID, endpoint flow.EndpointID, cause, lease string, due time.Time) (d flow.Delivery, found bool, err error) {
	err = t.run.put(ctx, `UPDATE deliveries SET back_to = CASE WHEN cause = 'auto' THEN state ELSE back_to END,
 back_at = CASE WHEN cause = 'auto' THEN next_at ELSE back_at END, state = 'pending', cause = ?, next_at = ?, token = ?
 WHERE event = ? AND endpoint = ?`, cause, flow.Millis(due), lease, event, endpoint)
	if err != nil {
		return d, false, fmt.Errorf("redo the delivery of %s to %s: %w", event, endpoint, err)
	}
	list, err := t.deliveries(ctx, deliveriesSQL+`event = ? AND endpoint = ?`, []any{event, endpoint})
	if err != nil || len(list) == 0 {
		return d, false, err
	}
	return list[0].Delivery, true, nil
}

// Due is a delivery that is due.
type Due struct {
	ID       string
	Endpoint flow.EndpointID
}

// DueDeliveries are the deliveries that are due for longest, without those of
// DueAwaited.
func (r Reader) DueDeliveries(ctx context.Context, now time.Time, limit int) ([]Due, error) {
	return r.due(ctx, `SELECT id, endpoint FROM deliveries WHERE state = 'pending' AND next_at <= ? AND cause NOT IN ('ping', 'resend') ORDER BY next_at LIMIT ?`,
		flow.Millis(now), limit)
}

// DueThere are those of one endpoint.
func (r Reader) DueThere(ctx context.Context, to flow.EndpointID, now time.Time, limit int) ([]Due, error) {
	return r.due(ctx, `SELECT id, endpoint FROM deliveries WHERE state = 'pending' AND endpoint = ? AND next_at <= ? AND cause NOT IN ('ping', 'resend')
 ORDER BY next_at LIMIT ?`, to, flow.Millis(now), limit)
}

// awaitedRead is how many deliveries DueAwaited looks at.
const awaitedRead = 4096

const dueAwaitedSQL = `SELECT id, endpoint FROM (SELECT id, endpoint, ROW_NUMBER() OVER (PARTITION BY endpoint ORDER BY next_at, id) AS place FROM
 (SELECT id, endpoint, next_at FROM deliveries WHERE state = 'pending' AND cause IN ('ping', 'resend') AND next_at <= ? ORDER BY next_at LIMIT ?) AS due)
 AS placed ORDER BY place, id LIMIT ?`

// DueAwaited are deliveries that are due and that somebody waits for: the first
// of each endpoint, then the second of each, and so on.
func (r Reader) DueAwaited(ctx context.Context, now time.Time, limit int) ([]Due, error) {
	return r.due(ctx, dueAwaitedSQL, flow.Millis(now), awaitedRead, limit)
}

func (r Reader) due(ctx context.Context, query string, args ...any) ([]Due, error) {
	return rowsOf(ctx, r.run, "read what is due", query, args, func(scan scanner) (d Due, err error) {
		err = scan(&d.ID, &d.Endpoint)
		return d, err
	})
}

// thereSQL goes from one endpoint with deliveries in a state to the next by the
// index: however many one of them has, it costs one step.
const thereSQL = `WITH RECURSIVE there (endpoint) AS (SELECT MIN(endpoint) FROM deliveries WHERE state = '{{state}}' AND endpoint > ?
 UNION ALL SELECT (SELECT MIN(d.endpoint) FROM deliveries d WHERE d.state = '{{state}}' AND d.endpoint > there.endpoint)
 FROM there WHERE there.endpoint IS NOT NULL) `

const dueEndpointsSQL = `SELECT endpoint FROM there WHERE endpoint IS NOT NULL
 AND EXISTS (SELECT 1 FROM deliveries d WHERE d.state = 'pending' AND d.endpoint = there.endpoint AND d.next_at <= ?) LIMIT ?`

// DueEndpoints are the endpoints that something is due for, by their ids, behind
// one of them.
func (r Reader) DueEndpoints(ctx context.Context, after flow.EndpointID, now time.Time, limit int) ([]flow.EndpointID, error) {
	return r.endpointIDs(ctx, strings.ReplaceAll(thereSQL, "{{state}}", flow.DeliveryPending)+dueEndpointsSQL, after, flow.Millis(now), limit)
}

const forgottenSQL = `SELECT there.endpoint FROM there JOIN endpoints e ON e.id = there.endpoint
 WHERE e.status = 'ENABLED' AND e.deleted_at = 0 AND e.wake_at = 0 LIMIT ?`

// ForgottenEndpoints are endpoints that are enabled and have deliveries held
// that nobody would look at: what was held in the moment in which others were
// let go.
func (r Reader) ForgottenEndpoints(ctx context.Context, limit int) ([]flow.EndpointID, error) {
	return r.endpointIDs(ctx, strings.ReplaceAll(thereSQL, "{{state}}", flow.DeliveryHeld)+forgottenSQL, "", limit)
}

func (r Reader) endpointIDs(ctx context.Context, query string, args ...any) ([]flow.EndpointID, error) {
	return valuesOf[flow.EndpointID](ctx, r.run, "read endpoints with deliveries", query, args...)
}

const claimDeliveriesSQL = `UPDATE deliveries SET next_at = ?, token = ? WHERE id IN ({{ids}}) AND state = 'pending' AND next_at <= ?
 RETURNING ` + deliveryColumns

// claimManySQL is claimDeliveriesSQL for PostgreSQL: what another process is about
// to take is skipped. Each delivery is looked up by its id before anything else is
// asked of it (OFFSET keeps the two apart): while a backlog grows, the planner takes
// what is due for a few rows, and would read all of it for each claim.
const claimManySQL = `UPDATE deliveries SET next_at = ?, token = ? WHERE id IN
 (SELECT d.id FROM ({{ids}}) AS named (id) CROSS JOIN LATERAL
 (SELECT o.id, o.state, o.next_at FROM deliveries o WHERE o.id = named.id OFFSET 0 FOR UPDATE SKIP LOCKED) AS d
 WHERE d.state = 'pending' AND d.next_at <= ?) RETURNING ` + deliveryColumns

// ClaimDeliveries takes those of some deliveries that are due, until ends. The
// lease must be a name that was never used before. What its endpoint is not to be
// sent now is put where it belongs instead. The oldest come first.
func (t *Tx) ClaimDeliveries(ctx context.Context, lease string, ids []string, now, ends time.Time) ([]flow.Delivery, error) {
	query := claimDeliveriesSQL
	if t.run.dialect == postgresDialect {
		query = claimManySQL
	}
	var list []flow.Delivery
	for part := range t.run.parts(ids) {
		claimed, err := t.deliveries(ctx, strings.Replace(query, "{{ids}}", part.marks, 1), args(flow.Millis(ends), lease, part.args, flow.Millis(now)))
		if err != nil {
			return nil, fmt.Errorf("claim: %w", err)
		}
		sent, err := t.settleAside(ctx, claimed, now)
		if err != nil {
			return nil, err
		}
		list = append(list, sent...)
	}
	// A database answers in whatever order it came upon them. Ids are in that of time.
	slices.SortFunc(list, func(a, b flow.Delivery) int { return strings.Compare(a.ID, b.ID) })
	return list, nil
}

// owed is a delivery and how its endpoint is.
type owed struct {
	flow.Delivery

	to flow.Endpoint
}

const (
	deliveryColumns = `id, event, endpoint, attempts, cause, token`
	deliveriesSQL   = `SELECT ` + deliveryColumns + ` FROM deliveries WHERE `
)

// deliveries reads the deliveries that a statement answers with, then what they
// say, and their endpoints: those are few.
func (r Reader) deliveries(ctx context.Context, query string, args []any) ([]owed, error) {
	var list []owed
	err := r.run.each(ctx, query, args, func(scan scanner) error {
		list = append(list, owed{})
		o := &list[len(list)-1]
		return scan(&o.ID, &o.Event, &o.Endpoint, &o.Attempts, &o.Cause, &o.Lease)
	})
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	events, err := r.told(ctx, list)
	if err != nil {
		return nil, err
	}
	endpoints, err := r.endpointsOf(ctx, list)
	if err != nil {
		return nil, err
	}
	for i := range list {
		o := &list[i]
		e := events[o.Event]
		o.Body, o.Session, o.to = e.Body, e.Session, endpoints[o.Endpoint]
		o.URL, o.Pace, o.Project = o.to.URL, o.to.MaxPerSecond, o.to.Project
	}
	return list, nil
}

// told are the events of some deliveries: what those say, and about which session.
func (r Reader) told(ctx context.Context, list []owed) (map[flow.EventID]flow.Event, error) {
	ids := make([]string, len(list))
	for i, o := range list {
		ids[i] = string(o.Event)
	}
	events := make(map[flow.EventID]flow.Event, len(list))
	for part := range r.run.parts(ids) {
		err := r.run.each(ctx, `SELECT id, session, body FROM events WHERE id IN (`+part.marks+`)`, part.args, func(scan scanner) error {
			var e flow.Event
			err := scan(&e.ID, &e.Session, &e.Body)
			events[e.ID] = e
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read what deliveries say: %w", err)
		}
	}
	return events, nil
}

// endpointsOf are the endpoints of some deliveries.
func (r Reader) endpointsOf(ctx context.Context, list []owed) (map[flow.EndpointID]flow.Endpoint, error) {
	endpoints := map[flow.EndpointID]flow.Endpoint{}
	var ids []string
	for _, o := range list {
		if _, there := endpoints[o.Endpoint]; !there {
			endpoints[o.Endpoint] = flow.Endpoint{}
			ids = append(ids, string(o.Endpoint))
		}
	}
	for part := range r.run.parts(ids) {
		some, err := r.endpoints(ctx, `SELECT `+endpointColumns+` FROM endpoints WHERE id IN (`+part.marks+`)`, part.args...)
		if err != nil {
			return nil, err
		}
		for _, e := range some {
			endpoints[e.ID] = e
		}
	}
	return endpoints, nil
}

// asideSQL puts a delivery where it belongs. What was asked for by hand is again
// what it was: nothing that was delivered is owed once more. What had never been owed
// before, and was no ping, is owed like any other.
const asideSQL = `UPDATE deliveries SET state = CASE WHEN back_to IN ('delivered', 'cancelled') OR back_to = 'dead' AND (done_at > 0 OR cause = 'ping') THEN back_to ELSE ? END, token = '',
 next_at = CASE WHEN back_to = '' THEN CAST(? AS BIGINT) ELSE back_at END,
 done_at = CASE WHEN done_at = 0 AND (back_to = 'dead' AND cause = 'ping' OR ? = 'cancelled') THEN CAST(? AS BIGINT) ELSE done_at END,
 cause = 'auto', back_to = '', back_at = 0 WHERE id = ?`

// settleAside holds or cancels those of some deliveries that are not to be sent,
// and returns the others.
func (t *Tx) settleAside(ctx context.Context, claimed []owed, now time.Time) ([]flow.Delivery, error) {
	var list []flow.Delivery
	for _, o := range claimed {
		state := o.to.Takes(o.Delivery)
		if state == flow.DeliveryPending {
			o.Secrets = o.to.Signing(now)
			list = append(list, o.Delivery)
			continue
		}
		err := t.run.put(ctx, asideSQL, state, flow.Millis(now), state, flow.Millis(now), o.ID)
		if err != nil {
			return nil, fmt.Errorf("put delivery %s aside: %w", o.ID, err)
		}
	}
	return list, nil
}

// GiveBackDeliveries makes deliveries due at a time that were taken and not tried.
func (t *Tx) GiveBackDeliveries(ctx context.Context, lease string, ids []string, due time.Time) error {
	for part := range t.run.parts(ids) {
		err := t.run.put(ctx, `UPDATE deliveries SET next_at = ?, token = '' WHERE id IN (`+part.marks+`) AND state = 'pending' AND token = ?`,
			args(flow.Millis(due), part.args, lease)...)
		if err != nil {
			return fmt.Errorf("give deliveries back: %w", err)
		}
	}
	return nil
}
