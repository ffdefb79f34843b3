package store

import (
	"context"
	"fmt"

	"till/flow"
)

// SaveMet keeps that a project met a milestone. The first time counts.
func (t *Tx) SaveMet(ctx context.Context, project flow.ProjectID, m flow.Met) error {
	if err := t.run.put(ctx, `INSERT INTO milestones (project, milestone, at, said_by) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		string(project), string(m.Milestone), flow.Millis(m.At), m.SaidBy); err != nil {
		return fmt.Errorf("keep a milestone of %s: %w", project, err)
	}
	return nil
}

// Milestones reads which milestones a project has met.
func (r Reader) Milestones(ctx context.Context, project flow.ProjectID) (map[flow.Milestone]flow.Met, error) {
	out := map[flow.Milestone]flow.Met{}
	err := r.run.each(ctx, `SELECT milestone, at, said_by FROM milestones WHERE project = ?`, []any{string(project)}, func(scan scanner) error {
		var m flow.Met
		var at int64
		err := scan(&m.Milestone, &at, &m.SaidBy)
		m.At = flow.FromMillis(at)
		out[m.Milestone] = m
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the milestones of %s: %w", project, err)
	}
	return out, nil
}

// HasDelivered says whether an endpoint of a project ever took an event of one of
// these kinds, which is none of Till's own ears.
func (r Reader) HasDelivered(ctx context.Context, project flow.ProjectID, kinds []flow.EventKind) (bool, error) {
	if len(kinds) == 0 {
		return false, nil
	}
	args := []any{string(project)}
	for _, k := range kinds {
		args = append(args, string(k))
	}
	ears := flow.OwnEars()
	for _, description := range ears {
		args = append(args, description)
	}
	var n int
	found, err := r.run.one(ctx, `SELECT 1 FROM events v JOIN deliveries d ON d.event = v.id JOIN endpoints e ON e.id = d.endpoint
 WHERE v.project = ? AND v.kind IN (`+marks(len(kinds))+`) AND d.state = 'delivered' AND e.description NOT IN (`+marks(len(ears))+`) LIMIT 1`, args, &n)
	if err != nil {
		return false, fmt.Errorf("look for what %s took: %w", project, err)
	}
	return found, nil
}

// HasCall says whether an idempotent call of a scope is kept.
func (r Reader) HasCall(ctx context.Context, scope string) (bool, error) {
	var n int
	found, err := r.run.one(ctx, `SELECT 1 FROM calls WHERE scope = ? LIMIT 1`, []any{scope}, &n)
	if err != nil {
		return false, fmt.Errorf("look for an idempotency key of %s: %w", scope, err)
	}
	return found, nil
}
