package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"till/cmd/till/doctor"
	"till/config"
	"till/flow"
	"till/flow/store"
)

// migrateCmd brings the databases to what this program knows.
type migrateCmd struct {
	local

	DryRun bool `help:"Say what would be done, and do nothing."`
}

// beforeMigrate is how the folders begin that hold copies of before.
const beforeMigrate = doctor.BeforeMigration

func (migrateCmd) Help() string {
	return "Example:\n\n    till migrate --dry-run\n\nA start does the same by itself; this does it without one. Each step is a transaction of its own. " +
		"On SQLite a copy of each database that changes is kept in the data dir first (" + beforeMigrate + "…); going back is: stop Till, remove the databases with what SQLite keeps beside them " +
		"(rm accounts.db* test.db* live.db*, as far as there is a copy: the -wal of a program that was killed would be read into it), put the copies in their place, " +
		"till ledger hold --reason 'a copy of before was put back' and the same with --live, start the older program. " +
		"What came since is not in the copies, and what was paid out and refunded since would be sent again: till reconcile for each day since, then till ledger release. " +
		"A program that knows no till ledger hold sends it again: do not go back to that one once anything was sent."
}

// migration is what one database still needs.
type migration struct {
	Database string   `json:"database"`
	From     int      `json:"from"`
	To       int      `json:"to"`
	Steps    []string `json:"steps"`
	Copy     string   `json:"copy"` // of before, "" where none was needed or made
}

// Run migrates, or says what that would do.
func (c *migrateCmd) Run(w *world) (err error) {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.DatabaseURL == "" {
		if _, err := os.Stat(c.DataDir); err != nil {
			return fmt.Errorf("there is nothing to migrate: %w (is --data-dir right?)", err)
		}
	}
	if !c.DryRun && c.DatabaseURL == "" {
		unlock, held := lockDir(c.DataDir, "migrated")
		if held != nil {
			return held
		}
		defer func() { err = errors.Join(err, handOver(c.DataDir, ".", c.DataDir), unlock()) }()
	}
	list := []migration{}
	err = patiently(w, "still migrating", func() (err error) {
		list, err = migrate(w, c.Settings, c.DryRun)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, list)
	}
	for _, m := range list {
		text := fmt.Sprintf("%s  schema %d, nothing to do", m.Database, m.To)
		if len(m.Steps) > 0 {
			text = fmt.Sprintf("%s  schema %d -> %d: %s", m.Database, m.From, m.To, strings.Join(m.Steps, ", "))
		}
		if m.Copy != "" {
			text += "  (before: " + m.Copy + ")"
		}
		if _, err := fmt.Fprintln(w.out, text); err != nil {
			return err
		}
	}
	return nil
}

