package checkout

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"till/flow"
	"till/flow/store"
)

// The bounds of what is remembered of keys.
const (
	// KeyMemory is how long a key that was found is believed without asking the
	// store again. What this process changes it forgets at once; what another one
	// does (an operator's command) holds after this time.
	KeyMemory = time.Second
	maxKeys   = 4096
	// useBatch is how long the uses of keys are gathered before they are written.
	useBatch = 200 * time.Millisecond
)

// keyMemory remembers keys that were found, and which of them were used.
type keyMemory struct {
	mu    sync.RWMutex
	known map[string]*knownKey // by hash
	turn  int                  // moves whenever something is forgotten
	used  map[string]time.Time // by id: not yet written
	wake  chan struct{}
}

type knownKey struct {
	key     flow.Key
	project flow.Project
	since   time.Time
}

func newKeyMemory() *keyMemory {
	return &keyMemory{known: map[string]*knownKey{}, used: map[string]time.Time{}, wake: make(chan struct{}, 1)}
}

// get is what is remembered of a key, and the turn to remember it by if nothing is.
func (m *keyMemory) get(hash string, now time.Time) (one knownKey, turn int, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if k, there := m.known[hash]; there && now.Sub(k.since).Abs() < KeyMemory {
		return *k, m.turn, true
	}
	return knownKey{}, m.turn, false
}

// put remembers a key that was read, unless something was forgotten since the
// turn: then it may be out of date already.
func (m *keyMemory) put(hash string, one knownKey, turn int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn != turn {
		return
	}
	if _, there := m.known[hash]; !there && len(m.known) >= maxKeys {
		for other := range m.known { // any: it is read again when it is needed
			delete(m.known, other)
			break
		}
	}
	m.known[hash] = &one
}

// forget drops what a change has made untrue.
func (m *keyMemory) forget(stale func(k flow.Key) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn++
	for hash, one := range m.known {
		if stale(one.key) {
			delete(m.known, hash)
		}
	}
}

// use notes that a key was used. Nothing waits for it to be written.
func (m *keyMemory) use(hash string, k flow.Key, now time.Time) {
	if now.Sub(k.LastUsedAt) < flow.KeyUseNoted {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if one, there := m.known[hash]; there {
		one.key.LastUsedAt = now
	}
	if _, there := m.used[k.ID]; !there && len(m.used) >= maxKeys {
		return
	}
	m.used[k.ID] = now
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// take hands out the uses that are to be written.
func (m *keyMemory) take() map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.used
	m.used = map[string]time.Time{}
	return used
}

// back takes in uses that were not written: they are with the next ones.
func (m *keyMemory) back(used map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, at := range used {
		if _, later := m.used[id]; !later && len(m.used) < maxKeys {
			m.used[id] = at
		}
	}
}

// Run writes down when keys were used, and forgets calls that were kept long
// enough, until ctx ends. A store that cannot be written says so to those who
// need it; what was not written is written with the next uses.
func (a *Accounts) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.gatherUses(ctx) })
	group.Go(func() error { return a.calls.tidy(ctx, func(error) {}) })
	return group.Wait()
}

func (a *Accounts) gatherUses(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), a.noteUses(context.WithoutCancel(ctx)))
		case <-a.keys.wake:
		}
		select {
		case <-ctx.Done():
			continue
		case <-time.After(useBatch):
		}
		_ = a.noteUses(ctx) // it is with the next uses
	}
}

func (a *Accounts) noteUses(ctx context.Context) error {
	used := a.keys.take()
	if len(used) == 0 {
		return nil
	}
	err := a.db.Update(ctx, func(tx *store.Tx) error { return tx.NoteKeyUse(ctx, used) })
	if err != nil {
		a.keys.back(used)
	}
	return err
}

