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

	"till/cmd/till/sealing"
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

// noFiles put what is no file in the place of one, by what it is.
func noFiles() map[string]func(at string) error {
	return map[string]func(at string) error{
		"a pipe":   func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"a device": func(at string) error { return os.Symlink("/dev/zero", at) },
		"a folder": func(at string) error { return os.Mkdir(at, 0o700) },
	}
}

// A pipe in the place of the file is not waited for, a device not read without end, and a
// folder not taken for a fault of the command line: each is named, and what to do.
func TestWhatIsNoFileOfSettingsIsRefusedPlainly(t *testing.T) {
	for name, put := range noFiles() {
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

// Nor is it in the place of the file with the key or of that with holidays: a start, and
// the doctor, would wait for ever, and heed no signal meanwhile.
func TestWhatIsNoFileOfTheKeyOrOfHolidaysIsRefusedPlainly(t *testing.T) {
	for name, put := range noFiles() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, days := filepath.Join(dir, "data"), filepath.Join(dir, "days.csv")
			must(t, os.Mkdir(data, 0o700))
			must(t, put(filepath.Join(data, sealing.FileName)))
			must(t, put(days))
			for _, c := range []struct {
				args []string
				want []string
			}{
				{[]string{"dev", "--http-addr", tilltest.FreePort(t), "--metrics-addr", "off"}, []string{"data/secrets.key holds no key: it is no plain file (move it away"}},
				{[]string{"doctor"}, []string{"fail  sealing-key  data/secrets.key holds no key: it is no plain file.", "fix: mv data/secrets.key data/secrets.key.aside && cp YOUR_COPY data/secrets.key"}},
				{[]string{"config", "--holidays", days}, []string{"till: --holidays \"" + days + "\" cannot be used: it is no plain file (give a file"}},
				{[]string{"doctor", "--data-dir", "./none", "--holidays", days}, []string{"fail  settings    --holidays \"" + days + "\" cannot be used: it is no plain file (give a file"}},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the doctor looks at much else
				out, err := tilltest.Output(ctx, dir, []string{"TILL_DATA_DIR=data"}, c.args...)
				cancel()
				for _, want := range c.want {
					if err == nil || !strings.Contains(out, want) {
						t.Errorf("till %v ends with %v and says\n%s\nwithout %q", c.args, err, out, want)
					}
				}
			}
		})
	}
}

// Nor where a client's keys or a backup are looked for, which would wait for ever too.
func TestWhatIsNoFileOfAKeyOrABackupIsRefusedPlainly(t *testing.T) {
	for name, put := range noFiles() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, put(filepath.Join(dir, "odd")))
			for want, args := range map[string][]string{
				"till: read the keys of odd: it is no plain file":                                                              {"sessions", "list", "--env-file", "odd"},
				"till: odd was not restored, nothing was changed: the backup cannot be read: it is no plain file (give a file": {"restore", "odd"},
				"till: the backup cannot be read: it is no plain file":                                                         {"verify", "odd"},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				out, err := tilltest.Output(ctx, dir, []string{"TILL_DATA_DIR=data"}, args...)
				if cancel(); err == nil || !strings.Contains(out, want) {
					t.Errorf("till %v ends with %v and says\n%s", args, err, out)
				}
			}
		})
	}
}

// A start renews the address in the file with the keys, and passes over what is no file.
func TestAStartDoesNotWaitForKeysInAPipe(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, syscall.Mkfifo(envFile, 0o600))
	kept := make(chan bool, 1)
	go func() { kept <- keepEnvFile("http://127.0.0.1:1", "pk_test_x") }()
	select {
	case is := <-kept:
		if is {
			t.Error("the keys are said to be kept in a pipe")
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for whoever writes into the pipe")
	}
}

// A file of holidays that cannot be read keeps every start from succeeding: the doctor
// does not say that every setting can be used.
func TestTheDoctorReadsTheFileOfHolidays(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "days.csv"), []byte("tomorrow\n"), 0o600))
	for _, file := range []string{"none.csv", "days.csv"} {
		out, err := tilltest.Output(t.Context(), dir, nil, "doctor", "--holidays", file)
		if err == nil || !strings.Contains(out, "fail  settings    --holidays \""+file+"\" cannot be used: ") || strings.Contains(out, "Every setting can be used") {
			t.Errorf("with %s it ends with %v and says\n%s", file, err, out)
		}
	}
}
