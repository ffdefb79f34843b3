package main

import (
	"errors"
	"fmt"
	"os"

	"till/config"
	"till/flow"
	"till/flow/store"
)

// environment says which environment a command is about.
type environment struct {
	config.Settings

	Live bool `help:"In the live environment instead of the test one."`
	JSON bool `name:"json" help:"Print JSON."`
}

// env is the environment that the command is about.
func (e *environment) env() flow.Environment {
	if e.Live {
		return flow.Live
	}
	return flow.Test
}

// beside is beside for the store of the environment.
func (e *environment) beside(w *world, none string, do func(*store.DB) error) error {
	return beside(w, e.Settings, store.Checkout, string(e.env()), none, do)
}

// beside opens a store for one command, whatever else has it open. Where there
// is no such store, none says what is not there: a wrong --data-dir must not
// look like an empty one.
func beside(w *world, set config.Settings, schema store.Schema, name, none string, do func(*store.DB) error) (err error) {
	if err := set.Check(); err != nil {
		return usageError{err}
	}
	if set.DatabaseURL == "" {
		if _, err := os.Stat(under(set.DataDir, name+".db")); err != nil {
			return fmt.Errorf("%s in %s: %w (is --data-dir right?)", none, set.DataDir, err)
		}
	}
	db, err := store.Open(w.ctx, store.Config{Schema: schema, Dir: set.DataDir, URL: string(set.DatabaseURL), Name: name})
	if err != nil {
		return cannotOpen(set, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}
