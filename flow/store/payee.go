package store

import (
	"context"
	"fmt"

	"till/flow"
)

// SaveSettlementAccount keeps where a project is paid out to.
func (t *Tx) SaveSettlementAccount(ctx context.Context, project flow.ProjectID, env flow.Environment, a flow.SettlementAccount) error {
	err := t.run.put(ctx, `INSERT INTO settlement_accounts (project, environment, bank_code, number, name, updated_at) VALUES (?, ?, ?, ?, ?, ?)
 ON CONFLICT (project, environment) DO UPDATE SET bank_code = excluded.bank_code, number = excluded.number, name = excluded.name, updated_at = excluded.updated_at`,
		string(project), string(env), a.BankCode, a.Number, a.Name, flow.Millis(a.UpdatedAt))
	if err != nil {
		return fmt.Errorf("keep the settlement account of %s: %w", project, err)
	}
	return nil
}

// SettlementAccount reads where a project is paid out to; found is false where it
// has not said.
func (r Reader) SettlementAccount(ctx context.Context, project flow.ProjectID, env flow.Environment) (a flow.SettlementAccount, found bool, err error) {
	var updated int64
	found, err = r.run.one(ctx, `SELECT bank_code, number, name, updated_at FROM settlement_accounts WHERE project = ? AND environment = ?`,
		[]any{string(project), string(env)}, &a.BankCode, &a.Number, &a.Name, &updated)
	if err != nil {
		return flow.SettlementAccount{}, false, fmt.Errorf("read the settlement account of %s: %w", project, err)
	}
	a.UpdatedAt = flow.FromMillis(updated)
	return a, found, nil
}