// Authenticate finds whose key a text is. Errors: invalid_api_key,
// expired_api_key, revoked_api_key.
func (a *Accounts) Authenticate(ctx context.Context, text string) (flow.Key, flow.Project, error) {
	invalid := flow.Refuse(flow.CodeInvalidKey, "This API key does not exist. Check that it was copied whole.")
	env, _, ok := flow.ReadKeyText(text)
	switch {
	case flow.IsTokenText(text):
		return flow.Key{}, flow.Project{}, flow.Refuse(flow.CodeInvalidKey, "This is a dashboard token, which works for accounts, projects and keys alone. This call needs an API key (sk_…).")
	case !ok:
		return flow.Key{}, flow.Project{}, invalid
	}
	hash, now := flow.HashKey(text), a.clock(env)
	one, turn, ok := a.keys.get(hash, now)
	if !ok {
		var found bool
		var err error
		if one.key, one.project, found, err = a.db.KeyByHash(ctx, hash); err != nil {
			return flow.Key{}, flow.Project{}, err
		}
		if !found || subtle.ConstantTimeCompare([]byte(one.key.Hash), []byte(hash)) != 1 {
			return flow.Key{}, flow.Project{}, invalid
		}
		one.since = now
		a.keys.put(hash, one, turn)
	}
	if err := one.key.Usable(now); err != nil {
		return flow.Key{}, flow.Project{}, err
	}
	a.keys.use(hash, one.key, now)
	return one.key, one.project, nil
}

// NewKey is a key that was just made. Text is shown this once.
type NewKey struct {
	Key  flow.Key
	Text string
}

// MakeKey makes a key of a project. Errors: kyc_required and project_suspended
// for a live one, invalid_field for one too many.
func (a *Accounts) MakeKey(ctx context.Context, p flow.Project, env flow.Environment, kind flow.KeyKind, c Call) (Answer, error) {
	made, err := a.drawKey(p.ID, env, kind)
	if err != nil {
		return Answer{}, err
	}
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		return Made{Key: made}, made.Key.ID, a.addKey(ctx, tx, made.Key)
	})
	return answer, wrap("make a key", err)
}

// addKey keeps a key where its project may have one more, as the project stands
// in the transaction.
func (a *Accounts) addKey(ctx context.Context, tx *store.Tx, k flow.Key) error {
	p, err := tx.Project(ctx, k.Project)
	if err != nil {
		return err
	}
	if err := p.MayUse(k.Environment); err != nil {
		return err
	}
	n, err := tx.CountKeys(ctx, p.ID, k.CreatedAt)
	if err != nil {
		return err
	}
	if n >= flow.MaxKeys {
		return flow.Refuse(flow.CodeInvalidField, "A project has at most %d keys that work. Revoke one first.", flow.MaxKeys)
	}
	return tx.AddKey(ctx, k)
}

func (a *Accounts) drawKey(project flow.ProjectID, env flow.Environment, kind flow.KeyKind) (NewKey, error) {
	id, err := a.ids.New(flow.PrefixKey)
	if err != nil {
		return NewKey{}, err
	}
	text, err := flow.NewKeyText(env, kind, a.ids.Rand)
	if err != nil {
		return NewKey{}, err
	}
	return NewKey{Text: text, Key: flow.Key{
		ID: id, Project: project, Environment: env, Kind: kind, Hash: flow.HashKey(text), Hint: flow.HintKey(text), CreatedAt: a.clock(env),
	}}, nil
}

// RotateKey makes the successor of a key, which works on for the overlap.
// Errors: resource_not_found for a key that does not work any more, and those of
// MakeKey.
func (a *Accounts) RotateKey(ctx context.Context, p flow.Project, id string, overlap time.Duration, c Call) (Answer, error) {
	old, err := a.db.Key(ctx, p.ID, id)
	if err != nil {
		return Answer{}, err
	}
	made, err := a.drawKey(p.ID, old.Environment, old.Kind)
	if err != nil {
		return Answer{}, err
	}
	now := made.Key.CreatedAt
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		k, err := tx.Key(ctx, p.ID, id)
		if err != nil {
			return Made{}, "", err
		}
		if k.Status(now) != flow.KeyActive {
			return Made{}, "", flow.Refuse(flow.CodeNotFound, "This key is %s: there is nothing to rotate. Make a new one.", k.Status(now))
		}
		k = k.Rotated(overlap, now)
		if err := tx.EndKey(ctx, k); err != nil {
			return Made{}, "", err
		}
		return Made{Key: made, Replaced: k}, made.Key.ID, a.addKey(ctx, tx, made.Key)
	})
	a.keys.forget(func(k flow.Key) bool { return k.ID == id })
	return answer, wrap("rotate a key", err)
}

