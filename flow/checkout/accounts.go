package checkout

import (
	"context"
	"fmt"
	"io"
	"time"

	"till/flow"
	"till/flow/store"
)

// Accounts runs the commands about who may use Till.
type Accounts struct {
	db    *store.DB
	ids   flow.IDs
	live  func() time.Time // the clock of live keys
	desk  func() time.Time // the clock of logins
	slot  chan struct{}    // hashing is dear: one at a time for each slot
	queue chan struct{}    // who waits for a slot
	tries *tries
	keys  *keyMemory
}

// hashers is how many passwords are hashed at once; each takes argonMemory.
// hashQueue is how many may wait for that.
const (
	hashers   = 2
	hashQueue = 64
)

// NewAccounts makes the commands over an accounts database.
func NewAccounts(db *store.DB, now func() time.Time, random io.Reader) *Accounts {
	return &Accounts{
		db: db, ids: flow.IDs{Now: now, Rand: random}, live: now, desk: now, slot: make(chan struct{}, hashers), queue: make(chan struct{}, hashQueue),
		tries: newTries(), keys: newKeyMemory(),
	}
}

// Clocks sets the clocks that are not the test environment's, which merchants
// move: live keys have one, logins and the bounds of guessing another.
func (a *Accounts) Clocks(live, desk func() time.Time) { a.live, a.desk = live, desk }

// clock is the clock that an environment's keys follow.
func (a *Accounts) clock(env flow.Environment) time.Time {
	if env == flow.Test {
		return a.ids.Now()
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
// Errors: invalid_field for an address that is taken.
func (a *Accounts) SignUp(ctx context.Context, email, password, business string) (SignedUp, error) {
	return a.signUp(ctx, email, password, business, func(*store.Tx, SignedUp) error { return nil })
}

func (a *Accounts) signUp(ctx context.Context, email, password, business string, also func(*store.Tx, SignedUp) error) (SignedUp, error) {
	email = flow.FoldEmail(email)
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
	if out.Account.PasswordHash, err = a.hash(ctx, password); err != nil {
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

// demoSetting is where the demo project's public key is kept, for everyone to see.
const demoSetting = "demo_public_key"

// Demo makes the demo account of a pretend world and keeps its public key by
// name. keep gets the keys before the account is: what it does not keep is lost,
// and then nothing was made.
func (a *Accounts) Demo(ctx context.Context, email, password, business string, keep func(SignedUp) error) (SignedUp, error) {
	return a.signUp(ctx, email, password, business, func(tx *store.Tx, made SignedUp) error {
		if err := keep(made); err != nil {
			return err
		}
		return tx.SetSetting(ctx, demoSetting, made.PublicKey)
	})
}

// draw makes an account's ids and keys.
func (a *Accounts) draw(email, business string) (SignedUp, []flow.Key, error) {
	var ids [4]string
	for i, prefix := range []string{flow.PrefixAccount, flow.PrefixProject, flow.PrefixKey, flow.PrefixKey} {
		var err error
		if ids[i], err = a.ids.New(prefix); err != nil {
			return SignedUp{}, nil, err
		}
	}
	now := a.ids.Now()
	out := SignedUp{
		Account: flow.Account{ID: ids[0], Email: email, Business: business, CreatedAt: now},
		Project: flow.Project{ID: flow.ProjectID(ids[1]), Account: ids[0], Name: business, KYC: flow.KYCNone, CreatedAt: now},
	}
	var err error
	if out.PublicKey, err = flow.NewKeyText(flow.Test, flow.PublicKey, a.ids.Rand); err != nil {
		return SignedUp{}, nil, err
	}
	if out.SecretKey, err = flow.NewKeyText(flow.Test, flow.SecretKey, a.ids.Rand); err != nil {
		return SignedUp{}, nil, err
	}
	key := func(id string, kind flow.KeyKind, text string) flow.Key {
		return flow.Key{
			ID: id, Project: out.Project.ID, Environment: flow.Test, Kind: kind, Hash: flow.HashKey(text), Hint: flow.HintKey(text), CreatedAt: now,
		}
	}
	return out, []flow.Key{key(ids[2], flow.PublicKey, out.PublicKey), key(ids[3], flow.SecretKey, out.SecretKey)}, nil
}