// migrate goes through the databases.
func migrate(w *world, set config.Settings, dry bool) ([]migration, error) {
	if err := nothingGone(w.ctx, set); err != nil {
		return nil, err
	}
	list := []migration{}
	stamp := beforeMigrate + flow.Stamp(time.Now())
	for _, name := range []string{"accounts", "test", "live"} {
		schema := store.Checkout
		if name == "accounts" {
			schema = store.Accounts
		}
		c := store.Config{Schema: schema, Dir: set.DataDir, URL: string(set.DatabaseURL), Name: name}
		got, err := store.Inspect(w.ctx, c, false, time.Now)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrUnmade) { // what is not there is made
			return nil, cannotOpen(set, name, err)
		}
		m := migration{Database: name, From: got.Version, To: got.Known, Steps: got.Pending}
		if got.Version > got.Known {
			return nil, fmt.Errorf("%s is of a newer Till (schema %d, this program knows %d): use that one", name, got.Version, got.Known)
		}
		if !dry {
			m.Copy, err = keepBefore(w.ctx, c, stamp, got)
			if store.Full(err) {
				return nil, noRoom(set.DataDir, err)
			}
			if err != nil {
				return nil, fmt.Errorf("keep a copy of %s: %w", name, err)
			}
			db, err := store.Open(w.ctx, c)
			if err != nil {
				return nil, cannotOpen(set, name, err)
			}
			if err := db.Close(); err != nil {
				return nil, err
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// nothingGone refuses to make anew what was there once, as a start does. What cannot be
// read is for whoever opens it to say.
func nothingGone(ctx context.Context, set config.Settings) error {
	switch accounts, seen := holds(ctx, set, "accounts"); {
	case !seen:
		return nil
	case !accounts:
		return accountsGone(ctx, set)
	}
	since := ""
	_ = store.Look(ctx, store.Config{Dir: set.DataDir, URL: string(set.DatabaseURL), Name: "accounts"}, func(accounts store.Reader) (err error) {
		since, err = accounts.Setting(ctx, booksBegun)
		return err
	})
	return booksGone(ctx, set, since)
}

// unfinished is how the name of a copy ends while it is written.
const unfinished = ".unfinished"

// keepBefore keeps a copy of a database that is about to be changed; it has its
// name once it is whole.
//
// A start that is killed while it migrates is repeated, maybe again and again. The
// copy of the start before is not taken for this one's: an older program may have
// run in between, and nothing says cheaply whether it wrote. So each makes its own,
// and those of the same schema, of which it is the latest, go after it. Those of
// other schemas stay: of a migration that was cut off between two steps, only the
// first copy is one that the older program reads.
func keepBefore(ctx context.Context, c store.Config, stamp string, got store.Inspection) (string, error) {
	if c.URL != "" || got.Version == 0 || len(got.Pending) == 0 {
		return "", nil
	}
	dir := under(c.Dir, strings.ReplaceAll(stamp, ":", ""))
	earlier, err := namesIn(c.Dir, beforeMigrate)
	if err != nil {
		return "", err
	}
	earlier = slices.DeleteFunc(earlier, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir() || path == dir // this try's own, once another database is in it
	})
	file := c.Name + ".db"
	for _, dir := range earlier {
		if err := removeCopy(dir, file+unfinished); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	to := under(dir, file)
	err = store.CopySQLite(ctx, under(c.Dir, file), to+unfinished)
	if err == nil {
		err = os.Rename(to+unfinished, to)
	}
	if err != nil {
		return "", errors.Join(err, removeCopy(dir, file+unfinished))
	}
	for _, dir := range earlier {
		c.Dir = dir
		before, err := store.Inspect(ctx, c, false, time.Now)
		if err != nil || before.Version != got.Version {
			continue // what cannot be read is not ours to remove
		}
		if err := removeCopy(dir, file); err != nil {
			return "", err
		}
	}
	return to, nil
}

// removeCopy removes a copy, what SQLite put beside it, and its folder once that
// is empty.
func removeCopy(dir, file string) error {
	for _, ending := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(under(dir, file+ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a copy: %w", err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return err
	}
	return os.Remove(dir)
}

// namesIn are the paths of what begins with some letters in a folder; none where
// there is no folder.
func namesIn(dir, begins string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for copies: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), begins) {
			paths = append(paths, under(dir, e.Name()))
		}
	}
	return paths, nil
}

// keepBefore keeps a copy of a database that this start is about to change. What
// cannot be read is for whoever opens it to say.
func (a *app) keepBefore(ctx context.Context, schema store.Schema, name, stamp string) error {
	if a.set.DatabaseURL != "" {
		return nil
	}
	c := store.Config{Schema: schema, Dir: a.set.DataDir, Name: name}
	got, err := store.Inspect(ctx, c, false, time.Now)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	kept, err := keepBefore(ctx, c, stamp, got)
	if store.Full(err) {
		return noRoom(a.set.DataDir, err)
	}
	if err != nil {
		return fmt.Errorf("keep a copy of %s before it is migrated: %w", name, err)
	}
	if kept != "" {
		a.log.LogAttrs(ctx, slog.LevelWarn, "a database is migrated; a copy of before is kept until you remove it (till migrate --help says how to go back to it)",
			slog.String("database", name), slog.String("copy", kept))
	}
	return nil
}
