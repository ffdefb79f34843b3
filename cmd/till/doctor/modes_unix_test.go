//go:build unix

package doctor_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"till/cmd/till/doctor"
	"till/config"
)

// Every setting that is a secret makes a file of settings one that others may not read,
// and no other does.
func TestAFileOfSettingsThatOthersCanReadMayHoldNoSecret(t *testing.T) {
	s := well(t)
	t.Chdir(filepath.Dir(s.dir))
	for field := range reflect.TypeFor[config.Settings]().Fields() {
		name := field.Tag.Get("name")
		if err := os.WriteFile("till.toml", []byte(name+" = \"something\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod("till.toml", 0o644); err != nil {
			t.Fatal(err)
		}
		got := s.found("file-modes")
		secret := field.Type == reflect.TypeFor[config.Secret]()
		if told := strings.Contains(got.What, "read till.toml, and it holds secrets"); told != secret {
			t.Errorf("with %s: %+v", name, got)
		}
	}
}

// What is no file holds no secret, and is not read: a pipe would be waited for, and a
// device read without end.
func TestAPipeInThePlaceOfTheSettingsIsNotWaitedFor(t *testing.T) {
	s := well(t)
	t.Chdir(filepath.Dir(s.dir))
	if err := syscall.Mkfifo("till.toml", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod("till.toml", 0o644); err != nil {
		t.Fatal(err)
	}
	looked := make(chan doctor.Finding, 1)
	go func() { looked <- s.found("file-modes") }()
	select {
	case got := <-looked:
		if got.State != doctor.OK {
			t.Errorf("it says %+v", got)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for who writes into a pipe")
		if f, err := os.OpenFile("till.toml", os.O_WRONLY, 0); err == nil { // nobody does
			_ = f.Close()
		}
		<-looked
	}
}
