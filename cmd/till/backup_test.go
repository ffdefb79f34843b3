package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/tilltest"
)

// keeper is a place with a data dir that no server runs on.
type keeper struct {
	t   *testing.T
	dir string
}

// newKeeper makes a data dir at a path of its own, with all databases.
func newKeeper(t *testing.T, data string) keeper {
	t.Helper()
	k := keeper{t, t.TempDir()}
	k.must(os.MkdirAll(k.at(data), 0o700))
	k.does("migrate", "--data-dir", data)
	return k
}

func (k keeper) at(path string) string { return filepath.Join(k.dir, path) }

func (k keeper) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// does runs a command that works.
func (k keeper) does(args ...string) string {
	k.t.Helper()
	out, err := tilltest.Output(k.t.Context(), k.dir, nil, args...)
	if err != nil {
		k.t.Fatalf("till %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// names are what a folder has whose names match.
func (k keeper) names(pattern string) (names []string) {
	k.t.Helper()
	paths, err := filepath.Glob(k.at(pattern))
	k.must(err)
	for _, path := range paths {
		name, err := filepath.Rel(k.dir, path)
		k.must(err)
		names = append(names, name)
	}
	return names
}

// A backup in the data dir would be in the next one: it is refused, whichever way
// leads there.
func TestABackupDoesNotGoIntoTheDataDir(t *testing.T) {
	k := newKeeper(t, "data")
	k.must(os.Mkdir(k.at("data/daily"), 0o700))
	k.must(os.Symlink("data", k.at("link")))
	k.must(os.Symlink("data/daily", k.at("daily")))
	for _, one := range []struct{ from, dataDir, file string }{
		{".", "data", "data/a.tar.gz"},
		{".", "data", "data/daily/a.tar.gz"},
		{".", "link", "data/a.tar.gz"},
		{".", "data", "link/a.tar.gz"},
		{".", "data", "daily/a.tar.gz"},
		{".", "data", k.at("data/a.tar.gz")},
		{"data", ".", "a.tar.gz"},
		{"data/daily", "../../link", "a.tar.gz"},
	} {
		out, err := tilltest.Output(t.Context(), k.at(one.from), nil, "backup", one.file, "--data-dir", one.dataDir)
		if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitUsage || !strings.Contains(out, "give a FILE elsewhere") {
			t.Errorf("%s of %s in %s: %v\n%s", one.file, one.dataDir, one.from, err, out)
		}
	}
	if found := append(k.names("data/*.tar.gz"), k.names("data/daily/*")...); len(found) > 0 {
		t.Errorf("written were %v", found)
	}
	for _, file := range []string{"beside.tar.gz", "data/../above.tar.gz"} {
		k.does("backup", file)
	}
}

// What a kill left and what an older program wrote there are in no backup; how far
// the test environment's clock was moved is.
func TestABackupHoldsWhatIsKeptAndNothingElse(t *testing.T) {
	k := newKeeper(t, "data")
	k.must(os.Mkdir(k.at("data/.till-backup-1"), 0o700))
	for _, name := range []string{"till-2026-11-22.tar.gz", ".till-2", ".till-backup-1/test.db", "lock", "clock"} {
		k.must(os.WriteFile(k.at("data/"+name), []byte("60000000000"), 0o600))
	}
	k.does("backup", "one.tar.gz")
	f, err := os.Open(k.at("one.tar.gz"))
	k.must(err)
	defer f.Close()
	zip, err := gzip.NewReader(f)
	k.must(err)
	var names []string
	for in := tar.NewReader(zip); ; {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		k.must(err)
		names = append(names, head.Name)
	}
	if want := []string{"manifest.json", "clock", "test.db", "live.db", "accounts.db"}; !slices.Equal(names, want) {
		t.Errorf("it holds %v, not %v", names, want)
	}
}

// What a kill leaves beside a backup is as large as all of the data: the next one
// removes it, unless somebody works in it or may be about to.
func TestABackupRemovesWhatAKilledOneLeft(t *testing.T) {
	k := newKeeper(t, "data")
	dayAgo := time.Now().AddDate(0, 0, -1)
	for _, name := range []string{".till-backup-left", ".till-backup-new", ".till-backup-used", ".till-restore-left", ".till-backup-mine", "till-backup-mine"} {
		k.must(os.Mkdir(k.at(name), 0o700))
		k.must(os.WriteFile(k.at(name+"/test.db"), []byte("a copy"), 0o600))
		if name != ".till-backup-used" && name != ".till-backup-mine" {
			k.must(os.WriteFile(k.at(name+"/lock"), nil, 0o600))
		}
		if name != ".till-backup-new" {
			k.must(os.Chtimes(k.at(name), dayAgo, dayAgo))
		}
	}
	used, err := os.Create(k.at("lock"))
	k.must(err)
	defer used.Close()
	k.must(syscall.Flock(int(used.Fd()), syscall.LOCK_EX))
	k.must(os.Link(k.at("lock"), k.at(".till-backup-used/lock")))
	k.must(os.Chtimes(k.at(".till-backup-used"), dayAgo, dayAgo))
	if said := k.does("backup", "one.tar.gz"); !strings.Contains(said, ".till-backup-left") {
		t.Errorf("of what it removed it says %q", said)
	}
	if left, want := k.names(".till-*"), []string{".till-backup-mine", ".till-backup-new", ".till-backup-used", ".till-restore-left"}; !slices.Equal(left, want) {
		t.Errorf("left are %v, not %v", left, want)
	}
	k.does("restore", "one.tar.gz", "--data-dir", "second")
	if left, want := k.names("*till-*"), []string{".till-backup-mine", ".till-backup-new", ".till-backup-used", "till-backup-mine"}; !slices.Equal(left, want) {
		t.Errorf("after a restore are left %v, not %v", left, want)
	}
}

// A data dir may be a link, as systemd makes one of /var/lib/till: all that is
// done about it is done about the folder, and the link stays.
func TestADataDirMayBeALink(t *testing.T) {
	k := newKeeper(t, "lib/private/till")
	k.must(os.Symlink("private/till", k.at("lib/till")))
	k.does("backup", "one.tar.gz", "--data-dir", "lib/till")
	for _, where := range [][]string{{"--data-dir", "lib/till"}, {"one.tar.gz"}} {
		if out := k.does(append([]string{"verify"}, where...)...); strings.Count(out, "every page of the file is whole") != 3 {
			t.Errorf("of %v it read not all:\n%s", where, out)
		}
	}
	k.must(os.Chmod(k.at("lib/private/till/live.db"), 0o644))
	out, _ := tilltest.Output(t.Context(), k.dir, nil, "doctor", "--data-dir", "lib/till") // that ends as the machine is
	if !strings.Contains(out, "Others on this machine can read 1 of the files") {
		t.Errorf("the doctor does not look into it:\n%s", out)
	}

	k.does("people", "add", "late@example.com", "--role", "operator", "--data-dir", "lib/till")
	k.does("restore", "one.tar.gz", "--yes", "--data-dir", "lib/till")
	if to, err := os.Readlink(k.at("lib/till")); err != nil || to != "private/till" {
		t.Errorf("the link leads to %q: %v", to, err)
	}
	if out := k.does("people", "--data-dir", "lib/private/till"); strings.Contains(out, "late@example.com") {
		t.Errorf("it is not restored:\n%s", out)
	}
	aside := k.names("lib/private/till.before-*")
	if len(aside) != 1 {
		t.Fatalf("set aside is %v", aside)
	}
	k.does("verify", "--data-dir", aside[0])
	var forgets struct{ Copies []string }
	k.must(json.Unmarshal([]byte(k.does("payer", "forget", "08031234567", "--dry-run", "--json", "--data-dir", "lib/till")), &forgets))
	if len(forgets.Copies) != 1 || filepath.Base(forgets.Copies[0]) != filepath.Base(aside[0]) {
		t.Errorf("the copies in which a payer stands are %v, not %v", forgets.Copies, aside)
	}

	k.must(os.Symlink("private/gone", k.at("lib/lost")))
	if out, err := tilltest.Output(t.Context(), k.dir, nil, "restore", "one.tar.gz", "--data-dir", "lib/lost"); err == nil || !strings.Contains(out, "lead to nothing") {
		t.Errorf("to a link that leads nowhere: %v\n%s", err, out)
	}
	if _, err := os.Readlink(k.at("lib/lost")); err != nil {
		t.Errorf("that link: %v", err)
	}
}

// A restore that was killed between its two renames left nothing in the place of the
// data dir: no start makes an empty one there without a word.
func TestAStartDoesNotTakeACutOffRestoreForNothing(t *testing.T) {
	k := newKeeper(t, "data")
	k.must(os.Rename(k.at("data"), k.at("data.before-20261122T080000.000Z")))
	out, err := tilltest.Output(t.Context(), k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off")
	if err == nil || !strings.Contains(out, "a restore was cut off") || !strings.Contains(out, k.at("data.before-20261122T080000.000Z")) {
		t.Errorf("it says %v\n%s", err, out)
	}
	if made := k.names("data"); len(made) > 0 {
		t.Errorf("it made %v", made)
	}
	k.must(os.Rename(k.at("data.before-20261122T080000.000Z"), k.at("data")))
	k.does("verify")
}

// The unit and the container once kept what is now one level below there: a start of
// the new one beside the old data does not begin with nothing.
func TestAStartDoesNotBeginAnewInsideAnotherDataDir(t *testing.T) {
	for _, pg := range []bool{false, true} {
		k := newKeeper(t, "lib/till")
		if pg { // the keys of the numbers alone are in it
			k.must(os.Mkdir(k.at("lib/till/whatsapp"), 0o700))
			k.must(os.Rename(k.at("lib/till/accounts.db"), k.at("lib/till/whatsapp/test-1.db")))
		}
		out, err := tilltest.Output(t.Context(), k.dir, nil, "dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off", "--data-dir", "lib/till/data")
		if err == nil || !strings.Contains(out, "lib/till/data is not there, and "+k.at("lib/till")+" is one") {
			t.Errorf("it says %v\n%s", err, out)
		}
		if made := k.names("lib/till/data"); len(made) > 0 {
			t.Errorf("it made %v", made)
		}
	}
}
