package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// verifyCmd proves what is kept.
type verifyCmd struct {
	local

	File string `arg:"" optional:"" help:"A file that till backup wrote; without it, what is kept now."`
}

// Help is the command's example and what it does.
func (verifyCmd) Help() string {
	return "Example:\n\n    till verify\n    till verify till-2026-11-22.tar.gz\n\n" +
		"It reads, and changes no byte; it may be run beside a server that runs. Every file is read page by page, every ledger is proven, " +
		"and every row that belongs to another must have it: payments their sessions, deliveries their events, open attempts what ends them. " +
		"A settlement must be what its lines come to, and an event of what it says that it is of. " +
		"Every secret is opened, so that a key that is not theirs is found here and not at the next start: of a backup with the key of the settings, else that in it, else that of the data dir. " +
		"A backup is unpacked aside, each of its files by its hash. What the bank says is not asked: that does till ledger check. " +
		"Exits with 1 where something is broken, and names the first 20 offenders of each."
}

// errUnsound ends a verification that found something.
var errUnsound = errors.New("what is kept does not hold: see what is BROKEN above")

// Run proves a backup or what is kept.
func (c *verifyCmd) Run(w *world) (err error) {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	p := proof{Place: c.DataDir, Checks: []proven{}, w: w, at: c.Settings}
	if !c.JSON {
		p.tell = func(one proven) error { return printProven(w.out, one) }
	}
	switch {
	case c.File != "":
		p.Place, p.at.DatabaseURL = c.File, ""
		dir, done, made := aside(w, os.TempDir(), "verify")
		if made != nil {
			return fmt.Errorf("make a place to unpack to: %w (set TMPDIR to a folder with room for all of it)", made)
		}
		defer func() { err = errors.Join(err, done()) }()
		p.at.DataDir = dir
	case c.DatabaseURL != "":
		p.Place = "PostgreSQL"
	default:
		if err := there(c.Settings, "accounts", "there is nothing to verify"); err != nil {
			return err
		}
	}
	err = patiently(w, "still verifying", func() error {
		if c.File != "" {
			if whole, err := p.unpacked(c.File); err != nil || !whole {
				return err
			}
		}
		if err := p.openWith(c.Settings); err != nil {
			return err
		}
		return p.all()
	})
	if err == nil && p.shut {
		_, err = fmt.Fprintln(w.err, "No key is given: whether the secrets can be opened was not looked at. Set TILL_SECRETS_KEY to the copy that you kept.")
	}
	if err != nil {
		return err
	}
	p.Holds = p.broken() == nil
	if c.JSON {
		err = printJSON(w, p)
	} else {
		_, err = fmt.Fprintf(w.err, "%s of %s, %d broken\n", flow.Count(len(p.Checks), "check"), p.Place, p.count())
	}
	if err == nil && !p.Holds {
		err = errUnsound
	}
	return err
}

// proof is what a proof of all that is kept found.
type proof struct {
	Place  string   `json:"place"` // the data dir or file that was proven
	At     string   `json:"at"`    // when a backup was made, "" for what is kept now
	Holds  bool     `json:"holds"`
	Checks []proven `json:"checks"`

	w     *world
	at    config.Settings
	aside bool // what is looked at is a copy, and may be migrated
	tell  func(proven) error
	keys  *store.Keyring // what must open every secret, nil where there is no key
	shut  bool           // there was none, and nobody looked whether secrets can be opened
}

// proven is one thing that was checked.
type proven struct {
	Database  string            `json:"database"`
	Check     string            `json:"check"`
	What      string            `json:"what"`
	Checked   int               `json:"checked"`
	Wrong     int               `json:"wrong"`
	Offenders []proofOfOffender `json:"offenders"`
}

// proofOfOffender is what breaks a check, and what to do about it.
type proofOfOffender struct {
	ID   string `json:"id"`
	Says string `json:"says"`
	Next string `json:"next"`
}

// found keeps what a check found, and tells it. No statement of SQLite can be cancelled:
// who is told to end hears it between two checks.
func (p *proof) found(one proven) error {
	if err := p.w.ctx.Err(); err != nil {
		return err
	}
	if one.Offenders == nil {
		one.Offenders = []proofOfOffender{}
	}
	p.Checks = append(p.Checks, one)
	if p.tell == nil {
		return nil
	}
	return p.tell(one)
}

