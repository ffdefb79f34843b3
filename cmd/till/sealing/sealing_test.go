package sealing_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"till/cmd/till/sealing"
	"till/config"
	"till/flow/store"
)

const (
	one = "1a00000000000000000000000000000000000000000000000000000000000001"
	two = "2b00000000000000000000000000000000000000000000000000000000000002"
)

// ids are the names of the keys that settings give, "" for none.
func ids(t *testing.T, set config.Settings) []string {
	t.Helper()
	keys, err := sealing.Keys(set)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, k := range keys {
		out = append(out, k.ID())
	}
	return out
}

func id(t *testing.T, text string) string {
	t.Helper()
	k, err := store.ParseSealingKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k.ID()
}

func TestTheFirstStartMakesOneKeyHoweverManyDo(t *testing.T) {
	dir := t.TempDir()
	if got := ids(t, config.Settings{DataDir: dir}); got != nil {
		t.Fatalf("before: %v", got)
	}
	made := make([]store.SealingKey, 16)
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			var err error
			if made[i], err = sealing.Make(dir, rand.Reader); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(slices.Compact(made)); n != 1 {
		t.Errorf("%d keys were made", n)
	}
	if got := ids(t, config.Settings{DataDir: dir}); !slices.Equal(got, []string{made[0].ID()}) {
		t.Errorf("kept %v, want %s", got, made[0].ID())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("left %v, %v", entries, err)
	}
	info, err := entries[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 || info.Name() != sealing.FileName {
		t.Errorf("the file is %v, %v", info, err)
	}
}

func TestTheKeyOfTheSettingsSealsAndTheOthersOnlyOpen(t *testing.T) {
	dir := t.TempDir()
	made, err := sealing.Make(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set  config.Settings
		want []string
	}{
		"none of the settings": {config.Settings{DataDir: dir}, []string{made.ID()}},
		"one of the settings":  {config.Settings{DataDir: dir, SecretsKey: one}, []string{id(t, one), made.ID()}},
		"and old ones":         {config.Settings{DataDir: dir, SecretsKey: one, SecretsKeyOld: two + ", " + one}, []string{id(t, one), made.ID(), id(t, two), id(t, one)}},
		"old ones alone":       {config.Settings{DataDir: dir, SecretsKeyOld: two}, []string{made.ID(), id(t, two)}},
		"no file":              {config.Settings{DataDir: t.TempDir(), SecretsKey: two}, []string{id(t, two)}},
		"old ones, no file":    {config.Settings{DataDir: t.TempDir(), SecretsKeyOld: two}, nil},
	} {
		if got := ids(t, c.set); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestABrokenKeyFileIsNoKey(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sealing.FileName), []byte("5e5e\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sealing.Keys(config.Settings{DataDir: dir, SecretsKey: one})
	if err == nil || !strings.Contains(err.Error(), "put back the copy") || strings.Contains(err.Error(), "5e5e") {
		t.Errorf("got %v", err)
	}
	if _, err := sealing.Make(dir, rand.Reader); err == nil {
		t.Error("another key was made beside it")
	}
}

func TestAKeyOfTheSettingsThatIsNoneIsNotRepeated(t *testing.T) {
	for _, bad := range []config.Secret{"5e5e", config.Secret(strings.Repeat("5e", 32)), "hunter2"} {
		err := config.Settings{SecretsKey: bad}.Check()
		if err == nil || !strings.Contains(err.Error(), "openssl rand -hex 32") || strings.Contains(err.Error(), string(bad)) {
			t.Errorf("%d characters: %v", len(bad), err)
		}
		if err := (config.Settings{SecretsKey: one, SecretsKeyOld: two + "," + bad}).Check(); !strings.Contains(err.Error(), "secrets-key-old") {
			t.Errorf("an old one: %v", err)
		}
	}
}
