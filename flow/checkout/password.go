package checkout

import (
	"context"
	"fmt"

	"till/flow"
	"till/flow/store"
)

// ChangePassword gives whoever a visit is of another password, if they know the
// old one, and ends every other login with that. A wrong one counts as a try to log
// in from the address. Errors: invalid_credentials, rate_limited.
func (a *Accounts) ChangePassword(ctx context.Context, v flow.Visit, old, to, address string) error {
	refused := flow.Refuse(flow.CodeCredentials, "This is not your password.")
	kept, email, err := a.passwordOf(ctx, v)
	if err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	forgive, err := a.guess(email, address)
	if err != nil {
		return err
	}
	right, err := a.verify(ctx, old, kept)
	if err != nil {
		forgive()
		return fmt.Errorf("change a password: %w", err)
	}
	if !right {
		return refused
	}
	forgive()
	hash, err := a.hash(ctx, to)
	if err != nil {
		return fmt.Errorf("change a password: %w", err)
	}
	return wrap("change a password", a.db.Update(ctx, func(tx *store.Tx) error {
		changed, err := tx.ChangePassword(ctx, v, kept, hash, a.desk())
		if err == nil && !changed { // by another page of theirs, meanwhile
			return refused
		}
		return err
	}))
}

// passwordOf is the password that is kept of whoever a visit is of, and the
// address that they log in with.
func (a *Accounts) passwordOf(ctx context.Context, v flow.Visit) (kept, email string, err error) {
	if v.Person == "" {
		account, err := a.db.Account(ctx, v.Account)
		return account.PasswordHash, account.Email, err
	}
	p, _, err := a.db.PersonByEmail(ctx, v.Email)
	return p.PasswordHash, p.Email, err
}

// ResetPassword gives somebody another password who lost theirs, and ends every
// login with the old one. It is for whoever runs this Till. Errors:
// resource_not_found.
func (a *Accounts) ResetPassword(ctx context.Context, email, to string) error {
	v := flow.Visit{Email: flow.FoldEmail(email), Role: flow.RoleOwner}
	p, found, err := a.db.PersonByEmail(ctx, v.Email)
	kept := p.PasswordHash
	switch {
	case err == nil && found && p.EndedAt.IsZero():
		v.Account, v.Person, v.Role = p.Account, p.ID, p.Role
	case err == nil:
		var account flow.Account
		account, err = a.AccountOf(ctx, email)
		v.Account, kept = account.ID, account.PasswordHash
	}
	if err != nil {
		return fmt.Errorf("reset a password: %w", err)
	}
	hash, err := a.hash(ctx, to)
	if err != nil {
		return fmt.Errorf("reset a password: %w", err)
	}
	return wrap("reset a password", a.db.Update(ctx, func(tx *store.Tx) error {
		changed, err := tx.ChangePassword(ctx, v, kept, hash, a.desk())
		if err == nil && !changed {
			return flow.Refuse(flow.CodeStorage, "The password was changed by somebody else at the same time. Try again.")
		}
		return err
	}))
}
