package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"

	"till/cmd/till/sealing"
	"till/config"
	"till/flow/checkout"
	"till/flow/store"
)

// inDir is where a database of the settings is.
func inDir(set config.Settings, schema store.Schema, name string) store.Config {
	return store.Config{Schema: schema, Dir: set.DataDir, URL: string(set.DatabaseURL), Name: name}
}

// sealingKeys are what this process seals secrets with. The first start makes a
// key where the settings have none; a start that finds secrets sealed with one
// that is gone makes none: what is sealed would be lost without anybody seeing it.
func (a *app) sealingKeys(ctx context.Context, dev bool) (*store.Keyring, error) {
	keys, err := sealing.Keys(a.set)
	if err == nil {
		return store.NewKeyring(rand.Reader, keys[0], keys[1:]...)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find the key that seals secrets: %w", err)
	}
	if !dev && a.set.DatabaseURL != "" {
		return nil, errors.New("find the key that seals secrets: there is none (set TILL_SECRETS_KEY)")
	}
	for name, schema := range stores() {
		with, err := store.SealedWith(ctx, inDir(a.set, schema, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, cannotOpen(a.set, name, err)
		}
		if len(with.Keys) > 0 {
			return nil, fmt.Errorf("secrets in %s are sealed with key %s, and there is no key (%s)", name, strings.Join(with.Keys, " and "), giveKey(a.set))
		}
	}
	key, err := sealing.Make(a.set.DataDir, rand.Reader)
	if err != nil {
		return nil, err
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, "a key was made that seals secrets; keep a copy of it elsewhere", slog.String("file", under(a.set.DataDir, sealing.FileName)), slog.String("key", key.ID()))
	return store.NewKeyring(rand.Reader, key)
}

// besideKeys are what a command beside a server opens secrets with, nil where no
// key was made yet.
func besideKeys(set config.Settings) (*store.Keyring, error) {
	keys, err := sealing.Keys(set)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // as said above
	}
	if err != nil {
		return nil, fmt.Errorf("find the key that seals secrets: %w", err)
	}
	return store.NewKeyring(rand.Reader, keys[0], keys[1:]...)
}

// stores are the databases there are.
func stores() map[string]store.Schema {
	return map[string]store.Schema{"accounts": store.Accounts, "test": store.Checkout, "live": store.Checkout}
}

// giveKey says how a key is given that is missing.
func giveKey(set config.Settings) string {
	if set.DatabaseURL != "" || set.SecretsKey != "" {
		return "set TILL_SECRETS_KEY to that key, or TILL_SECRETS_KEY_OLD if it was changed for another"
	}
	return "put your copy of it back as " + under(set.DataDir, sealing.FileName) + ", or set TILL_SECRETS_KEY to it"
}

// sealedWith are the keys that the secrets in a folder's databases are sealed
// with.
func sealedWith(ctx context.Context, set config.Settings, dir string) ([]string, error) {
	set.DataDir = dir
	keys := []string{}
	for name, schema := range stores() {
		with, err := store.SealedWith(ctx, inDir(set, schema, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, unread(name+".db", err)
		}
		keys = append(keys, with.Keys...)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// keepKey takes the key file of one data dir to another that has none.
func keepKey(from, to string) (err error) {
	in, err := sealing.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := copyPlain(in, under(to, sealing.FileName)); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// missingKeys has what was unpacked keep the key file of the data dir whose place
// it takes, if it has none of its own, and says which keys its secrets are sealed
// with that neither that file nor the settings give.
func (c *restoreCmd) missingKeys(ctx context.Context, place, aside string) ([]string, error) {
	if err := keepKey(place, aside); err != nil {
		return nil, err
	}
	needs, err := sealedWith(ctx, c.Settings, aside)
	if err != nil {
		return nil, err
	}
	set := c.Settings
	set.DataDir = aside
	keys, err := sealing.Keys(set)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return slices.DeleteFunc(needs, func(id string) bool {
		return slices.ContainsFunc(keys, func(k store.SealingKey) bool { return k.ID() == id })
	}), nil
}

// openWith finds the key that secrets must be opened by. That of the data dir is not that
// of a backup where another is given: what is tried is whether that one would do elsewhere.
func (p *proof) openWith(set config.Settings) (err error) {
	if set.DataDir != p.at.DataDir {
		_, err := os.Stat(under(p.at.DataDir, sealing.FileName))
		if err == nil || set.SecretsKey != "" {
			set.DataDir = p.at.DataDir
		}
	}
	p.keys, err = besideKeys(set)
	return err
}

// secrets proves that every secret of a database is opened by the key there is. Who looks
// at a backup, or at PostgreSQL from elsewhere, may have none: then that is told.
func (p *proof) secrets(c store.Config, r store.Reader) error {
	c.Keys = p.keys
	got, err := r.SealedWith(p.w.ctx, c)
	if err != nil || got.Count == 0 {
		return err
	}
	one := proven{Database: c.Name, Check: "secrets", What: "every secret is opened by the key there is", Checked: got.Count, Wrong: len(got.Shut)}
	next := giveKey(p.at)
	if p.aside {
		next = "set TILL_SECRETS_KEY to that key, or TILL_SECRETS_KEY_OLD if it was changed for another, and verify again"
	}
	switch {
	case p.keys != nil:
		for _, shut := range got.Shut[:min(len(got.Shut), checkout.OffendersShown)] {
			one.Offenders = append(one.Offenders, proofOfOffender{ID: shut.Place, Says: "sealed with key " + shut.Key + ", and the key there is does not open it", Next: next})
		}
	case p.aside || p.at.DatabaseURL != "":
		p.shut = true
		return nil
	default:
		one.says(c.Name, "sealed with key "+strings.Join(got.Keys, " and ")+", and there is no key", next)
	}
	return p.found(one)
}
