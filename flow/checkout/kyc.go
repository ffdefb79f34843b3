package checkout

import (
	"context"
	"slices"

	"till/flow"
	"till/flow/store"
)

// maxKYCMoves is how many steps of a project's KYC are shown.
const maxKYCMoves = 100

// SubmitKYC hands in what a merchant says of its business. Errors:
// project_suspended, kyc_not_submittable, resource_not_found.
func (a *Accounts) SubmitKYC(ctx context.Context, project flow.ProjectID, d flow.KYCDetails, c Call) (Answer, error) {
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		moves, err := moveKYC(ctx, tx, project, func(p flow.Project) (flow.KYCMove, error) { return flow.SubmitKYC(p, d, a.desk()) })
		return Made{KYC: moves}, "", err
	})
	a.keys.forget(func(k flow.Key) bool { return k.Project == project })
	return answer, wrap("submit the KYC of a project", err)
}

// RuleKYC is an operator's ruling about a project. Errors: resource_not_found,
// *flow.IllegalMove.
func (a *Accounts) RuleKYC(ctx context.Context, project flow.ProjectID, r flow.Ruling, reason string) ([]flow.KYCMove, error) {
	var moves []flow.KYCMove
	err := a.db.Update(ctx, func(tx *store.Tx) (err error) {
		moves, err = moveKYC(ctx, tx, project, func(p flow.Project) (flow.KYCMove, error) { return flow.DecideKYC(p, r, reason, a.desk()) })
		return err
	})
	a.keys.forget(func(k flow.Key) bool { return k.Project == project })
	return moves, wrap("move the KYC of a project", err)
}

func moveKYC(ctx context.Context, tx *store.Tx, project flow.ProjectID, decide func(flow.Project) (flow.KYCMove, error)) ([]flow.KYCMove, error) {
	p, err := tx.Project(ctx, project)
	if err != nil {
		return nil, err
	}
	move, err := decide(p)
	if err != nil {
		return nil, err
	}
	moved, err := tx.MoveKYC(ctx, move)
	if err == nil && !moved {
		err = flow.Refuse(flow.CodeStorage, "The project was changed at the same time. Try again.")
	}
	if err != nil {
		return nil, err
	}
	return tx.KYCMoves(ctx, project, maxKYCMoves)
}

// KYC reads the steps of a project's KYC, oldest first.
func (a *Accounts) KYC(ctx context.Context, project flow.ProjectID) ([]flow.KYCMove, error) {
	return a.db.KYCMoves(ctx, project, maxKYCMoves)
}

// Merchants reads the projects whose KYC is in a state, "" for any, oldest
// first, from after an id on.
func (a *Accounts) Merchants(ctx context.Context, status flow.KYCStatus, after flow.ProjectID, limit int) ([]store.Merchant, error) {
	return a.db.Merchants(ctx, status, after, limit)
}

// Suspended are the projects whose KYC is suspended.
func (a *Accounts) Suspended(ctx context.Context) ([]flow.ProjectID, error) {
	const page = 1000
	var out []flow.ProjectID
	for after := flow.ProjectID(""); ; after = out[len(out)-1] {
		list, err := a.Merchants(ctx, flow.KYCSuspended, after, page)
		for _, m := range list {
			out = append(out, m.Project.ID)
		}
		if err != nil || len(list) < page {
			return out, wrap("read which projects are suspended", err)
		}
	}
}

// Merchant reads a project with whose it is. Errors: resource_not_found.
func (a *Accounts) Merchant(ctx context.Context, id flow.ProjectID) (store.Merchant, error) {
	return a.db.Merchant(ctx, id)
}

// Known says whether there is a project with an environment: everybody has test,
// and who was admitted once has live.
func (a *Accounts) Known(ctx context.Context, id flow.ProjectID, env flow.Environment) (bool, error) {
	err := a.HasProject(ctx, id)
	if notFound(err) {
		return false, nil
	}
	if err != nil || env == flow.Test {
		return err == nil, err
	}
	moves, err := a.db.KYCMoves(ctx, id, maxKYCMoves)
	return slices.ContainsFunc(moves, func(m flow.KYCMove) bool { return m.To == flow.KYCApproved }), err
}

// HasProject says whether there is a project. Errors: resource_not_found.
func (a *Accounts) HasProject(ctx context.Context, id flow.ProjectID) error {
	_, err := a.db.Project(ctx, id)
	return wrap("find a project", err)
}
