package checkout

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of people and of what they did.
const (
	maxPeople = 200 // who may log in for one account, and as many operators
	maxReason = 500 // characters
	LeastWhy  = 4   // what is to be read of a reason, at least
)

// AskedBy stands in the audit log between why somebody agreed to what another person
// asked for, or refused it, and who that is.
const AskedBy = " (asked for by "

// Entered is what logging in to the console gives. Text is what the cookie
// holds; it is known this once.
type Entered struct {
	Text  string
	Visit flow.Visit
}

// Enter trades an e-mail address and a password for a visit to the console.
// address is where the call came from. An unknown address costs as much as a
// wrong password. Errors: invalid_credentials, rate_limited.
func (a *Accounts) Enter(ctx context.Context, email, password, address string) (Entered, error) {
	email = flow.FoldEmail(email)
	person, found, err := a.db.PersonByEmail(ctx, email)
	if err != nil {
		return Entered{}, fmt.Errorf("log in to the console: %w", err)
	}
	if !found {
		account, kept, err := a.recognise(ctx, email, password, address)
		if err != nil {
			return Entered{}, err
		}
		return a.enter(ctx, flow.Visit{Account: account.ID, Email: email, Role: flow.RoleOwner}, kept)
	}
	forgive, err := a.guess(ctx, email, address)
	if err != nil {
		return Entered{}, err
	}
	right, err := a.verify(ctx, password, person.PasswordHash, address)
	if err != nil {
		forgive()
		return Entered{}, fmt.Errorf("log in to the console: %w", err)
	}
	if !right || !person.EndedAt.IsZero() {
		return Entered{}, flow.Refuse(flow.CodeCredentials, "There is no account with this e-mail address and password.")
	}
	forgive()
	a.tries.drop(ctx, loginPair(email, address))
	return a.enter(ctx, flow.Visit{Account: person.Account, Person: person.ID, Email: email, Role: person.Role}, person.PasswordHash)
}

// EnterAs opens the console without a password, in a pretend world alone: as an
// account's owner or, with its role, as somebody who stands for it. Errors:
// resource_not_found.
func (a *Accounts) EnterAs(ctx context.Context, email string, role flow.Role) (Entered, error) {
	account, err := a.AccountOf(ctx, email)
	if err != nil {
		return Entered{}, fmt.Errorf("open the console: %w", err)
	}
	v := flow.Visit{Account: account.ID, Email: string(role) + " of " + account.Email, Role: role}
	if role == flow.RoleOperator {
		v.Account = ""
	}
	return a.enter(ctx, v, "")
}

// enter keeps a visit. kept is the password that was checked, "" where none is
// asked for.
func (a *Accounts) enter(ctx context.Context, v flow.Visit, kept string) (Entered, error) {
	text, err := flow.NewTokenText(a.ids.Rand)
	if err != nil {
		return Entered{}, err
	}
	v.CreatedAt = a.desk()
	v.Hash, v.ExpiresAt = flow.HashKey(text), v.CreatedAt.Add(flow.DashboardLife)
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		if v.Person != "" { // shut out, or given another password, since that was checked
			if p, found, err := tx.PersonByEmail(ctx, v.Email); err != nil || !found || p.ID != v.Person || !p.EndedAt.IsZero() || p.PasswordHash != kept {
				return cmp.Or[error](err, flow.Refuse(flow.CodeCredentials, "There is no account with this e-mail address and password."))
			}
		} else if err := unchanged(ctx, tx, v.Account, kept); err != nil {
			return err
		}
		return tx.AddVisit(ctx, v, maxTokens)
	})
	return Entered{text, v}, wrap("log in to the console", err)
}

// unchanged refuses an owner whose password was changed since it was checked: that
// ended every login with the old one, and what still waited for its turn to be
// checked would have been one more. "" is no password to ask for.
func unchanged(ctx context.Context, tx *store.Tx, account, kept string) error {
	if kept == "" {
		return nil
	}
	now, err := tx.Account(ctx, account)
	if err == nil && now.PasswordHash != kept {
		err = flow.Refuse(flow.CodeCredentials, "There is no account with this e-mail address and password.")
	}
	return err
}

