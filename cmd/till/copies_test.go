package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// changes does something to the database of test that nobody has open.
func (k keeper) changes(query string) {
	k.t.Helper()
	db, err := sql.Open("sqlite", "file:"+k.at("data/test.db"))
	k.must(err)
	_, err = db.ExecContext(k.t.Context(), query)
	k.must(errors.Join(err, db.Close()))
}

// fails runs a command that ends with a code, and says all of some things.
func (k keeper) fails(code int, command string, says ...string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), tilltest.Patience)
	defer cancel()
	out, err := tilltest.Output(ctx, k.dir, nil, strings.Fields(command)...)
	ended := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		ended = exit.ExitCode()
	}
	if ended != code {
		k.t.Errorf("till %s ended with %d, not %d:\n%s", command, ended, code, out)
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			k.t.Errorf("till %s does not say %q:\n%s", command, want, out)
		}
	}
}

// A start that finds a damaged database, and a command beside it, say what to do: that the
// store does not answer right now, and to try again, is true of none.
func TestADamagedDatabaseIsCalledSo(t *testing.T) {
	k := newKeeper(t, "data")
	k.does("backup", "one.tar.gz")
	k.must(os.WriteFile(k.at("data/test.db"), []byte(strings.Repeat("not a database\n", 1000)), 0o600))
	says := []string{"test.db is damaged: ", "file is not a database", "till restore FILE --yes"}
	for _, command := range []string{"dev --metrics-addr off --http-addr " + tilltest.FreePort(t), "desk", "ledger balance", "payer unseen 17520h", "backup two.tar.gz"} {
		k.fails(1, command, says...)
	}
	k.does("restore", "one.tar.gz", "--yes")
	k.does("desk")
}

// The books of test in the place of those of live would have pretend money paid out: each
// command that opens them refuses them, and says what to do.
func TestBooksInEachOthersPlaceAreRefused(t *testing.T) {
	k := newKeeper(t, "data")
	k.does("backup", "one.tar.gz")
	for _, move := range [][2]string{{"data/test.db", "away.db"}, {"data/live.db", "data/test.db"}, {"away.db", "data/live.db"}} {
		k.must(os.Rename(k.at(move[0]), k.at(move[1])))
	}
	for _, command := range []string{"dev --metrics-addr off --http-addr " + tilltest.FreePort(t), "migrate", "desk", "ledger check"} {
		k.fails(exitFailed, command, "test.db stands in another's place: ", "it was made as another database: live", "till restore FILE --yes")
	}
	k.fails(exitFailed, "verify", "test  it was made as live: ", "live  it was made as test: ")
	k.fails(2, "doctor", "The database test.db was made as live.db", "The database live.db was made as test.db", "fix: put each back in its place; or  till restore ")
	k.does("restore", "one.tar.gz", "--yes")
	k.does("desk")
}

// A database that lacks a part of what its version says once passed every look, and
// failed at the first payer with a name: each command that opens it says so now, and
// what to do.
func TestADatabaseThatLacksAPartIsFoundByEveryLook(t *testing.T) {
	k := newKeeper(t, "data")
	k.changes("ALTER TABLE names DROP COLUMN amount")
	const lacks = "it lacks names.amount"
	k.fails(exitFailed, "verify", lacks, "go on with the program that made it")
	k.fails(2, "doctor", "test.db is of no Till that was ever given out: "+lacks, "fix: till restore ")
	for _, command := range []string{"migrate", "ledger check", "dev --http-addr 127.0.0.1:0"} {
		k.fails(exitFailed, command, lacks, "go on with the program that made it", "till restore FILE", "begin anew with another --data-dir")
	}
}

// Who starts a newer program is told that it changed a database, and where the copy of
// before is, whatever the log holds by default; till doctor tells how much room such
// copies take, and when they are old enough to go.
func TestTheCopyOfBeforeIsTold(t *testing.T) {
	k := newKeeper(t, "data")
	k.changes("DELETE FROM schema_version WHERE version = (SELECT MAX(version) FROM schema_version)")
	k.changes("DROP INDEX refund_transfer")
	p := tilltest.Start(t, k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off")
	p.Line("curl")
	p.End(os.Interrupt)
	copies := k.names("data/before-*/*")
	if len(copies) != 1 || !strings.Contains(p.Said(), copies[0]) {
		t.Errorf("of %v it says\n%s", copies, p.Said())
	}
}

// Copies of before hold what payers wrote for good, and as much as all of the data each.
func TestTheDoctorTellsOfOldCopies(t *testing.T) {
	k := newKeeper(t, "data")
	young, old := time.Now().AddDate(0, 0, -10), time.Now().AddDate(0, 0, -40)
	for name, at := range map[string]time.Time{"data/before-2025-01-01T000000.000Z": old, "data.before-20250101T000000.000Z": old, "data/before-2025-02-01T000000.000Z": young} {
		k.must(os.Mkdir(k.at(name), 0o700))
		k.must(os.WriteFile(filepath.Join(k.at(name), "test.db"), make([]byte, 3<<20), 0o600))
		k.must(os.Chtimes(k.at(name), at, at))
	}
	k.fails(1, "doctor --http-addr "+tilltest.FreePort(t), "3 copies of before, which migrations and restores keep, take 9.0 MB", "fix: rm -r data/before-2025-01-01T000000.000Z data.before-20250101T000000.000Z ")
}

// A backup that was cut off or damaged on its way says what to do next; nothing is
// changed by it.
func TestABackupThatCannotBeRestoredSaysWhatToDo(t *testing.T) {
	k := newKeeper(t, "data")
	k.does("backup", "whole.tar.gz")
	whole, err := os.ReadFile(k.at("whole.tar.gz"))
	k.must(err)
	flipped := append([]byte(nil), whole...)
	flipped[len(flipped)/2] ^= 4
	const next = "copy it again from where it was made, or take another:  till verify FILE  proves one"
	for name, bytes := range map[string][]byte{"empty": {}, "head": whole[:20], "half": whole[:len(whole)/2], "most": whole[:len(whole)-2000], "flipped": flipped} {
		k.must(os.WriteFile(k.at(name+".tar.gz"), bytes, 0o600))
		k.fails(exitFailed, "restore "+name+".tar.gz --yes", name+".tar.gz was not restored, nothing was changed: ", next)
	}
	if left := k.names("data*"); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

// What a kill leaves of a proof is all that was in the backup, payers' names too, in a
// folder that nobody looks into: the next proof removes it.
func TestAProofRemovesWhatAKilledOneLeft(t *testing.T) {
	k := newKeeper(t, "data")
	k.does("backup", "one.tar.gz")
	dayAgo, left := time.Now().AddDate(0, 0, -1), k.at("tmp/.till-verify-left")
	k.must(os.MkdirAll(left, 0o700))
	for _, name := range []string{"lock", "test.db"} {
		k.must(os.WriteFile(filepath.Join(left, name), nil, 0o600))
	}
	k.must(os.Chtimes(left, dayAgo, dayAgo))
	if out, err := tilltest.Output(t.Context(), k.dir, []string{"TMPDIR=" + k.at("tmp")}, "verify", "one.tar.gz"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if names := k.names("tmp/.*"); len(names) != 0 {
		t.Errorf("there are %v", names)
	}
}
