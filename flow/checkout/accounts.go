package checkout

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"till/flow"
	"till/flow/store"
)

// Accounts runs the commands about who may use Till.
type Accounts struct {
	db    *store.DB
	ids   flow.IDs         // by the clock of logins
	acts  flow.Rising      // of what people did
	test  func() time.Time // the clock of test keys
	live  func() time.Time // the clock of live keys
	desk  func() time.Time // the clock of logins, and of who may use Till
	queue *queue           // who has a password hashed
	tries *tries
	keys  *keyMemory
	calls *calls
	cost  cost // of a password
}

// NewAccounts makes the commands over an accounts database.
func NewAccounts(db *store.DB, now func() time.Time, random io.Reader) *Accounts {
	a := &Accounts{
		db: db, test: now, live: now, desk: now, queue: newQueue(),
		tries: newTries(), keys: newKeyMemory(), cost: usual,
	}
	desk := func() time.Time { return a.desk() }
	a.ids, a.calls = flow.IDs{Now: desk, Rand: random}, newCalls(db, desk, random)
	a.acts.IDs = a.ids
	return a
}

// Clocks sets the clocks that are not the test environment's, which merchants
// move: live keys have one; logins, the bounds of guessing, and what is neither
// test nor live, as accounts and projects are, another.
func (a *Accounts) Clocks(live, desk func() time.Time) { a.live, a.desk = live, desk }

// clock is the clock that an environment's keys follow.
func (a *Accounts) clock(env flow.Environment) time.Time {
	if env == flow.Test {
		return a.test()
	}
	return a.live()
}

// SignedUp is what signing up gives. The keys are shown this once.
type SignedUp struct {
	Account   flow.Account
	Project   flow.Project
	PublicKey string
	SecretKey string
}

// SignUp makes an account, its first project and that project's test keys.
// address is where the call came from. Errors: invalid_field for an address that
// is taken.
//
// There is no account yet that a call's key could belong to: it belongs to the
// e-mail address. What is kept under it opens with the password alone, so that
// to ask for it is to try a password, and is counted as such.
func (a *Accounts) SignUp(ctx context.Context, email, password, business, address string, c Call) (Answer, error) {
	email = flow.FoldEmail(email)
	c.Scope = "signup/" + flow.HashKey(email)
	done, err := a.calls.alone(c)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	if c.Key != "" {
		answer, err := a.signedUp(ctx, email, address, &c)
		if err != nil || answer.Replayed {
			return answer, wrap("sign up", err)
		}
	}
	var answer Answer
	hash := func() (string, error) { return a.hash(ctx, password, address) }
	_, err = a.signUp(ctx, email, business, hash, func(tx *store.Tx, made SignedUp) (err error) {
		answer, err = a.calls.rendered(ctx, tx, c, string(made.Project.ID), Made{SignedUp: made})
		return err
	})
	if err == nil || c.Key == "" {
		return answer, err
	}
	// The address may be taken by this very call, in another process.
	if known, unknown := a.calls.begun(ctx, a.db.Reader, c); unknown == nil && known != nil {
		return answeredBefore(known), nil
	}
	return Answer{}, err
}

// signedUp looks for the answer of the same sign-up, and makes the call one that
// is sealed slowly where it may come to be kept.
func (a *Accounts) signedUp(ctx context.Context, email, address string, c *Call) (Answer, error) {
	_, kept, err := a.db.Call(ctx, c.scope(), c.name())
	if err != nil {
		return Answer{}, err
	}
	if !kept {
		if have, err := a.db.EmailTaken(ctx, email); err != nil || have {
			return Answer{}, err // it is refused, and nothing is kept
		}
		*c, err = a.slow(ctx, *c, address)
		return Answer{}, err
	}
	forgive, err := a.guess(ctx, email, address)
	if err != nil {
		return Answer{}, err
	}
	if *c, err = a.slow(ctx, *c, address); err != nil {
		forgive()
		return Answer{}, err
	}
	known, err := a.calls.begun(ctx, a.db.Reader, *c)
	if err == nil {
		forgive()
	}
	return answeredBefore(known), err
}

