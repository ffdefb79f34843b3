package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"till/bot/whatsapp"
	"till/config"
	"till/flow"
	"till/flow/store"
)

// This file is about the files that a payer stands in, beside the rows of databases.

// keyFile is a file with the keys of one of our numbers, and what it has of a payer.
type keyFile struct {
	Name string   `json:"file"`
	Rows int      `json:"rows"`
	ids  []string // that it knows them by
	path string
}

// keyFiles are the files with the keys of our numbers.
func keyFiles(ctx context.Context, set config.Settings, ids []string) ([]keyFile, error) {
	paths, err := filepath.Glob(filepath.Join(under(set.DataDir, keysDir), "*.db"))
	if err != nil {
		return nil, fmt.Errorf("look for the keys of the numbers: %w", err)
	}
	list := []keyFile{}
	for _, path := range paths {
		f := keyFile{Name: keysDir + "/" + filepath.Base(path), path: path}
		if f.ids, f.Rows, err = whatsapp.People(ctx, path, ids); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		list = append(list, f)
	}
	return list, nil
}

// logs counts the words in the log, and puts by in their place where there is one.
func (c *payerForgetCmd) logs(words []string, by string) (places int, err error) {
	files, err := filepath.Glob(filepath.Join(under(c.DataDir, logsDir), "*"))
	if err != nil {
		return 0, fmt.Errorf("look for the log: %w", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return places, fmt.Errorf("read the log: %w", err)
		}
		here := 0
		for _, word := range words {
			without, n := flow.Replace(string(text), word, by)
			if by != "" {
				text = []byte(without)
			}
			here += n
		}
		if places += here; here == 0 || by == "" {
			continue
		}
		if err := writeSecret(name, string(text)); err != nil { // killed meanwhile, no line of it is lost
			return places, fmt.Errorf("change the log: %w", err)
		}
	}
	return places, nil
}

// copies are what migrations and restores set aside.
func (c *payerForgetCmd) copies() ([]string, error) {
	list := []string{}
	place, err := placeOf(c.DataDir)
	if err != nil {
		return nil, err
	}
	for _, in := range []struct{ dir, begins string }{{c.DataDir, beforeMigrate}, {filepath.Dir(place), filepath.Base(place) + asideInfix}} {
		found, err := namesIn(in.dir, in.begins)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

// end writes the files anew from which somebody was taken, and removes the copies
// where that is asked for; left are those that stay. Killed before, on SQLite the next
// start of a server writes them.
func (c *payerForgetCmd) end(w *world, copies []string) (left []string, err error) {
	if err := c.wipe(w, store.Accounts, "accounts"); err != nil {
		return copies, err
	}
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		used := false
		if err := c.in(w, env, func(*store.DB) error { used = true; return nil }); err != nil {
			return copies, err
		}
		if !used {
			continue
		}
		if err := c.wipe(w, store.Checkout, string(env)); err != nil {
			return copies, err
		}
	}
	if !c.Copies {
		return copies, nil
	}
	for _, dir := range copies {
		if err := os.RemoveAll(dir); err != nil {
			return copies, fmt.Errorf("remove a copy: %w", err)
		}
	}
	return []string{}, nil
}

// wipe writes a database anew.
func (c *payerForgetCmd) wipe(w *world, schema store.Schema, name string) error {
	if c.DatabaseURL == "" {
		if _, err := os.Stat(under(c.DataDir, name+".db")); errors.Is(err, fs.ErrNotExist) {
			return nil // it was never made
		} else if err != nil {
			return fmt.Errorf("look for a database: %w", err)
		}
	}
	return store.Wipe(w.ctx, inDir(c.Settings, schema, name))
}
