package checkout

import (
	"context"

	"till/flow"
	"till/flow/store"
)

// maxKYCMoves is how many steps of a project's KYC are shown.
const maxKYCMoves = 100

// SubmitKYC hands in what a merchant says of its business. Errors:
// project_suspended, kyc_not_submittable, resource_not_found.
func (a *Accounts) SubmitKYC(ctx context.Context, project flow.ProjectID, d flow.KYCDetails) ([]flow.KYCMove, error) {
	return a.moveKYC(ctx, project, func(p flow.Project) (flow.KYCMove, error) { return flow.SubmitKYC(p, d, a.desk()) })
}

// RuleKYC is an operator's ruling about a project. Errors: resource_not_found,
// *flow.IllegalMove.
func (a *Accounts) RuleKYC(ctx context.Context, project flow.ProjectID, r flow.Ruling, reason string) ([]flow.KYCMove, error) {
	return a.moveKYC(ctx, project, func(p flow.Project) (flow.KYCMove, error) { return flow.DecideKYC(p, r, reason, a.desk()) })
}

func (a *Accounts) moveKYC(ctx context.Context, project flow.ProjectID, decide func(flow.Project) (flow.KYCMove, error)) ([]flow.KYCMove, error) {
	var moves []flow.KYCMove
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.Project(ctx, project)
		if err != nil {
			return err
		}
		move, err := decide(p)
		if err != nil {
			return err
		}
		if moved, err := tx.MoveKYC(ctx, move); err != nil || !moved {
			if err == nil {
				err = flow.Refuse(flow.CodeStorage, "The project was changed at the same time. Try again.")
			}
			return err
		}
		moves, err = tx.KYCMoves(ctx, project, maxKYCMoves)
		return err
	})
	a.keys.forget(func(k flow.Key) bool { return k.Project == project })
	return moves, wrap("move the KYC of a project", err)
}

// KYC reads the steps of a project's KYC, oldest first.
func (a *Accounts) KYC(ctx context.Context, project flow.ProjectID) ([]flow.KYCMove, error) {
	return a.db.KYCMoves(ctx, project, maxKYCMoves)
}

// Merchants reads all projects, oldest first, from after an id on.
func (a *Accounts) Merchants(ctx context.Context, after flow.ProjectID, limit int) ([]store.Merchant, error) {
	return a.db.Merchants(ctx, after, limit)
}

// HasProject says whether there is a project. Errors: resource_not_found.
func (a *Accounts) HasProject(ctx context.Context, id flow.ProjectID) error {
	_, err := a.db.Project(ctx, id)
	return wrap("find a project", err)
}
