package main

import (
	"archive/tar"
	"compress/gzip"
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

	"till/bot/whatsapp"
	"till/cmd/till/doctor"
	"till/config"
	"till/flow/store"
)

// restoreCmd puts a backup in place of what is kept.
type restoreCmd struct {
	local

	File string `arg:"" help:"A file that till backup wrote."`
	Yes  bool   `help:"Put it in place although something is kept there; that is set aside, not deleted."`
}

// Help is the command's example and what it does.
func (restoreCmd) Help() string {
	return "Example:\n\n    till restore till-2026-11-22.tar.gz --data-dir ./data --yes\n\n" +
		"Stop the server first. The backup is unpacked aside, and proven there: every file by its hash, every database page by page, every ledger by its invariants. " +
		"Only then it takes the place of the data dir; what was there is renamed beside it, and without --yes nothing is done where something was. " +
		"WhatsApp's numbers stay linked; each payer's first message is asked for a second time, since their phones have gone on. " +
		"The key that its secrets are sealed with is in no backup unless that was asked for: that of the data dir stays, and where another is needed, its id is told. " +
		"What happened since the backup is gone from it: the bank may have paid merchants out, and refunded, what the backup still owes. " +
		"So no payout and no refund is newly ordered until somebody reconciled (till reconcile, till ledger check) and said so: till ledger release, for each environment. " +
		"What merchants were told since may be told again, as an event with another id."
}

// Run restores.
func (c *restoreCmd) Run(w *world) (err error) {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.DatabaseURL != "" {
		return postgresFirst("restore it", `pg_restore --clean --if-exists --single-transaction -d "$TILL_DATABASE_URL" till.dump`,
			"Stop every process first. The bank may have paid merchants out since, and refunded: hold that before the next start, or it is sent again. Use:  till ledger hold --reason 'a dump was restored'",
			"And:  till ledger hold --live --reason 'a dump was restored'",
			"Then start it. After till verify, and till reconcile --date for each day since:  till ledger release, and the same with --live.")
	}
	entries, err := os.ReadDir(c.DataDir)
	if store.Unopened(err) {
		return unread(c.DataDir, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the data dir %s cannot be read: %w (choose another --data-dir)", c.DataDir, err)
	}
	full := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != "lock" })
	if full && !c.Yes {
		return refusedError{fmt.Errorf("something is kept in %s. With --yes it is set aside, and the backup takes its place", c.DataDir)}
	}
	if len(entries) > 0 {
		unlock, held := lockDir(c.DataDir, "replaced")
		if held != nil {
			return held
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	place, err := placeOf(c.DataDir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return fmt.Errorf("make a place for the data dir: %w", err)
	}
	aside, done, err := aside(w, filepath.Dir(place), "restore")
	if err != nil {
		return fmt.Errorf("make a place to unpack to: %w (a restore writes beside the data dir: keep that one level below what may be written)", err)
	}
	defer func() { err = errors.Join(err, done()) }()
	var list manifest
	err = patiently(w, "still unpacking and checking", func() (err error) {
		if list, err = unpack(c.File, aside); err != nil {
			return err
		}
		if err := prove(w, aside); err != nil {
			return err
		}
		if err := forgetRatchets(aside, list); err != nil {
			return err
		}
		return holdMoney(w, aside, list)
	})
	if err != nil {
		return fmt.Errorf("%s was not restored, nothing was changed: %w", c.File, c.next(err, filepath.Dir(place)))
	}
	needs, err := c.missingKeys(w.ctx, place, aside)
	if err != nil {
		return fmt.Errorf("%s was not restored, nothing was changed: %w", c.File, err)
	}
	if err := c.note(aside, list); err != nil {
		return fmt.Errorf("%s was not restored, nothing was changed: %w", c.File, err)
	}
	before, err := c.place(aside, place, len(entries) > 0)
	if err != nil {
		return err
	}
	return c.told(w, list, before, needs)
}

// note remembers of what is put in place that the backup which it came from is one: an
// alert would say that none was ever made. One that does not say when it was made is none.
func (c *restoreCmd) note(aside string, list manifest) error {
	at, err := time.Parse(time.RFC3339, list.At)
	if err != nil {
		return nil //nolint:nilerr // what is in it is proven, and is put in place all the same
	}
	full, err := filepath.Abs(c.File)
	if err == nil {
		err = doctor.NoteBackup(aside, doctor.Backup{At: at, File: full})
	}
	return err
}

// next adds to why a backup was not restored what to do.
func (*restoreCmd) next(err error, beside string) error {
	switch {
	case store.Full(err):
		return fmt.Errorf("%w (df -h %s; make room there for all that is in it, and do this again)", err, beside)
	case errors.Is(err, errDamaged):
		return fmt.Errorf("%w (copy it again from where it was made, or take another:  till verify FILE  proves one)", err)
	}
	return err
}

// placeOf is where a data dir really stands. What takes its place is the folder
// and not a link to it, as systemd makes one of /var/lib/till.
func placeOf(dataDir string) (string, error) {
	full, err := filepath.Abs(dataDir)
	if err != nil {
		return "", fmt.Errorf("find the data dir %s: %w", dataDir, err)
	}
	place, err := filepath.EvalSymlinks(full)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(full); errors.Is(err, fs.ErrNotExist) {
			return full, nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("find the data dir %s: %w (does a link lead to nothing?)", dataDir, err)
	}
	return place, nil
}

// place puts what was unpacked where the data dir is, and what is there beside it.
func (*restoreCmd) place(aside, place string, there bool) (before string, err error) {
	like := place
	if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
		like = filepath.Dir(place)
	}
	if err := handOver(aside, ".", like); err != nil {
		return "", fmt.Errorf("put the backup in place: %w", err)
	}
	if there {
		before = place + asideInfix + time.Now().UTC().Format("20060102T150405.000Z")
		if err := os.Rename(place, before); err != nil {
			return "", fmt.Errorf("set what is kept aside: %w (a data dir that is mounted cannot be replaced: keep it one level below)", err)
		}
	} else if err := os.Remove(place); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("put the backup in place: %w", err)
	}
	if err := os.Rename(aside, place); err != nil {
		err = fmt.Errorf("put the backup in place: %w", err)
		if there {
			err = errors.Join(err, os.Rename(before, place))
		}
		return "", err
	}
	return before, nil
}

