package store

import (
	"context"
	"fmt"

	"till/flow"
)

// AddAccount keeps an account with its first project and keys. It returns
// false, and keeps nothing, when the e-mail address is taken.
func (t *Tx) AddAccount(ctx context.Context, a flow.Account, p flow.Project, keys []flow.Key) (bool, error) {
	n, err := t.run.exec(ctx, `INSERT INTO accounts (id, email, password_hash, business, created_at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		a.ID, a.Email, a.PasswordHash, a.Business, flow.Millis(a.CreatedAt))
	if err != nil || n == 0 {
		return false, wrapAccount(a.ID, err)
	}
	if _, err := t.run.exec(ctx, `INSERT INTO projects (id, account, name, created_at) VALUES (?, ?, ?, ?)`,
		p.ID, p.Account, p.Name, flow.Millis(p.CreatedAt)); err != nil {
		return false, wrapAccount(a.ID, err)
	}
	for _, k := range keys {
		if _, err := t.run.exec(ctx, `INSERT INTO keys (id, project, environment, kind, hash, hint, created_at, expires_at, revoked_at)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, k.ID, k.Project, k.Environment, k.Kind, k.Hash, k.Hint,
			flow.Millis(k.CreatedAt), flow.Millis(k.ExpiresAt), flow.Millis(k.RevokedAt)); err != nil {
			return false, wrapAccount(a.ID, err)
		}
	}
	return true, nil
}

func wrapAccount(id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("keep account %s: %w", id, err)
}

// EmailTaken says whether an account with this address exists.
func (r Reader) EmailTaken(ctx context.Context, email string) (bool, error) {
	var one int
	found, err := r.run.one(ctx, `SELECT 1 FROM accounts WHERE email = ?`, []any{email}, &one)
	if err != nil {
		return false, fmt.Errorf("look an account up: %w", err)
	}
	return found, nil
}

// KeyByHash reads a key and its project; found is false for an unknown one.
func (r Reader) KeyByHash(ctx context.Context, hash string) (k flow.Key, p flow.Project, found bool, err error) {
	var created, expires, revoked, since int64
	found, err = r.run.one(ctx, `SELECT k.id, k.project, k.environment, k.kind, k.hash, k.hint, k.created_at, k.expires_at, k.revoked_at,
 p.account, p.name, p.created_at FROM keys k JOIN projects p ON p.id = k.project WHERE k.hash = ?`, []any{hash},
		&k.ID, &k.Project, &k.Environment, &k.Kind, &k.Hash, &k.Hint, &created, &expires, &revoked, &p.Account, &p.Name, &since)
	if err != nil {
		return flow.Key{}, flow.Project{}, false, fmt.Errorf("look a key up: %w", err)
	}
	p.ID = k.Project
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, p.CreatedAt = flow.FromMillis(created), flow.FromMillis(expires), flow.FromMillis(revoked), flow.FromMillis(since)
	return k, p, found, nil
}