// RevokeKey ends a key at once. Revoking it again changes nothing. Errors:
// resource_not_found.
func (a *Accounts) RevokeKey(ctx context.Context, p flow.Project, id string) (flow.Key, error) {
	var out flow.Key
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		k, err := tx.Key(ctx, p.ID, id)
		if err != nil {
			return err
		}
		if k.RevokedAt.IsZero() {
			k.RevokedAt = a.clock(k.Environment)
		}
		out = k
		return tx.EndKey(ctx, k)
	})
	a.keys.forget(func(k flow.Key) bool { return k.ID == id })
	return out, wrap("revoke a key", err)
}

// Key reads a key of a project. Errors: resource_not_found.
func (a *Accounts) Key(ctx context.Context, p flow.Project, id string) (flow.Key, error) {
	return a.db.Key(ctx, p.ID, id)
}

// Keys lists a project's keys, newest first; more says that there are others.
func (a *Accounts) Keys(ctx context.Context, p flow.Project, before string, limit int) (keys []flow.Key, more bool, err error) {
	keys, err = a.db.Keys(ctx, p.ID, before, limit+1)
	return page(keys, limit, err)
}

// WorkingKey is the newest key of a kind that a project can use now; false for none.
func (a *Accounts) WorkingKey(ctx context.Context, project flow.ProjectID, env flow.Environment, kind flow.KeyKind) (flow.Key, bool, error) {
	return a.db.WorkingKey(ctx, project, env, kind, a.clock(env))
}

// KeyStatus says whether a key works now.
func (a *Accounts) KeyStatus(k flow.Key) flow.KeyStatus { return k.Status(a.clock(k.Environment)) }

// AddProject makes a project of an account, with a pair of test keys. Errors:
// invalid_field for one too many.
func (a *Accounts) AddProject(ctx context.Context, account, name string, c Call) (Answer, error) {
	id, err := a.ids.New(flow.PrefixProject)
	if err != nil {
		return Answer{}, err
	}
	p := flow.Project{ID: flow.ProjectID(id), Account: account, Name: name, KYC: flow.KYCNone, CreatedAt: a.desk()}
	var pair []NewKey
	for _, kind := range []flow.KeyKind{flow.PublicKey, flow.SecretKey} {
		k, err := a.drawKey(p.ID, flow.Test, kind)
		if err != nil {
			return Answer{}, err
		}
		pair = append(pair, k)
	}
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		n, err := tx.CountProjects(ctx, account)
		if err == nil && n >= flow.MaxProjects {
			err = flow.Refuse(flow.CodeInvalidField, "An account has at most %d projects.", flow.MaxProjects)
		}
		if err == nil {
			err = tx.AddProject(ctx, p)
		}
		for _, k := range pair {
			if err == nil {
				err = tx.AddKey(ctx, k.Key)
			}
		}
		return Made{Project: p, Pair: pair}, id, err
	})
	return answer, wrap("make a project", err)
}

// Project is a project of an account; another's does not exist. Errors:
// resource_not_found.
func (a *Accounts) Project(ctx context.Context, account string, id flow.ProjectID) (flow.Project, error) {
	p, err := a.db.Project(ctx, id)
	if err == nil && p.Account != account {
		err = flow.Refuse(flow.CodeNotFound, "There is no project %q.", string(id))
	}
	if err != nil {
		return flow.Project{}, fmt.Errorf("find a project: %w", err)
	}
	return p, nil
}

// Projects lists an account's projects, newest first; more says that there are
// others.
func (a *Accounts) Projects(ctx context.Context, account string, before flow.ProjectID, limit int) (projects []flow.Project, more bool, err error) {
	projects, err = a.db.Projects(ctx, account, before, limit+1)
	return page(projects, limit, err)
}
