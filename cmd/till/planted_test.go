//go:build planted

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/planted"
)

// ill runs the program with a bug planted, and says what it wrote and ended with.
func ill(t *testing.T, bug string, args ...string) (code int, out, words string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tilltest.Program(t), args...)
	cmd.Env = append(os.Environ(), planted.Variable+"="+bug)
	var o, w bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &w
	err := cmd.Run()
	if ended, is := errors.AsType[*exec.ExitError](err); is {
		return ended.ExitCode(), o.String(), w.String()
	}
	must(t, err)
	return 0, o.String(), w.String()
}

func TestPlantedBugsAreSaidLoudly(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"dev"}, {"serve"}, {"ledger", "check"}, {"config"}} {
		code, out, words := ill(t, "odd-kobo", args...)
		if code != exitRefused || out != "" || !strings.Contains(words, "HAVE BUGS PLANTED IN IT (TILL_PLANTED=odd-kobo)") || !strings.Contains(words, "build it without") {
			t.Errorf("till %v: %d, %q, %q", args, code, out, words)
		}
	}
	if code, _, words := ill(t, "no-such-bug", "sim", "--seed", "1"); code != exitUsage || !strings.Contains(words, "odd-kobo") {
		t.Errorf("a bug that is not there: %d, %q", code, words)
	}
}

func TestPlantedBugIsFound(t *testing.T) {
	code, out, words := ill(t, "", "oracle", "--bug", "odd-kobo", "--most", "1", "--clean", "1")
	if code != exitOK || !strings.Contains(out, "found 1 of 1 bugs") || !strings.Contains(out, "I2") {
		t.Errorf("odd-kobo in seed 1: %d\n%s\n%s", code, out, words)
	}
	if code, out, _ := ill(t, "", "oracle", "--bug", "no-such-bug"); code != exitFailed {
		t.Errorf("a bug that is not there: %d\n%s", code, out)
	}
}

// What TestNoBugIsPlanted finds nothing of is there when bugs are planted.
func TestPlantedBugsAreInTheProgram(t *testing.T) {
	text, err := os.ReadFile(tilltest.Program(t))
	must(t, err)
	for _, b := range planted.Bugs() {
		if !bytes.Contains(text, []byte(b.Name)) || !bytes.Contains(text, []byte(b.What)) {
			t.Errorf("nothing of %s is in the program", b.Name)
		}
	}
}
