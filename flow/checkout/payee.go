package checkout

import (
	"context"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// testPayee is where the test environment pays projects out to that have not
// said where: an account of the test bank that takes everything.
var testPayee = flow.SettlementAccount{
	BankAccount: flow.BankAccount{BankCode: rail.TestBankCode, Number: "0000000001", Name: "ADA TEST PAYER"}, Standard: true,
}

// SetSettlementAccount keeps where a project is paid out to in an environment.
// The account's name must be what its bank says. Errors: project_suspended.
func (a *Accounts) SetSettlementAccount(
	ctx context.Context, project flow.ProjectID, env flow.Environment, to flow.BankAccount,
) (flow.SettlementAccount, error) {
	kept := flow.SettlementAccount{BankAccount: to}
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.Project(ctx, project)
		if err != nil {
			return err
		}
		if err := p.NotSuspended(env); err != nil {
			return err
		}
		kept.UpdatedAt = a.clock(env)
		return tx.SaveSettlementAccount(ctx, project, env, kept)
	})
	return kept, wrap("keep a settlement account", err)
}

// SettlementAccount is where a project is paid out to in an environment; found is
// false in live while it has not said.
func (a *Accounts) SettlementAccount(ctx context.Context, project flow.ProjectID, env flow.Environment) (to flow.SettlementAccount, found bool, err error) {
	to, found, err = a.db.SettlementAccount(ctx, project, env)
	if err == nil && !found && env == flow.Test {
		return testPayee, true, nil
	}
	return to, found, err
}

// Payee is SettlementAccount as a Service asks for it.
func (a *Accounts) Payee(env flow.Environment) func(context.Context, flow.ProjectID) (flow.BankAccount, bool, error) {
	return func(ctx context.Context, project flow.ProjectID) (flow.BankAccount, bool, error) {
		to, found, err := a.SettlementAccount(ctx, project, env)
		return to.BankAccount, found, err
	}
}
