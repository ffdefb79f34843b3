package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"till/cmd/till/sealing"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// local is what commands are told that are about the Till of this machine.
type local struct {
	config.Settings

	JSON bool `name:"json" help:"Print JSON."`
}

// environment says which environment a command is about.
type environment struct {
	local

	Live bool `help:"In the live environment instead of the test one."`
}

// env is the environment that the command is about.
func (e *environment) env() flow.Environment { return envOf(e.Live) }

// envOf is the environment that --live, or its absence, names.
func envOf(live bool) flow.Environment {
	if live {
		return flow.Live
	}
	return flow.Test
}

// beside is besideEnv for the environment.
func (e *environment) beside(w *world, none string, do func(*store.DB) error) error {
	return besideEnv(w, e.Settings, e.env(), "", none, do)
}

// besideEnv is beside for the store of an environment. That it is the live one is
// said first, with where it is and whose money that is: a project's where it is
// about one, or else of those that take real money.
func besideEnv(w *world, set config.Settings, env flow.Environment, project flow.ProjectID, none string, do func(*store.DB) error) error {
	return beside(w, set, store.Checkout, string(env), none, func(db *store.DB) error {
		if env == flow.Live {
			if err := sayLive(w, set, project); err != nil {
				return err
			}
		}
		return do(db)
	})
}

// liveNamed is how many projects are named before something is done to all.
const liveNamed = 3

// sayLive says on stderr what is about to be touched.
func sayLive(w *world, set config.Settings, project flow.ProjectID) error {
	whose := "no project takes real money yet"
	err := withAccounts(w, set, func(a *checkout.Accounts) error {
		list, err := a.Merchants(w.ctx, flow.KYCApproved, "", liveNamed+1)
		if project != "" {
			var one store.Merchant
			one, err = a.Merchant(w.ctx, project)
			list = []store.Merchant{one}
		}
		if err != nil || len(list) == 0 {
			return err
		}
		var names []string
		for _, m := range list[:min(len(list), liveNamed)] {
			names = append(names, fmt.Sprintf("%s (%s)", plain(m.Project.Name), m.Project.ID))
		}
		if whose = "project " + names[0]; len(list) > 1 {
			whose = "projects " + strings.Join(names, ", ")
		}
		if len(list) > liveNamed {
			whose += " and others"
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.err, "till: live, %s: %s\n", whereKept(set), whose)
	return err
}

// whereKept is where everything is kept, with the machine's name and without a
// password.
func whereKept(set config.Settings) string {
	if set.DatabaseURL != "" {
		at, err := url.Parse(string(set.DatabaseURL))
		if err != nil {
			return "PostgreSQL"
		}
		return "PostgreSQL at " + at.Host + at.Path
	}
	dir, err := filepath.Abs(set.DataDir)
	if err != nil {
		dir = set.DataDir
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return dir + " on " + host
}

// beside opens a store for one command, whatever else has it open. Where there
// is no such store, none says what is not there: a wrong --data-dir must not
// look like an empty one.
func beside(w *world, set config.Settings, schema store.Schema, name, none string, do func(*store.DB) error) (err error) {
	if err := set.Check(); err != nil {
		return usageError{err}
	}
	if set.DatabaseURL == "" {
		if err := there(set, name, none); err != nil {
			return err
		}
	}
	c := inDir(set, schema, name)
	c.AsIs = true // the program that serves may be an older one, and no copy is kept here
	if c.Keys, err = besideKeys(set); err != nil {
		return unread(sealing.FileName, err)
	}
	db, err := store.Open(w.ctx, c)
	if err != nil {
		return cannotOpen(set, name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}

// there says why a database of the data dir cannot be used, nil where it is there. none
// says what is not there, as above.
func there(set config.Settings, name, none string) error {
	_, err := os.Stat(under(set.DataDir, name+".db"))
	if err == nil || store.Unopened(err) {
		return unread(name+".db", err)
	}
	return fmt.Errorf("%s in %s: %w (is --data-dir right? the first start of till dev or till serve makes what is kept)", none, set.DataDir, err)
}

// lockDir takes a data dir for this process alone, as a server does. done says what
// cannot be done to it while another has it.
func lockDir(dir, done string) (unlock func() error, err error) {
	unlock, err = lockFile(under(dir, "lock"))
	if err == nil || store.Unopened(err) {
		return unlock, unread("lock", err)
	}
	return nil, fmt.Errorf("the data dir %s cannot be %s: %w (stop it first, and start it again afterwards)", dir, done, err)
}

// unread says what to do about an error, where it is that the system did not let us
// open something that is kept, which is no finding: what is in it may hold; or that it
// is a database that is damaged.
func unread(what string, err error) error {
	switch {
	case store.Unopened(err):
		return fmt.Errorf("%s cannot be opened: %w (run it as the owner of the data dir, on a disk that can be written and takes more files: df -i)", what, err)
	case store.Damaged(err):
		if own, ok := errors.AsType[*flow.Error](err); ok && own.Err != nil {
			err = own.Err // what merchants read of it says nothing here
		}
		return fmt.Errorf("%s is damaged: %w (restore a backup that is whole: till verify FILE, then  till restore FILE --yes)", what, err)
	}
	return err
}
