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
	forgive, err := a.guess(ctx, email, address)
	if err != nil {
		return err
	}
	right, err := a.verify(ctx, old, kept, address)
	if err != nil {
		forgive()
		return fmt.Errorf("change a password: %w", err)
	}
	if !right {
		return refused
	}
	forgive()
	hash, err := a.hash(ctx, to, address)
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

// whoLogsIn is whoever logs in with an e-mail address, and the password that is kept
// of them.
func (a *Accounts) whoLogsIn(ctx context.Context, email string) (v flow.Visit, kept string, err error) {
	v = flow.Visit{Email: flow.FoldEmail(email), Role: flow.RoleOwner}
	p, found, err := a.db.PersonByEmail(ctx, v.Email)
	if err == nil && found && p.EndedAt.IsZero() {
		v.Account, v.Person, v.Role = p.Account, p.ID, p.Role
		return v, p.PasswordHash, nil
	}
	if err != nil {
		return v, "", err
	}
	account, err := a.AccountOf(ctx, email)
	v.Account = account.ID
	return v, account.PasswordHash, err
}

// AccountWith is the account that somebody belongs to who logs in with an e-mail
// address, "" of an operator. Errors: resource_not_found.
func (a *Accounts) AccountWith(ctx context.Context, email string) (string, error) {
	v, _, err := a.whoLogsIn(ctx, email)
	return v.Account, err
}

// ResetPassword gives somebody another password who lost theirs, and ends every
// login with the old one. It is for whoever runs this Till. Errors:
// resource_not_found.
func (a *Accounts) ResetPassword(ctx context.Context, email, to string) error {
	v, kept, err := a.whoLogsIn(ctx, email)
	if err != nil {
		return fmt.Errorf("reset a password: %w", err)
	}
	hash, err := a.hash(ctx, to, "")
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
