package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// A backup, a metric and a simulation that fails name the commit that they are of.
func TestTheVersionNamesTheCommit(t *testing.T) {
	git := tilltest.Need(t, "git", "git")
	top := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(top, ".git")); err != nil {
		t.Skipf("it is built of no repository: %v", err)
	}
	commit, err := exec.CommandContext(t.Context(), git, "-C", top, "rev-parse", "--short=12", "HEAD").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, commit)
	}
	bin := filepath.Join(t.TempDir(), "till")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), bin, "version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), strings.TrimSpace(string(commit))) {
		t.Errorf("of commit %s it is %s (%v)", commit, out, err)
	}
}
