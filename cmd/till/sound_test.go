//go:build !planted

package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"

	"till/cmd/till/tilltest"
)

func TestNoBugIsPlanted(t *testing.T) {
	bin := tilltest.Program(t)
	built, err := buildinfo.ReadFile(bin)
	must(t, err)
	if slices.Contains(built.Settings, debug.BuildSetting{Key: "-cover", Value: "true"}) { // such a one names all of the source
		bin = filepath.Join(t.TempDir(), "till")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bin, ".").CombinedOutput(); err != nil {
			t.Fatalf("build the program: %v\n%s", err, out)
		}
	}
	text, err := os.ReadFile(bin)
	must(t, err)
	source, err := os.ReadFile("../../flow/planted/bugs.go")
	must(t, err)
	bugs := regexp.MustCompile(`plant\("([^"]+)", "([^"]+)"\)`).FindAllSubmatch(source, -1)
	if len(bugs) < 14 {
		t.Fatalf("only %d bugs can be planted", len(bugs))
	}
	for _, b := range bugs {
		for _, word := range b[1:] {
			if bytes.Contains(text, word) {
				t.Errorf("the program holds %q", word)
			}
		}
	}
	for _, word := range []string{"TILL_PLANTED", "BUGS PLANTED IN IT", "till/flow/planted.", "TILL_CRASH_POINT", "till/flow/crashpoint."} {
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("the program holds %q", word)
		}
	}
}
