package bot

import (
	"slices"
	"strings"

	"till/flow"
)

// minFuzzy is how many letters a word must have to be taken for another one: of
// short words too many are one letter apart.
const minFuzzy = 5

// nearly finds what is meant when one word is misspelt by one letter: a method, which
// is only ever asked about and never opened, or that it is paid ("trasferred"), at
// which the bank is asked. A word that is as near to one that cancels, stops or
// switches is left alone.
func (s sentence) nearly() (meaning, bool) {
	if len(s.words) > maxAnswer || s.any(s.not) {
		return meaning{}, false
	}
	starts, _ := s.starts(s.words)
	unsure := s.asks || s.any(s.unsure)
	var found []meaning
	for _, from := range starts {
		for _, to := range s.ends(s.words) {
			if from >= to || to-from > maxPhrase {
				continue
			}
			for _, p := range s.slips[to-from] {
				m := p.meaning
				if m.kind == flow.MeansMethod {
					m = meaning{kind: flow.MeansMaybe, method: m.method}
				} else if unsure || intended(s.words[:from]) {
					continue
				}
				if !slices.Contains(found, m) && s.oneOff(s.words[from:to], p.words) {
					found = append(found, m)
				}
			}
		}
	}
	if len(found) != 1 {
		return meaning{}, false
	}
	return found[0], true
}

// oneOff says whether words are those of a phrase of as many but for one slip in one
// of them.
func (s sentence) oneOff(words, phrase []string) bool {
	slips := 0
	for i, want := range phrase {
		if words[i] == want {
			continue
		}
		slips++
		if slips > 1 || len(want) < minFuzzy || len(words[i]) < minFuzzy || !near(words[i], want) || s.known(words[i]) {
			return false
		}
	}
	return slips == 1
}

// known says whether a word is, or nearly is, one that must not be mistaken.
func (s sentence) known(word string) bool {
	if _, number := s.numbers[word]; number {
		return true
	}
	return slices.ContainsFunc(s.firm, func(f string) bool { return f == word || near(word, f) })
}

// near says whether two words differ by one letter that is too much, missing,
// another one, or swapped with its neighbour (Damerau's four slips).
func near(a, b string) bool {
	x, y := []rune(a), []rune(b)
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(y)-len(x) > 1 || a == b {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	if slices.Equal(x[i+1:], y[i+1:]) {
		return true
	}
	return i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// squeezed are the words with letters that were held down written once, and
// written twice; none where nothing was held down.
func squeezed(words []string) [][]string {
	var out [][]string
	for _, times := range []int{1, 2} {
		changed := false
		short := make([]string, len(words))
		for i, w := range words {
			short[i] = squeeze(w, times)
			changed = changed || short[i] != w
		}
		if changed {
			out = append(out, short)
		}
	}
	return out
}

// squeeze writes each letter that stands three times or more in a row only some
// times. Digits stay: 111 is not 1.
func squeeze(word string, times int) string {
	letters := []rune(word)
	var b strings.Builder
	for i := 0; i < len(letters); {
		run := 1
		for i+run < len(letters) && letters[i+run] == letters[i] {
			run++
		}
		n := run
		if run >= 3 && (letters[i] < '0' || letters[i] > '9') {
			n = times
		}
		for range n {
			b.WriteRune(letters[i])
		}
		i += run
	}
	return b.String()
}
