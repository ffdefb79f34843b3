package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"till/flow"
)

// AddAccount keeps an account with its first project and keys. It returns
// false, and keeps nothing, when the e-mail address is taken.
func (t *Tx) AddAccount(ctx context.Context, a flow.Account, p flow.Project, keys []flow.Key) (bool, error) {
	n, err := t.run.exec(ctx, `INSERT INTO accounts (id, email, password_hash, business, created_at)
 SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM people WHERE email = ?) ON CONFLICT DO NOTHING`,
		a.ID, a.Email, a.PasswordHash, a.Business, flow.Millis(a.CreatedAt), a.Email)
	if err != nil {
		return false, fmt.Errorf("keep account %s: %w", a.ID, err)
	}
	if n == 0 {
		return false, nil
	}
	if err := t.AddProject(ctx, p); err != nil {
		return false, err
	}
	for _, k := range keys {
		if err := t.AddKey(ctx, k); err != nil {
			return false, err
		}
	}
	return true, nil
}

// EmailTaken says whether somebody logs in with this address.
func (r Reader) EmailTaken(ctx context.Context, email string) (bool, error) {
	var one int
	found, err := r.run.one(ctx, `SELECT 1 FROM accounts WHERE email = ? UNION ALL SELECT 1 FROM people WHERE email = ? LIMIT 1`, []any{email, email}, &one)
	if err != nil {
		return false, fmt.Errorf("look an account up: %w", err)
	}
	return found, nil
}

// AccountByEmail reads an account; found is false where there is none.
func (r Reader) AccountByEmail(ctx context.Context, email string) (a flow.Account, found bool, err error) {
	return r.account(ctx, "email", email)
}

// Account reads an account. Error: resource_not_found.
func (r Reader) Account(ctx context.Context, id string) (flow.Account, error) {
	a, found, err := r.account(ctx, "id", id)
	if err == nil && !found {
		err = missing("account", id)
	}
	return a, err
}

// account reads by a column, whose name is the program's own word.
func (r Reader) account(ctx context.Context, column, value string) (a flow.Account, found bool, err error) {
	var created int64
	found, err = r.run.one(ctx, `SELECT id, email, password_hash, business, created_at FROM accounts WHERE `+column+` = ?`, []any{value},
		&a.ID, &a.Email, &a.PasswordHash, &a.Business, &created)
	if err != nil {
		return flow.Account{}, false, fmt.Errorf("look an account up: %w", err)
	}
	a.CreatedAt = flow.FromMillis(created)
	return a, found, nil
}

// AddToken keeps a dashboard token. Those of the account that are over for as long as
// one lasts are dropped, and the oldest beyond most: until then whoever has one is told
// that it is over.
func (t *Tx) AddToken(ctx context.Context, k flow.Token, most int) error {
	err := t.run.put(ctx, `DELETE FROM tokens WHERE account = ? AND (expires_at < ? OR hash NOT IN
 (SELECT hash FROM tokens WHERE account = ? ORDER BY created_at DESC, hash LIMIT ?))`,
		k.Account, flow.Millis(k.CreatedAt.Add(-flow.DashboardLife)), k.Account, most-1)
	if err == nil {
		err = t.run.put(ctx, `INSERT INTO tokens (hash, account, created_at, expires_at, revoked_at) VALUES (?, ?, ?, ?, ?)`,
			k.Hash, k.Account, flow.Millis(k.CreatedAt), flow.Millis(k.ExpiresAt), flow.Millis(k.RevokedAt))
	}
	if err != nil {
		return fmt.Errorf("keep a token of account %s: %w", k.Account, err)
	}
	return nil
}

// TokenByHash reads a dashboard token; found is false for an unknown one.
func (r Reader) TokenByHash(ctx context.Context, hash string) (k flow.Token, found bool, err error) {
	var created, expires, revoked int64
	found, err = r.run.one(ctx, `SELECT hash, account, created_at, expires_at, revoked_at FROM tokens WHERE hash = ?`, []any{hash},
		&k.Hash, &k.Account, &created, &expires, &revoked)
	if err != nil {
		return flow.Token{}, false, fmt.Errorf("look a token up: %w", err)
	}
	k.CreatedAt, k.ExpiresAt, k.RevokedAt = flow.FromMillis(created), flow.FromMillis(expires), flow.FromMillis(revoked)
	return k, found, nil
}

// RevokeToken ends a dashboard token.
func (t *Tx) RevokeToken(ctx context.Context, hash string, at time.Time) error {
	if err := t.run.put(ctx, `UPDATE tokens SET revoked_at = ? WHERE hash = ? AND revoked_at = 0`, flow.Millis(at), hash); err != nil {
		return fmt.Errorf("revoke a token: %w", err)
	}
	return nil
}

