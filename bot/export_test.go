package bot

import (
	"maps"
	"slices"

	"till/flow"
)

// Folded is how a text is compared.
var Folded = fold

// ParseWords reads a language that is not built in.
var ParseWords = parsePack

// LoadWordsFrom reads languages that are not built in.
var LoadWordsFrom = loadWords

// Reviewed says whether a native speaker of a language has read its words.
func (w *Words) Reviewed(lang flow.Lang) bool {
	p := w.packs[lang]
	return p != nil && p.reviewed
}

// Loaded are the words by which secrets are known, and those of the digits.
func Loaded() []string {
	l := vocabulary()
	return slices.Sorted(func(yield func(string) bool) {
		for _, list := range []map[string]bool{l.secrets, l.letters, l.perhaps, l.heads} {
			maps.Keys(list)(yield)
		}
		maps.Keys(l.numbers)(yield)
	})
}
