package bot

import (
	"slices"
	"strconv"
	"strings"

	"till/flow"
)

// Understand reads what a payer wrote. It is pure: out of the same text always
// comes the same intent. What it is not sure of means nothing, because a
// question asked again costs less than a method that nobody chose.
//
// The order is what matters most first: a secret, an entry code, a digit of a
// menu, a word. A digit means the same in every menu, so that a double tap
// never does something else in the next one.
func Understand(text string, banks []flow.Bank) flow.Intent {
	folded := fold(text)
	if shown, found := secret(folded); found {
		return flow.Intent{Kind: flow.MeansSecret, Text: shown}
	}
	in := flow.Intent{Kind: flow.MeansNothing, Text: clip(strings.TrimSpace(visible(text)), maxKept)}
	if code, found := entryCode(folded, in.Text); found {
		in.Kind, in.Code = flow.MeansCode, code
		return in
	}
	words := trimmed(folded)
	if len(words) == 0 || len(words) > maxMenuWords {
		return in
	}
	if n, found := menuNumber(words); found {
		return byNumber(in, n, banks)
	}
	phrase := strings.Join(words, " ")
	if m, found := phrases[phrase]; found {
		in.Kind, in.Method = m.kind, m.method
		return in
	}
	if m, found := phrases[strings.Join(withoutLead(words), " ")]; found && m.kind == flow.MeansMethod {
		in.Kind, in.Method = m.kind, m.method
		return in
	}
	if code, found := byName(phrase, banks); found {
		in.Kind, in.Bank = flow.MeansBank, code
	}
	return in
}

// maxMenuWords bounds what can be an answer to a menu; more is a sentence.
const maxMenuWords = 8

// polite are words that change nothing around an answer.
var polite = []string{"please", "pls", "plz", "abeg", "sir", "ma", "thanks", "thank", "you", "ok", "okay", "oya"}

