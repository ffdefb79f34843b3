package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

// AddPerson keeps somebody who may log in. Who was shut out of the same account
// comes back as somebody new. It returns false, and keeps nothing, when the e-mail
// address is taken, by an account's owner too.
func (t *Tx) AddPerson(ctx context.Context, p flow.Person) (bool, error) {
	n, err := t.run.exec(ctx, `INSERT INTO people (id, account, email, password_hash, role, created_at, ended_at)
 SELECT ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM accounts WHERE email = ?) ON CONFLICT (email) DO UPDATE SET
 id = excluded.id, password_hash = excluded.password_hash, role = excluded.role, created_at = excluded.created_at, ended_at = 0
 WHERE people.account = excluded.account AND people.ended_at > 0`,
		p.ID, p.Account, p.Email, p.PasswordHash, p.Role, flow.Millis(p.CreatedAt), flow.Millis(p.EndedAt), p.Email)
	if err != nil {
		return false, fmt.Errorf("keep person %s: %w", p.ID, err)
	}
	return n > 0, nil
}

const personColumns = `SELECT id, account, email, password_hash, role, created_at, ended_at FROM people`

func (r Reader) people(ctx context.Context, where string, args ...any) ([]flow.Person, error) {
	return rowsOf(ctx, r.run, "read people", personColumns+where, args, func(scan scanner) (p flow.Person, err error) {
		var created, ended int64
		err = scan(&p.ID, &p.Account, &p.Email, &p.PasswordHash, &p.Role, &created, &ended)
		p.CreatedAt, p.EndedAt = flow.FromMillis(created), flow.FromMillis(ended)
		return p, err
	})
}

// PersonByEmail reads somebody who may log in; found is false for nobody.
func (r Reader) PersonByEmail(ctx context.Context, email string) (p flow.Person, found bool, err error) {
	return first(r.people(ctx, ` WHERE email = ?`, email))
}

// People reads who may log in for an account ("" for operators), oldest first, and
// behind them who was shut out.
func (r Reader) People(ctx context.Context, account string, limit int) ([]flow.Person, error) {
	return r.people(ctx, ` WHERE account = ? ORDER BY CASE WHEN ended_at = 0 THEN 0 ELSE 1 END, id LIMIT ?`, account, limit)
}

// EndPerson shuts somebody of an account out and ends their visits. It returns
// false for nobody.
func (t *Tx) EndPerson(ctx context.Context, account, id string, at time.Time) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE people SET ended_at = ? WHERE id = ? AND account = ? AND ended_at = 0`, flow.Millis(at), id, account)
	if err == nil && n > 0 {
		err = t.run.put(ctx, `UPDATE visits SET ended_at = ? WHERE person = ? AND ended_at = 0`, flow.Millis(at), id)
	}
	if err != nil {
		return false, fmt.Errorf("shut person %s out: %w", id, err)
	}
	return n > 0, nil
}

// ChangePassword keeps another password of whoever a visit is of, and ends every
// other login with the old one, an owner's dashboard tokens too. It returns false
// where the password is not the old one any more.
func (t *Tx) ChangePassword(ctx context.Context, v flow.Visit, old, to string, at time.Time) (bool, error) {
	query, id := `UPDATE people SET password_hash = ? WHERE id = ? AND password_hash = ? AND ended_at = 0`, v.Person
	if v.Person == "" {
		query, id = `UPDATE accounts SET password_hash = ? WHERE id = ? AND password_hash = ?`, v.Account
	}
	n, err := t.run.exec(ctx, query, to, id, old)
	if err == nil && n > 0 {
		err = t.run.put(ctx, `UPDATE visits SET ended_at = ? WHERE account = ? AND person = ? AND role = ? AND hash <> ? AND ended_at = 0`,
			flow.Millis(at), v.Account, v.Person, v.Role, v.Hash)
	}
	if err == nil && n > 0 && v.Person == "" {
		err = t.run.put(ctx, `UPDATE tokens SET revoked_at = ? WHERE account = ? AND revoked_at = 0`, flow.Millis(at), v.Account)
	}
	if err != nil {
		return false, fmt.Errorf("change a password: %w", err)
	}
	return n > 0, nil
}

// AddVisit keeps a login to the console. Those of the same person that are over
// are dropped, and the oldest beyond most.
func (t *Tx) AddVisit(ctx context.Context, v flow.Visit, most int) error {
	err := t.run.put(ctx, `DELETE FROM visits WHERE email = ? AND (expires_at < ? OR hash NOT IN
 (SELECT hash FROM visits WHERE email = ? ORDER BY created_at DESC, hash LIMIT ?))`, v.Email, flow.Millis(v.CreatedAt), v.Email, most-1)
	if err == nil {
		err = t.run.put(ctx, `INSERT INTO visits (hash, account, person, email, role, created_at, expires_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			v.Hash, v.Account, v.Person, v.Email, v.Role, flow.Millis(v.CreatedAt), flow.Millis(v.ExpiresAt), flow.Millis(v.EndedAt))
	}
	if err != nil {
		return fmt.Errorf("keep a visit: %w", err)
	}
	return nil
}

