package store

import (
	"context"
	"fmt"
	"time"

	"till/flow"
)

const proposalColumns = `id, project, session, act, subject, amount, reason, transfer, sent_at, asked_key, asked_by, asked_at, status, ended_by, ended_why, ended_at`

// AddProposal keeps what waits for a second person, and that older ones about the
// same have waited too long. It returns false where one about the same waits.
func (t *Tx) AddProposal(ctx context.Context, p flow.Proposal) (bool, error) {
	_, err := t.run.exec(ctx, `UPDATE proposals SET status = 'EXPIRED', ended_at = asked_at + ? WHERE subject = ? AND status = 'OPEN' AND asked_at <= ?`,
		flow.ProposalLife.Milliseconds(), p.Subject, flow.Millis(p.At.Add(-flow.ProposalLife)))
	var n int64
	if err == nil {
		n, err = t.run.exec(ctx, `INSERT INTO proposals (`+proposalColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (subject) WHERE status = 'OPEN' DO NOTHING`,
			p.ID, p.Project, p.Session, p.Act, p.Subject, p.Amount, p.Reason, p.Transfer, flow.Millis(p.SentAt), p.Key, p.By, flow.Millis(p.At), p.Status, p.EndedBy, p.EndedWhy, flow.Millis(p.EndedAt))
	}
	if err != nil {
		return false, fmt.Errorf("keep proposal %s: %w", p.ID, err)
	}
	return n > 0, nil
}

// EndProposal keeps how a proposal ended. It returns false where it had ended
// before.
func (t *Tx) EndProposal(ctx context.Context, p flow.Proposal) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE proposals SET status = ?, ended_by = ?, ended_why = ?, ended_at = ? WHERE id = ? AND status = 'OPEN'`,
		p.Status, p.EndedBy, p.EndedWhy, flow.Millis(p.EndedAt), p.ID)
	if err != nil {
		return false, fmt.Errorf("end proposal %s: %w", p.ID, err)
	}
	return n > 0, nil
}

// Proposal reads a proposal. Error: resource_not_found.
func (r Reader) Proposal(ctx context.Context, id flow.ProposalID) (flow.Proposal, error) {
	list, err := r.proposals(ctx, ` WHERE id = ?`, string(id))
	return only(list, err, "proposal", string(id))
}

// Proposals are those about the money of a session, newest first.
func (r Reader) Proposals(ctx context.Context, session flow.SessionID, limit int) ([]flow.Proposal, error) {
	return r.proposals(ctx, ` WHERE session = ? AND session <> '' ORDER BY id DESC LIMIT ?`, string(session), limit)
}

// OpenProposals are those about one payment or refund that nobody ended: one at most.
func (r Reader) OpenProposals(ctx context.Context, subject string) ([]flow.Proposal, error) {
	return r.proposals(ctx, ` WHERE subject = ? AND status = 'OPEN'`, subject)
}

func (r Reader) proposals(ctx context.Context, where string, args ...any) ([]flow.Proposal, error) {
	return rowsOf(ctx, r.run, "read proposals", `SELECT `+proposalColumns+` FROM proposals`+where, args, func(scan scanner) (p flow.Proposal, err error) {
		var at, sent, ended int64
		err = scan(&p.ID, &p.Project, &p.Session, &p.Act, &p.Subject, &p.Amount, &p.Reason, &p.Transfer, &sent, &p.Key, &p.By, &at, &p.Status, &p.EndedBy, &p.EndedWhy, &ended)
		p.SentAt, p.At, p.EndedAt = flow.FromMillis(sent), flow.FromMillis(at), flow.FromMillis(ended)
		return p, err
	})
}

// Moved says whether the books know a movement at the bank by this name.
func (r Reader) Moved(ctx context.Context, name string) (bool, error) {
	var n int
	if _, err := r.run.one(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM ledger WHERE rail_id = ? AND rail_id <> '' LIMIT 1) AS m`, []any{name}, &n); err != nil {
		return false, fmt.Errorf("look for a movement at the bank: %w", err)
	}
	return n > 0, nil
}

// waitedFrom is from when on proposals still wait.
func waitedFrom(now time.Time) int64 { return flow.Millis(now.Add(-flow.ProposalLife)) }
