//go:build unix

package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
)

// What root restores, migrates or links a number with, and notes of a backup, is its whose
// the data dir is: a server that is not root could not open it.
func TestWhatRootMakesInADataDirIsItsOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root may make files that are others'")
	}
	const owner = 65534
	k := newKeeper(t, "data")
	give := func(name string) {
		k.must(filepath.WalkDir(k.at(name), func(path string, _ fs.DirEntry, err error) error {
			k.must(err)
			return os.Chown(path, owner, owner)
		}))
	}
	whose := func(name string) {
		t.Helper()
		k.must(filepath.WalkDir(k.at(name), func(path string, e fs.DirEntry, err error) error {
			k.must(err)
			info, err := e.Info()
			k.must(err)
			if at := info.Sys().(*syscall.Stat_t); at.Uid != owner || at.Gid != owner {
				t.Errorf("%s is %d:%d's", path, at.Uid, at.Gid)
			}
			return nil
		}))
	}
	give("data")
	k.does("backup", "one.tar.gz")
	whose("data/last-backup.json")
	k.does("restore", "one.tar.gz", "--yes")
	whose("data")
	k.changes("DELETE FROM schema_version WHERE version = (SELECT MAX(version) FROM schema_version)")
	k.changes("DROP INDEX refund_transfer")
	k.does("migrate")
	whose("data")
	if len(k.names("data/before-*/*")) != 1 {
		t.Errorf("no copy of before was made: %v", k.names("data/*"))
	}
	o := newOutside(t)
	pair := start(t, k.dir, o.env, "pair")
	o.link(pair)
	pair.EndsWell()
	whose("data")
	if len(k.names("data/"+keysDir+"/*")) == 0 {
		t.Errorf("no number was linked: %v", k.names("data/*"))
	}
	k.must(os.Mkdir(k.at("new"), 0o700))
	give("new")
	k.does("restore", "one.tar.gz", "--data-dir", "new/data")
	whose("new")
}

// A start that may not open the data dir says whose command it is, and does not send to
// another folder, where it would begin with nothing.
func TestAStartThatMayNotOpenTheDataDirSaysSo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root runs a program as somebody else")
	}
	k := newKeeper(t, "data")
	program, err := os.ReadFile(tilltest.Program(t))
	k.must(err)
	k.must(os.WriteFile(k.at("till"), program, 0o700))
	for _, name := range []string{filepath.Dir(k.dir), k.dir, k.at("till"), k.at("data")} { // another user comes here and runs it
		k.must(os.Chmod(name, 0o755))
	}
	for _, args := range [][]string{
		{"serve", "--bank-url", "http://127.0.0.1:1", "--whatsapp-network", "whatsapp", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off"},
		{"dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off"},
	} {
		cmd := exec.CommandContext(t.Context(), k.at("till"), args...)
		cmd.Dir, cmd.SysProcAttr = k.dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "run it as the owner of the data dir") || strings.Contains(string(out), "choose another") {
			t.Errorf("till %s ends with %v and says\n%s", args[0], err, out)
		}
	}
}
