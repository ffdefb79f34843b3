package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// The databases there are, and what is in them.
var databases = []struct {
	name   string
	schema store.Schema
}{{"test", store.Checkout}, {"live", store.Checkout}, {"accounts", store.Accounts}}

const (
	// bigLog is when SQLite's log is larger than it ever is while it is written back.
	bigLog = 192 << 20
	// tooBig is the size of a file that a quick look does not read whole.
	tooBig = 512 << 20
)

// in says where a database is.
func (l *look) in(name string, schema store.Schema) store.Config {
	return store.Config{Schema: schema, Dir: l.DataDir, URL: string(l.DatabaseURL), Name: name}
}

// database looks at every database: whether it answers, is whole, and is of this
// program.
func (l *look) database(ctx context.Context) {
	if l.DatabaseURL != "" {
		l.postgres(ctx)
		return
	}
	seen, whole, size := 0, true, int64(0)
	for _, d := range databases {
		file := filepath.Join(l.DataDir, d.name+".db")
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		seen++
		if err != nil {
			whole = l.judge(d.name, store.Inspection{}, err) && whole
			continue
		}
		c := l.in(d.name, d.schema)
		got, err := store.Inspect(ctx, c, !l.Quick || info.Size() < tooBig, l.Now)
		size += got.Size + got.Log
		whole = l.judge(d.name, got, err) && whole
	}
	switch {
	case seen == 0:
		l.ok("Nothing is kept yet: the first start makes the databases.")
	case seen < len(databases):
		l.fail(fmt.Sprintf("Of the %d databases in %s, %d are missing.", len(databases), l.DataDir, len(databases)-seen),
			l.restore()+"   (where the first start did not end well, start it again instead: it makes what is missing, and refuses where something was kept)")
	case whole:
		l.ok(fmt.Sprintf("All %d databases are whole and of this Till: %s.", seen, bytesOf(uint64(max(size, 0)))))
	}
}

// judge tells what is wrong with a database; true where nothing is.
func (l *look) judge(name string, got store.Inspection, err error) bool {
	before := len(l.found)
	switch {
	case store.Unopened(err):
		l.fail("The database "+name+".db cannot be opened: "+brief(err)+". That says nothing of what is in it.", l.unopened(name+".db"))
	case err != nil && got.Version == 0:
		l.fail("The database "+name+".db cannot be read: "+brief(err)+".", l.restore())
	case err != nil || len(got.Faults) > 0:
		what := strings.Join(got.Faults, "; ")
		if err != nil {
			what = brief(err)
		}
		what, _, _ = strings.Cut(what, "\n")
		l.fail("The database "+name+".db is damaged: "+what+".", l.restore())
	case len(got.Lacks) > 0:
		l.fail("The database "+name+".db is of no Till that was ever given out: it lacks "+strings.Join(got.Lacks, ", ")+".", l.restore()+"   (or go on with the program that made it)")
	case got.As != "" && got.As != name:
		l.fail("The database "+name+".db was made as "+got.As+".db: the two were swapped, or one was copied over the other.", "put each back in its place; or  "+l.restore())
	case got.Version > got.Known:
		l.fail(fmt.Sprintf("The database %s.db is of a newer Till (schema %d, this program knows %d).", name, got.Version, got.Known),
			"till version   (then install the newer one again; or go back: "+l.restore()+")")
	case got.Version < got.Known:
		l.warn(fmt.Sprintf("The database %s.db is of an older Till (schema %d, this program makes it %d). The next start changes it.", name, got.Version, got.Known),
			"till migrate   (it keeps a copy first)")
	}
	if got.Log > bigLog {
		// While another program reads, neither a start nor Till itself can write it back.
		who := "fuser -v " + quoted(filepath.Join(l.DataDir, name+".db"))
		fix := "till migrate --data-dir " + quoted(l.DataDir) + "   (it writes the log back, once nothing else reads: " + who + " says what does)"
		if l.serves {
			fix = who + "   (end what has it open beside Till: what Till writes next writes the log back. Where nothing has, restart Till)"
		}
		l.warn(fmt.Sprintf("The log of %s.db has grown to %s: something kept it from being written back.", name, bytesOf(uint64(got.Log))), fix)
	}
	return len(l.found) == before
}

