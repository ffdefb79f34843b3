package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A flag wins over a variable, and that over the file: a file that lay in the folder won
// over what a service's environment says, and was shown as coming from there.
func TestAFlagWinsOverAVariableAndThatOverTheFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte("log-level = \"error\"\nrate-limit-test = 7\n"), 0o600))
	of := func(name string, args ...string) (value, origin string) {
		var out bytes.Buffer
		if code := run(t.Context(), append([]string{"config", "--json"}, args...), &out, io.Discard); code != exitOK {
			t.Fatalf("till config %v ended with %d", args, code)
		}
		var lines []settingLine
		must(t, json.Unmarshal(out.Bytes(), &lines))
		for _, line := range lines {
			if line.Name == name {
				return line.Value, line.Origin
			}
		}
		return "", ""
	}
	is := func(name, wantValue, wantOrigin string, args ...string) {
		t.Helper()
		if value, origin := of(name, args...); value != wantValue || origin != wantOrigin {
			t.Errorf("%s with %v is %q of %s, not %q of %s", name, args, value, origin, wantValue, wantOrigin)
		}
	}
	is("log-level", "error", settingsFile)
	is("rate-limit-test", "7", settingsFile)
	t.Setenv("TILL_LOG_LEVEL", "info")
	is("log-level", "info", "TILL_LOG_LEVEL")
	is("log-level", "debug", "flag", "--log-level", "debug")
	is("rate-limit-test", "7", settingsFile)
}
