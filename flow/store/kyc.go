package store

import (
	"context"
	"encoding/json"
	"fmt"

	"till/flow"
)

// MoveKYC takes a project a step further. It returns false, and keeps nothing,
// when the project is not where the step begins.
func (t *Tx) MoveKYC(ctx context.Context, m flow.KYCMove) (bool, error) {
	details, err := json.Marshal(m.Details)
	if err != nil {
		return false, fmt.Errorf("move the KYC of %s: %w", m.Project, err)
	}
	n, err := t.run.exec(ctx, `UPDATE projects SET kyc = ? WHERE id = ? AND kyc = ?`, m.To, m.Project, m.From)
	if err == nil && n > 0 {
		err = t.run.put(ctx, `INSERT INTO kyc_moves (project, seq, kyc_from, kyc_to, reason, details, created_at)
 VALUES (?, (SELECT COALESCE(MAX(seq), 0) + 1 FROM kyc_moves WHERE project = ?), ?, ?, ?, ?, ?)`,
			m.Project, m.Project, m.From, m.To, m.Reason, details, flow.Millis(m.At))
	}
	if err != nil {
		return false, fmt.Errorf("move the KYC of %s: %w", m.Project, err)
	}
	return n > 0, nil
}

// KYCMoves reads the last steps of a project's KYC, oldest first.
func (r Reader) KYCMoves(ctx context.Context, project flow.ProjectID, limit int) ([]flow.KYCMove, error) {
	const query = `SELECT kyc_from, kyc_to, reason, details, created_at FROM
 (SELECT seq, kyc_from, kyc_to, reason, details, created_at FROM kyc_moves WHERE project = ? ORDER BY seq DESC LIMIT ?) AS last ORDER BY seq`
	return rowsOf(ctx, r.run, "read the KYC of "+string(project), query, []any{project, limit}, func(scan scanner) (m flow.KYCMove, err error) {
		var details []byte
		var at int64
		if err = scan(&m.From, &m.To, &m.Reason, &details, &at); err != nil {
			return m, err
		}
		m.Project, m.At = project, flow.FromMillis(at)
		err = json.Unmarshal(details, &m.Details)
		return m, err
	})
}
