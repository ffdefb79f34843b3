package bot_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"till/bot"
	"till/flow"
)

// phraseRow is one row of testdata/phrases.tsv.
type phraseRow struct {
	line         int
	phrase, lang string
	kind, extra  string
}

func phraseTable(t *testing.T) []phraseRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/phrases.tsv")
	must(t, err)
	var rows []phraseRow
	for i, line := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n") {
		if strings.HasPrefix(line, "# ") || line == "#" {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 4 || cells[0] == "" || cells[2] == "" {
			t.Fatalf("line %d: %q is no row", i+1, line)
		}
		rows = append(rows, phraseRow{line: i + 1, phrase: cells[0], lang: cells[1], kind: cells[2], extra: cells[3]})
	}
	return rows
}

// The table of phrases, in five languages: each is understood as its row says, so that a
// change of what one means is seen. 98 of 100 are wanted.
func TestPhrases(t *testing.T) {
	rows := phraseTable(t)
	right, perLang, rightLang := 0, map[string]int{}, map[string]int{}
	for _, row := range rows {
		in := bot.Understand(row.phrase, banks)
		got := string(in.Method) + in.Bank + in.Code + string(in.Lang)
		perLang[row.lang]++
		if string(in.Kind) == row.kind && got == row.extra {
			right++
			rightLang[row.lang]++
			continue
		}
		t.Errorf("line %d: %q means %s, the table says %s %s", row.line, row.phrase, short(in), row.kind, row.extra)
	}
	rate := float64(right) / float64(len(rows))
	t.Logf("%d of %d phrases are understood: %.1f %%", right, len(rows), 100*rate)
	for _, lang := range []string{"any", "en", "pcm", "ha", "yo", "ig"} {
		t.Logf("%-4s %d of %d", lang, rightLang[lang], perLang[lang])
		if perLang[lang] < 30 {
			t.Errorf("only %d phrases in %s", perLang[lang], lang)
		}
	}
	if len(rows) < 350 || rate < 0.98 {
		t.Errorf("%d rows, %.1f %% understood; 350 and 98 %% are wanted", len(rows), 100*rate)
	}
}

// Whatever stands around it, no phrase of the table turns into a method that it
// does not name, and none that cancels or confirms is made of another.
func TestPhrasesWithOthersAround(t *testing.T) {
	sweeps(t)
	for _, row := range phraseTable(t) {
		if row.kind == string(flow.MeansSecret) || row.kind == string(flow.MeansCode) {
			continue
		}
		for _, around := range [][2]string{{"please ", ""}, {"abeg ", " o"}, {"", " ooo"}, {"jowo ", ""}, {"biko ", " biko"}, {"don allah ", ""}, {"  ", "\n\n"}, {"\u200b", "..."}} {
			text := around[0] + row.phrase + around[1]
			in := bot.Understand(text, banks)
			switch {
			case in.Kind == flow.MeansMethod && string(in.Method) != row.extra, in.Kind == flow.MeansConfirm && row.kind != "confirm",
				in.Kind == flow.MeansCancel && row.kind != "cancel" && row.kind != "confirm", in.Kind == flow.MeansStop && row.kind != "stop":
				t.Errorf("%q means %s, %q is %s %s", text, short(in), row.phrase, row.kind, row.extra)
			}
		}
	}
}

// A word that turns a sentence around never leaves a method in it, nor money
// that was paid, unless it only answers: "No, I want to use card".
func TestNegationPicksNothing(t *testing.T) {
	sweeps(t)
	not := []string{
		"not", "no", "don't", "do not", "never", "I don't want", "I will not", "I can't", "no be", "i no wan", "nor", "neva", "i no fit", "ba", "bana so", "kada", "ba zan", "ban",
		"ko", "mi o fe", "mi ò fẹ́", "mi o", "ma", "ma se", "kii se", "achoghi m", "agaghi m", "anaghi m", "without", "stop", "cancel the",
	}
	wishes := regexp.MustCompile(`(?i)^(i|i'll|i'd|im|we|let|lemme)\b`)
	denies := regexp.MustCompile(`(?i)\b(not|no be|no wan|don't|mi o)\b`) // "card, not transfer" names two
	for _, row := range phraseTable(t) {
		if row.kind != string(flow.MeansMethod) && row.kind != string(flow.MeansMaybe) {
			continue
		}
		denied := denies.MatchString(row.phrase)
		for _, word := range not {
			text := word + " " + row.phrase
			answers := strings.ContainsFunc(row.phrase, unicode.IsNumber) || wishes.MatchString(row.phrase) // "No. 1" is an option
			if in := bot.Understand(text, banks); in.Kind == flow.MeansMethod && (string(in.Method) != row.extra || !denied && (word != "no" || !answers)) {
				t.Errorf("%q means %s", text, short(in))
			}
		}
	}
}
