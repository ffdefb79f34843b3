//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A pipe in the place of the file is not waited for, a device not read without end, and a
// folder not taken for a fault of the command line: each is named, and what to do.
func TestWhatIsNoFileOfSettingsIsRefusedPlainly(t *testing.T) {
	for name, put := range map[string]func(at string) error{
		"a pipe":   func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"a device": func(at string) error { return os.Symlink("/dev/zero", at) },
		"a folder": func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, put(filepath.Join(dir, settingsFile)))
			for command, want := range map[string]string{"config": "till: till.toml cannot be read: it is no plain file: ", "doctor": "fail  settings    till.toml cannot be read: it is no plain file."} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the doctor looks at much else
				out, err := tilltest.Output(ctx, dir, nil, command)
				if cancel(); err == nil || !strings.Contains(out, want) || !strings.Contains(out, "ls -ld till.toml") {
					t.Errorf("till %s ends with %v and says\n%s", command, err, out)
				}
			}
		})
	}
}
