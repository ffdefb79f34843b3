package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// AddKey keeps a key.
func (t *Tx) AddKey(ctx context.Context, k flow.Key) error {
	if err := t.run.put(ctx, `INSERT INTO keys (id, project, environment, kind, hash, hint, created_at, expires_at, revoked_at, last_used_at)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, k.ID, k.Project, k.Environment, k.Kind, k.Hash, k.Hint,
		flow.Millis(k.CreatedAt), flow.Millis(k.ExpiresAt), flow.Millis(k.RevokedAt), flow.Millis(k.LastUsedAt)); err != nil {
		return fmt.Errorf("keep key %s: %w", k.ID, err)
	}
	return nil
}

const keyColumns = `k.id, k.project, k.environment, k.kind, k.hash, k.hint, k.created_at, k.expires_at, k.revoked_at, k.last_used_at`

// scanKey reads keyColumns and what follows them.
func scanKey(scan scanner, more ...any) (k flow.Key, err error) {
	var created, expires, revoked, used int64
	err = scan(append([]any{&k.ID, &k.Project, &k.Environment, &k.Kind, &k.Hash, &k.Hint, &created, &expires, &revoked, &used}, more...)...)
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt = flow.FromMillis(created), flow.FromMillis(expires), flow.FromMillis(revoked), flow.FromMillis(used)
	return k, err
}

// KeyByHash reads a key and its project; found is false for an unknown one.
func (r Reader) KeyByHash(ctx context.Context, hash string) (k flow.Key, p flow.Project, found bool, err error) {
	var since int64
	var settings string
	err = r.run.each(ctx, `SELECT `+keyColumns+`, p.account, p.name, p.kyc, p.created_at, p.settings FROM keys k JOIN projects p ON p.id = k.project WHERE k.hash = ?`,
		[]any{hash}, func(scan scanner) error {
			found = true
			k, err = scanKey(scan, &p.Account, &p.Name, &p.KYC, &since, &settings)
			if err != nil {
				return err
			}
			return fromTexts([]string{settings}, &p.Settings)
		})
	if err != nil {
		return flow.Key{}, flow.Project{}, false, fmt.Errorf("look a key up: %w", err)
	}
	p.ID, p.CreatedAt = k.Project, flow.FromMillis(since)
	return k, p, found, nil
}

// Key reads a key of a project. Errors: resource_not_found.
func (r Reader) Key(ctx context.Context, project flow.ProjectID, id string) (flow.Key, error) {
	list, err := r.keys(ctx, ` WHERE k.project = ? AND k.id = ?`, project, id)
	return only(list, err, "key", id)
}

// Keys reads a project's keys, newest first, from before an id on; an empty one
// is the beginning.
func (r Reader) Keys(ctx context.Context, project flow.ProjectID, before string, limit int) ([]flow.Key, error) {
	if before == "" {
		return r.keys(ctx, ` WHERE k.project = ? ORDER BY k.id DESC LIMIT ?`, project, limit)
	}
	return r.keys(ctx, ` WHERE k.project = ? AND k.id < ? ORDER BY k.id DESC LIMIT ?`, project, before, limit)
}

// WorkingKey reads the newest of a project's keys of a kind that works at a moment;
// false for none.
func (r Reader) WorkingKey(ctx context.Context, project flow.ProjectID, env flow.Environment, kind flow.KeyKind, now time.Time) (flow.Key, bool, error) {
	list, err := r.keys(ctx, ` WHERE k.project = ? AND k.environment = ? AND k.kind = ? AND k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > ?)
 ORDER BY k.id DESC LIMIT 1`, project, env, kind, flow.Millis(now))
	if err != nil || len(list) == 0 {
		return flow.Key{}, false, err
	}
	return list[0], true, nil
}

func (r Reader) keys(ctx context.Context, where string, args ...any) ([]flow.Key, error) {
	return rowsOf(ctx, r.run, "read keys", `SELECT `+keyColumns+` FROM keys k`+where, args, func(scan scanner) (flow.Key, error) { return scanKey(scan) })
}

// CountKeys says how many keys of a project work at a moment.
func (r Reader) CountKeys(ctx context.Context, project flow.ProjectID, now time.Time) (n int, err error) {
	_, err = r.run.one(ctx, `SELECT COUNT(*) FROM keys WHERE project = ? AND revoked_at = 0 AND (expires_at = 0 OR expires_at > ?)`,
		[]any{project, flow.Millis(now)}, &n)
	if err != nil {
		return 0, fmt.Errorf("count keys: %w", err)
	}
	return n, nil
}

// EndKey keeps when a key expires and when it was revoked.
func (t *Tx) EndKey(ctx context.Context, k flow.Key) error {
	n, err := t.run.exec(ctx, `UPDATE keys SET expires_at = ?, revoked_at = ? WHERE project = ? AND id = ?`,
		flow.Millis(k.ExpiresAt), flow.Millis(k.RevokedAt), k.Project, k.ID)
	if err != nil {
		return fmt.Errorf("end key %s: %w", k.ID, err)
	}
	if n == 0 {
		return missing("key", k.ID)
	}
	return nil
}

// NoteKeyUse keeps when keys, by id, were last used. What is known to be
// later stays.
func (t *Tx) NoteKeyUse(ctx context.Context, used map[string]time.Time) error {
	for id, at := range used {
		if err := t.run.put(ctx, `UPDATE keys SET last_used_at = ? WHERE id = ? AND last_used_at < ?`,
			flow.Millis(at), id, flow.Millis(at)); err != nil {
			return fmt.Errorf("note the use of key %s: %w", id, err)
		}
	}
	return nil
}
