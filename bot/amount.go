package bot

import (
	"regexp"
	"slices"

	"till/flow"
)

// some is what a sentence says that names an amount: that it is paid, as "I sent 5k", or is
// to be, as "I want to pay ₦5,000". How much it is we ask the bank, and say.
func (s sentence) some() (flow.IntentKind, bool) {
	if s.asks || s.any(s.not) || s.any(s.unsure) {
		return flow.MeansNothing, false
	}
	var rest []string
	some := false
	for i := 0; i < len(s.words); i++ {
		end := i
		large := s.money
		for ; end < len(s.words) && amountWord.MatchString(s.words[end]); end++ {
			large = large || largeWord.MatchString(s.words[end])
		}
		if end > i && large {
			some = true
			if n := len(rest); n > 0 && slices.Contains([]string{"the", "you", "u"}, rest[n-1]) {
				rest = rest[:n-1]
			}
			i = end
		}
		if i >= len(s.words) || some && slices.Contains(beyond, s.words[i]) {
			break
		}
		rest = append(rest, s.words[i])
	}
	a, found := s.exact(rest)
	return a.kind, some && found && (a.kind == flow.MeansPaid || a.kind == flow.MeansMenu && slices.Contains(doers, rest[0]))
}

// beyond are words behind which a sentence tells more of what was paid: "sent 4500 instead
// of 5000", "sent 5k from Zenith".
var beyond = []string{"instead", "from", "and", "but", "pls", "please", "name"}

// amountWord is a word of an amount, and largeWord one that makes it more than the
// number of an option.
var (
	amountWord = regexp.MustCompile(`^((n|ngn)?\d{1,9}(k|naira)?|naira|ngn)$`)
	largeWord  = regexp.MustCompile(`\d{3}|\dk$|n`)
)
