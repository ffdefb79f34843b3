package bot

import (
	"slices"
	"strconv"
	"strings"

	"till/flow"
)

// leadNumber are words that may stand before the number of an option.
var leadNumber = []string{"option", "opt", "number", "num", "reply", "choose", "select", "pick", "press", "choice", "lamba", "nomba", "zabi", "numba"}

// number reads an answer that is the number of an option and nothing else, or
// the number with its own label ("1 bank transfer"): "I have 1 question" is a
// sentence, and "₦5" is money.
func (s sentence) number() (answer, bool) {
	if s.money {
		return answer{}, false
	}
	starts, to := s.numberStarts(), len(s.words)
	for ; to > 0; to-- {
		for _, from := range starts {
			for size := min(maxPhrase, to-from); size >= 1; size-- {
				n, found := s.value(strings.Join(s.words[from:from+size], " "))
				if !found {
					continue
				}
				a, found := s.labelled(n, s.words[from+size:to])
				if !found {
					continue
				}
				if bare := size == 1 && to == from+1; bare && a.kind == flow.MeansMethod && from > 0 && slices.Contains(ofThings, s.words[from-1]) {
					a.kind = flow.MeansMaybe
				}
				return a, true
			}
		}
		if !s.tail[s.words[to-1]] {
			break
		}
	}
	return answer{}, false
}

// ofThings are words behind which a number alone may also be one of things or of minutes:
// "give me 2". Then the payer is asked whether the method was meant.
var ofThings = []string{"me", "gimme", "give", "send", "bring", "drop", "get", "have", "need", "want", "wanna", "wan", "take", "fe", "achoro", "ina", "for", "the"}

// numberStarts are where the number of an option may begin.
func (s sentence) numberStarts() []int {
	starts, asked := s.starts(s.words[:min(len(s.words), maxAnswer)])
	if i := slices.IndexFunc(starts, func(i int) bool { return asked[i] }); i >= 0 { // "can I get 2" asks for two of something
		starts = starts[:i]
	}
	// "I'll pay by 9" is a time.
	starts = slices.DeleteFunc(starts, func(i int) bool { return i > 0 && s.words[i-1] == "by" })
	if len(s.words) > 1 && s.words[0] == "no" && isDigits(s.words[1]) { // No. 1, but not "no one"
		starts = append(starts, 1)
	}
	for i := 0; i < len(starts); i++ {
		next := starts[i] + 1
		if next < len(s.words) && slices.Contains(leadNumber, s.words[starts[i]]) && !slices.Contains(starts, next) {
			starts = append(starts, next)
		}
	}
	return starts
}

// labelled is what the number of an option means, false where what stands
// behind it is not its label.
func (s sentence) labelled(n int, label []string) (answer, bool) {
	a := s.option(n)
	if len(label) > 0 {
		says, known := s.exact(label)
		if !known || says.kind != a.kind || says.method != a.method {
			return answer{}, false
		}
		a.named = says.named && says.lang == a.lang
	}
	if a.kind == flow.MeansMethod && s.asks {
		a.kind = flow.MeansMaybe
	}
	return a, true
}

// value is the number that a word is, as a digit of a menu.
func (s sentence) value(word string) (int, bool) {
	if n, found := s.numbers[word]; found {
		return n, true
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && word == strconv.Itoa(n) && len(word) <= 2
}

// options are what the digits mean, in every menu.
var options = map[int]meaning{
	0: {kind: flow.MeansCancel},
	1: {kind: flow.MeansMethod, method: flow.BankTransfer},
	2: {kind: flow.MeansMethod, method: flow.USSD},
	3: {kind: flow.MeansMethod, method: flow.Card},
	4: {kind: flow.MeansPaid},
	5: {kind: flow.MeansAgain},
	6: {kind: flow.MeansOther},
	7: {kind: flow.MeansBack},
	8: {kind: flow.MeansLanguage},
	9: {kind: flow.MeansHuman},
}

// firstBank is the digit of the first bank of the USSD menu, and lastBank that
// of the last one it can have.
const (
	firstBank = 11
	lastBank  = 19
)

// option is what a digit means.
func (s sentence) option(n int) answer {
	if m, found := options[n]; found {
		return answer{meaning: m}
	}
	if i := n - firstBank; i >= 0 && n <= lastBank && i < len(s.banks) {
		return answer{meaning: meaning{kind: flow.MeansBank}, bank: s.banks[i].Code}
	}
	if i := n - flow.FirstLang; i >= 0 && i < len(flow.Langs()) {
		return answer{meaning: meaning{kind: flow.MeansLanguage, lang: flow.Langs()[i]}}
	}
	return answer{meaning: meaning{kind: flow.MeansNothing}}
}