// broken is the first check that found something, nil where all holds.
func (p *proof) broken() *proven {
	if i := slices.IndexFunc(p.Checks, func(one proven) bool { return one.Wrong > 0 }); i >= 0 {
		return &p.Checks[i]
	}
	return nil
}

// count is how many checks found something.
func (p *proof) count() (n int) {
	for _, one := range p.Checks {
		if one.Wrong > 0 {
			n++
		}
	}
	return n
}

// unpacked proves of a backup that each file is what was backed up.
func (p *proof) unpacked(file string) (whole bool, err error) {
	list, err := unpack(file, p.at.DataDir)
	if shut, ok := errors.AsType[unreadError](err); ok { // nothing is known of what is in it
		return false, shut
	}
	one := proven{Database: "backup", Check: "files", What: "every file is what was backed up", Checked: len(list.Files)}
	if err != nil {
		one.Wrong = 1
		one.Offenders = []proofOfOffender{{ID: filepath.Base(file), Says: err.Error(), Next: "take another backup, and look at what this one was copied by"}}
		return false, p.found(one)
	}
	p.At, p.aside = list.At, true
	return true, p.found(one)
}

// all proves all that is kept: each file by itself, then what the databases say.
func (p *proof) all() error {
	damaged, err := p.files()
	if err != nil {
		return err
	}
	for _, c := range p.databases() {
		if damaged[c.Name+".db"] {
			continue // nothing that it says can be relied upon
		}
		err := p.database(c)
		switch {
		case p.w.ctx.Err() != nil:
			return p.w.ctx.Err()
		case p.away(err), store.Unopened(err):
			return cannotOpen(p.at, c.Name, err)
		case err != nil:
			return fmt.Errorf("verify %s: %w", c.Name, err)
		}
	}
	return nil
}

// away says whether PostgreSQL did not answer, which says nothing of what it keeps.
func (p *proof) away(err error) bool {
	return p.at.DatabaseURL != "" && flow.CodeOf(err) == flow.CodeStorage
}

// databases are what is kept in databases, the accounts first.
func (p *proof) databases() []store.Config {
	list := []store.Config{{Schema: store.Accounts, Name: "accounts"}, {Schema: store.Checkout, Name: string(flow.Test)}, {Schema: store.Checkout, Name: string(flow.Live)}}
	for i := range list {
		list[i].Dir, list[i].URL = p.at.DataDir, string(p.at.DatabaseURL)
	}
	return list
}

// files has SQLite read every page of every file that is its own.
func (p *proof) files() (damaged map[string]bool, err error) {
	damaged = map[string]bool{}
	if p.at.DatabaseURL != "" {
		return damaged, nil
	}
	names, err := kept(p.at.DataDir, false)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		path := filepath.Join(p.at.DataDir, name)
		if filepath.Ext(name) != ".db" || name == "network.db" { // that is no database
			continue
		}
		faults, err := store.CheckSQLite(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone since it was listed
		}
		if store.Unopened(err) {
			return nil, unread(name, err)
		}
		if err != nil {
			faults = []string{err.Error()}
		}
		one := proven{Database: strings.TrimSuffix(name, ".db"), Check: "pages", What: "every page of the file is whole", Checked: 1, Wrong: min(len(faults), 1)}
		if len(faults) > 0 {
			damaged[name] = true
			one.Offenders = []proofOfOffender{{ID: name, Says: "damaged: " + plain(faults[0]), Next: "restore a backup that is whole: till verify FILE, then till restore FILE"}}
		}
		if err := p.found(one); err != nil {
			return nil, err
		}
	}
	return damaged, nil
}

