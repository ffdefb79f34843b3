package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// BeforeMigration is how the folders of a data dir begin that hold what databases
	// were before a migration.
	BeforeMigration = "before-"
	// BeforeRestore stands behind a data dir's name in that of what a restore set aside.
	BeforeRestore = ".before-"
	// copyServes is how long somebody may want to go back to one.
	copyServes = 30 * 24 * time.Hour
)

// copies tells of what migrations and restores keep: nobody else removes it, each is as
// large as all of the data, and what time or a payer's wish takes out of that stays in
// them.
func (l *look) copies() {
	place := l.DataDir
	if to, err := filepath.EvalSymlinks(place); err == nil { // they stand beside the folder, not beside a link to it
		place = to
	}
	var all, old []string
	size := int64(0)
	for _, in := range []struct{ dir, begins string }{{l.DataDir, BeforeMigration}, {filepath.Dir(place), filepath.Base(place) + BeforeRestore}} {
		entries, err := os.ReadDir(in.dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxEntries)] {
			info, err := e.Info()
			if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), in.begins) {
				continue
			}
			path := filepath.Join(in.dir, e.Name())
			all, size = append(all, path), size+sizeOf(path)
			if l.Now().Sub(info.ModTime()) > copyServes {
				old = append(old, quoted(path))
			}
		}
	}
	if len(all) == 0 {
		return
	}
	takes := bytesOf(uint64(max(size, 0)))
	what := fmt.Sprintf("%d copies of before, which migrations and restores keep, take %s", len(all), takes)
	if len(all) == 1 {
		what = fmt.Sprintf("A copy of before, %s, takes %s", all[0], takes)
	}
	if len(old) == 0 {
		l.ok(what + ".")
		return
	}
	l.warn(fmt.Sprintf("%s; of those that are older than %d days nobody takes out what is to be forgotten.", what, int(copyServes.Hours()/24)),
		"rm -r "+strings.Join(old, " ")+"   (once nobody wants to go back to them)")
}

// sizeOf is what the files in a folder take.
func sizeOf(dir string) (size int64) {
	seen := 0
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if seen++; err != nil || seen > maxEntries {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}
