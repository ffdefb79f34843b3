package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// deserted is how old a folder aside is at least that nobody has a use for. It
// bounds no copy, which holds a lock: a folder of less may not have its lock yet.
const deserted = time.Hour

// aside makes a folder for what is on its way to its name, beside where that will
// stand: of one disk, it takes its place in one move. Whoever made it calls done,
// which removes what is left of it. What a kill left of another one is removed
// first, or each would cost as much room as all of the data: that is told, and so
// is what could not be removed, which is no reason not to go on.
func aside(w *world, folder, purpose string) (dir string, done func() error, err error) {
	begins := ourTemporary + purpose + "-"
	w.sweep(folder, begins, time.Now())
	if dir, err = os.MkdirTemp(folder, begins+"*"); err != nil {
		return "", nil, err
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), unlock()) }, nil
}

// sweep removes the folders of a name's beginning that nobody has a use for.
func (w *world) sweep(folder, begins string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // making one there says more of it
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), begins) {
			continue
		}
		dir := filepath.Join(folder, e.Name())
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < deserted {
			continue
		}
		if lock, err := os.Lstat(filepath.Join(dir, "lock")); err != nil || !lock.Mode().IsRegular() {
			continue // not ours
		}
		unlock, err := lockFile(filepath.Join(dir, "lock"))
		if err != nil {
			continue // somebody works in it, or it is not ours
		}
		if err := errors.Join(os.RemoveAll(dir), unlock()); err != nil {
			_, _ = fmt.Fprintf(w.err, "%s, which was left by one that was killed, could not be removed: %v\n", dir, err)
			continue
		}
		_, _ = fmt.Fprintf(w.err, "Removed %s, which was left by one that was killed.\n", dir)
	}
}
