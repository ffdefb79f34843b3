package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/store"
	"till/flow/store/lite"
)

// Whoever waits for the file with the keys and calls the API with them is let in: there is
// no such file of keys that do not count yet, or never will.
func TestTheFileOfKeysIsThereOnceTheyCount(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	must(t, os.Mkdir(data, 0o700))
	db, err := store.Open(t.Context(), store.Config{Schema: store.Accounts, Dir: data, Name: "accounts"})
	must(t, err)
	must(t, db.Close())
	accounts, err := lite.Open("file:" + filepath.Join(data, "accounts.db"))
	must(t, err)
	must(t, accounts.Script(`CREATE TRIGGER refused BEFORE INSERT ON settings WHEN NEW.name = 'demo_public_key' BEGIN SELECT RAISE(ABORT, 'not now'); END`))
	said, err := tilltest.Output(t.Context(), dir, []string{"TILL_METRICS_ADDR=off"}, "dev", "--http-addr", tilltest.FreePort(t))
	if err == nil || !strings.Contains(said, "not now") {
		t.Errorf("it ended with %v and said\n%s", err, said)
	}
	if _, err := os.Stat(filepath.Join(dir, envFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("keys that were not kept are in a file: %v", err)
	}
	must(t, errors.Join(accounts.Script(`DROP TRIGGER refused`), accounts.Close()))

	// A start that was killed when the keys counted, and the file was not there yet.
	p := start(t, dir, nil, "dev", "--http-addr", tilltest.FreePort(t))
	key := p.Line(`^secret key  (sk_test_\w+)`)[1]
	p.Kill()
	if left, err := filepath.Glob(filepath.Join(dir, ".env.till?*")); err != nil || len(left) > 0 {
		t.Errorf("beside the file is %v, %v", left, err)
	}
	must(t, os.Rename(filepath.Join(dir, envFile), filepath.Join(dir, envAside)))
	p = start(t, dir, nil, "dev", "--http-addr", tilltest.FreePort(t))
	p.Line(`^secret key  in ` + envFile + ` since the first start`)
	if again := keptKey(t, dir); again != key {
		t.Errorf("the key in the file is %q", again)
	}
}

// A second Till in the folder, with a data dir of its own, takes the file for its keys. What
// the first one's start says then makes another key of its project, and takes nothing away.
func TestWhoLostTheFileOfKeysIsToldHowToMakeAnother(t *testing.T) {
	dir, addr := t.TempDir(), tilltest.FreePort(t)
	first := start(t, dir, nil, "dev", "--http-addr", addr, "--data-dir", "./first")
	first.Line(`^secret key  sk_test_`)
	first.Kill()
	second := start(t, dir, nil, "dev", "--http-addr", addr, "--data-dir", "./second")
	second.Line(`^secret key  sk_test_`)
	second.Kill()
	p := start(t, dir, nil, "dev", "--http-addr", addr, "--data-dir", "./first")
	command := p.Line(`^  till (keys create .*)$`)[1]
	said, err := p.Beside(strings.Fields(command)...)
	key := regexp.MustCompile(`sk_test_\w+`).FindString(said)
	if err != nil || key == "" {
		t.Fatalf("till %s: %v\n%s", command, err, said)
	}
	said, err = p.Beside("sessions", "list", "--url", "http://"+addr)
	if err == nil {
		t.Fatalf("the key in the file is the first one's:\n%s", said)
	}
	said, err = tilltest.Output(t.Context(), dir, []string{"TILL_SECRET_KEY=" + key}, "sessions", "list", "--url", "http://"+addr)
	if err != nil {
		t.Errorf("the new key is refused: %v\n%s", err, said)
	}
}