// Visit finds the visit that a cookie stands for. Errors: invalid_api_key,
// expired_api_key, revoked_api_key.
func (a *Accounts) Visit(ctx context.Context, text string) (flow.Visit, error) {
	nobody := flow.Refuse(flow.CodeInvalidKey, "Log in to the console.")
	if !flow.IsTokenText(text) {
		return flow.Visit{}, nobody
	}
	hash := flow.HashKey(text)
	v, found, err := a.db.Visit(ctx, hash)
	if err != nil {
		return flow.Visit{}, err
	}
	switch {
	case !found || subtle.ConstantTimeCompare([]byte(v.Hash), []byte(hash)) != 1:
		return flow.Visit{}, nobody
	case !v.EndedAt.IsZero():
		return flow.Visit{}, flow.Refuse(flow.CodeRevokedKey, "This login was ended. Log in again.")
	case !a.desk().Before(v.ExpiresAt):
		return flow.Visit{}, flow.Refuse(flow.CodeExpiredKey, "This login ended by itself. Log in again.")
	}
	return v, nil
}

// Leave ends a visit.
func (a *Accounts) Leave(ctx context.Context, v flow.Visit) error {
	return wrap("log out of the console", a.db.Update(ctx, func(tx *store.Tx) error { return tx.EndVisit(ctx, v.Hash, a.desk()) }))
}

// AddPerson lets somebody log in: for an account, or as an operator, who belongs
// to none. address is where the call came from. Errors: invalid_field, rate_limited.
func (a *Accounts) AddPerson(ctx context.Context, account, email, password string, role flow.Role, address string) (flow.Person, error) {
	if role == flow.RoleOwner || !flow.IsRole(role) || (role == flow.RoleOperator) != (account == "") {
		return flow.Person{}, flow.Refuse(flow.CodeInvalidField, "An account's people are developers or supporters; operators belong to none.")
	}
	id, err := a.ids.New(flow.PrefixPerson)
	if err != nil {
		return flow.Person{}, err
	}
	p := flow.Person{ID: id, Account: account, Email: flow.FoldEmail(email), Role: role, CreatedAt: a.desk()}
	if p.PasswordHash, err = a.hash(ctx, password, address); err != nil {
		return flow.Person{}, fmt.Errorf("add a person: %w", err)
	}
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		list, err := tx.People(ctx, account, maxPeople)
		if err != nil {
			return err
		}
		if len(list) == maxPeople && list[maxPeople-1].EndedAt.IsZero() {
			return flow.Refuse(flow.CodeInvalidField, "There are %d people already. Shut somebody out first.", maxPeople)
		}
		added, err := tx.AddPerson(ctx, p)
		if err == nil && !added {
			return flow.Refuse(flow.CodeInvalidField, "Somebody logs in with this e-mail address already.")
		}
		return err
	})
	p.PasswordHash = ""
	return p, wrap("add a person", err)
}

// People are who may log in for an account beside its owner, or the operators, and
// behind them who was shut out, as far as they are no more than may log in.
func (a *Accounts) People(ctx context.Context, account string) ([]flow.Person, error) {
	list, err := a.db.People(ctx, account, maxPeople)
	for i := range list {
		list[i].PasswordHash = ""
	}
	return list, err
}

// AccountOf finds an account by its owner's e-mail address. Errors:
// resource_not_found.
func (a *Accounts) AccountOf(ctx context.Context, email string) (flow.Account, error) {
	account, found, err := a.db.AccountByEmail(ctx, flow.FoldEmail(email))
	if err == nil && !found {
		err = flow.Refuse(flow.CodeNotFound, "There is no account with this e-mail address.")
	}
	return account, wrap("find an account", err)
}

// ShutOut ends whatever somebody has open. back gives the bot back their chats: before,
// so that none stays where this ends half-way, and after, for what they claimed
// meanwhile. Errors: resource_not_found, and back's own.
func (a *Accounts) ShutOut(ctx context.Context, p flow.Person, back func() error) error {
	if err := back(); err != nil {
		return err
	}
	if err := a.EndPerson(ctx, p.Account, p.ID); err != nil {
		return err
	}
	return back()
}

// EndPerson ends whatever somebody has open, and leaves them their chats. Errors:
// resource_not_found.
func (a *Accounts) EndPerson(ctx context.Context, account, id string) error {
	return wrap("shut a person out", a.db.Update(ctx, func(tx *store.Tx) error {
		ended, err := tx.EndPerson(ctx, account, id, a.desk())
		if err == nil && !ended {
			return flow.Refuse(flow.CodeNotFound, "There is no such person.")
		}
		return err
	}))
}

