package bot_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"till/flow"
)

// pack is a language as it stands in its file.
func pack(t *testing.T, lang flow.Lang) map[string]string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("text", string(lang)+".toml"))
	must(t, err)
	raw := map[string]any{}
	if _, err := toml.Decode(string(source), &raw); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for key, value := range raw {
		if text, ok := value.(string); ok {
			all[key] = strings.TrimSpace(text)
		}
	}
	return all
}

// eachPack tests the texts of each language.
func eachPack(t *testing.T, do func(t *testing.T, lang flow.Lang, texts map[string]string)) {
	t.Helper()
	for _, lang := range flow.Langs() {
		t.Run(string(lang), func(t *testing.T) { do(t, lang, pack(t, lang)) })
	}
}

var (
	filled  = regexp.MustCompile(`\{(\w+)(?:\.\w+)?\}`)
	guarded = regexp.MustCompile(`\[([\w|]+)\?([^\]]*)\]`)
	digits  = regexp.MustCompile(`\d+`)
	answers = regexp.MustCompile(`\b(MENU|YES|NO|CANCEL|STOP|START|RECEIPT)\b`)
)

// literal is what a message says by itself, without what is filled in.
func literal(text string) string {
	return guarded.ReplaceAllString(filled.ReplaceAllString(text, ""), "$2")
}

// Each language that can be chosen has a file, and each file can be chosen.
func TestEveryLanguageHasAPack(t *testing.T) {
	files, err := filepath.Glob("text/*.toml")
	must(t, err)
	var have []string
	for _, file := range files {
		have = append(have, strings.TrimSuffix(filepath.Base(file), ".toml"))
	}
	var want []string
	for _, lang := range flow.Langs() {
		want = append(want, string(lang))
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("there are words in %v, languages to choose are %v", have, want)
	}
}

// The rules and the words agree: every key that is said exists and the other
// way round, and no message shows what it was not given.
func TestPackFitsTheRules(t *testing.T) {
	keys := said(t)
	if len(keys) < 30 {
		t.Fatalf("only %d keys are found in the rules: %v", len(keys), slices.Sorted(maps.Keys(keys)))
	}
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		for key, args := range keys {
			text, ok := texts[key]
			if !ok {
				t.Errorf("the rules say %s, there are no words for it", key)
			}
			for _, m := range append(filled.FindAllStringSubmatch(text, -1), guarded.FindAllStringSubmatch(text, -1)...) {
				for name := range strings.SplitSeq(m[1], "|") {
					if !args[name] {
						t.Errorf("%s shows %s; the rules give it %v", key, name, slices.Sorted(maps.Keys(args)))
					}
				}
			}
		}
		for key := range texts {
			if keys[key] == nil {
				t.Errorf("there are words for %s, which the rules never say", key)
			}
		}
	})
}

// shape is what a translation may not change: what is filled in, what is left
// out when, the digits and words to answer with, the lines.
func shape(text string) string {
	var guards []string
	for _, m := range guarded.FindAllStringSubmatch(text, -1) {
		guards = append(guards, fmt.Sprint(m[1], sorted(filled.FindAllString(m[2], -1)), sorted(digits.FindAllString(literal(m[2]), -1))))
	}
	return fmt.Sprintln(sorted(filled.FindAllString(text, -1)), sorted(guards), sorted(digits.FindAllString(literal(text), -1)),
		sorted(answers.FindAllString(text, -1)), strings.Count(text, "\n"))
}

func sorted(all []string) []string {
	slices.Sort(all)
	return all
}

func TestPackSaysWhatEnglishSays(t *testing.T) {
	english := pack(t, flow.English)
	eachPack(t, func(t *testing.T, _ flow.Lang, texts map[string]string) {
		for key, text := range texts {
			if got, want := shape(text), shape(english[key]); got != want {
				t.Errorf("%s has\n%sEnglish has\n%s", key, got, want)
			}
		}
	})
}

// typical are arguments as they often are.
func typical() map[string]string {
	args := map[string]string{
		"merchant": "Ada Stores", "brand": "Lagos fashion since 1999, with love", "amount": "₦5,000", "order": "Order 1182", "reason": "insufficient funds", "text": "9012345678",
		"bank": "Wema Bank", "name": "ADA STORES/CHECKOUT", "until": flow.Stamp(noon.Add(30 * time.Minute)), "by": flow.Stamp(noon.Add(24 * time.Hour)),
		"paid": "₦4,500", "left": "₦500", "asked": "₦5,000", "extra": "₦1,000", "returned": "₦3,000", "parts": "₦4,500 + ₦500", "late": "yes", "open": "yes", "old": "yes", "over": "₦5,000",
		"paid_at": flow.Stamp(noon), "method": "bank_transfer", "guess": "ussd", "reference": "7K3M-9QTX", "bank_session": "000013261121150500225856314077",
		"kept_merchant": "Bola Foods", "kept_amount": "₦2,000", "differs": "yes", "bank_transfer": "yes", "ussd": "yes", "card": "yes", "transfer": "yes", "once": "yes", "more": "yes",
	}
	for i, bank := range []string{"GTBank", "Access", "Zenith", "UBA", "First Bank", "FCMB", "Fidelity", "Sterling", "Stanbic"} {
		args[fmt.Sprint("bank", i+1)] = bank
	}
	return args
}

// In every language a message is about as long as in English, and fits a screen.
func TestPackIsShort(t *testing.T) {
	const ratio, lines, listLines, longest = 1.4, 5, 12, 900
	w, keys, known := words(t), said(t), typical()
	for key, args := range keys {
		for arg := range args {
			if known[arg] == "" {
				t.Errorf("%s is given %s, which nothing typical is known of", key, arg)
			}
		}
	}
	eachPack(t, func(t *testing.T, lang flow.Lang, texts map[string]string) {
		english := pack(t, flow.English)
		for key := range texts {
			limit := lines
			if key == "pick_bank" {
				limit = listLines
			}
			bare := typical() // without anything that may be left out
			for _, m := range guarded.FindAllStringSubmatch(english[key], -1) {
				maps.DeleteFunc(bare, func(name, _ string) bool { return slices.Contains(strings.Split(m[1], "|"), name) })
			}
			for _, args := range []map[string]string{typical(), bare} {
				got, want := w.Render(flow.Say{Key: key, Lang: lang, Args: args}, noon), w.Render(flow.Say{Key: key, Args: args}, noon)
				if n, most := utf8.RuneCountInString(got), int(ratio*float64(utf8.RuneCountInString(want))); n > most {
					t.Errorf("%s has %d characters, at most %d are allowed:\n%s\n%s", key, n, most, got, want)
				}
				if n := strings.Count(got, "\n") + 1; n > limit {
					t.Errorf("%s has %d lines:\n%s", key, n, got)
				}
			}
			huge := map[string]string{}
			for arg := range keys[key] {
				huge[arg] = strings.Repeat("W", 60)
			}
			for _, arg := range []string{"amount", "paid", "left", "extra", "returned", "kept_amount", "over"} {
				huge[arg] = flow.MaxAmount.Naira()
			}
			for _, arg := range []string{"until", "paid_at", "by"} {
				huge[arg] = "2026-11-25T15:12:00.000Z"
			}
			for _, args := range []map[string]string{huge, nil} {
				got := w.Render(flow.Say{Key: key, Lang: lang, Args: args}, noon)
				if utf8.RuneCountInString(got) > longest || strings.Contains(got, "\n\n") || strings.ContainsAny(got, "{}[]") {
					t.Errorf("%s says\n%s", key, got)
				}
			}
		}
	})
}
