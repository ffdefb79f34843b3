package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// aged makes the file of a database as a program of an age left it, with nothing
// in it but some bulk.
func (k keeper) aged(file string, age int) {
	k.t.Helper()
	schema := "checkout"
	if filepath.Base(file) == "accounts.db" {
		schema = "accounts"
	}
	steps, err := filepath.Glob(filepath.Join("..", "..", "flow", "store", "migration", schema, "*.sql"))
	k.must(err)
	slices.Sort(steps)
	script := "CREATE TABLE schema_version (version BIGINT NOT NULL)"
	for i, step := range steps[:age] {
		text, err := os.ReadFile(step)
		k.must(err)
		script += ";\n" + string(text) + fmt.Sprintf(";\nINSERT INTO schema_version VALUES (%d)", i+1)
	}
	script = strings.NewReplacer("{{int}}", "INTEGER", "{{blob}}", "BLOB", "{{strict}}", "STRICT", "{{sqlite}}", "").Replace(script)
	k.must(os.MkdirAll(filepath.Dir(k.at(file)), 0o700))
	db, err := sql.Open("sqlite", "file:"+k.at(file))
	k.must(err)
	for stmt := range strings.SplitSeq(script, ";\n") {
		if stmt = strings.TrimSpace(stmt); stmt == "" || strings.Contains(stmt, "{{postgres}}") {
			continue
		}
		if _, err := db.ExecContext(k.t.Context(), stmt); err != nil {
			k.t.Fatalf("%s: %v", stmt, err)
		}
	}
	_, err = db.ExecContext(k.t.Context(), "CREATE TABLE bulk (x BLOB); INSERT INTO bulk VALUES (zeroblob(2000000))")
	k.must(errors.Join(err, db.Close()))
}