func (c *restoreCmd) told(w *world, list manifest, before string, needs []string) error {
	if c.JSON {
		return printJSON(w, map[string]any{"dataDir": c.DataDir, "at": list.At, "version": list.Version, "files": len(list.Files), "before": before, "needsKeys": needs})
	}
	if _, err := fmt.Fprintf(w.out, "%s is as it was at %s: %d files, each database whole, each ledger proven\n", c.DataDir, list.At, len(list.Files)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(w.err, "Payouts and refunds are held: the bank may have sent some since. till reconcile, then till ledger release, and the same with --live."); err != nil {
		return err
	}
	if len(needs) > 0 {
		if _, err := fmt.Fprintf(w.err, "Its secrets are sealed with key %s, which is not here. Before you start: %s.\n", strings.Join(needs, " and "), giveKey(c.Settings)); err != nil {
			return err
		}
	}
	if before == "" {
		return nil
	}
	_, err := fmt.Fprintf(w.err, "What was there is in %s. Remove it once you are sure.\n", before)
	return err
}

// asideInfix stands in the names of data dirs that a restore set aside.
const asideInfix = doctor.BeforeRestore

// setAside is the data dir that a restore set aside last, "" where there is none. A
// restore that is killed right then leaves nothing in its place.
func setAside(dataDir string) string {
	place, err := filepath.Abs(dataDir)
	if target, linked := os.Readlink(place); linked == nil {
		if place = target; !filepath.IsAbs(target) {
			place = filepath.Join(filepath.Dir(dataDir), target)
		}
	}
	entries, listed := os.ReadDir(filepath.Dir(place))
	if err != nil || listed != nil {
		return ""
	}
	left := ""
	for _, e := range entries { // by name, and so by age
		if e.IsDir() && strings.HasPrefix(e.Name(), filepath.Base(place)+asideInfix) {
			left = filepath.Join(filepath.Dir(place), e.Name())
		}
	}
	return left
}

// maxManifest bounds the list of a backup's files.
const maxManifest = 1 << 20

// errDamaged says that a file is not, or not any more, one that till backup wrote.
var errDamaged = errors.New("it is no file that till backup wrote, or not all of it")

// unreadError says that nothing could be read of a backup.
type unreadError struct{ error }

// unpack writes the files of a backup into a folder, each as its list says. Errors:
// errDamaged, unreadError.
func unpack(file, dir string) (list manifest, err error) {
	f, err := plainFile(file)
	if err != nil {
		return list, unreadError{fmt.Errorf("the backup cannot be read: %w (give a file that till backup wrote, as its owner)", err)}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return list, errDamaged
	}
	in := tar.NewReader(zip)
	head, err := in.Next()
	if err != nil || head.Name != manifestName || head.Size > maxManifest {
		return list, errDamaged
	}
	if err := json.NewDecoder(in).Decode(&list); err != nil || len(list.Files) == 0 || len(list.Files) > maxBackedFiles {
		return list, errDamaged
	}
	for _, want := range list.Files {
		name := filepath.FromSlash(want.Name)
		head, err := in.Next()
		if err != nil || head.Name != want.Name || head.Size != want.Size || head.Typeflag != tar.TypeReg || !filepath.IsLocal(name) {
			return list, errDamaged
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return list, err
		}
		if err := unpackOne(in, path, want.Size); err != nil {
			return list, fmt.Errorf("unpack %s: %w", want.Name, err)
		}
		got, err := summed(path)
		if err != nil {
			return list, err
		}
		if got.SHA256 != want.SHA256 {
			return list, fmt.Errorf("%w: %s in it is not what was backed up", errDamaged, want.Name)
		}
	}
	return list, nil
}

func unpackOne(in io.Reader, path string, size int64) error {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, size)
	if _, ours := errors.AsType[*fs.PathError](err); err != nil && !ours { // the backup cannot be read on, and not the file be written
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return errors.Join(err, out.Sync(), out.Close())
}

// forgetRatchets prepares the keys of each number for payers whose phones have
// gone on since the backup.
func forgetRatchets(dir string, list manifest) error {
	for _, one := range list.Files {
		name := filepath.FromSlash(one.Name)
		if filepath.Dir(name) != keysDir || filepath.Ext(name) != ".db" {
			continue
		}
		if err := whatsapp.ForgetRatchets(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
	}
	return nil
}

// prove checks what was unpacked: that each database is whole and can be used by
// this program, that its ledger holds and that no row is without another.
func prove(w *world, dir string) error {
	p := proof{w: w, at: config.Settings{DataDir: dir}, aside: true}
	if err := p.all(); err != nil {
		return err
	}
	if one := p.broken(); one != nil {
		return fmt.Errorf("%s: %s: %s (see: till verify FILE)", one.Database, one.Check, one.Offenders[0].Says)
	}
	return nil
}