// unopened shows whose a file of the data dir is and how its disk is mounted. A
// backup in its place would be a day older than what may be whole in it.
func (l *look) unopened(file string) string {
	dir := quoted(l.DataDir)
	return "ls -ld " + dir + " " + quoted(filepath.Join(l.DataDir, file)) + "*; findmnt -T " + dir +
		"   (run till doctor as the owner of the folder, on a disk that can be written; a file that is another's: sudo chown --reference=" + dir + " FILE)"
}

// restore is the command that goes back to the last backup.
func (l *look) restore() string {
	file := "BACKUP"
	if last, err := lastBackup(l.DataDir); err == nil {
		file = quoted(last.File)
	}
	return "till restore " + file + " --yes --data-dir " + quoted(l.DataDir)
}

// postgres looks at the databases of a server.
func (l *look) postgres(ctx context.Context) {
	made := 0
	for _, d := range databases {
		there, works := l.schema(ctx, d.name, d.schema)
		if !works {
			return
		}
		if !there {
			continue
		}
		made++
		short, cancel := context.WithTimeout(ctx, patience)
		got, err := store.Inspect(short, l.in(d.name, d.schema), false, l.Now)
		cancel()
		if err != nil && got.Version == 0 {
			l.postgresAway(err)
			return
		}
		if got.Version > got.Known {
			l.fail(fmt.Sprintf("The schema %s is of a newer Till (%d, this program knows %d).", d.name, got.Version, got.Known), "till version   (then install the newer one again)")
		}
		if len(got.Lacks) > 0 {
			l.fail("The schema "+d.name+" is of no Till that was ever given out: it lacks "+strings.Join(got.Lacks, ", ")+".", "till version   (go on with the program that made it; or restore a dump: till restore till.dump says how)")
		}
		if got.As != "" && got.As != d.name {
			l.fail("The schema "+d.name+" was made as "+got.As+": the two were swapped, or one was copied over the other.", "put each back in its place; or  till restore till.dump   (it says how a dump is put back)")
		}
		if got.Version < got.Known {
			l.warn(fmt.Sprintf("The schema %s is of an older Till (%d, this program makes it %d). The next start changes it.", d.name, got.Version, got.Known), "till migrate --dry-run")
		}
		if !got.Clock.IsZero() && d.name == "accounts" {
			l.clocks = append(l.clocks, clock{"PostgreSQL", got.Clock, got.Asked})
		}
	}
	switch {
	case made == 0:
		l.ok("PostgreSQL answers, and nothing is kept in it yet: the first start makes the schemas.")
	case made < len(databases):
		l.fail(fmt.Sprintf("Of the %d schemas in PostgreSQL, %d are missing.", len(databases), len(databases)-made),
			"till restore till.dump   (it says how a dump is put back; where nothing was ever kept in them: till migrate makes them)")
	case len(l.found) == 0 || l.found[len(l.found)-1].Check != l.check:
		l.ok("PostgreSQL answers, and its schemas are of this Till.")
	}
}

// errAway is the error of what is not looked at because PostgreSQL is away, as is told.
var errAway = errors.New("PostgreSQL is away")

