package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"till/flow"
	"till/flow/replay"
)

// A recording comes from anywhere, and whoever made it chose every text in it:
// none of them writes to the terminal of who replays it.
func TestARecordingOfSomebodyElsesCannotWriteToTheTerminal(t *testing.T) {
	kept, err := os.ReadFile("../../flow/testdata/corpus/claimed.jsonl")
	must(t, err)
	rec, _, err := replay.Import(bytes.NewReader(kept))
	must(t, err)
	const hostile = `\u001b[2J\u001b]0;paid\u0007\u009b31m\u202e\r`
	texts := regexp.MustCompile(`"(text|Merchant|why|by|Name)":"`)
	for i, l := range rec.Lines {
		rec.Lines[i].Data = json.RawMessage(texts.ReplaceAllString(string(l.Data), `${0}`+hostile))
	}
	rec.Chat += "\x1b[31m"
	file := filepath.Join(t.TempDir(), "talk.jsonl")
	var out bytes.Buffer
	must(t, replay.Export(&out, rec, true))
	must(t, os.WriteFile(file, out.Bytes(), 0o600))
	for _, how := range []string{"", "--text", "--at=1", "--at=2", "--at=99999", "--verify"} {
		args := strings.Fields("replay --import " + file + " " + how)
		var out, errs bytes.Buffer
		code := run(t.Context(), args, &out, &errs)
		if said := out.String() + errs.String(); len(said) == 0 || strings.ContainsFunc(said, func(r rune) bool { return r == '\r' || flow.Unseen(r) }) {
			t.Errorf("%q ends with %d and writes %q, %q", how, code, out.String(), errs.String())
		}
	}
}

// A log has no line 0: who asks how it stood there is told so, as for any other that it
// does not have, and not shown all of it.
func TestThereIsNoLineZero(t *testing.T) {
	for _, line := range []string{"0", "9999"} {
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"replay", "--import", "../../flow/testdata/corpus/claimed.jsonl", "--at", line}, &out, &errs); code != exitFailed || out.Len() != 0 || !strings.Contains(errs.String(), "line "+line+": the log of chat ") {
			t.Errorf("it ends with %d and says %s%s", code, &out, &errs)
		}
	}
}
