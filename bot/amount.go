package bot

import (
	"regexp"
	"slices"
	"strings"

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

// priced is what a sentence is most likely about that says nothing else and names an amount:
// what it would with "money" there, as "where is my 5000"; else that it was sent, or whether
// it will do, as "I only have 4000". Then the exact amount is said, and what becomes of less.
func (s sentence) priced() (flow.IntentKind, bool) {
	var rest []string
	named := false
	for i := 0; i < len(s.words); i++ {
		end := i
		for end < len(s.words) && amountWord.MatchString(s.words[end]) {
			end++
		}
		switch sum := strings.Join(s.words[i:end], ""); {
		case end == i:
			rest = append(rest, s.words[i])
		case priceWord.MatchString(sum) && !yearWord.MatchString(sum) && !s.numbered(i, end):
			rest, i, named = append(rest, "money"), end-1, true
		default:
			rest, i = append(rest, sum), end-1
		}
	}
	several := len(s.words) > maxAnswer && slices.ContainsFunc(s.hint, func(c cue) bool { return strings.Contains(s.line, c.phrase) })
	if !named || len(rest) == 1 && !s.asks || several {
		return flow.MeansNothing, false
	}
	with := s
	with.words, with.line = rest, " "+strings.Join(rest, " ")+" "
	switch kind := with.read().kind; {
	case slices.Contains([]flow.IntentKind{flow.MeansHuman, flow.MeansMoney, flow.MeansWho, flow.MeansPaid, flow.MeansWait}, kind):
		return kind, true
	case anyOf(s.words, spent...):
		return flow.MeansPaid, !s.asks && !s.any(s.not) && !s.any(s.unsure)
	case !s.asks && anyOf(s.words, "told", "said", "agreed", "price", "owe") && !anyOf(s.words, "pay", "send", "transfer"): // another amount: that is the merchant's to say
		return flow.MeansHuman, true
	}
	return flow.MeansTerms, true
}

// numbered says whether words of digits are none of money by what stands beside them: the
// number of an order, more digits, or the other half of what looks like a code of ours.
func (s sentence) numbered(from, to int) bool {
	halves := strings.Fields(strings.TrimPrefix(s.line, " pay "))
	return to < len(s.words) && isDigits(s.words[to][:1]) || len(halves) == 2 && len(halves[0]) == 4 && len(halves[1]) == 4 ||
		from > 0 && slices.Contains([]string{"order", "invoice", "ref", "reference", "ending", "ends", "visa", "verve", "card", "number", "code", "room", "house", "flat", "dial", "call"}, s.words[from-1])
}

// beyond are words behind which a sentence tells more of what was paid: "sent 4500 instead
// of 5000", "sent 5k from Zenith".
var beyond = []string{"instead", "from", "and", "but", "pls", "please", "name"}

// amountWord is a word of an amount, and largeWord one that makes it more than the
// number of an option.
var (
	amountWord = regexp.MustCompile(`^((n|ngn)?\d{1,9}(k|naira)?|naira|ngn)$`)
	largeWord  = regexp.MustCompile(`\d{3}|\dk$|n`)
	priceWord  = regexp.MustCompile(`^((n|ngn)[1-9]\d{0,6}k?|[1-9]\d{0,6}(naira|ngn)|[1-9](\d?|00|50)k|[1-9]\d{3,6}|[1-9](00|50))$`) // 737 is dialled
	yearWord   = regexp.MustCompile(`^20[23][1-9]$`)
)
