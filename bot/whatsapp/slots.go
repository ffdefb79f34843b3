package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// This file knows the places of numbers: each has its keys in a file of one folder.

// KeysFile is where the keys of the number in a slot are.
func KeysFile(dir, name string, slot int) string {
	return filepath.Join(dir, name+"-"+strconv.Itoa(slot)+".db")
}

var keysName = regexp.MustCompile(`^([a-z]+)-([1-9]\d{0,3})\.db$`)

// Slots are the places that have keys in a folder, in order.
func Slots(dir, name string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the folder of the keys: %w", err)
	}
	var slots []int
	for _, f := range files {
		if m := keysName.FindStringSubmatch(f.Name()); m != nil && m[1] == name {
			slot, err := strconv.Atoi(m[2])
			if err == nil {
				slots = append(slots, slot)
			}
		}
	}
	slices.Sort(slots)
	return slots, nil
}

// foundEvery is the time between two looks for a number that was linked meanwhile.
const foundEvery = 2 * time.Second

// found are the places of all numbers until ctx ends: those that there are, and those
// that are linked meanwhile, beside processes that share the folder of the keys.
func (f *Fleet) found(ctx context.Context) iter.Seq[int] {
	return func(yield func(int) bool) {
		look := time.NewTicker(foundEvery)
		defer look.Stop()
		for told := 0; ; {
			f.mu.Lock()
			added := slices.Clone(f.slots[told:])
			f.mu.Unlock()
			for _, slot := range added {
				if told++; !yield(slot) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			there, err := Slots(f.cfg.Dir, f.cfg.Name)
			if err != nil {
				continue // what cannot be read now is found later
			}
			f.mu.Lock()
			for _, slot := range there {
				if !slices.Contains(f.slots, slot) && len(f.slots) < MaxNumbers {
					f.slots = append(f.slots, slot)
				}
			}
			f.mu.Unlock()
		}
	}
}
