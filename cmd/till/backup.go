package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"till/cmd/till/doctor"
	"till/cmd/till/sealing"
	"till/flow"
	"till/flow/store"
)

// backupCmd writes everything that is kept into one file.
type backupCmd struct {
	local

	File    string `arg:"" help:"The file to write, as till-2026-11-22.tar.gz; it must not be there, and not stand in the data dir."`
	WithKey bool   `help:"Also the file with the key that secrets are sealed with: whoever has the backup then reads them."`
}

// Help is the command's example and what it promises.
func (backupCmd) Help() string {
	return "Example:\n\n    till backup till-$(date +%F).tar.gz\n\n" +
		"It runs beside a server, which goes on working. Each database is written as it stood at one moment, whole, as after a power cut then. " +
		"The moments are not the same one: the accounts come last, so that no session lacks its project; between test, live and the keys of WhatsApp's numbers nothing depends on the moment. " +
		"It ends with the same file or none, readable for its owner alone: the keys of numbers and payers' names are in it. " +
		"Secrets are sealed in it, and the key that opens them, " + sealing.FileName + ", is left out unless --with-key is given: keep a copy of it elsewhere, once. A restore says which key it needs."
}

// manifest is the first file of a backup: what is in it.
type manifest struct {
	Version string       `json:"version"`
	At      string       `json:"at"`
	Keys    []string     `json:"keys"` // ids of those that its secrets are sealed with
	Files   []backedFile `json:"files"`
}

// backedFile is one file of a backup.
type backedFile struct {
	Name   string `json:"name"` // under the data dir
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	manifestName = "manifest.json"
	// ourTemporary is how the names begin of what is on its way to another name; a
	// kill leaves it.
	ourTemporary = ".till-"
	// maxBackedFiles is how many files a data dir has at most: a database for
	// each number and a few more.
	maxBackedFiles = 2000
)

// postgresFirst refuses for a database that has tools of its own. Lines say what to do
// besides.
func postgresFirst(what, with string, lines ...string) error {
	text := "PostgreSQL keeps the data, and has a tool for this: till does not " + what + ". Use:  " + with
	return refusedError{errors.New(strings.Join(append([]string{text}, lines...), "\n"))}
}

// Run writes the backup.
func (c *backupCmd) Run(w *world) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.File == "" { // a variable that is not set
		return usageError{errors.New("give the file to write, as till-2026-11-22.tar.gz")}
	}
	if c.File == "-" { // standard output of other commands: whoever pipes it on would have nothing
		return usageError{errors.New("a backup is a file, and does not go to standard output: give its name, as till-2026-11-22.tar.gz")}
	}
	if c.DatabaseURL != "" {
		return postgresFirst("back it up", `pg_dump -Fc -f till.dump "$TILL_DATABASE_URL"`, "What is restored from it does not know what was paid out since: till restore till.dump says what to do then.")
	}
	if err := there(c.Settings, "accounts", "there is nothing to back up"); err != nil {
		return err
	}
	within, err := standsIn(c.DataDir, filepath.Dir(c.File))
	if err != nil {
		return fmt.Errorf("look for a place for %s: %w (make the folder first)", c.File, err)
	}
	if within {
		return usageError{fmt.Errorf("%s would stand in the data dir %s, and be lost with it: give a FILE elsewhere, at best on another disk", c.File, c.DataDir)}
	}
	if _, err := os.Lstat(c.File); err == nil {
		return fmt.Errorf("%s is there already: give another name", c.File)
	}
	full, err := filepath.Abs(c.File)
	if err != nil {
		return fmt.Errorf("find the place of %s: %w", c.File, err)
	}
	var list manifest
	var size int64
	at := time.Now()
	err = patiently(w, "still copying", func() (err error) {
		list, size, err = c.write(w, at)
		return err
	})
	if store.Full(err) {
		return fmt.Errorf("there is no room for the backup in %s, or none to open the databases in %s: %w (df -h %[1]s %[2]s; make some there, in the first twice that of the data dir, or give a FILE on another disk)",
			filepath.Dir(full), c.DataDir, err)
	}
	if err != nil {
		return fmt.Errorf("back up %s: %w", c.DataDir, err)
	}
	err = doctor.NoteBackup(c.DataDir, doctor.Backup{At: at, File: full})
	if err == nil {
		err = handOver(c.DataDir, doctor.BackupNote, c.DataDir)
	}
	if err != nil {
		return fmt.Errorf("the backup is written, and could not be noted: %w", err)
	}
	if c.JSON {
		return printJSON(w, map[string]any{"file": full, "bytes": size, "at": flow.Stamp(at), "keys": list.Keys})
	}
	if _, err = fmt.Fprintf(w.out, "%s  %d bytes\n", c.File, size); err != nil || len(list.Keys) == 0 {
		return err
	}
	note := "The key is not in it: keep a copy of it elsewhere."
	if slices.ContainsFunc(list.Files, func(f backedFile) bool { return f.Name == sealing.FileName }) {
		note = "The file with the key is in it: whoever has the backup reads them."
	}
	_, err = fmt.Fprintf(w.err, "Its secrets are sealed with key %s. %s\n", strings.Join(list.Keys, " and "), note)
	return err
}