// A start that is killed while it copies or migrates is repeated: what it left that
// is no copy goes, and of each schema there is one, the latest.
func TestTriesToMigrateDoNotFillTheDisk(t *testing.T) {
	k := keeper{t, t.TempDir()}
	k.aged("data/accounts.db", 1)
	k.aged("data/before-2025-01-01T000000.000Z/accounts.db", 2)
	k.aged("data/before-2025-02-01T000000.000Z/accounts.db", 1)
	k.must(os.WriteFile(k.at("data/before-2025-02-01T000000.000Z/test.db"), []byte("somebody's"), 0o600))
	was := k.names("data/before-*/*")

	// It ends in the middle of the copy: no file may be as large.
	limited := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 1000 && exec "$0" migrate`, tilltest.Program(t))
	limited.Dir = k.dir
	out, err := limited.CombinedOutput()
	if err == nil {
		t.Fatalf("it was not in the way:\n%s", out)
	}
	if now := slices.DeleteFunc(k.names("data/before-*/*"), func(name string) bool { return strings.Contains(name, unfinished) }); !slices.Equal(now, was) {
		t.Errorf("after a copy that could not be written there are %v, not %v", now, was)
	}

	out = []byte(k.does("migrate"))
	if !strings.Contains(string(out), "accounts  schema 1 -> ") {
		t.Errorf("it says\n%s", out)
	}
	now := k.names("data/before-*/*")
	if len(now) != 3 || !slices.Equal(now[:2], []string{was[0], was[2]}) || filepath.Base(now[2]) != "accounts.db" || !strings.Contains(string(out), now[2]) {
		t.Errorf("of %v it left %v", was, now)
	}
	k.must(os.Mkdir(k.at("back"), 0o700))
	k.must(os.Rename(k.at(now[2]), k.at("back/accounts.db")))
	if out := k.does("migrate", "--dry-run", "--data-dir", "back"); !strings.Contains(out, "accounts  schema 1 -> ") {
		t.Errorf("the copy is not of before:\n%s", out)
	}
}

// What is migrated in one go lies together, and none of it is taken for what an
// earlier try left: the money's books too can be put back.
func TestEachDatabaseThatIsMigratedHasItsCopy(t *testing.T) {
	k := keeper{t, t.TempDir()}
	databases := []string{"accounts", "test", "live"}
	for _, name := range databases {
		k.aged("data/"+name+".db", 1)
	}
	k.does("migrate")
	copies := k.names("data/before-*/*")
	if len(copies) != len(databases) {
		t.Fatalf("there are %v", copies)
	}
	k.must(os.Rename(k.at(filepath.Dir(copies[0])), k.at("back")))
	out := k.does("migrate", "--dry-run", "--data-dir", "back")
	for _, name := range databases {
		if !strings.Contains(out, name+"  schema 1 -> ") {
			t.Errorf("the copy of %s is not of before:\n%s", name, out)
		}
	}
}

// Going back is told so that it works after a kill too: what the killed program had
// not yet written into its file is read into whatever file lies in its place.
func TestGoingBackToACopyAfterAKill(t *testing.T) {
	k := keeper{t, t.TempDir()}
	k.aged("data/accounts.db", 1)
	k.does("migrate")
	db, err := sql.Open("sqlite", "file:"+k.at("data/accounts.db"))
	k.must(err)
	_, err = db.ExecContext(t.Context(), "UPDATE bulk SET x = zeroblob(2000001)")
	k.must(err)
	k.must(os.CopyFS(k.at("killed"), os.DirFS(k.at("data"))))
	k.must(db.Close())

	told := regexp.MustCompile(`\((rm [^,]+),`).FindStringSubmatch(strings.Join(strings.Fields(k.does("migrate", "--help")), " "))
	if told == nil {
		t.Fatal("it does not say what to remove")
	}
	if left := k.names("killed/accounts.db-wal"); len(left) != 1 {
		t.Fatal("the kill left nothing")
	}
	back := exec.CommandContext(t.Context(), "sh", "-c", told[1]+" && mv before-*/accounts.db .")
	back.Dir = k.at("killed")
	if out, err := back.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out := k.does("migrate", "--dry-run", "--data-dir", "killed"); !strings.Contains(out, "accounts  schema 1 -> ") {
		t.Errorf("it is not what it was before:\n%s", out)
	}
}

// The copy of a try that was killed in the middle is none: the next try removes it.
func TestACopyThatAKillLeftGoes(t *testing.T) {
	k := keeper{t, t.TempDir()}
	k.aged("data/accounts.db", 1)
	k.must(os.Mkdir(k.at("data/before-2025-01-01T000000.000Z"), 0o700))
	k.must(os.WriteFile(k.at("data/before-2025-01-01T000000.000Z/accounts.db"+unfinished), []byte("SQLite format 3"), 0o600))
	k.does("migrate")
	if now := k.names("data/before-*"); len(now) != 1 || strings.Contains(now[0], "2025") {
		t.Errorf("there are %v", now)
	}
}

// A command may run beside a server of an older program, before that is started
// anew: it changes no database under it, and says what is to be done first.
func TestCommandsBesideAServerDoNotMigrate(t *testing.T) {
	k := newKeeper(t, "data")
	before := map[string]int{}
	for _, name := range []string{"accounts", "test", "live"} {
		before[name] = k.number(name, "DELETE FROM schema_version WHERE version = (SELECT MAX(version) FROM schema_version) RETURNING version - 1")
	}
	for _, command := range []string{
		"ledger check", "ledger balance", "payer export 08030001111", "desk list", "replay wsp_sess_01jd", "numbers", "methods", "switches", "people",
		"projects list", "merchants list", "reconcile",
	} {
		out, err := tilltest.Output(t.Context(), k.dir, nil, strings.Fields(command)...)
		if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitFailed || !strings.Contains(out, "of an older Till") || !strings.Contains(out, "till migrate") {
			t.Errorf("till %s: %v\n%s", command, err, out)
		}
	}
	for name, was := range before {
		if is := k.number(name, "SELECT MAX(version) FROM schema_version"); is != was {
			t.Errorf("%s was of schema %d, and is of %d", name, was, is)
		}
	}
}

// number is what one statement finds in a database that nobody else has open.
func (k keeper) number(name, query string) (n int) {
	k.t.Helper()
	db, err := sql.Open("sqlite", "file:"+k.at("data/"+name+".db"))
	k.must(err)
	k.must(errors.Join(db.QueryRowContext(k.t.Context(), query).Scan(&n), db.Close()))
	return n
}
