package main

import (
	"strings"
	"testing"
	"unicode"
)

// A line of the log may repeat what others wrote: whatever that is, it moves no cursor and
// sets no title of the terminal on which the log is read.
func TestNoLineOfTheLogCommandsATerminal(t *testing.T) {
	for _, line := range []string{
		`{"time":"2026-11-21T09:30:00Z","level":"WARN","msg":"they said \u001b[2J","name":"\u001b]0;mine\u0007"}`,
		`{"time":"2026-11-21T09:30:00Z","level":"WARN","msg":"said","text":"two\nlines \u009b2J","\u001bname":{"deep":"\u001b[2J"}}`,
		"no line of ours \x1b[2J",
		`{"msg":"` + "\x1b[2J",
	} {
		if got := readable([]byte(line), false); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", line, got)
		}
	}
	if got := readable([]byte(`{"time":"2026-11-21T09:30:00Z","level":"WARN","msg":"said","text":"Ọja \"Àda\""}`), false); got != `2026-11-21 09:30:00.000  WARN   said  text="Ọja \"Àda\""` {
		t.Errorf("a plain one is shown as %q", got)
	}
}
