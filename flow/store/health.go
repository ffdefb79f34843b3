package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// Place is where an endpoint was when it was tried. What came of that says nothing
// of an endpoint that has moved meanwhile.
type Place struct {
	Endpoint flow.EndpointID
	URL      string
}

// EndpointsAnswered takes note that something was delivered to endpoints: one
// that was only probed is sent everything again.
func (t *Tx) EndpointsAnswered(ctx context.Context, where []Place, now time.Time) error {
	ids, places := make([]string, len(where)), make([]string, len(where))
	for i, at := range where {
		ids[i], places[i] = string(at.Endpoint), string(at.Endpoint)+" "+at.URL
	}
	for part := range t.run.parts(ids) {
		err := t.run.put(ctx, `UPDATE endpoints SET wake_at = CASE WHEN open_since > 0 THEN CAST(? AS BIGINT) ELSE wake_at END,
 failures = 0, failing_since = 0, failed_at = 0, open_since = 0, probes = 0
 WHERE id IN (`+part.marks+`) AND id || ' ' || url IN (`+part.marks+`) AND status = 'ENABLED' AND (failures > 0 OR failing_since > 0 OR open_since > 0)`,
			args(flow.Millis(now), part.args, part.lay(places[:len(part.ids)]))...)
		if err != nil {
			return fmt.Errorf("note that endpoints answer: %w", err)
		}
		places = places[len(part.ids):]
	}
	return nil
}

// EndpointRefused takes note that an endpoint that was only probed answers, though
// with a no: it is sent everything again, and still fails.
func (t *Tx) EndpointRefused(ctx context.Context, id flow.EndpointID, now time.Time) error {
	err := t.run.put(ctx, `UPDATE endpoints SET wake_at = ?, failures = 0, open_since = 0, probes = 0 WHERE id = ? AND status = 'ENABLED' AND open_since > 0`,
		flow.Millis(now), id)
	if err != nil {
		return fmt.Errorf("note that endpoint %s refuses: %w", id, err)
	}
	return nil
}

// Failures are tries of an endpoint that failed in a row, the first of them Since.
// Fresh says that it was the first try of something new: after a long silence that
// begins a new row.
type Failures struct {
	Place

	Count int
	Since time.Time
	Fresh bool
}

// EndpointFailed takes note of failures, and returns the endpoint as it is now: the
// zero Endpoint where it has moved meanwhile.
func (t *Tx) EndpointFailed(ctx context.Context, f Failures, now time.Time) (e flow.Endpoint, err error) {
	quiet := int64(0)
	if f.Fresh {
		quiet = flow.Millis(f.Since.Add(-flow.FailingQuiet))
	}
	list, err := t.endpoints(ctx, `UPDATE endpoints SET failures = CASE WHEN failed_at < ? THEN 0 ELSE failures END + ?,
 failing_since = CASE WHEN failing_since = 0 OR failed_at < ? THEN CAST(? AS BIGINT) ELSE failing_since END, failed_at = ? WHERE id = ? AND url = ?
 RETURNING `+endpointColumns, quiet, f.Count, quiet, flow.Millis(f.Since), flow.Millis(now), f.Endpoint, f.URL)
	if err != nil {
		return e, fmt.Errorf("note that endpoint %s fails: %w", f.Endpoint, err)
	}
	if len(list) > 0 {
		e = list[0]
	}
	return e, nil
}

// EndpointByID is an endpoint of any project, also one that is deleted. Errors:
// resource_not_found.
func (r Reader) EndpointByID(ctx context.Context, id flow.EndpointID) (flow.Endpoint, error) {
	list, err := r.endpoints(ctx, `SELECT `+endpointColumns+` FROM endpoints WHERE id = ?`, string(id))
	return only(list, err, "webhook endpoint", string(id))
}

// OpenEndpoint stops all but one try at a time to an endpoint, the first at a
// time; again also counts a probe that failed.
func (t *Tx) OpenEndpoint(ctx context.Context, id flow.EndpointID, now, probe time.Time, again bool) error {
	err := t.run.put(ctx, `UPDATE endpoints SET open_since = CASE WHEN open_since = 0 THEN CAST(? AS BIGINT) ELSE open_since END, probes = probes + ?, wake_at = ?
 WHERE id = ? AND status = 'ENABLED'`, flow.Millis(now), flag(again), flow.Millis(probe), id)
	if err != nil {
		return fmt.Errorf("hold endpoint %s back: %w", id, err)
	}
	return nil
}