// AddProject keeps a project.
func (t *Tx) AddProject(ctx context.Context, p flow.Project) error {
	if err := t.run.put(ctx, `INSERT INTO projects (id, account, name, kyc, created_at) VALUES (?, ?, ?, ?, ?)`,
		p.ID, p.Account, p.Name, cmp.Or(p.KYC, flow.KYCNone), flow.Millis(p.CreatedAt)); err != nil {
		return fmt.Errorf("keep project %s: %w", p.ID, err)
	}
	return nil
}

const projectColumns = `SELECT p.id, p.account, p.name, p.kyc, p.created_at, p.settings FROM projects p`

func scanProject(scan scanner) (p flow.Project, err error) {
	var created int64
	var settings string
	if err = scan(&p.ID, &p.Account, &p.Name, &p.KYC, &created, &settings); err != nil {
		return p, err
	}
	p.CreatedAt = flow.FromMillis(created)
	err = fromTexts([]string{settings}, &p.Settings)
	return p, err
}

// SaveSettings keeps the settings of a project. Errors: resource_not_found.
func (t *Tx) SaveSettings(ctx context.Context, project flow.ProjectID, s flow.Settings) error {
	texts, err := jsonTexts(s)
	if err != nil {
		return fmt.Errorf("keep the settings of %s: %w", project, err)
	}
	n, err := t.run.exec(ctx, `UPDATE projects SET settings = ? WHERE id = ?`, texts[0], project)
	if err != nil {
		return fmt.Errorf("keep the settings of %s: %w", project, err)
	}
	if n == 0 {
		return missing("project", string(project))
	}
	return nil
}

// Project reads a project. Errors: resource_not_found.
func (r Reader) Project(ctx context.Context, id flow.ProjectID) (flow.Project, error) {
	list, err := r.projects(ctx, ` WHERE p.id = ?`, id)
	return only(list, err, "project", string(id))
}

// Projects reads an account's projects, newest first, from before an id on; an
// empty one is the beginning.
func (r Reader) Projects(ctx context.Context, account string, before flow.ProjectID, limit int) ([]flow.Project, error) {
	if before == "" {
		return r.projects(ctx, ` WHERE p.account = ? ORDER BY p.id DESC LIMIT ?`, account, limit)
	}
	return r.projects(ctx, ` WHERE p.account = ? AND p.id < ? ORDER BY p.id DESC LIMIT ?`, account, before, limit)
}

func (r Reader) projects(ctx context.Context, where string, args ...any) ([]flow.Project, error) {
	return rowsOf(ctx, r.run, "read projects", projectColumns+where, args, scanProject)
}

// CountProjects says how many projects an account has.
func (r Reader) CountProjects(ctx context.Context, account string) (n int, err error) {
	if _, err = r.run.one(ctx, `SELECT COUNT(*) FROM projects WHERE account = ?`, []any{account}, &n); err != nil {
		return 0, fmt.Errorf("count projects: %w", err)
	}
	return n, nil
}

// Merchant is a project with whose it is, for operators.
type Merchant struct {
	Project flow.Project
	Account flow.Account // without its password
}

// Merchants reads the projects whose KYC is in a state, "" for any, oldest
// first, from after an id on; an empty one is the beginning.
func (r Reader) Merchants(ctx context.Context, in flow.KYCStatus, after flow.ProjectID, limit int) ([]Merchant, error) {
	where, args := ` WHERE p.id > ?`, []any{after}
	if in != "" {
		where, args = where+` AND p.kyc = ?`, append(args, in)
	}
	return r.merchants(ctx, where+` ORDER BY p.id LIMIT ?`, append(args, limit)...)
}

// Merchant reads a project with whose it is. Errors: resource_not_found.
func (r Reader) Merchant(ctx context.Context, id flow.ProjectID) (Merchant, error) {
	list, err := r.merchants(ctx, ` WHERE p.id = ?`, id)
	return only(list, err, "project", string(id))
}

func (r Reader) merchants(ctx context.Context, where string, args ...any) ([]Merchant, error) {
	query := `SELECT p.id, p.account, p.name, p.kyc, p.created_at, p.settings, a.email, a.business FROM projects p
 JOIN accounts a ON a.id = p.account` + where
	return rowsOf(ctx, r.run, "read merchants", query, args, func(scan scanner) (m Merchant, err error) {
		var created int64
		var settings string
		if err = scan(&m.Project.ID, &m.Project.Account, &m.Project.Name, &m.Project.KYC, &created, &settings, &m.Account.Email, &m.Account.Business); err != nil {
			return m, err
		}
		m.Project.CreatedAt, m.Account.ID = flow.FromMillis(created), m.Project.Account
		err = fromTexts([]string{settings}, &m.Project.Settings)
		return m, err
	})
}