// reads looks into what an environment keeps, and waits for it as for any other part.
func (l *look) reads(ctx context.Context, env flow.Environment, fn func(context.Context, store.Reader) error) error {
	if l.away {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return store.Look(ctx, l.in(string(env), store.Checkout), func(r store.Reader) error { return fn(ctx, r) })
}

// postgresAway tells that PostgreSQL lets us do nothing. pg_isready would say that it
// accepts connections, whoever's.
func (l *look) postgresAway(err error) {
	l.away = true
	pooled, crowded := store.Pooled(err), store.Crowded(err)
	if _, said, refused := strings.Cut(err.Error(), "server error: "); refused { // before it stands where it was asked
		err = errors.New(said)
	}
	if pooled {
		l.fail("A pooler stands between Till and PostgreSQL, and does not pass on what a connection asks for: "+brief(err)+".",
			"TILL_DATABASE_URL=postgres://USER:PASSWORD@HOST:5432/DATABASE till serve   (the address of PostgreSQL itself: Till pools its connections)")
		return
	}
	if crowded {
		l.fail("PostgreSQL lets nobody else connect: "+brief(err)+".", "psql -d postgres -c 'show max_connections' -c 'select datname, usename, count(*) from pg_stat_activity group by 1, 2'"+
			fmt.Sprintf("   (as a superuser, for whom places are kept. Raise it, and the role's limit where it has one: each till serve takes up to %d)", len(databases)*store.Connections))
		return
	}
	l.fail("PostgreSQL cannot be used: "+brief(err)+".", "psql \"$TILL_DATABASE_URL\" -c 'select 1'   (start it, or mend --database-url: server, database, role and password)")
}

// schema says whether a schema was made, and whether we may work in it.
func (l *look) schema(ctx context.Context, name string, schema store.Schema) (made, works bool) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	may, err := store.AccessTo(short, l.in(name, schema))
	switch {
	case err != nil:
		l.postgresAway(err)
	case may.ReadOnly:
		l.fail("PostgreSQL may only be read: nothing can be kept.",
			"psql \"$TILL_DATABASE_URL\" -c 'select pg_is_in_recovery()' -c 'show default_transaction_read_only'   (give the --database-url of the server that is written to, or set it off)")
	case may.Lacks != "":
		l.fail("The role "+may.Role+" of --database-url may not write to the schema "+name+": it lacks "+may.Lacks+".",
			"psql -d "+quoted(may.Database)+" -c "+quoted("GRANT "+may.Lacks+" TO "+`"`+may.Role+`"`)+"   (as who owns it; or give the role that it was made with)")
	default:
		return may.Made, true
	}
	return false, false
}

// The bounds of clocks: signatures of webhooks are refused after five minutes,
// and WhatsApp hangs up long before.
const (
	skewWarns = 2 * time.Second
	skewFails = 30 * time.Second
	// future is how far ahead a file may have been written: copies keep seconds.
	future = time.Minute
)

// clock compares this machine's clock with those of others, and with what was
// written before.
func (l *look) clock(context.Context) {
	const fix = "sudo timedatectl set-ntp true   (or: sudo chronyc makestep)"
	before := len(l.found)
	var with []string
	for _, c := range l.clocks {
		skew := c.ask.Sub(c.said)
		with = append(with, c.whose)
		way := "ahead of"
		if skew < 0 {
			skew, way = -skew, "behind"
		}
		what := fmt.Sprintf("The clock of this machine is %s %s that of %s.", skew.Round(time.Second), way, c.whose)
		if skew >= skewFails {
			l.fail(what, fix)
		} else if skew >= skewWarns {
			l.warn(what, fix)
		}
	}
	newest, file := time.Time{}, ""
	entries, _ := os.ReadDir(l.DataDir)
	for _, e := range entries[:min(len(entries), maxEntries)] {
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest, file = info.ModTime(), e.Name()
		}
	}
	if ahead := newest.Sub(l.Now()); file != "" && ahead > future {
		l.fail(fmt.Sprintf("The clock of this machine was set back: %s was written %s in the future.", filepath.Join(l.DataDir, file), ahead.Round(time.Second)),
			fix+"; once the clock is right: touch "+quoted(filepath.Join(l.DataDir, file)))
	}
	if len(l.found) > before {
		return
	}
	if len(with) > 0 {
		l.ok("The clock agrees with that of " + strings.Join(with, " and ") + ".")
		return
	}
	l.ok("The clock never went back here; no other clock was asked.")
}