// SpareEndpoint probes an endpoint that is held back no sooner than at a time.
func (t *Tx) SpareEndpoint(ctx context.Context, id flow.EndpointID, probe time.Time) error {
	err := t.run.put(ctx, `UPDATE endpoints SET wake_at = ? WHERE id = ? AND status = 'ENABLED' AND open_since > 0 AND wake_at < ?`,
		flow.Millis(probe), id, flow.Millis(probe))
	if err != nil {
		return fmt.Errorf("spare endpoint %s: %w", id, err)
	}
	return nil
}

// DisableEndpoint ends an enabled endpoint, and says whether it was one. What it
// is still owed is for HoldDeliveries.
func (t *Tx) DisableEndpoint(ctx context.Context, id flow.EndpointID, reason string, now time.Time) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE endpoints SET status = 'DISABLED', disabled_reason = ?, disabled_at = ?, open_since = 0, probes = 0, wake_at = 0
 WHERE id = ? AND status = 'ENABLED'`, reason, flow.Millis(now), id)
	if err != nil {
		return false, fmt.Errorf("disable endpoint %s: %w", id, err)
	}
	return n > 0, nil
}

// HoldDeliveries holds what an endpoint is owed by its schedule, at most so many,
// and says how many that were; whoever claims what is left of them holds it. Held
// rows keep nobody else's due ones waiting. What waits for a later try keeps its
// time: an endpoint that fails by fits and starts must not use the schedule up
// faster than the schedule says.
func (t *Tx) HoldDeliveries(ctx context.Context, to flow.EndpointID, now time.Time, limit int) (int, error) {
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'held', next_at = CASE WHEN token = '' AND next_at > ? THEN next_at ELSE CAST(? AS BIGINT) END, token = ''
 WHERE state = 'pending' AND cause = 'auto' AND id IN (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'pending' AND cause = 'auto' ORDER BY next_at LIMIT ?)`,
		flow.Millis(now), flow.Millis(now), to, limit)
	if err != nil {
		return 0, fmt.Errorf("hold the deliveries of endpoint %s: %w", to, err)
	}
	return int(n), nil
}

// HurryHeld makes what is held for an endpoint wait for no time of its own, at most
// so many, and says how many that were: somebody has mended the endpoint.
func (t *Tx) HurryHeld(ctx context.Context, to flow.EndpointID, now time.Time, limit int) (int, error) {
	n, err := t.run.exec(ctx, `UPDATE deliveries SET next_at = ? WHERE state = 'held' AND id IN
 (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'held' AND next_at > ? ORDER BY next_at LIMIT ?)`, flow.Millis(now), to, flow.Millis(now), limit)
	if err != nil {
		return 0, fmt.Errorf("hurry the deliveries of endpoint %s: %w", to, err)
	}
	return int(n), nil
}

// CancelDeliveries cancels what an endpoint is owed in a state, at most so many,
// and says how many that were. What was delivered or given up before, and is only
// tried once more by hand, is again what it was.
func (t *Tx) CancelDeliveries(ctx context.Context, to flow.EndpointID, state string, now time.Time, limit int) (int, error) {
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = CASE WHEN back_to IN ('delivered', 'dead') THEN back_to ELSE 'cancelled' END, token = '',
 done_at = CASE WHEN back_to = 'delivered' THEN done_at ELSE CAST(? AS BIGINT) END, cause = 'auto', back_to = '', back_at = 0 WHERE state = ? AND id IN
 (SELECT id FROM deliveries WHERE endpoint = ? AND state = ? LIMIT ?)`, flow.Millis(now), state, to, state, limit)
	if err != nil {
		return 0, fmt.Errorf("cancel the deliveries of endpoint %s: %w", to, err)
	}
	return int(n), nil
}

// Wake is an endpoint whose held deliveries are to be looked at.
type Wake struct {
	Endpoint flow.EndpointID
	Open     bool // it is probed
}

// DueWakes are the endpoints to look at, those that waited longest first.
func (r Reader) DueWakes(ctx context.Context, now time.Time, limit int) ([]Wake, error) {
	const query = `SELECT id, open_since FROM endpoints WHERE wake_at > 0 AND wake_at <= ? ORDER BY wake_at LIMIT ?`
	return rowsOf(ctx, r.run, "read the endpoints to look at", query, []any{flow.Millis(now), limit}, func(scan scanner) (w Wake, err error) {
		var open int64
		err = scan(&w.Endpoint, &open)
		w.Open = open > 0
		return w, err
	})
}

// WakeEndpoint looks at an endpoint's held deliveries at a time.
func (t *Tx) WakeEndpoint(ctx context.Context, id flow.EndpointID, at time.Time) error {
	err := t.run.put(ctx, `UPDATE endpoints SET wake_at = ? WHERE id = ? AND status = 'ENABLED' AND deleted_at = 0`, flow.Millis(at), id)
	if err != nil {
		return fmt.Errorf("wake endpoint %s: %w", id, err)
	}
	return nil
}

// take is who looks at an endpoint that is due for it: one process, until the
// next time.
func (t *Tx) take(ctx context.Context, id flow.EndpointID, open bool, now, next time.Time) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE endpoints SET wake_at = ? WHERE id = ? AND wake_at > 0 AND wake_at <= ? AND (open_since > 0) = (? = 1)`,
		flow.Millis(next), id, flow.Millis(now), flag(open))
	if err != nil {
		return false, fmt.Errorf("take endpoint %s: %w", id, err)
	}
	return n > 0, nil
}

