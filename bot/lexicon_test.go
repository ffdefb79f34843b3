package bot_test

import (
	"slices"
	"strings"
	"testing"

	"till/bot"
	"till/flow"
)

// The built-in lists hold together: no phrase means two things in two
// languages, no number has two names' worth, and no word that turns a sentence
// around is passed over.
func TestLexicon(t *testing.T) {
	must(t, bot.LoadLexicon())
}

func TestLexiconRefuses(t *testing.T) {
	fine := map[flow.Lang]string{flow.English: "lead = [\"i\"]\n[is]\nmenu = [\"hi\"]\ncard = [\"card\"]", flow.Hausa: "[is]\nmenu = [\"hi\"]"}
	if err := bot.ParseLexicon(fine); err != nil {
		t.Fatalf("what is fine: %v", err)
	}
	for name, list := range map[string]string{
		"two meanings":           "[is]\nthanks = [\"hi\"]",
		"two meanings by marks":  "[is]\nthanks = [\"hí\"]",
		"two methods":            "[is]\nussd = [\"card\"]",
		"a method and a stop":    "[whole]\nstop = [\"card\"]",
		"two numbers":            "[numbers]\n1 = [\"daya\"]\n2 = [\"ɗaya\"]",
		"no number":              "[numbers]\none = [\"daya\"]",
		"no such intent":         "[is]\nmoan = [\"x\"]",
		"no such intent within":  "[has]\nmenu = [\"x\"]",
		"a secret by word":       "[is]\nsecret = [\"x\"]",
		"no such hint":           "[hint]\ncard = [\"x\"]",
		"a hint twice":           "[hint]\nmenu = [\"x\"]\nwho = [\"x\"]",
		"a negation as a hint":   "not = [\"no\"]\n[hint]\nmenu = [\"no light\"]",
		"short for two":          "[short]\nyou = \"u\"\nyour = \"u\"",
		"no such list":           "lad = [\"x\"]",
		"no letters":             "[is]\nmenu = [\"!\"]",
		"a negation as a lead":   "not = [\"i\"]",
		"a language with a name": "names = [\"hi\"]",
		"no file":                "x",
	} {
		if err := bot.ParseLexicon(map[flow.Lang]string{flow.English: fine[flow.English], flow.Igbo: list}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"transfer", "transfer", false},
		{"transfer", "transfre", true},
		{"transfer", "trnsfer", true},
		{"transfer", "transfeer", true},
		{"transfer", "tranxfer", true},
		{"transfer", "xransfer", true},
		{"transfer", "transferx", true},
		{"transfer", "transfrex", false},
		{"transfer", "transf", false},
		{"transfer", "tarnsfre", false},
		{"", "", false},
		{"", "a", true},
		{"ab", "ba", true},
	} {
		if got := bot.Near(c.a, c.b); got != c.want || bot.Near(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %t", c.a, c.b, got)
		}
	}
}

// A slip of the finger is asked about when it is that of a method, and means
// nothing when it could be of a word that ends something.
func TestSlips(t *testing.T) {
	for _, word := range []string{"transfer", "mastercard", "kaadi", "account number", "debit card", "akauntu"} {
		for i := range word {
			slip := word[:i] + word[i+1:]
			for _, text := range []string{slip, word[:i] + "q" + word[i:], "i want to pay with " + slip} {
				in := bot.Understand(text, banks)
				fine := slices.Contains([]flow.IntentKind{flow.MeansMaybe, flow.MeansNothing, flow.MeansMethod}, in.Kind)
				if !fine || in.Kind == flow.MeansMethod && in.Method != bot.Understand(word, banks).Method {
					t.Errorf("%q means %s", text, short(in))
				}
			}
		}
	}
	for _, word := range []string{"cancel", "CANCEL", "stop", "fagile", "kagbuo", "change", "switch", "another way", "unsubscribe", "soke biya"} {
		for i := range word {
			for _, text := range []string{word[:i] + word[i+1:], word[:i] + "q" + word[i:], word[:i] + word[i:i+1] + word[i:i+1] + word[i:]} {
				if strings.Join(strings.Fields(text), " ") == word {
					continue
				}
				in := bot.Understand(text, banks)
				if slices.Contains([]flow.IntentKind{flow.MeansConfirm, flow.MeansCancel, flow.MeansStop, flow.MeansOther, flow.MeansMethod, flow.MeansMaybe}, in.Kind) {
					t.Errorf("%q means %s", text, short(in))
				}
			}
		}
	}
}