// Audit keeps what somebody is about to do. What is done is done only when this
// succeeded. A row is read line by line: nothing that somebody typed begins
// another. Errors: missing_field for a reason that says nothing.
func (a *Accounts) Audit(ctx context.Context, row flow.Audited, reasoned bool) error {
	row.Action, row.Subject, row.Reason = flow.OneLine(row.Action), flow.OneLine(row.Subject), flow.OneLine(row.Reason)
	if reasoned && flow.Says(row.Reason) < LeastWhy {
		return flow.Refuse(flow.CodeMissingField, "Say why, in a few words: it is kept with what you do.")
	}
	if len([]rune(row.Reason)) > maxReason {
		return flow.Refuse(flow.CodeInvalidField, "A reason has at most %d characters.", maxReason)
	}
	id, err := a.acts.New(flow.PrefixAudit)
	if err != nil {
		return err
	}
	row.ID, row.At = id, a.desk()
	return wrap("keep what was done", a.db.Update(ctx, func(tx *store.Tx) error { return tx.AddAudit(ctx, row) }))
}

// NotDone keeps of what Audit kept beforehand that it was refused, and why. What failed
// otherwise may be done, and is left as it stands; so is a zero row, for what nobody kept.
func (a *Accounts) NotDone(ctx context.Context, row flow.Audited, err error) error {
	why := []rune(whyRefused(err))
	if row.Action == "" || len(why) == 0 {
		return nil
	}
	return a.Audit(ctx, row.AsRefused(string(why[:min(len(why), maxReason)])), false)
}

// whyRefused is why something was refused, "" where it was not or failed otherwise.
func whyRefused(err error) string {
	if refusal, ok := errors.AsType[*flow.Error](err); ok && refusal.Code != flow.CodeInternal && refusal.Code != flow.CodeStorage {
		return refusal.Message
	}
	if illegal, ok := errors.AsType[*flow.IllegalMove](err); ok {
		return illegal.Error()
	}
	if errors.Is(err, flow.ErrDesk) {
		return err.Error()
	}
	return ""
}

// The bounds of a look.
const (
	lookedFor   = time.Hour   // somebody who looked at something is taken to be looking
	lookedApart = time.Minute // the clocks of two processes are, at most
)

// Saw keeps that somebody looks at what is kept of a payer: once an hour, however
// often the same is shown. A look that was kept by a clock which was set back since is
// none of this hour. The NDPA of 2023 lets payers ask who saw what is theirs.
func (a *Accounts) Saw(ctx context.Context, row flow.Audited) error {
	now := a.desk()
	known, err := a.db.Audit(ctx, store.AuditFilter{
		Actor: row.Actor, Action: row.Action, Subject: row.Subject, From: now.Add(-lookedFor), Until: now.Add(lookedApart), Limit: 1,
	})
	if err != nil || len(known) > 0 {
		return err
	}
	return a.Audit(ctx, row, false)
}

// LogsIn says whether somebody logs in with an e-mail address: nobody may be
// forgotten by it as a payer, for they would be locked out.
func (a *Accounts) LogsIn(ctx context.Context, email string) (bool, error) {
	email = flow.FoldEmail(email)
	if _, owns, err := a.db.AccountByEmail(ctx, email); err != nil || owns {
		return owns, err
	}
	person, found, err := a.db.PersonByEmail(ctx, email)
	return found && person.EndedAt.IsZero(), err
}

// AuditOwner is Audit of what is done with a login of an account's, which is its
// owner's, and returns the row with their name.
func (a *Accounts) AuditOwner(ctx context.Context, row flow.Audited) (flow.Audited, error) {
	owner, err := a.db.Account(ctx, row.Account)
	if err != nil {
		return row, wrap("find whose login it is", err)
	}
	row.Actor, row.Role = owner.Email, flow.RoleOwner
	return row, a.Audit(ctx, row, false)
}

// Audits reads the audit log, newest first.
func (a *Accounts) Audits(ctx context.Context, f store.AuditFilter) (list []flow.Audited, more bool, err error) {
	f.Limit++
	list, err = a.db.Audit(ctx, f)
	return page(list, f.Limit-1, err)
}
