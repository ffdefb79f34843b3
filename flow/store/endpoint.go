package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"till/flow"
)

// Endpoint reads an endpoint of a project. One that was deleted is not there any
// more. Errors: resource_not_found.
func (r Reader) Endpoint(ctx context.Context, project flow.ProjectID, id flow.EndpointID) (flow.Endpoint, error) {
	all, err := r.Endpoints(ctx, project) // few: there is a bound
	if err != nil {
		return flow.Endpoint{}, err
	}
	for _, e := range all {
		if e.ID == id {
			return e, nil
		}
	}
	return flow.Endpoint{}, missing("webhook endpoint", string(id))
}

const changeEndpointSQL = `UPDATE endpoints SET url = ?, description = ?, events = ?, max_per_second = ?, version = version + 1 WHERE id = ? AND version = ? AND deleted_at = 0`

// ChangeEndpoint keeps what a merchant changed of an endpoint, whose Version is
// the one that was read: where it is, what it wants, how fast, and their note.
func (t *Tx) ChangeEndpoint(ctx context.Context, e *flow.Endpoint) error {
	texts, err := jsonTexts(e.Events)
	if err != nil {
		return fmt.Errorf("change endpoint %s: %w", e.ID, err)
	}
	return t.changed(ctx, e, changeEndpointSQL, e.URL, e.Description, texts[0], e.MaxPerSecond)
}

const changeSecretsSQL = `UPDATE endpoints SET secrets = ?, retiring = ?, version = version + 1 WHERE id = ? AND version = ? AND deleted_at = 0`

// ChangeSecrets keeps the secrets of an endpoint, whose Version is the one that
// was read, and until when they sign.
func (t *Tx) ChangeSecrets(ctx context.Context, e *flow.Endpoint) error {
	texts, err := jsonTexts(e.Secrets, millis(e.Retiring))
	if err == nil {
		texts[0], err = t.seal(ctx, secretsOf(string(e.ID)), texts[0])
	}
	if err != nil {
		return fmt.Errorf("change the secrets of endpoint %s: %w", e.ID, err)
	}
	return t.changed(ctx, e, changeSecretsSQL, texts[0], texts[1])
}

// changed runs a change of an endpoint that nobody else may have changed since it
// was read.
func (t *Tx) changed(ctx context.Context, e *flow.Endpoint, query string, to ...any) error {
	n, err := t.run.exec(ctx, query, append(to, e.ID, e.Version)...)
	if err != nil {
		return fmt.Errorf("change endpoint %s: %w", e.ID, err)
	}
	if n != 1 {
		return flow.Refuse(flow.CodeStorage, "Endpoint %s was changed by somebody else at the same time. Try again.", e.ID)
	}
	e.Version++
	return nil
}

// millis are times as they are kept.
func millis(times []time.Time) []int64 {
	out := make([]int64, 0, len(times))
	for _, t := range times {
		out = append(out, flow.Millis(t))
	}
	return out
}

// readSecrets reads an endpoint's secrets, and until when they sign. What cannot
// be opened is none: nothing is sent to such an endpoint, but the payment that it
// would be told of is kept all the same.
func (r runner) readSecrets(e *flow.Endpoint, id flow.EndpointID, secrets, retiring string) error {
	var ends []int64
	plain, err := r.keys.open(secretsOf(string(id)), secrets)
	if errors.Is(err, ErrKey) {
		plain, err = "[]", nil
	}
	if err != nil {
		return err
	}
	if err := fromTexts([]string{plain, retiring}, &e.Secrets, &ends); err != nil {
		return err
	}
	for _, ms := range ends {
		e.Retiring = append(e.Retiring, flow.FromMillis(ms))
	}
	return nil
}

const enableEndpointSQL = `UPDATE endpoints SET status = 'ENABLED', disabled_reason = '', disabled_at = 0, failures = 0, failing_since = 0,
 failed_at = 0, open_since = 0, probes = 0, wake_at = ? WHERE id = ? AND deleted_at = 0`

// EnableEndpoint starts an endpoint anew, as if it had never failed. What it is
// held is looked at from now on.
func (t *Tx) EnableEndpoint(ctx context.Context, id flow.EndpointID, now time.Time) error {
	if err := t.run.put(ctx, enableEndpointSQL, flow.Millis(now), id); err != nil {
		return fmt.Errorf("enable endpoint %s: %w", id, err)
	}
	return nil
}

const moveEndpointSQL = `UPDATE endpoints SET failures = 0, failing_since = 0, failed_at = 0, open_since = 0, probes = 0, wake_at = ?
 WHERE id = ? AND status = 'ENABLED' AND deleted_at = 0`

// MoveEndpoint forgets how an endpoint did where it was before, if it is enabled.
// What it is held is looked at from now on.
func (t *Tx) MoveEndpoint(ctx context.Context, id flow.EndpointID, now time.Time) error {
	if err := t.run.put(ctx, moveEndpointSQL, flow.Millis(now), id); err != nil {
		return fmt.Errorf("move endpoint %s: %w", id, err)
	}
	return nil
}

// DeleteEndpoint takes an endpoint away. What was sent to it stays to be read.
func (t *Tx) DeleteEndpoint(ctx context.Context, id flow.EndpointID, now time.Time) error {
	if err := t.run.put(ctx, `UPDATE endpoints SET deleted_at = ?, wake_at = 0 WHERE id = ?`, flow.Millis(now), id); err != nil {
		return fmt.Errorf("delete endpoint %s: %w", id, err)
	}
	return nil
}
