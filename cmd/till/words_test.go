package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A verb or a flag that does not exist is answered with the one that was meant,
// at every depth, also beside a verb that is done when none is named.
func TestAWrongWordIsAnsweredWithTheNearest(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"verfy": `"verify"`, "kyes": `"keys"`, "sessions lst": `"list"`, "webhooks ad x": `"add"`, "desk clam x": `"claim"`, "chaos rali": `"rail"`,
		"merchants kyc aprove x": `"approve"`, "sessions list --jsn": `"--json"`, "trigger charge.sucess": `"charge.success"`, "frobnicate": "",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(line), &out, &errs)
		says := errs.String()
		if code != exitUsage || out.Len() > 0 || want != "" && !strings.Contains(says, "did you mean "+want+"?") || want == "" && strings.Contains(says, "did you mean") {
			t.Errorf("till %s ends with %d and says %q, %q", line, code, out.String(), says)
		}
	}
}

// Who writes an amount in naira, how long something lasts in days or in words, a time
// without its zone, or a number that is none, is shown how it is written.
func TestAnAmountOrDurationThatIsNoneIsAnsweredWithOne(t *testing.T) {
	t.Chdir(t.TempDir())
	for says, lines := range map[string][]string{
		"whole kobo: 500000 is ₦5,000":           {"sessions create 5000.50", "sessions create ₦5,000", "sessions create 5k", "pay wsp_sess_x --amount 3000.00"},
		"is no whole number, or too large a one": {"events list --limit x", "serve --rate-limit-test 1.5", "serve --second-person-above 99999999999999999999", "config --whatsapp-numbers="},
		"is no time: 2026-11-20T08:00:00Z is":    {"payer touched yesterday", "payer touched 2026-11-20", "payer touched 2026-11-20T08:00:00Z 11:00"},
		"is no duration: 90s, 30m and 48h are":   {"events list --since yesterday", "clock advance 3x", "payer unseen 2y", "serve --whatsapp-canary 1d"},
	} {
		for _, line := range lines {
			var out, errs bytes.Buffer
			if code := run(t.Context(), strings.Fields(line), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), says) {
				t.Errorf("till %s ends with %d and says %q", line, code, errs.String())
			}
		}
	}
}

// What comes from a variable that nobody has set is not taken for all there is.
func TestAFlagThatIsLeftEmptyIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, flag := range map[string]string{
		"sessions list --reference=": "--reference", "sessions --status=": "--status", "events list --session=": "--session", "logs --session=": "--session",
		"events resend --since 1h --endpoint=": "--endpoint", "webhooks add http://127.0.0.1:9000/hook --events=": "--events", "people add a@b.example --role support --account=": "--account",
		"reconcile --date=": "--date", "sessions create 5000 --metadata=": "--metadata",
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(line), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), flag+" is left empty") {
			t.Errorf("till %s ends with %d and says %q", line, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"config", "--redis-url="}, &out, &errs); code != exitOK {
		t.Errorf("a setting that is left empty ends with %d and says %q", code, errs.String())
	}
}

// Words have colours on a terminal alone, and nowhere where NO_COLOR is set.
func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(t, err)
	defer terminal.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer file.Close()
	t.Setenv("NO_COLOR", "")
	if !coloured(terminal) || coloured(file) || coloured(&bytes.Buffer{}) {
		t.Errorf("colours on a terminal %v, in a file %v, elsewhere %v", coloured(terminal), coloured(file), coloured(&bytes.Buffer{}))
	}
	t.Setenv("NO_COLOR", "1")
	if coloured(terminal) {
		t.Error("colours in spite of NO_COLOR")
	}
}

// What a command tells people it tells programs: every command has --json but
// those that run until they are ended, and those whose data is a text of its own.
func TestEveryCommandSpeaksJSON(t *testing.T) {
	without := []string{"dev", "serve", "pair", "network", "bank", "completion", "sim"}
	for _, v := range leaves() {
		name := strings.Join(v.path, " ")
		has := slices.Contains(v.flags, "json") || slices.Contains(v.flags, "format")
		if has == slices.Contains(without, name) {
			t.Errorf("till %s has --json: %v", name, has)
		}
	}
}
