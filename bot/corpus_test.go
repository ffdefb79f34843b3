package bot_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"till/bot"
	"till/bot/bottest"
	"till/flow/replay"
)

var record = flag.Bool("record", false, "record the golden conversations into the corpus anew")

// corpus is where the recordings of conversations stand. Each is replayed by
// every build: a change of the rules or of the words that changes one shows
// here, and is either a fault or recorded anew on purpose.
const corpus = "../flow/testdata/corpus"

// minCorpus is how many recordings there are at least.
const minCorpus = 40

func TestTheCorpusIsDecidedTheSameWay(t *testing.T) {
	words, err := bot.LoadWords()
	must(t, err)
	files, err := filepath.Glob(filepath.Join(corpus, "*.jsonl"))
	if err != nil || len(files) < minCorpus {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	turns := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		rec, redacted, err := replay.Import(bytes.NewReader(text))
		if err != nil || !redacted {
			t.Fatalf("%s: redacted %v, %v", file, redacted, err)
		}
		report, err := replay.Verify(rec, words.Render)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		turns += report.Turns
		for _, d := range report.Differences {
			t.Errorf("%s, line %d (%s): %s\nwas %s\nis  %s\n(meant? go test ./bot -run Golden -record)", filepath.Base(file), d.Seq, d.Cause, d.Verdict, d.Was, d.Is)
		}
	}
	t.Logf("%d recordings, %d turns", len(files), turns)
}

// recorded writes the first payer's chat of a conversation into the corpus.
func (s *stage) recorded(name string) {
	s.t.Helper()
	made, found := s.Recording(bottest.First)
	if !found {
		return
	}
	rec, err := replay.Redact(made)
	must(s.t, err)
	var out bytes.Buffer
	must(s.t, replay.Export(&out, rec, true))
	must(s.t, os.MkdirAll(corpus, 0o755))
	must(s.t, os.WriteFile(filepath.Join(corpus, strings.TrimSuffix(name, ".txt")+".jsonl"), out.Bytes(), 0o600))
}