// probeSQL takes what is held and was never tried, the newest of that first: it is
// what a merchant waits for now, and must not wait behind what the endpoint refused
// again and again. Then comes what is due for its next try first.
const probeSQL = `UPDATE deliveries SET state = 'pending', token = ?, next_at = ? WHERE state = 'held' AND id = COALESCE(
 (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'held' AND attempts = 0 ORDER BY created_at DESC, id DESC LIMIT 1),
 (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'held' ORDER BY next_at LIMIT 1))`

// Probe takes one held delivery of an endpoint, until ends; false where another
// process was faster, or nothing is held. Then the endpoint is sent what comes
// next, and the first failure holds it back again.
func (t *Tx) Probe(ctx context.Context, id flow.EndpointID, lease string, now, ends time.Time) (d flow.Delivery, found bool, err error) {
	if ours, err := t.take(ctx, id, true, now, ends); err != nil || !ours {
		return d, false, err
	}
	if err = t.run.put(ctx, probeSQL, lease, flow.Millis(ends), id, id); err != nil {
		return d, false, fmt.Errorf("probe endpoint %s: %w", id, err)
	}
	list, err := t.deliveries(ctx, deliveriesSQL+`endpoint = ? AND state = 'pending' AND token = ?`, []any{id, lease})
	if err != nil {
		return d, false, err
	}
	if len(list) == 0 { // where somebody else took it meanwhile and more is held, the next probe is of that
		err = t.run.put(ctx, `UPDATE endpoints SET open_since = 0, wake_at = 0 WHERE id = ?
 AND NOT EXISTS (SELECT 1 FROM deliveries WHERE endpoint = ? AND state = 'held')`, id, id)
		return d, false, err
	}
	d = list[0].Delivery
	d.Secrets, d.Probe = list[0].to.Signing(now), true
	return d, true, nil
}

// Release lets held deliveries of an endpoint go, at most so many, each due at its
// own time and not before now, and is to be asked again at a time while there are
// more. While as many are due already, it waits for those.
func (t *Tx) Release(ctx context.Context, id flow.EndpointID, now, again time.Time, limit int) (int, error) {
	if ours, err := t.take(ctx, id, false, now, again); err != nil || !ours {
		return 0, err
	}
	due, err := t.DueThere(ctx, id, now, limit)
	if err != nil || len(due) >= limit {
		return 0, err
	}
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'pending', token = '', next_at = CASE WHEN next_at > ? THEN next_at ELSE CAST(? AS BIGINT) END
 WHERE state = 'held' AND id IN (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'held' ORDER BY next_at LIMIT ?)`, flow.Millis(now), flow.Millis(now), id, limit)
	if err == nil && n < int64(limit) {
		err = t.run.put(ctx, `UPDATE endpoints SET wake_at = 0 WHERE id = ?`, id)
	}
	if err != nil {
		return 0, fmt.Errorf("release the deliveries of endpoint %s: %w", id, err)
	}
	return int(n), nil
}

// BuryHeld ends those of an endpoint's held deliveries that were made before a
// time, at most so many, oldest first.
func (t *Tx) BuryHeld(ctx context.Context, id flow.EndpointID, made, now time.Time, limit int) (int, error) {
	n, err := t.run.exec(ctx, `UPDATE deliveries SET state = 'dead', next_at = 0, done_at = ?, cause = 'auto', back_to = '', back_at = 0
 WHERE state = 'held' AND id IN (SELECT id FROM deliveries WHERE endpoint = ? AND state = 'held' AND created_at < ? ORDER BY created_at, id LIMIT ?)`,
		flow.Millis(now), id, flow.Millis(made), limit)
	if err != nil {
		return 0, fmt.Errorf("bury the deliveries of endpoint %s: %w", id, err)
	}
	return int(n), nil
}