// Visit reads a login to the console; found is false for an unknown one.
func (r Reader) Visit(ctx context.Context, hash string) (v flow.Visit, found bool, err error) {
	var created, expires, ended int64
	found, err = r.run.one(ctx, `SELECT hash, account, person, email, role, created_at, expires_at, ended_at FROM visits WHERE hash = ?`, []any{hash},
		&v.Hash, &v.Account, &v.Person, &v.Email, &v.Role, &created, &expires, &ended)
	if err != nil {
		return flow.Visit{}, false, fmt.Errorf("look a visit up: %w", err)
	}
	v.CreatedAt, v.ExpiresAt, v.EndedAt = flow.FromMillis(created), flow.FromMillis(expires), flow.FromMillis(ended)
	return v, found, nil
}

// EndVisit ends a login to the console.
func (t *Tx) EndVisit(ctx context.Context, hash string, at time.Time) error {
	if err := t.run.put(ctx, `UPDATE visits SET ended_at = ? WHERE hash = ? AND ended_at = 0`, flow.Millis(at), hash); err != nil {
		return fmt.Errorf("end a visit: %w", err)
	}
	return nil
}

// AddAudit keeps what somebody did.
func (t *Tx) AddAudit(ctx context.Context, a flow.Audited) error {
	if err := t.run.put(ctx, `INSERT INTO audit (id, at, actor, role, account, project, environment, action, subject, reason)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, a.ID, flow.Millis(a.At), a.Actor, a.Role, a.Account, a.Project, a.Environment, a.Action, a.Subject,
		a.Reason); err != nil {
		return fmt.Errorf("keep what %s did: %w", a.Action, err)
	}
	return nil
}

// AuditFilter says which rows of the audit log are read: empty fields take all.
type AuditFilter struct {
	Account string // of a merchant
	Actor   string
	Action  string // empty takes what people did, and not what they looked at
	Subject string
	From    time.Time // at or after this
	Until   time.Time // before this
	Before  string    // id
	Limit   int
}

// Audit reads the audit log, newest first.
func (r Reader) Audit(ctx context.Context, f AuditFilter) ([]flow.Audited, error) {
	where, args := ` WHERE 1 = 1`, []any{}
	for _, c := range []struct{ column, value string }{{`account =`, f.Account}, {`actor =`, f.Actor}, {`subject =`, f.Subject}, {`id <`, f.Before}} {
		if c.value != "" {
			where += ` AND ` + c.column + ` ?`
			args = append(args, c.value)
		}
	}
	if f.Action != "" { // one act, or all of a family: payment is payment.accept too
		where, args = where+` AND (action = ? OR SUBSTR(action, 1, ?) = ?)`, append(args, f.Action, len([]rune(f.Action))+1, f.Action+".")
	} else {
		where += ` AND SUBSTR(action, 1, 5) <> 'look.'`
	}
	span, times := between(`at`, f.From, f.Until)
	where, args = where+span, append(args, times...)
	query := `SELECT id, at, actor, role, account, project, environment, action, subject, reason FROM audit` + where + ` ORDER BY id DESC LIMIT ?`
	return rowsOf(ctx, r.run, "read the audit log", query, append(args, f.Limit), func(scan scanner) (a flow.Audited, err error) {
		var at int64
		err = scan(&a.ID, &at, &a.Actor, &a.Role, &a.Account, &a.Project, &a.Environment, &a.Action, &a.Subject, &a.Reason)
		a.At = flow.FromMillis(at)
		return a, err
	})
}
