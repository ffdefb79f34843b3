package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

const verificationColumns = `id, project, api_key, type, fingerprint, mask, purpose, status, first_name, last_name, date_of_birth, reason,
 created_at, due_at, done_at`

const insertVerificationSQL = `INSERT INTO verifications (` + verificationColumns + `)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// AddVerification keeps a look-up that is about to be made.
func (t *Tx) AddVerification(ctx context.Context, v flow.Verification) error {
	err := t.run.put(ctx, insertVerificationSQL, v.ID, v.Project, v.Key, v.Type, v.Fingerprint, v.Mask, v.Purpose, v.Status,
		v.Matches.FirstName, v.Matches.LastName, v.Matches.DateOfBirth, v.Reason, flow.Millis(v.CreatedAt), flow.Millis(v.DueAt), flow.Millis(v.DoneAt))
	if err != nil {
		return fmt.Errorf("keep verification %s: %w", v.ID, err)
	}
	return nil
}

const endVerificationSQL = `UPDATE verifications SET status = ?, first_name = ?, last_name = ?, date_of_birth = ?, reason = ?, done_at = ?
 WHERE id = ? AND status = 'PENDING'`

const insertLookupSQL = `INSERT INTO lookups (verification, project, api_key, type, mask, purpose, at, ended_at, outcome, reason)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// EndVerification keeps how a look-up ended, and the audit row of it. It returns
// false, and keeps nothing, when it had ended before.
func (t *Tx) EndVerification(ctx context.Context, v flow.Verification) (bool, error) {
	n, err := t.run.exec(ctx, endVerificationSQL, v.Status, v.Matches.FirstName, v.Matches.LastName, v.Matches.DateOfBirth, v.Reason,
		flow.Millis(v.DoneAt), v.ID)
	if err != nil || n == 0 {
		return false, wrapVerification(v.ID, err)
	}
	err = t.run.put(ctx, insertLookupSQL, v.ID, v.Project, v.Key, v.Type, v.Mask, v.Purpose, flow.Millis(v.CreatedAt), flow.Millis(v.DoneAt),
		v.Status, v.Reason)
	return err == nil, wrapVerification(v.ID, err)
}

func wrapVerification(id flow.VerificationID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("end verification %s: %w", id, err)
}

// RewritePurposes changes what look-ups of a project were for, where change makes
// something else of it.
func (t *Tx) RewritePurposes(ctx context.Context, project flow.ProjectID, change func(string) string) error {
	for _, table := range []string{"lookups", "verifications"} {
		list, err := rowsOf(ctx, t.run, "read what look-ups were for", `SELECT DISTINCT purpose FROM `+table+` WHERE project = ?`, []any{string(project)},
			func(scan scanner) (purpose string, err error) { return purpose, scan(&purpose) })
		if err != nil {
			return err
		}
		for _, purpose := range list {
			other := change(purpose)
			if other == purpose {
				continue
			}
			if _, err := t.run.exec(ctx, `UPDATE `+table+` SET purpose = ? WHERE project = ? AND purpose = ?`, other, string(project), purpose); err != nil {
				return fmt.Errorf("change what look-ups were for: %w", err)
			}
		}
	}
	return nil
}

// Verification reads a verification. Error: resource_not_found.
func (r Reader) Verification(ctx context.Context, id flow.VerificationID) (flow.Verification, error) {
	list, err := r.verifications(ctx, `WHERE id = ?`, string(id))
	return only(list, err, "verification", string(id))
}

// OverdueVerifications are those that nobody has heard of when their time was
// over, the longest overdue first.
func (r Reader) OverdueVerifications(ctx context.Context, now time.Time, limit int) ([]flow.Verification, error) {
	return r.verifications(ctx, `WHERE status = 'PENDING' AND due_at <= ? ORDER BY due_at LIMIT ?`, flow.Millis(now), limit)
}

// HurryVerifications makes every look-up overdue that is not over. Only a
// process that knows it is alone may do that, before it begins any.
func (t *Tx) HurryVerifications(ctx context.Context, now time.Time) error {
	if err := t.run.put(ctx, `UPDATE verifications SET due_at = ? WHERE status = 'PENDING' AND due_at > ?`, flow.Millis(now), flow.Millis(now)); err != nil {
		return fmt.Errorf("end look-ups that were cut off: %w", err)
	}
	return nil
}

// ForgetVerifications drops those that ended and were begun before a time, and
// returns how many. Their audit rows stay.
func (t *Tx) ForgetVerifications(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.run.exec(ctx, `DELETE FROM verifications WHERE status <> 'PENDING' AND created_at < ?`, flow.Millis(before))
	if err != nil {
		return 0, fmt.Errorf("forget verifications: %w", err)
	}
	return n, nil
}

func (r Reader) verifications(ctx context.Context, where string, args ...any) ([]flow.Verification, error) {
	return rowsOf(ctx, r.run, "read verifications", `SELECT `+verificationColumns+` FROM verifications `+where, args, func(scan scanner) (v flow.Verification, err error) {
		var created, due, done int64
		err = scan(&v.ID, &v.Project, &v.Key, &v.Type, &v.Fingerprint, &v.Mask, &v.Purpose, &v.Status, &v.Matches.FirstName,
			&v.Matches.LastName, &v.Matches.DateOfBirth, &v.Reason, &created, &due, &done)
		v.CreatedAt, v.DueAt, v.DoneAt = flow.FromMillis(created), flow.FromMillis(due), flow.FromMillis(done)
		return v, err
	})
}

// LookUp is an audit row: who looked a person up, why, and what came of it.
type LookUp struct {
	Verification flow.VerificationID
	Project      flow.ProjectID
	Key          string // id of the API key
	Type         flow.IdentityType
	Mask         string
	Purpose      string
	At           time.Time
	EndedAt      time.Time
	Outcome      flow.VerificationStatus
	Reason       string
}

// LookUps are the audit rows of a project from a time on, oldest first.
func (r Reader) LookUps(ctx context.Context, project flow.ProjectID, from time.Time, limit int) ([]LookUp, error) {
	return rowsOf(ctx, r.run, "read the audit of look-ups", `SELECT verification, project, api_key, type, mask, purpose, at, ended_at, outcome, reason FROM lookups
 WHERE project = ? AND at >= ? ORDER BY at, verification LIMIT ?`, []any{string(project), flow.Millis(from), limit}, func(scan scanner) (l LookUp, err error) {
		var at, ended int64
		err = scan(&l.Verification, &l.Project, &l.Key, &l.Type, &l.Mask, &l.Purpose, &at, &ended, &l.Outcome, &l.Reason)
		l.At, l.EndedAt = flow.FromMillis(at), flow.FromMillis(ended)
		return l, err
	})
}
