package bot_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"till/bot/bottest"
	"till/flow/checkout"
	"till/flow/replay"
)

// A replay shows what the payer sent, as what, and who else wrote: a picture as one
// also where its caption says more than it, an edit as an edit, what was taken back,
// and an agent's words as an agent's, however they wrote them.
func TestAReplayShowsWhatWasSentAndByWhom(t *testing.T) {
	s := newStage(t, nil, func() {})
	s.World("session", "500000")
	s.Turn(bottest.First, "Pay CODE")
	s.Turn(bottest.First, "1")
	s.Turn(bottest.First, "(picture) I have paid see receipt")
	s.Turn(bottest.First, "(picture)")
	s.Turn(bottest.First, "xyzzy plugh")
	s.Turn(bottest.First, "(edit) 5")
	s.Turn(bottest.First, "thanks")
	s.Turn(bottest.First, "(took back)")
	s.Turn(bottest.First, "9")
	s.World("agent", "claim")
	s.World("agent", "reply", "Good", "day.")
	s.World("agent", "release")
	s.Turn(bottest.First, "(typed on our phone) it is me")
	rec, _ := s.Recording(bottest.First)

	shown := func(rec replay.Recording) []string {
		t.Helper()
		lines, err := replay.Conversation(rec, "")
		must(s.t, err)
		var out []string
		for _, l := range lines {
			switch {
			case l.FromPayer:
				out = append(out, "payer: "+l.Text)
			case l.By != "":
				out = append(out, l.By+": "+l.Text)
			}
		}
		return out
	}
	want := []string{
		"payer: Pay CODE", "payer: 1", "payer: [picture] I have paid see receipt", "payer: [picture]", "payer: xyzzy plugh", "payer: (edited) 5 (was “xyzzy plugh”)",
		"payer: thanks", "payer: (took back a message: “thanks”)", "payer: 9", "ngozi: Good day.", "agent: it is me",
	}
	got := shown(rec)
	got[0] = "payer: Pay CODE"
	if !slices.Equal(got, want) {
		t.Errorf("the conversation is\n%q\nand not\n%q", got, want)
	}

	var told []string
	for _, m := range checkout.Tell(rec) {
		if m.Who == "payer" || m.Who == "ngozi" || m.Who == "agent" {
			told = append(told, m.Who+": "+m.What+" "+m.Why)
		}
	}
	story := strings.Join(told, "\n")
	for _, line := range []string{
		`payer: [picture] "I have paid see receipt" understood as paid`, `payer: [picture] understood as media`, `payer: (edited) "5" understood as again, of #`,
		`payer: "(took back a message)" understood as note, of #`, `ngozi: Good day. agent`, `agent: "it is me" understood as takeover`,
	} {
		if !strings.Contains(story, line) {
			t.Errorf("the story has no line %q:\n%s", line, story)
		}
	}

	// Without what was written it says the same of what it was, and both are decided
	// again as they were, also from a file.
	blotted, err := replay.Redact(rec)
	must(s.t, err)
	if got := shown(blotted); got[2] != "payer: [picture] [23 characters]" || got[5] != "payer: (edited) [1 characters] (was “[11 characters]”)" || got[9] != "ngozi: [9 characters]" {
		t.Errorf("redacted it is %q", got)
	}
	for _, rec := range []replay.Recording{rec, blotted} {
		var file bytes.Buffer
		must(s.t, replay.Export(&file, rec, true))
		read, _, err := replay.Import(&file)
		must(s.t, err)
		if report := s.Verify(read); report.Worst() != replay.Same {
			t.Errorf("decided again: %+v", report.Differences)
		}
	}
}

// What an agent writes arrives whole and line by line: an account number, or what to
// do next, stands where they put it.
func TestAnAgentsWordsArriveAsTheyWereWritten(t *testing.T) {
	s := newStage(t, nil, func() {})
	s.World("session", "500000")
	s.Turn(bottest.First, "Pay CODE")
	s.Turn(bottest.First, "9")
	s.World("agent", "claim")
	said := "Good day.\n\n1. Open the app of your bank.\n2. " + strings.Repeat("Look for the transfer. ", 150) + "It is there." + "\nThank you."
	if got := s.World("agent", "reply", said); !slices.Contains(got, said) {
		t.Errorf("%d characters arrive as %q", len(said), got)
	}
}

// What somebody can tell a payer by hand is in the language of the one who paid, also where
// another payer of the same session speaks another.
func TestAnAnswerIsInTheLanguageOfWhoPaid(t *testing.T) {
	s := newStage(t, nil, func() {})
	s.World("session", "500000")
	s.Turn(bottest.First, "Pay CODE")
	s.Turn(bottest.First, "1")
	s.World("pay", "200000")
	for _, words := range []string{"Pay CODE", "8", "23", "1"} {
		s.Turn("person-2", words)
	}
	s.World("pay", "400000")
	rec, _ := s.Recording(bottest.First)
	seen, err := s.Service.Seen(t.Context(), "wsp_prj_1", rec.Lines[0].Session, nil)
	must(t, err)
	if len(seen.Answers) != 1 {
		t.Fatalf("%d answers: %v", len(seen.Answers), seen.Answers)
	}
	for _, text := range seen.Answers {
		if !strings.HasPrefix(text, "Kuɗin da ya iso ga Ada Stores ya wuce ₦5,000 da ₦1,000.") {
			t.Errorf("who chose Hausa is told %q", text)
		}
	}
}
