package checkout

import (
	"context"
	"slices"

	"till/flow"
	"till/flow/store"
)

// Filters are the searches that a visitor keeps, by name.
func (a *Accounts) Filters(ctx context.Context, v flow.Visit) ([]flow.Filter, error) {
	return a.db.Filters(ctx, v.Account, v.Email)
}

// KeepFilter keeps a search for a visitor; one of the same name gives way. Errors:
// invalid_field where there are too many.
func (a *Accounts) KeepFilter(ctx context.Context, v flow.Visit, f flow.Filter) error {
	f.CreatedAt = a.desk()
	return wrap("keep a search", a.db.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.Filters(ctx, v.Account, v.Email)
		if err != nil {
			return err
		}
		if len(list) >= flow.MaxFilters && !slices.ContainsFunc(list, func(o flow.Filter) bool { return o.Name == f.Name }) {
			return flow.Refuse(flow.CodeInvalidField, "You keep %d searches already. Drop one first.", flow.MaxFilters)
		}
		return tx.KeepFilter(ctx, v.Account, v.Email, f)
	}))
}

// DropFilter forgets a search of a visitor's. Errors: resource_not_found.
func (a *Accounts) DropFilter(ctx context.Context, v flow.Visit, name string) error {
	return wrap("forget a search", a.db.Update(ctx, func(tx *store.Tx) error {
		dropped, err := tx.DropFilter(ctx, v.Account, v.Email, name)
		if err == nil && !dropped {
			err = flow.Refuse(flow.CodeNotFound, "You keep no search of this name.")
		}
		return err
	}))
}
