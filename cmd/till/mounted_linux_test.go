package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// mounted runs a shell's lines where disk is a small disk of its own, and till is
// the program; it skips the test where this user may mount none.
func (k keeper) mounted(size, lines string) string {
	k.t.Helper()
	k.must(os.MkdirAll(k.at("disk"), 0o700))
	run := func(lines string) ([]byte, error) {
		cmd := exec.CommandContext(k.t.Context(), "unshare", "-rm", "sh", "-euc", "mount -t tmpfs -o size="+size+" none disk\n"+lines, tilltest.Program(k.t))
		cmd.Dir = k.dir
		return cmd.CombinedOutput()
	}
	if out, err := run(""); err != nil {
		k.t.Skipf("skipped: no disk can be mounted here: %v %s", err, out)
	}
	out, err := run("till() { \"$0\" \"$@\" || echo \"it ended with $?\"; }\n" + lines)
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		k.t.Fatal(err)
	}
	return string(out)
}

// Who fills a disk with a backup is told which one, and that a FILE may stand elsewhere.
func TestABackupToAFullDiskSaysWhereThereIsNoRoom(t *testing.T) {
	k := newKeeper(t, "data")
	out := k.mounted("300k", "till backup disk/one.tar.gz\nls -A disk")
	if want := "till: there is no room for the backup in " + k.at("disk"); !strings.HasPrefix(out, want) || !strings.Contains(out, "database or disk is full") || !strings.HasSuffix(out, "it ended with 1\n") {
		t.Errorf("it says\n%s", out)
	}
}

// Without room beside them the databases cannot be opened either: the other disk is named too.
func TestABackupOfAFullDiskSaysWhereThereIsNoRoom(t *testing.T) {
	k := newKeeper(t, "data")
	out := k.mounted("9m", "cp -a data disk/data\nrm -f disk/data/*-shm disk/data/*-wal\n(cat /dev/zero >disk/filler 2>/dev/null || true)\ntill backup one.tar.gz --data-dir disk/data")
	if !strings.Contains(out, "none to open the databases in disk/data: ") || !strings.Contains(out, "(df -h "+k.dir+" disk/data; ") {
		t.Errorf("it says\n%s", out)
	}
}

// A disk without room for what is in a backup, and one that takes none, say what to do
// next; nothing is left on them.
func TestADiskThatTakesNoBackupSaysWhatToDo(t *testing.T) {
	k := newKeeper(t, "data")
	k.does("backup", "whole.tar.gz")
	out := k.mounted("300k", "till restore whole.tar.gz --data-dir disk/data\nls -A disk\nmount -o remount,bind,ro disk\ntill backup disk/one.tar.gz")
	for _, want := range []string{"nothing was changed: ", "no space left on device (df -h " + k.at("disk") + "; make room there", "read-only file system (give a FILE in a folder that this user may write to)"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

// On a disk that is mounted read-only SQLite opens nothing. That is no damage, and
// neither a backup nor another owner would mend it.
func TestADiskThatCannotBeWrittenIsNotDamage(t *testing.T) {
	k := newKeeper(t, "data")
	out := k.mounted("50m", "cp -a data disk/data\nmount -o remount,bind,ro disk\ntill verify --data-dir disk/data\ntill doctor --data-dir disk/data\n"+
		"till backup one.tar.gz --data-dir disk/data\ntill ledger check --data-dir disk/data")
	const why = "unable to open database file (14) (run it as the owner of the data dir, on a disk that can be written and takes more files: df -i)"
	if n := strings.Count(out, why); n != 3 {
		t.Errorf("%d of 3 commands say what to do:\n%s", n, out)
	}
	for _, want := range []string{"till: test.db cannot be opened: sqlite: ", "fix: findmnt -T disk/data ", "till: back up disk/data: ", "till: test.db cannot be opened: open test: "} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	for _, wrong := range []string{"BROKEN", "damaged", "till restore", "id -un"} {
		if strings.Contains(out, wrong) {
			t.Errorf("it says %q:\n%s", wrong, out)
		}
	}
}

// Who migrates on a full disk is told what to do. Half a copy is not left.
func TestAMigrationOnAFullDiskSaysWhatToDo(t *testing.T) {
	k := keeper{t, t.TempDir()}
	k.aged("data/accounts.db", 1)
	out := k.mounted("3m", "cp -a data disk/data\ntill migrate --data-dir disk/data\nls disk/data")
	for _, want := range []string{"till: there is no room on the disk of disk/data", "(df -h disk/data; make room there", "and do this again)", "it ended with 1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if _, left, _ := strings.Cut(out, "it ended with 1\n"); strings.Contains(left, beforeMigrate) {
		t.Errorf("it leaves a part of a copy:\n%s", out)
	}
}

// A disk can be so full that SQLite has no room for what it shares between processes. It
// calls that an error of the disk; who migrates is told of the room.
func TestAMigrationWithoutRoomForSharedMemorySaysWhatToDo(t *testing.T) {
	k := newKeeper(t, "data")
	out := k.mounted("9m", "cp -a data disk/data\nrm -f disk/data/*-shm disk/data/*-wal\n(cat /dev/zero >disk/filler 2>/dev/null || true)\ntill migrate --data-dir disk/data")
	for _, want := range []string{"till: there is no room on the disk of disk/data", "(4874) (df -h disk/data; make room there", "and do this again)", "it ended with 1\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}
