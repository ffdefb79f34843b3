package checkout

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// blotter puts a name that says nothing in the place of texts that say who
// somebody is. It replaces whole words alone: a part of another word, or of a
// longer number, is something else.
type blotter struct {
	words []string // the longest first
	as    string
}

// shortestBlot is how many characters a text has at least that is replaced: what
// is shorter says nothing by itself.
const shortestBlot = 3

// newBlotter makes a blotter of texts and of the words of names among them. A
// word of a name counts where it begins with a capital letter, as names do: else a
// payer called "card" would take the card out of what was decided.
func newBlotter(texts []string, as string) *blotter {
	b := &blotter{as: as}
	for _, t := range texts {
		t = strings.TrimSpace(t)
		if !telling(t) || Forgotten(t) || strings.HasPrefix(t, PrefixForgotten) {
			continue
		}
		b.words = append(b.words, t)
		for w := range strings.FieldsSeq(t) {
			if first, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(first) && utf8.RuneCountInString(w) >= shortestBlot && len(strings.Fields(t)) <= maxNameWords {
				b.words = append(b.words, w)
			}
		}
	}
	slices.SortFunc(b.words, func(x, y string) int {
		if len(x) != len(y) {
			return len(y) - len(x)
		}
		return strings.Compare(x, y)
	})
	b.words = slices.Compact(b.words)
	return b
}

// maxNameWords is how many words a name has at most: what has more is a sentence.
const maxNameWords = 5

// telling says whether a text can be told from the words of the program.
func telling(t string) bool {
	if utf8.RuneCountInString(t) < shortestBlot {
		return false
	}
	return strings.ContainsAny(t, "@ /0123456789•") || strings.IndexFunc(t, unicode.IsUpper) >= 0 || strings.IndexFunc(t, func(r rune) bool { return r > unicode.MaxASCII }) >= 0
}

// text is a text with the name in the place of the words.
func (b *blotter) text(t string) string {
	for _, w := range b.words {
		t = replaceWord(t, w, b.as)
	}
	return t
}

// json is text for JSON, in which words stand as JSON writes them.
func (b *blotter) json(t string) string {
	for _, w := range b.words {
		quoted, err := json.Marshal(w)
		if err != nil {
			continue // no text is like that
		}
		t = replaceWord(t, string(quoted[1:len(quoted)-1]), b.as)
	}
	return t
}

// replaceWord replaces a text where it is no part of a longer word or number.
func replaceWord(t, word, by string) string {
	if word == "" || !strings.Contains(t, word) {
		return t
	}
	var out strings.Builder
	for rest, before := t, rune(0); ; {
		i := strings.Index(rest, word)
		if i < 0 {
			out.WriteString(rest)
			return out.String()
		}
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:i])
		}
		after, _ := utf8.DecodeRuneInString(rest[i+len(word):])
		first, _ := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		out.WriteString(rest[:i])
		name := strings.HasPrefix(rest[i+len(word):], `":`) // of a member: that is the program's
		if name || partOfWord(before) && partOfWord(first) || partOfWord(after) && partOfWord(last) {
			out.WriteString(word)
		} else {
			out.WriteString(by)
		}
		rest, before = rest[i+len(word):], last
	}
}

func partOfWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
