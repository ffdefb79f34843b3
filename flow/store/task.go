package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"till/flow"
)

// GivenUp is when a task is due that nobody should try again by itself. Its row
// stays and shows what was given up; asked for anew, it is done anew.
var GivenUp = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Work is a task that this process holds the lease of.
type Work struct {
	flow.Task

	Gen   int64 // of the asking or the claim that it answers
	Fresh bool  // handed over by the commit that asked for it: never begun before
	Sole  bool  // nothing of that kind was owed to its subject when it was asked for
}

const addTaskSQL = `INSERT INTO tasks (kind, subject, due, token, gen, attempts) VALUES (?, ?, ?, ?, ?, 0)
 ON CONFLICT (kind, subject) DO UPDATE SET due = CASE WHEN excluded.token <> '' OR tasks.token <> '' OR excluded.due < tasks.due THEN excluded.due ELSE tasks.due END,
 token = excluded.token, gen = tasks.gen + 1, attempts = 0
 RETURNING gen`

// firstGen is what the askings of a row are counted from. Whoever was asleep for
// longer than its lease may still hold a row that is gone: one that comes back
// must not be taken for it, so each begins somewhere else.
func firstGen() int64 { return rand.Int64N(1 << 62) } //nolint:gosec // nothing is secret here

// AddTask keeps that work is owed. With a lease it is born leased until ends;
// the work is then handed over by the caller after the commit. Asked for while it is being done, it is done again.
func (t *Tx) AddTask(ctx context.Context, task flow.Task, lease string, ends time.Time) (Work, error) {
	due := task.Due
	if lease != "" {
		due = ends
	}
	w, first := Work{Task: task}, firstGen()
	if _, err := t.run.one(ctx, addTaskSQL, []any{task.Kind, task.Subject, flow.Millis(due), lease, first}, &w.Gen); err != nil {
		return Work{}, fmt.Errorf("keep the task %s %s: %w", task.Kind, task.Subject, err)
	}
	w.Sole = w.Gen == first
	return w, nil
}

// A session that is over is work like any other from then on. Those that were
// closed before are only taken note of. It is made work here but once, so that all
// may begin with the same gen.
const (
	overSQL = `(SELECT id, status, expires_at FROM sessions WHERE swept = 0 AND expires_at <= ? ORDER BY expires_at, id LIMIT ?) AS over`

	oweOverSQL = `INSERT INTO tasks (kind, subject, due, token, gen, attempts)
 SELECT 'session.expire', id, expires_at, '', 1, 0 FROM ` + overSQL + ` WHERE status IN ('PENDING', 'PROCESSING') ON CONFLICT DO NOTHING`

	sweepSQL = `UPDATE sessions SET swept = 1 WHERE id IN (SELECT id FROM ` + overSQL + `)`
)

// Sweep makes work of what is over: sessions whose time has come to its end, at
// most limit of them.
func (t *Tx) Sweep(ctx context.Context, now time.Time, limit int) error {
	for _, query := range []string{oweOverSQL, sweepSQL} {
		if err := t.run.put(ctx, query, flow.Millis(now), limit); err != nil {
			return fmt.Errorf("sweep sessions that are over: %w", err)
		}
	}
	return nil
}

const claimTasksSQL = `UPDATE tasks SET due = ?, token = ?, gen = gen + 1 WHERE due <= ? AND (kind, subject) IN
 (SELECT kind, subject FROM tasks WHERE due <= ? ORDER BY due LIMIT ?) RETURNING kind, subject, gen, attempts`

// claimFreeSQL is claimTasksSQL for PostgreSQL: what another process is about to change
// is skipped, and looked for again. Waited for, it is often one that waits for what is
// claimed here, and each time PostgreSQL takes a second to see that and to refuse one
// of the two, in which neither process writes anything.
const claimFreeSQL = `WITH free AS (SELECT kind, subject FROM tasks WHERE due <= ? ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED)
 UPDATE tasks SET due = ?, token = ?, gen = gen + 1 WHERE (kind, subject) IN (SELECT kind, subject FROM free) RETURNING kind, subject, gen, attempts`

