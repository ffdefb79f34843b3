package bot

import (
	"regexp"
	"slices"
	"strings"

	"till/flow"
)

// This file reads sentences that a word turns around: what follows a "no" that only
// answers, and the method that is wanted instead of another one.

// behindNo is what follows a "no" that only answers: "No, my brother sent it". In front of
// a thing it denies ("no payment was made"), so whoever did something must come next, or
// a comma first.
func (s sentence) behindNo() (sentence, bool) {
	for _, no := range []string{" no o ", " no ", " never mind ", " nevermind ", " please dont cancel it ", " dont cancel it ", " dont cancel ", " do not cancel it ", " do not cancel "} {
		if rest, found := strings.CutPrefix(s.line, no); found {
			s.words, s.line = strings.Fields(rest), " "+rest
			answers := len(s.words) > 0 && (s.stops || slices.Contains(doers, s.words[0]))
			s.stops = false // the next "no" is another one
			return s, answers
		}
	}
	return s, false
}

// stops finds a "no" that a comma or the like parts from what follows.
var stops = regexp.MustCompile(`^ *(no( o+)?|never ?mind) *[,.;:!]`)

// doers are words that begin what somebody did or wants to do.
var doers = []string{"i", "ive", "ill", "im", "id", "we", "weve", "my", "our", "he", "she", "they", "let", "lemme", "make"}

// wished says whether a method is wanted where somebody is named with it: "No, I use card"
// and "no, my card" may tell of what was done, or of what fails.
func wished(words []string) bool {
	return !anyOf(words, "i", "ive", "im", "we", "weve", "my", "our", "it", "its", "mo", "m") ||
		anyOf(words, "can", "could", "want", "wanna", "wan", "go", "going", "will", "would", "prefer", "prefa", "like", "love", "mean", "meant", "rather", "need", "choose", "pick", "let", "lets", "make", "fe", "achoro", "ka")
}

// instead is the method that is named beside another one that is turned down: "not card,
// transfer", "I don't want transfer, I want card", "card, not transfer".
func (s sentence) instead() (answer, bool) {
	from, to := s.denied()
	starts, _ := s.starts(s.words)
	dropped := slices.IndexFunc(starts, func(i int) bool { return slices.Contains(drops, s.words[i]) })
	if dropped >= 0 {
		from, to = starts[dropped], starts[dropped]+1
	}
	before, rest := s.words[:from], s.words[to:]
	if anyOf(s.words[:to], past...) {
		return answer{}, false
	}
	if wanted, other, found := strings.Cut(s.line, " instead of "); found {
		return s.other(strings.Fields(other), strings.Fields(wanted))
	}
	if len(before) > 0 && strings.Join(s.words[from:to], " ") == "not" {
		if up, found := s.other(rest, before); found {
			return up, true
		}
	}
	if !slices.Contains(starts, from) { // "why not transfer, card"
		return answer{}, false
	}
	for i := 1; i < len(rest); i++ {
		joins := rest[i] == "and" || dropped >= 0 && rest[i] == "to" // "cancel ussd and use card", "change transfer to card"
		up, found := s.other(rest[:i], rest[i:])
		if joins {
			up, found = s.other(rest[:i], rest[i+1:])
		}
		if found && (joins || !slices.Contains(beside, rest[i])) && !s.joined(rest[i-1:]) {
			if dropped >= 0 && i+1 == len(rest) { // "cancel card transfer" may be one thing
				up.kind = flow.MeansMaybe
			}
			return up, true
		}
	}
	return answer{}, false
}

// drops are words that put a method aside where another one is named behind it: "cancel
// ussd, use card".
var drops = []string{"cancel", "leave", "forget", "comot", "remove", "change", "switch"}

// other is the method that one answer names where another answer names another method.
func (s sentence) other(down, up []string) (answer, bool) {
	if len(down) > 1 && slices.Contains([]string{"from", "that"}, down[0]) {
		down = down[1:]
	}
	if n := len(down) - 1; n > 0 && slices.Contains([]string{"again", "anymore"}, down[n]) {
		down = down[:n]
	}
	no, denied := s.exact(down)
	yes, found := s.exact(up)
	methods := func(k flow.IntentKind) bool { return k == flow.MeansMethod || k == flow.MeansMaybe } // who asks is asked back
	return yes, denied && found && methods(no.kind) && methods(yes.kind) && no.method != yes.method && wished(up)
}

// failed says whether what is said to be paid is said behind it not to have gone through:
// "I did transfer but it failed". Of several payments the last one may have.
func (s sentence) failed() bool {
	_, rest, found := strings.Cut(s.line, " but ")
	if rest = " " + rest; !found || strings.Contains(rest, " first ") || strings.Count(rest, " ") > maxFailed {
		return false
	}
	return slices.ContainsFunc(failures, func(f string) bool { return strings.Contains(rest, " "+f+" ") })
}

// maxFailed bounds the spaces of what tells that a payment failed: behind more words other
// things are told as well.
const maxFailed = 9

// failures are what a payment did that did not go through, and of which no money is missed.
var failures = []string{
	"failed", "fail", "dey fail", "invalid", "declined", "decline", "rejected", "unsuccessful", "not successful", "no successful", "didnt go", "did not go", "not go through", "no go through", "no go", "not going through", "wasnt successful",
}

// past are words that deny what was done: "I didn't use card, I use transfer".
var past = []string{"did", "didnt", "have", "havent", "never", "neva", "nefa"}

// joined says whether words begin with one name of a method: "bank card".
func (s sentence) joined(words []string) bool {
	for n := 2; n <= len(words); n++ {
		if s.is[strings.Join(words[:n], " ")].kind == flow.MeansMethod {
			return true
		}
	}
	return false
}

// beside are words that put two methods side by side: "I can't use a card for transfer".
var beside = []string{"for", "to", "by", "via", "with", "through", "on", "in", "as"}

// denied is where the first words stand that turn a sentence around, at its end where
// none does.
func (s sentence) denied() (from, to int) {
	for i := range s.words {
		for n := min(maxPhrase, len(s.words)-i); n >= 1; n-- {
			if s.not[strings.Join(s.words[i:i+n], " ")] {
				return i, i + n
			}
		}
	}
	return len(s.words), len(s.words)
}

// besides is a sentence without a phrase of it, which may hold a word itself that turns
// others around: "don't cancel my order" asks for time.
func (s sentence) besides(phrase string) sentence {
	before, behind, _ := strings.Cut(s.line, phrase)
	return sentence{lexicon: s.lexicon, words: strings.Fields(before + " " + behind)}
}

// turned says whether what stands before a phrase turns it around, or makes of it what
// has not happened yet.
func (s sentence) turned(phrase string) bool {
	before, _, _ := strings.Cut(s.line, phrase)
	first := sentence{lexicon: s.lexicon, words: strings.Fields(before)}
	return first.any(s.not) || first.any(s.unsure)
}