// database proves what one database says. One that a newer program made is not
// read; a copy of one that an older program made is migrated first.
func (p *proof) database(c store.Config) error {
	known, err := c.Schema.Version()
	if err != nil {
		return err
	}
	var version int
	var lacks []string
	as := ""
	err = store.Still(p.w.ctx, c, func(r store.Reader) (err error) {
		if version, err = r.Version(p.w.ctx); err != nil || version != known {
			return err
		}
		if lacks, err = r.Lacks(p.w.ctx, c.Schema); err == nil && len(lacks) == 0 {
			as, err = r.MadeAs(p.w.ctx)
		}
		return err
	})
	one := proven{Database: c.Name, Check: "schema", What: fmt.Sprintf("it is of schema %d, which this program knows", known), Checked: 1}
	switch {
	case p.away(err), store.Unopened(err):
		return err
	case err != nil:
		one.says(c.Name, "it cannot be read: "+plain(err.Error()), "is all of it there? See: till doctor")
	case version > known:
		one.says(c.Name, fmt.Sprintf("it is of a newer Till: schema %d", version), "use that one")
	case len(lacks) > 0:
		one.says(c.Name, "it is of no Till that was ever given out, since it lacks "+strings.Join(lacks, ", "), "go on with the program that made it; or restore a backup that is whole: till verify FILE, then till restore FILE")
	case as != "" && as != c.Name:
		one.says(c.Name, "it was made as "+as+": the two were swapped, or one was copied over the other", "put each back in its place; or restore a backup that is whole: till verify FILE, then till restore FILE")
	case version < known && !p.aside:
		one.says(c.Name, fmt.Sprintf("it is of an older Till: schema %d", version), "till migrate, then verify again")
	case version < known:
		db, err := store.Open(p.w.ctx, c)
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			one.says(c.Name, fmt.Sprintf("a copy could not be brought from schema %d to it: %v", version, err), "keep the backup, and the program that made it")
		}
	}
	if err := p.found(one); err != nil || one.Wrong > 0 {
		return err
	}
	return store.Still(p.w.ctx, c, func(r store.Reader) error {
		if err := p.secrets(c, r); err != nil {
			return err
		}
		return p.rows(c, r)
	})
}

// says is what breaks a check that has one thing to look at.
func (p *proven) says(id, says, next string) {
	p.Wrong, p.Offenders = 1, []proofOfOffender{{ID: id, Says: says, Next: next}}
}

// rows proves what the rows of a database say of each other and of the accounts.
func (p *proof) rows(c store.Config, r store.Reader) error {
	var told error
	tell := func(i checkout.Invariant) {
		one := proven{Database: c.Name, Check: i.Name, What: i.What, Checked: i.Checked, Wrong: i.Wrong}
		for _, o := range i.Offenders {
			one.Offenders = append(one.Offenders, proofOfOffender(o))
		}
		told = errors.Join(told, p.found(one))
	}
	if _, err := checkout.RowsOf(p.w.ctx, r, c.Schema, tell); err != nil || told != nil || c.Schema == store.Accounts {
		return errors.Join(err, told)
	}
	if _, err := checkout.BooksOf(p.w.ctx, r, tell); err != nil || told != nil {
		return errors.Join(err, told)
	}
	return p.owners(c, r)
}

// owners proves that everything of an environment is of a project that there is.
func (p *proof) owners(c store.Config, r store.Reader) error {
	mine, err := r.ProjectsHere(p.w.ctx)
	if err != nil {
		return err
	}
	one := proven{Database: c.Name, Check: "projects", What: "everything is of a project that the accounts have", Checked: len(mine)}
	accounts := p.databases()[0]
	err = store.Still(p.w.ctx, accounts, func(r store.Reader) error {
		for _, id := range mine {
			_, err := r.Project(p.w.ctx, flow.ProjectID(id))
			if flow.CodeOf(err) != flow.CodeNotFound {
				if err != nil {
					return err
				}
				continue
			}
			one.Wrong++
			one.Offenders = append(one.Offenders, proofOfOffender{ID: id, Says: "the accounts have no such project", Next: "restore accounts.db and " + c.Name + ".db from one backup"})
		}
		return nil
	})
	if err != nil { // of the accounts, which were told about already
		return nil //nolint:nilerr // as said above
	}
	return p.found(one)
}

// printProven writes a line for a check, and what breaks it.
func printProven(out io.Writer, one proven) error {
	verdict := "holds "
	if one.Wrong > 0 {
		verdict = "BROKEN"
	}
	of := fmt.Sprintf("%d checked", one.Checked)
	if one.Wrong > 0 {
		of += fmt.Sprintf(", %d wrong", one.Wrong)
	}
	if _, err := fmt.Fprintf(out, "%s  %-8s  %-22s  %s (%s)\n", verdict, one.Database, one.Check, one.What, of); err != nil {
		return err
	}
	for _, o := range one.Offenders {
		if _, err := fmt.Fprintf(out, "        %s  %s\n          next: %s\n", o.ID, o.Says, o.Next); err != nil {
			return err
		}
	}
	if more := one.Wrong - len(one.Offenders); more > 0 && len(one.Offenders) > 0 {
		if _, err := fmt.Fprintf(out, "        and %d more\n", more); err != nil {
			return err
		}
	}
	return nil
}
