package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"till/bot/whatsapp"
	"till/cmd/till/doctor"
	"till/cmd/till/sealing"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// How long a data dir that is taken is tried for.
const (
	lockTries = 3
	lockWait  = 20 * time.Millisecond
)

// openDir makes the data dir and takes it for this process alone. A dir that
// was made in vain goes again.
func (a *app) openDir() error {
	dir := a.set.DataDir
	_, err := os.Stat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if left := setAside(dir); made && left != "" {
		return fmt.Errorf("the data dir %s is not there, and %s is: a restore was cut off (put it back:  mv %[2]s %[1]s  and restore again; or choose another --data-dir)", dir, left)
	}
	if parent := above(dir); made && parent != "" {
		return fmt.Errorf("the data dir %s is not there, and %s is one: this Till would begin with nothing (move what %[2]s holds into %[1]s; or choose  --data-dir %[2]s)", dir, parent)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the data dir %s cannot be made: %w (choose another --data-dir)", dir, err)
	}
	if a.shares() {
		return nil
	}
	unlock, err := lockFile(under(dir, "lock"))
	for range lockTries { // a doctor that looks holds it for a moment
		if err == nil {
			break
		}
		time.Sleep(lockWait)
		unlock, err = lockFile(under(dir, "lock"))
	}
	if store.Unopened(err) {
		return unread("lock", err)
	}
	if err != nil {
		return fmt.Errorf("the data dir %s cannot be used: %w (choose another --data-dir)", dir, err)
	}
	a.closing(func() error {
		if left, err := os.ReadDir(dir); made && err == nil && len(left) == 1 { // the lock alone
			_ = os.Remove(under(dir, "lock"))
			_ = os.Remove(dir)
		}
		return unlock()
	})
	// Who finds it taken is told by whom.
	if err := os.WriteFile(under(dir, "lock"), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return fmt.Errorf("the data dir %s cannot be used: %w (choose another --data-dir)", dir, err)
	}
	return nil
}

// above is the folder of a data dir where that is a data dir itself, "" where it is
// not. The unit and the container once kept what is now one level below there.
func above(dataDir string) string {
	place, err := filepath.Abs(dataDir)
	if err != nil {
		return ""
	}
	place = filepath.Dir(place)
	for _, has := range []string{under(place, "accounts.db"), whatsapp.KeysFile(under(place, keysDir), string(flow.Test), 1)} {
		if _, err := os.Stat(has); err == nil {
			return place
		}
	}
	return ""
}

// shares says whether several processes may use one data dir: with all else
// elsewhere, only the keys of the numbers are in it, and those have locks.
func (a *app) shares() bool {
	return a.set.DatabaseURL != "" && a.set.BankURL != "" && !a.set.InsideWhatsApp()
}

// openStores opens the accounts and both environments, which share nothing.
func (a *app) openStores(ctx context.Context, dev bool) (test, live *store.DB, err error) {
	keys, err := a.sealingKeys(ctx, dev)
	if err != nil {
		return nil, nil, err
	}
	stamp := beforeMigrate + flow.Stamp(time.Now())
	open := func(schema store.Schema, name string) *store.DB {
		if err != nil {
			return nil
		}
		if err = a.keepBefore(ctx, schema, name, stamp); err != nil {
			return nil
		}
		var db *store.DB
		c := inDir(a.set, schema, name)
		c.Log, c.Keys, c.Seal, c.Secrets, c.Commits = a.log, keys, true, sealing.Settings(), a.meter.Commits
		if db, err = store.Open(ctx, c); err != nil {
			err = cannotOpen(a.set, name, err)
			return nil
		}
		a.closing(leaveLate(ctx, db)) // it ends after that is closed
		a.closing(db.Close)
		return db
	}
	if err = accountsGone(ctx, a.set); err == nil {
		a.settings = open(store.Accounts, "accounts")
	}
	if err == nil {
		var since string
		if since, err = a.settings.Setting(ctx, booksBegun); err == nil {
			err = booksGone(ctx, a.set, since)
		}
	}
	test, live = open(store.Checkout, string(flow.Test)), open(store.Checkout, string(flow.Live))
	if err != nil {
		return nil, nil, err
	}
	if err := a.settings.Update(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, booksBegun, flow.Stamp(time.Now())) }); err != nil {
		return nil, nil, err
	}
	a.accounts = checkout.NewAccounts(a.settings, a.clock.Now, rand.Reader)
	a.checkStores(a.settings, test, live)
	if a.set.DatabaseURL == "" {
		a.checkDisk(doctor.DiskSpace)
	} else {
		a.checkSchemas(test, live)
		a.checkSealing(a.settings, test, live)
	}
	a.checkBank()
	return test, live, nil
}

// answersWithin is how long a database may hold up the end of the program: what was begun
// is ended by then, or the database hangs.
const answersWithin = 7 * time.Second

// leaveLate gives a database up that does not answer so long after ctx has ended, until
// the function that it returns is called.
func leaveLate(ctx context.Context, db *store.DB) (ended func() error) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-over:
			return
		}
		late := time.NewTimer(answersWithin)
		defer late.Stop()
		select {
		case <-late.C:
			db.Leave()
		case <-over:
		}
	}()
	return func() error {
		close(over)
		return nil
	}
}