// slow makes a call whose request holds a password one that nothing quick is
// kept of: neither its hash nor what its answer is sealed with may be an easier
// way to guess the password than the password's own hash.
func (a *Accounts) slow(ctx context.Context, c Call, address string) (Call, error) {
	salt := sha256.Sum256([]byte("till salt of a slow seal\n" + c.name())) // nobody else's: the name is made of the scope too
	secret, err := a.derive(ctx, address, string(c.Secret), salt[:argonSalt], a.cost)
	c.Hash, c.Secret = "", secret
	return c, err
}

func (a *Accounts) signUp(ctx context.Context, email, business string, hash func() (string, error), also func(*store.Tx, SignedUp) error) (SignedUp, error) {
	taken := &flow.Error{Code: flow.CodeInvalidField, Message: "This e-mail address cannot be used.", Fields: []flow.FieldError{
		{Field: "email", Code: flow.CodeInvalidField, Message: "An account with this address exists. Log in instead."},
	}}
	if have, err := a.db.EmailTaken(ctx, email); err != nil || have {
		if err == nil {
			err = taken
		}
		return SignedUp{}, err
	}
	out, keys, err := a.draw(email, business)
	if err != nil {
		return SignedUp{}, fmt.Errorf("sign up: %w", err)
	}
	if out.Account.PasswordHash, err = hash(); err != nil {
		return SignedUp{}, fmt.Errorf("sign up: %w", err)
	}
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		added, err := tx.AddAccount(ctx, out.Account, out.Project, keys)
		if err == nil && !added {
			return taken
		}
		if err != nil {
			return err
		}
		return also(tx, out)
	})
	return out, wrap("sign up", err)
}

// DemoSetting is where the demo project's public key is kept, for everyone to see.
const DemoSetting = "demo_public_key"

// Demo makes the demo account of a pretend world, which has no password, and keeps its
// public key by name. keep gets the keys before the account is: what it does not keep is
// lost, and then nothing was made.
func (a *Accounts) Demo(ctx context.Context, email, business string, keep func(SignedUp) error) (SignedUp, error) {
	hash := func() (string, error) { return a.nobodysPassword(), nil }
	return a.signUp(ctx, flow.FoldEmail(email), business, hash, func(tx *store.Tx, made SignedUp) error {
		if err := keep(made); err != nil {
			return err
		}
		return tx.SetSetting(ctx, DemoSetting, made.PublicKey)
	})
}

// once does a call that is one transaction: do's effect and the answer are kept
// together, or neither is. id is that of what was made.
func (a *Accounts) once(ctx context.Context, c Call, do func(tx *store.Tx) (made Made, id string, err error)) (Answer, error) {
	done, err := a.calls.alone(c)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	var answer Answer
	err = a.db.Update(ctx, func(tx *store.Tx) error {
		kept, err := a.calls.begun(ctx, tx.Reader, c)
		if err != nil || kept != nil {
			answer = answeredBefore(kept)
			return err
		}
		made, id, err := do(tx)
		if err != nil {
			return err
		}
		answer, err = a.calls.rendered(ctx, tx, c, id, made)
		return err
	})
	if err != nil {
		return a.calls.refused(ctx, c, err)
	}
	return answer, nil
}

// draw makes an account's ids and keys. The keys are of test, and so is their time.
func (a *Accounts) draw(email, business string) (SignedUp, []flow.Key, error) {
	account, err := a.ids.New(flow.PrefixAccount)
	if err != nil {
		return SignedUp{}, nil, err
	}
	project, err := a.ids.New(flow.PrefixProject)
	if err != nil {
		return SignedUp{}, nil, err
	}
	public, err := a.drawKey(flow.ProjectID(project), flow.Test, flow.PublicKey)
	if err != nil {
		return SignedUp{}, nil, err
	}
	secret, err := a.drawKey(flow.ProjectID(project), flow.Test, flow.SecretKey)
	if err != nil {
		return SignedUp{}, nil, err
	}
	now := a.desk()
	return SignedUp{
		Account:   flow.Account{ID: account, Email: email, Business: business, CreatedAt: now},
		Project:   flow.Project{ID: flow.ProjectID(project), Account: account, Name: business, KYC: flow.KYCNone, CreatedAt: now},
		PublicKey: public.Text, SecretKey: secret.Text,
	}, []flow.Key{public.Key, secret.Key}, nil
}
