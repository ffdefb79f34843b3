package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow/await"
)

// ends are how the README's commands end on a Till that runs, where that is not
// with 0: what the reader is to stop first, and what finds something.
var ends = map[string][]int{
	"till doctor":    {0, 1}, // a machine may have something to look at
	"till restore":   {3},    // something is kept there
	"till payer":     {0, 1}, // to forget one, the server is stopped first
	"till reconcile": {0, 1}, // of a day that has what the sandbox played
}

// Each command that the README shows for operators and supporters runs as it
// stands there, on a Till that runs, with the reader's own names in the places of
// the examples'. One that goes on is ended once it has begun.
func TestTheReadmesOtherCommandsRun(t *testing.T) {
	m, _, dir := devServer(t)
	who := newPayer(m)
	session, text := m.openChat(250_000, "readme")
	who.says(text)
	who.hears(`1 Bank transfer`)
	who.says("9")
	path := append(os.Environ(), onPath(t))
	sh := func(line string) ([]byte, int) {
		ctx, cancel := context.WithTimeout(t.Context(), tilltest.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-uc", line)
		cmd.Dir, cmd.Env = dir, path
		out, err := cmd.CombinedOutput()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return out, failed.ExitCode()
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return out, 0
	}
	var chat string
	await.Until(t, "the payer waits for a person", func() bool {
		out, _ := sh("till desk --json")
		chat = regexp.MustCompile(`chat_\w+`).FindString(string(out))
		return chat != ""
	})
	project := m.call("GET", "/v1/project", nil)["id"].(string)
	number := regexp.MustCompile(`\+(\d+)`)
	out, _ := sh("till numbers")
	digits := number.FindStringSubmatch(string(out))[1]
	own := strings.NewReplacer("<session|chat>", session, "<chat>", chat, "wsp_prj_01jd…", project, "wsp_sess_01jd…", session, "2348012345678", digits, "bin/till", "till",
		"--at 14", "--at 2", "2026-11-21", time.Now().Add(-24*time.Hour).UTC().Format(time.DateOnly))
	n := 0
	for _, code := range regexp.MustCompile("(?s)(<!-- [a-z ]+ -->\n)?```sh\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		if code[1] != "" { // it has a test of its own
			continue
		}
		for line := range strings.Lines(code[2]) {
			line, _, _ = strings.Cut(own.Replace(strings.TrimSpace(line)), " # ")
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "till ") || strings.HasPrefix(line, "till network") || strings.HasPrefix(line, "till bank") {
				continue // the tests of kills run those two
			}
			n++
			words := strings.Fields(line)
			goesOn := strings.Contains(line, " -f ")
			if goesOn {
				line = "timeout 1 " + line
			}
			out, code := sh(line)
			want, odd := ends[strings.Join(words[:2], " ")]
			if !odd {
				want = []int{0}
			}
			if goesOn {
				want = []int{124} // it was still at it
			}
			if !slices.Contains(want, code) || len(out) == 0 && !goesOn {
				t.Errorf("%s ends with %d, not one of %v:\n%s", line, code, want, out)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d commands were run", n)
	}
}