// ClaimTasks takes work that is due, until ends. The lease must be a name that
// was never used before. Whoever held it until now can no longer end it or put it
// off.
func (t *Tx) ClaimTasks(ctx context.Context, lease string, now, ends time.Time, limit int) ([]Work, error) {
	query, args := claimTasksSQL, []any{flow.Millis(ends), lease, flow.Millis(now), flow.Millis(now), limit}
	if t.run.dialect == postgresDialect {
		query, args = claimFreeSQL, []any{flow.Millis(now), limit, flow.Millis(ends), lease}
	}
	return rowsOf(ctx, t.run, "claim tasks", query, args, func(scan scanner) (w Work, err error) {
		err = scan(&w.Kind, &w.Subject, &w.Gen, &w.Attempts)
		return w, err
	})
}

// EndTask drops work that is done, unless it was asked for again meanwhile, or
// taken by somebody else.
func (t *Tx) EndTask(ctx context.Context, w Work) error {
	if err := t.run.put(ctx, `DELETE FROM tasks WHERE kind = ? AND subject = ? AND gen = ?`, w.Kind, w.Subject, w.Gen); err != nil {
		return fmt.Errorf("end the task %s %s: %w", w.Kind, w.Subject, err)
	}
	return nil
}

// PutOffTask makes work due again at a later time, unless it was asked for
// again meanwhile, or taken by somebody else. failed counts the try.
func (t *Tx) PutOffTask(ctx context.Context, w Work, due time.Time, failed bool) error {
	err := t.run.put(ctx, `UPDATE tasks SET due = ?, token = '', attempts = attempts + ? WHERE kind = ? AND subject = ? AND gen = ?`,
		flow.Millis(due), flag(failed), w.Kind, w.Subject, w.Gen)
	if err != nil {
		return fmt.Errorf("put off the task %s %s: %w", w.Kind, w.Subject, err)
	}
	return nil
}

// Next is when work is due next, zero for what is not owed.
type Next struct {
	Task     time.Time
	Over     time.Time // a session's time is over, which becomes a task then
	Delivery time.Time
	Endpoint time.Time // one that is held back is to be looked at
}

// Tasks is when the next task is due, what becomes one then included.
func (n Next) Tasks() time.Time { return earlier(n.Task, n.Over) }

// Deliveries is when the next delivery is due, or an endpoint to be looked at.
func (n Next) Deliveries() time.Time { return earlier(n.Delivery, n.Endpoint) }

// earlier is the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

const nextSQL = `SELECT COALESCE((SELECT MIN(due) FROM tasks), 0), COALESCE((SELECT MIN(expires_at) FROM sessions WHERE swept = 0), 0),
 COALESCE((SELECT MIN(next_at) FROM deliveries WHERE state = 'pending'), 0), COALESCE((SELECT MIN(wake_at) FROM endpoints WHERE wake_at > 0), 0)`

// Next is when work is due next.
func (r Reader) Next(ctx context.Context) (Next, error) {
	var task, over, delivery, endpoint int64
	if _, err := r.run.one(ctx, nextSQL, nil, &task, &over, &delivery, &endpoint); err != nil {
		return Next{}, fmt.Errorf("read what is due next: %w", err)
	}
	return Next{flow.FromMillis(task), flow.FromMillis(over), flow.FromMillis(delivery), flow.FromMillis(endpoint)}, nil
}

// Then is Next as it will be after the commit. False on PostgreSQL: there a
// transaction may be sent back to its start for what it has only read.
func (t *Tx) Then(ctx context.Context) (next Next, known bool, err error) {
	if t.run.dialect != sqliteDialect {
		return Next{}, false, nil
	}
	next, err = t.Next(ctx)
	return next, err == nil, err
}

// FreeLeases makes everything due that some process held when it died. Only a
// process that knows it is alone may do that.
func (t *Tx) FreeLeases(ctx context.Context, now time.Time) error {
	if err := t.run.put(ctx, `UPDATE tasks SET due = ?, token = '' WHERE token <> ''`, flow.Millis(now)); err != nil {
		return fmt.Errorf("free tasks: %w", err)
	}
	if err := t.run.put(ctx, `UPDATE deliveries SET next_at = ?, token = '' WHERE state = 'pending' AND token <> ''`, flow.Millis(now)); err != nil {
		return fmt.Errorf("free deliveries: %w", err)
	}
	return nil
}