// Backup is the last one that was made of a data dir.
type Backup struct {
	At   time.Time `json:"at"`
	File string    `json:"file"`
}

// BackupNote is the file in a data dir that remembers its last backup.
const BackupNote = "last-backup.json"

// NoteBackup remembers a backup. Where that fails, as on a full disk, the one before stays
// remembered.
func NoteBackup(dir string, b Backup) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	note, next := filepath.Join(dir, BackupNote), filepath.Join(dir, ".till-"+BackupNote) // which no backup takes along
	if err = os.WriteFile(next, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(next, note)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}

// errNote is a note of the last backup that says nothing, as one that a power cut left
// empty.
var errNote = errors.New("it is damaged")

// lastBackup is the last backup that was made of a data dir. Errors:
// fs.ErrNotExist for none, errNote where nobody knows.
func lastBackup(dir string) (b Backup, err error) {
	path := filepath.Join(dir, BackupNote)
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
		err = errNote
	}
	if err != nil {
		return b, err
	}
	text, err := os.ReadFile(path)
	if err == nil && (json.Unmarshal(text, &b) != nil || b.At.IsZero() || b.File == "") {
		return Backup{}, errNote
	}
	return b, err
}

// LastBackup is when the last backup was made of a data dir, zero for never and where
// nobody knows.
func LastBackup(dir string) time.Time {
	b, err := lastBackup(dir)
	if err != nil {
		return time.Time{}
	}
	return b.At
}

// The ages of backups.
const (
	backupWarns = 26 * time.Hour // daily ones, with some room
	backupFails = 7 * 24 * time.Hour
)

// backups looks how much would be lost with the disk.
func (l *look) backups(context.Context) {
	if l.DatabaseURL != "" {
		l.ok("PostgreSQL keeps the data: how old its backups are cannot be seen from here (see pg_dump).")
		return
	}
	if _, err := os.Stat(filepath.Join(l.DataDir, "accounts.db")); errors.Is(err, fs.ErrNotExist) {
		l.ok("There is nothing to back up yet.")
		return
	}
	fix := "till backup till-$(date +%F).tar.gz --data-dir " + quoted(l.DataDir) + "   (daily, by cron or a systemd timer, to another disk)"
	last, err := lastBackup(l.DataDir)
	switch age := l.Now().Sub(last.At); {
	case errors.Is(err, fs.ErrNotExist) && l.pretend():
		l.ok("No backup was ever made; all of this is a pretend world.")
	case errors.Is(err, fs.ErrPermission):
		l.warn("When the last backup was made cannot be read: "+brief(err)+".", l.reach(BackupNote, err))
	case errors.Is(err, errNote): // the next one is noted anew
		note := filepath.Join(l.DataDir, BackupNote)
		l.warn("When the last backup was made nobody knows: "+BackupNote+" in "+l.DataDir+", where that is noted, is damaged.",
			"rm -r "+quoted(note)+" && "+fix)
	case err != nil:
		l.warn("No backup was ever made of "+l.DataDir+": with this disk, everything is lost.", fix)
	case age >= backupFails:
		l.fail(fmt.Sprintf("The last backup is %d days old: all since would be lost with this disk.", int(age.Hours()/24)), fix)
	case age >= backupWarns:
		l.warn(fmt.Sprintf("The last backup is %d hours old.", int(age.Hours())), fix)
	default:
		if _, err := os.Stat(last.File); err != nil {
			l.warn("The last backup, "+last.File+", is not there any more. If you moved it to another disk, all is well.", fix)
			return
		}
		l.ok(fmt.Sprintf("The last backup is %s old: %s.", max(age, 0).Round(time.Minute), last.File))
	}
}