// booksBegun is the setting of the accounts that says when both books were first made.
// Merchants can be registered before that.
const booksBegun = "books_begun"

// accountsGone refuses to make the accounts anew beside the books of their projects:
// no key would be known any more. The books are looked for first: they are made after the
// accounts, maybe this moment by another process.
func accountsGone(ctx context.Context, set config.Settings) error {
	if books, seen := holds(ctx, set, string(flow.Test)); !seen || !books {
		return nil
	}
	if accounts, seen := holds(ctx, set, "accounts"); !seen || accounts {
		return nil
	}
	return gone(set, "accounts", called(set, string(flow.Test))+" is there")
}

// booksGone refuses to make the books of an environment anew where the accounts know
// since when they have been there: all that was paid would be gone, and nobody would hear
// of it.
func booksGone(ctx context.Context, set config.Settings, since string) error {
	if since == "" {
		return nil
	}
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		if books, seen := holds(ctx, set, string(env)); seen && !books {
			return gone(set, string(env), called(set, "accounts")+" knows that its books began on "+since)
		}
	}
	return nil
}

// holds says whether something was made in a database, or in the log of its file: one
// that lost its log may be there and have nothing in it. What cannot be seen is for
// whoever opens it to say.
func holds(ctx context.Context, set config.Settings, name string) (made, seen bool) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	made, err := store.Made(ctx, store.Config{Dir: set.DataDir, URL: string(set.DatabaseURL), Name: name})
	return made, err == nil || errors.Is(err, fs.ErrNotExist)
}

// called is what an operator calls a database.
func called(set config.Settings, name string) string {
	if set.DatabaseURL != "" {
		return "the schema " + name
	}
	return name + ".db"
}

func gone(set config.Settings, name, witness string) error {
	where, again := set.DataDir, "till restore FILE"
	if set.DatabaseURL != "" {
		where, again = "PostgreSQL", "till restore till.dump says how"
	}
	return fmt.Errorf("%s in %s is empty or gone, and %s: nothing was begun anew (put it back, or all of it:  %s; or choose another %s to begin anew)", called(set, name), where, witness, again, place(set))
}

// cannotOpen says in one line why a database is not there. What PostgreSQL's
// driver tells is a line for each way it tried: the last one says it.
func cannotOpen(set config.Settings, name string, err error) error {
	if errors.Is(err, store.ErrKey) {
		return fmt.Errorf("%w (%s)", err, giveKey(set))
	}
	if errors.Is(err, store.ErrOlder) {
		return fmt.Errorf("%w: start the server with this program first, or run till migrate; a server that is older needs the program it was started from", err)
	}
	if errors.Is(err, store.ErrNewer) {
		return fmt.Errorf("open the store: %w", err)
	}
	if errors.Is(err, store.ErrElsewhere) {
		return fmt.Errorf("%s stands in another's place: %w (the two were swapped, or one was copied over the other: put each back; or what till verify finds whole:  till restore FILE --yes)", called(set, name), err)
	}
	if errors.Is(err, store.ErrStrange) {
		return fmt.Errorf("%w (go on with the program that made it, on the copies in before-… if this one migrated it: till migrate --help; or put back what till verify finds whole:  till restore FILE; or begin anew with another %s)", err, place(set))
	}
	if set.DatabaseURL == "" && store.Full(err) {
		return noRoom(set.DataDir, err)
	}
	if set.DatabaseURL == "" && (store.Unopened(err) || store.Damaged(err)) {
		return unread(name+".db", err)
	}
	if own, ok := errors.AsType[*flow.Error](err); ok && own.Err != nil && set.DatabaseURL != "" {
		err = own.Err // what merchants read of it says nothing here
	}
	if set.DatabaseURL == "" || errors.Is(err, context.Canceled) {
		return fmt.Errorf("open the store: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	said := strings.TrimSpace(lines[len(lines)-1])
	if store.Pooled(err) {
		return fmt.Errorf("a pooler stands between Till and PostgreSQL, and does not pass on what a connection asks for: %s (give --database-url the address of PostgreSQL itself: Till pools its connections)", said)
	}
	return fmt.Errorf("the database cannot be used: %s (check --database-url)", said)
}

// place is the setting that says where what is kept stands.
func place(set config.Settings) string {
	if set.DatabaseURL != "" {
		return "--database-url"
	}
	return "--data-dir"
}

// noRoom says of a full disk what to do: a step of a migration is whole or was not taken.
func noRoom(dir string, err error) error {
	return fmt.Errorf("there is no room on the disk of %s: %w (df -h %[1]s; make room there, twice what its databases take, and do this again)", dir, err)
}

// kept is a secret that is drawn once and kept in the accounts, sealed.
func (a *app) kept(ctx context.Context, name string) (string, error) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	if err := a.settings.Update(ctx, func(tx *store.Tx) error { return tx.SetSecret(ctx, name, hex.EncodeToString(raw)) }); err != nil {
		return "", err
	}
	return a.settings.Secret(ctx, name)
}