// standsIn says whether a folder is a data dir or below it, whichever links lead
// to the two.
func standsIn(dataDir, folder string) (bool, error) {
	top, err := os.Stat(dataDir)
	if err != nil {
		return false, err
	}
	full, err := filepath.Abs(folder)
	if err != nil {
		return false, err
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return false, err
	}
	for {
		here, err := os.Stat(full)
		if err != nil {
			return false, err
		}
		if os.SameFile(here, top) {
			return true, nil
		}
		above := filepath.Dir(full)
		if above == full {
			return false, nil
		}
		full = above
	}
}

// write copies everything aside, then packs it: the file appears whole.
func (c *backupCmd) write(w *world, at time.Time) (list manifest, size int64, err error) {
	aside, done, err := aside(w, filepath.Dir(c.File), "backup")
	if err != nil && !store.Full(err) {
		err = fmt.Errorf("%w (give a FILE in a folder that this user may write to)", err)
	}
	if err != nil {
		return list, 0, err
	}
	defer func() { err = errors.Join(err, done()) }()
	names, err := kept(c.DataDir, c.WithKey)
	if err != nil {
		return list, 0, err
	}
	list = manifest{Version: version, At: flow.Stamp(at)}
	if list.Keys, err = sealedWith(w.ctx, c.Settings, c.DataDir); err != nil {
		return list, 0, err
	}
	for _, name := range names {
		one, err := copyAside(w.ctx, filepath.Join(c.DataDir, name), filepath.Join(aside, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if err != nil {
			return list, 0, unread(name, err)
		}
		one.Name = filepath.ToSlash(name)
		list.Files = append(list.Files, one)
	}
	packed := filepath.Join(aside, "packed")
	if err := pack(packed, aside, list); err != nil {
		return list, 0, err
	}
	info, err := os.Stat(packed)
	if err != nil {
		return list, 0, err
	}
	// Link, and not Rename: a file that came there meanwhile stays.
	return list, info.Size(), os.Link(packed, c.File)
}

// kept lists the files of a data dir that a backup holds, in the order in which
// they are copied. The key that opens the secrets in them is one on request alone.
func kept(dir string, withKey bool) ([]string, error) {
	var names []string
	dir, err := filepath.EvalSymlinks(dir) // a link itself is not walked into
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return unread(filepath.Base(path), err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			// The folder itself may have any name.
			if name == logsDir || strings.HasPrefix(name, beforeMigrate) || strings.HasPrefix(filepath.Base(name), ourTemporary) {
				return fs.SkipDir
			}
			return nil
		}
		// Archives are backups: each would hold all before it.
		for _, ending := range []string{"-wal", "-shm", "-journal", ".lock", ".addr", "last-backup.json", ".tar.gz"} {
			if strings.HasSuffix(name, ending) {
				return nil
			}
		}
		if !d.Type().IsRegular() || name == "lock" || strings.HasPrefix(name, "doctor-") || strings.HasPrefix(d.Name(), ourTemporary) || name == sealing.FileName && !withKey {
			return nil
		}
		if names = append(names, name); len(names) > maxBackedFiles {
			return fmt.Errorf("there are more than %d files in it: is it a data dir?", maxBackedFiles)
		}
		return nil
	})
	late := []string{"test.db", "live.db", "accounts.db"}
	slices.SortStableFunc(names, func(a, b string) int { return slices.Index(late, a) - slices.Index(late, b) })
	return names, err
}

// sqliteMagic is how every SQLite file begins.
const sqliteMagic = "SQLite format 3\x00"

// copyAside copies one file: a database as it stands at one moment, anything else
// as it is.
func copyAside(ctx context.Context, from, to string) (out backedFile, err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return out, err
	}
	in, err := os.Open(from)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	head := make([]byte, len(sqliteMagic))
	if n, err := io.ReadFull(in, head); err == nil && string(head[:n]) == sqliteMagic {
		if err := store.CopySQLite(ctx, from, to); err != nil {
			return out, err
		}
	} else if err := copyPlain(in, to); err != nil {
		return out, err
	}
	return summed(to)
}

func copyPlain(in io.ReadSeeker, to string) error {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// summed is the size and the hash of a file.
func summed(path string) (out backedFile, err error) {
	f, err := os.Open(path)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	hash := sha256.New()
	out.Size, err = io.Copy(hash, f)
	out.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return out, err
}

// pack writes the manifest and its files into one file, and has the disk keep it.
func pack(to, dir string, list manifest) (err error) {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	out := tar.NewWriter(zip)
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	if err := packOne(out, manifestName, int64(len(text)), bytes.NewReader(text)); err != nil {
		return err
	}
	for _, one := range list.Files {
		in, err := os.Open(filepath.Join(dir, filepath.FromSlash(one.Name)))
		if err != nil {
			return err
		}
		if err := errors.Join(packOne(out, one.Name, one.Size, in), in.Close()); err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), zip.Close(), f.Sync())
}

func packOne(out *tar.Writer, name string, size int64, from io.Reader) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, Typeflag: tar.TypeReg, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := io.Copy(out, from)
	return err
}