// trimmed are the words of a folded text without politeness around them.
func trimmed(folded string) []string {
	var words []string
	for _, w := range split(folded) {
		words = append(words, strings.ReplaceAll(w.text, "'", ""))
	}
	for len(words) > 1 && slices.Contains(polite, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	for len(words) > 1 && slices.Contains(polite, words[0]) {
		words = words[1:]
	}
	return words
}

// leadNumber are words that may stand before the number of an option.
var leadNumber = []string{"option", "opt", "number", "num", "no", "reply", "choose", "select", "pick", "press", "choice"}

var numberWords = []string{
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
}

// menuNumber reads an answer that is the number of an option and nothing else,
// or the number with its own label ("1 bank transfer"): "I have 1 question" is
// a sentence.
func menuNumber(words []string) (int, bool) {
	for len(words) > 1 && slices.Contains(leadNumber, words[0]) {
		words = words[1:]
	}
	n := slices.Index(numberWords, words[0])
	if n < 0 {
		var err error
		if n, err = strconv.Atoi(words[0]); err != nil || len(words[0]) > 2 || n >= len(numberWords) || words[0] != strconv.Itoa(n) {
			return 0, false
		}
	}
	if len(words) == 1 {
		return n, true
	}
	label, known := phrases[strings.Join(words[1:], " ")]
	option, offered := menu[n]
	return n, known && offered && label.kind == option.kind && label.method == option.method
}

// meaning is what an answer to a menu means.
type meaning struct {
	kind   flow.IntentKind
	method flow.Method
}

// menu is what the digits mean, in every menu.
var menu = map[int]meaning{
	0: {kind: flow.MeansCancel},
	1: {flow.MeansMethod, flow.BankTransfer},
	2: {flow.MeansMethod, flow.USSD},
	3: {flow.MeansMethod, flow.Card},
	4: {kind: flow.MeansPaid},
	5: {kind: flow.MeansAgain},
	6: {kind: flow.MeansOther},
}

// firstBank is the digit of the first bank of the USSD menu, and lastBank that
// of the last one it can have.
const (
	firstBank = 11
	lastBank  = 19
)

func byNumber(in flow.Intent, n int, banks []flow.Bank) flow.Intent {
	if m, found := menu[n]; found {
		in.Kind, in.Method = m.kind, m.method
	} else if i := n - firstBank; n >= firstBank && n <= lastBank && i < len(banks) {
		in.Kind, in.Bank = flow.MeansBank, banks[i].Code
	}
	return in
}

// phrases are the answers in words, exact after folding. CANCEL alone is the
// word that confirms; where nothing is to be confirmed the rules take it for
// the wish to cancel.
var phrases = index(map[meaning][]string{
	{flow.MeansMethod, flow.BankTransfer}: {"transfer", "tranfer", "trasfer", "transfa", "bank", "bank transfer", "bank tranfer", "a transfer", "account number"},
	{flow.MeansMethod, flow.USSD}:         {"ussd", "ussd code", "dial", "short code", "ussd transfer"},
	{flow.MeansMethod, flow.Card}:         {"card", "atm card", "debit card", "bank card", "my card"},
	{kind: flow.MeansPaid}: {
		"i have paid", "ive paid", "have paid", "paid", "i paid", "i don pay", "don pay", "i have paid already", "i already paid", "already paid",
		"paid already", "sent", "i have sent", "i have sent it", "i sent it", "sent it", "i have sent the money", "money sent", "done", "i have done it",
		"its done", "transferred", "i have transferred", "i transferred", "transfer done", "payment made", "payment done", "i have made payment",
		"i have made the payment", "i have made the transfer", "i have done the transfer", "payment sent", "completed", "i don send am",
	},
	{kind: flow.MeansAgain}: {
		"again", "resend", "send again", "send details again", "send it again", "resend details", "repeat", "details", "send details",
		"send me the details again", "show again",
	},
	{kind: flow.MeansOther}: {
		"other", "back", "another way", "pay another way", "other way", "change", "change method", "switch", "another method", "other method",
		"another option", "other options", "go back",
	},
	{kind: flow.MeansConfirm}: {"cancel"},
	{kind: flow.MeansCancel}:  {"cancel it", "cancel payment", "cancel the payment", "cancel this", "cancel order", "i want to cancel"},
	{kind: flow.MeansMenu}: {
		"hi", "hello", "hey", "hi there", "hello there", "start", "menu", "help", "good morning", "good afternoon", "good evening", "good day", "how far",
	},
})

func index(lists map[meaning][]string) map[string]meaning {
	all := map[string]meaning{}
	for m, list := range lists {
		for _, phrase := range list {
			all[phrase] = m
		}
	}
	return all
}

// withoutLead drops what people say before the name of a method: "I want to pay
// with card".
func withoutLead(words []string) []string {
	lead := []string{"i", "want", "to", "will", "would", "like", "let", "me", "use", "pay", "by", "with", "via", "through", "my", "the"}
	for len(words) > 1 && slices.Contains(lead, words[0]) {
		words = words[1:]
	}
	return words
}

// byName finds the one bank that a phrase names.
func byName(phrase string, banks []flow.Bank) (string, bool) {
	asked, found := bankKey(phrase), ""
	if asked == "" {
		return "", false
	}
	for _, b := range banks[:min(len(banks), lastBank-firstBank+1)] {
		if asked != bankKey(b.Short) && asked != bankKey(b.Name) && asked != b.Code {
			continue
		}
		if found != "" {
			return "", false // two banks of one name: ask again
		}
		found = b.Code
	}
	return found, found != ""
}

// bankKey is what is left of a bank's name without what every bank is called.
func bankKey(name string) string {
	var key strings.Builder
	for _, w := range split(fold(name)) {
		if !slices.Contains([]string{"bank", "banks", "plc", "of", "nigeria", "the", "limited", "ltd"}, w.text) {
			key.WriteString(w.text)
		}
	}
	short := strings.TrimSuffix(key.String(), "bank")
	if short == "gtb" || short == "guarantytrust" { // what GTBank is called
		return "gt"
	}
	return short
}
