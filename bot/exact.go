package bot

import (
	"slices"
	"strings"

	"till/flow"
)

// maxPhrase is how many words a phrase of lead, tail, ask or not has at most.
const maxPhrase = 6

// exact looks an answer up, without more and more of the words that may stand
// around one; what is left of it must be a whole phrase. So a word that turns
// the sentence around ("not", "ba", "kii") can never be passed over.
func (s sentence) exact(words []string) (answer, bool) {
	if len(words) > maxAnswer {
		return answer{}, false
	}
	starts, asked := s.starts(words)
	ends := s.ends(words)
	for _, from := range starts {
		for _, to := range ends {
			if from >= to {
				continue
			}
			m, found := s.is[strings.Join(words[from:to], " ")]
			if !found {
				continue
			}
			bare := from == 0 && to == len(words)
			switch {
			case m.kind == flow.MeansConfirm && (!bare || s.asks): // only the very word confirms, and no question
				m.kind = flow.MeansCancel
			case m.kind == flow.MeansMethod && (s.asks || asked[from]): // "can I pay with card?"
				m.kind = flow.MeansMaybe
			case m.kind == flow.MeansThanks && s.asks && slices.Contains(agrees, strings.Join(words[from:to], " ")): // "Ok?"
				m.kind = flow.MeansMenu
			case m.kind == flow.MeansThanks && s.asks && anyOf(words, "refund", "back"): // "Refund received?"
				m.kind = flow.MeansMoney
			case m.kind == flow.MeansThanks && s.asks: // "Received?" is not to hear "You are welcome"
				m.kind = flow.MeansPaid
			case m.kind == flow.MeansAgain && byThemselves(words[:from]): // "let me pay again", "I will send it again"
				m.kind = flow.MeansMenu
			case asked[from] && m.kind != flow.MeansHuman && m.kind != flow.MeansReceipt && m.kind != flow.MeansLanguage:
				continue
			case m.kind == flow.MeansHuman && anyOf(words[:from], tellsOfSelf...):
				continue
			case m.kind == flow.MeansPaid && intended(words[:from]) && !slices.Contains(looks, words[from]):
				continue
			case m.kind == flow.MeansLanguage && !m.named && anyOf(words[:from], tellsOf...):
				continue
			}
			return answer{meaning: m, guess: m.kind == flow.MeansPaid && slices.Contains(bids, strings.Join(words[from:to], " "))}, true
		}
	}
	return answer{}, false
}

// tellsOf are words behind which a language's name that says something else as well
// says that: "it is all broken" tells of the goods.
var tellsOf = []string{"is", "its", "am", "be", "na", "the", "my", "a", "all"}

// bids are words that bid us look whether it is paid, or answer a question of ours that
// asks for the word: "Reply CANCEL to confirm".
var bids = []string{"confirm", "confirm it", "confirmed"}

// agrees are words that, as a question, ask how it goes on, and not whether it is paid.
var agrees = []string{"ok", "okay", "okey", "okk", "k", "kk", "alright", "all right", "good", "fine", "cool", "ok sir", "ok ma"}

// intended says whether words in front of what is paid tell that it is only to be.
func intended(words []string) bool {
	return anyOf(words, intends...)
}

// intends are words behind which what says that it is paid tells of what is to be done:
// "make I send am", "I want to complete". looks begin what we are bidden to look at.
var (
	intends = []string{"make", "will", "would", "want", "wanna", "wan", "need", "let", "lets"}
	looks   = []string{"confirm", "check", "acknowledge", "to", "kindly", "una", "you", "status", "payment"}
)

// byThemselves says whether words tell that what follows is done by who writes, and not by us.
func byThemselves(words []string) bool {
	return anyOf(words, "pay", "paying") ||
		anyOf(words, "i", "ill", "me", "lemme", "we", "us") && anyOf(words, "will", "ill", "go", "let", "lemme", "lets", "make") && !anyOf(words, "you", "una")
}

// anyOf says whether one of the words is in a list.
func anyOf(words []string, list ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(list, w) })
}

// tellsOfSelf are words behind which a name of a person tells who writes: "I am an agent".
var tellsOfSelf = []string{"im", "am"}

// starts are where an answer may begin, the first ones first, and those of them
// that are behind words of a question.
func (s sentence) starts(words []string) (starts []int, asked map[int]bool) {
	starts, asked = []int{0}, map[int]bool{}
	for i := 0; i < len(starts); i++ {
		for n := maxPhrase; n >= 1; n-- {
			next := starts[i] + n
			if next >= len(words) {
				continue
			}
			phrase := strings.Join(words[starts[i]:next], " ")
			ask := s.ask[phrase]
			if (ask || s.lead[phrase]) && !slices.Contains(starts, next) {
				starts = append(starts, next)
				asked[next] = ask || asked[starts[i]]
			}
		}
	}
	slices.Sort(starts)
	return starts, asked
}

// ends are where an answer may end, the last ones first.
func (s sentence) ends(words []string) []int {
	ends := []int{len(words)}
	for i := 0; i < len(ends); i++ {
		for n := maxPhrase; n >= 1; n-- {
			next := ends[i] - n
			if next > 0 && s.tail[strings.Join(words[next:ends[i]], " ")] && !slices.Contains(ends, next) {
				ends = append(ends, next)
			}
		}
	}
	slices.SortFunc(ends, func(a, b int) int { return b - a })
	return ends
}
