//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"till/cmd/till/tilltest"
)

// A file of settings that may not be read is not passed over, as kong does: a server
// would begin anew in a folder beside the PostgreSQL that the file names.
func TestAFileOfSettingsThatMayNotBeReadIsNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	program, err := os.ReadFile(tilltest.Program(t))
	must(t, err)
	bin := filepath.Join(dir, "till")
	must(t, os.WriteFile(bin, program, 0o700))
	for _, name := range []string{filepath.Dir(dir), dir, bin} { // another user comes here and runs it, whatever umask there is
		must(t, os.Chmod(name, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte("log-level = \"info\"\n"), 0o000))
	for command, want := range map[string]string{"config": "till: till.toml cannot be read: ", "doctor": "fail  settings    till.toml cannot be read: "} {
		cmd := exec.CommandContext(t.Context(), bin, command)
		cmd.Dir = dir
		if os.Geteuid() == 0 { // who may read everything
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "ls -l till.toml") {
			t.Errorf("till %s ends with %v and says\n%s", command, err, out)
		}
	}
}
