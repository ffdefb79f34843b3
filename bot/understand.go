package bot

import (
	"slices"
	"strings"
	"unicode"

	"till/flow"
	"till/flow/planted"
)

// Reading is the version of how messages are read. It is kept with each intent,
// so that whoever looks at an old conversation knows by which rules it was
// understood. It grows with each change of what a text means.
const Reading = 30

// Understand reads what a payer wrote. It is pure: out of the same text always
// comes the same intent. What it is not sure of means nothing, because a
// question asked again costs less than a method that nobody chose.
//
// The order is what matters most first: STOP, a secret, an entry code, a
// person, what is true everywhere, the digit or word of a menu, small talk. A
// digit means the same in every menu, so that a double tap never does something
// else in the next one.
func Understand(text string, banks []flow.Bank) flow.Intent {
	in := understand(text, banks)
	in.By = Reading
	return in
}

func understand(text string, banks []flow.Bank) flow.Intent {
	l, folded := vocabulary(), fold(text)
	plain := plainWords(folded)
	in := flow.Intent{Kind: flow.MeansNothing}
	m, stop := l.alone(plain)
	most := maxRun
	if !stop {
		code, at, found := entryCode(folded, text)
		shown, asked := secretIn(text, folded, at)
		if shown != "" {
			if planted.KeptCard {
				shown = text
			}
			return flow.Intent{Kind: flow.MeansSecret, Text: shown}
		}
		most = mostKept(asked)
		if found && (at.after || !broken(text, at)) {
			in.Kind, in.Code, in.Text = flow.MeansCode, code, kept(text, at, most)
			return in
		}
	}
	in.Text = kept(text, place{}, most)
	switch {
	case stop:
		in.Kind = m.kind
		return in
	case len(plain) == 0:
		switch {
		case signs(text, "👍👌🙏❤😊🤝💯👏🙌☺😀😁🥰"):
			in.Kind = flow.MeansThanks
		case signs(text, "✅☑✔"):
			in.Kind, in.Guess = flow.MeansPaid, true
		case strings.ContainsAny(folded, "?？"): // "??", where nothing came for a while
			in.Kind = flow.MeansMenu
		}
		return in
	case len(plain) > maxSentence:
		return in
	}
	s := sentence{
		lexicon: l, words: plain, line: " " + strings.Join(plain, " ") + " ", banks: banks,
		asks:  strings.ContainsAny(folded, "?？"),
		stops: stops.MatchString(folded),
		money: strings.ContainsFunc(folded, func(r rune) bool { return r == '%' || unicode.Is(unicode.Sc, r) }),
	}
	a := s.read()
	if written, short := l.spelled(plain); a.kind == flow.MeansNothing && short {
		s.words, s.line = written, " "+strings.Join(written, " ")+" "
		a = s.read()
	}
	if a.kind == flow.MeansNothing {
		if kind, found := s.priced(); found {
			a = answer{meaning: meaning{kind: kind}, guess: true}
		}
	}
	if a.kind == flow.MeansPaid && s.failed() {
		a = answer{meaning: meaning{kind: flow.MeansOther}, guess: true}
	}
	in.Kind, in.Method, in.Bank, in.Lang, in.Named, in.Guess = a.kind, a.method, a.bank, a.lang, a.named, a.guess
	return in
}

// spelled writes out what many write short ("hv u seen d money"), and says whether
// anything was. It is asked for only where a message says nothing as it stands: some of
// what is short is a word of another language.
func (l *lexicon) spelled(words []string) ([]string, bool) {
	var out []string
	short := false
	for _, w := range words {
		long, found := l.short[w]
		if short = short || found; !found {
			long = w
		}
		out = append(out, strings.Fields(long)...)
	}
	return out, short
}

// alone looks a whole message up, without words of courtesy around it.
func (l *lexicon) alone(words []string) (meaning, bool) {
	for n := maxPolite; n >= 1; n-- {
		for len(words) > n && l.polite[strings.Join(words[:n], " ")] {
			words = words[n:]
		}
		for len(words) > n && l.polite[strings.Join(words[len(words)-n:], " ")] {
			words = words[:len(words)-n]
		}
	}
	m, found := l.whole[strings.Join(words, " ")]
	return m, found
}

// maxPolite is how many words one of courtesy has at most.
const maxPolite = 2

// The bounds of what is read: more words than an answer has are a sentence, and
// more than a sentence has are a letter.
const (
	maxAnswer   = 16
	maxSentence = 60
)

// signs says whether a message without words is made of some signs.
func signs(text, of string) bool {
	seen := false
	for _, r := range text {
		switch {
		case strings.ContainsRune(of, r):
			seen = true
		case unicode.IsSpace(r), unicode.Is(unicode.M, r), unicode.Is(unicode.C, r), unicode.Is(unicode.Sk, r):
			// what colours a sign, or joins two
		default:
			return false
		}
	}
	return seen
}

// answer is what a sentence comes to.
type answer struct {
	meaning
	bank  string
	guess bool
}

// sentence is a message that holds no secret and no code.
type sentence struct {
	*lexicon
	words []string
	line  string // the words with a space around each
	banks []flow.Bank
	asks  bool // it has a question mark
	stops bool // it begins with a "no" that stands for itself
	money bool // a sign of a currency is in it
}

// read says what a sentence means, by the order of what matters most.
func (s sentence) read() answer {
	exact, isAnswer := s.exact(s.words)
	number, isNumber := s.number()
	about, hasCue := s.about()
	switch {
	case isAnswer && exact.kind == flow.MeansHuman, hasCue && about == flow.MeansHuman && !isNumber:
		return answer{meaning: meaning{kind: flow.MeansHuman}}
	case isAnswer && global(exact.kind):
		return exact
	case isNumber:
		return number
	case hasCue && about != flow.MeansAbuse && exact.kind != flow.MeansMethod && exact.kind != flow.MeansThanks: // "I have received my refund" is all of it
		return answer{meaning: meaning{kind: about}}
	case isAnswer:
		return exact
	case hasCue:
		return answer{meaning: meaning{kind: about}}
	}
	if bank, found := s.bank(); found {
		return answer{meaning: meaning{kind: flow.MeansBank, named: true}, bank: bank}
	}
	for _, words := range squeezed(s.words) { // "transferrr", "yesss"
		a, found := s.exact(words)
		if found && a.kind != flow.MeansConfirm && a.kind != flow.MeansCancel && a.kind != flow.MeansOther {
			return a
		}
	}
	if kind, found := s.some(); found {
		return answer{meaning: meaning{kind: kind}}
	}
	if m, found := s.nearly(); found {
		return answer{meaning: m}
	}
	if a, found := s.instead(); found {
		return a
	}
	if rest, found := s.behindNo(); found {
		a := rest.read()
		switch {
		case a.kind == flow.MeansPaid, a.kind == flow.MeansWait, a.kind == flow.MeansMoney:
			return answer{meaning: meaning{kind: a.kind}, guess: a.guess || a.kind != flow.MeansPaid}
		case a.kind == flow.MeansMethod && (rest.words[0] == "make" || !slices.Contains(doers, rest.words[0])): // "No, make I use card", or "no make I use card"; "No, card"
			a.kind = flow.MeansMaybe
			return a
		case a.kind == flow.MeansConfirm: // "No, cancel" is not the very word
			return answer{meaning: meaning{kind: flow.MeansCancel}}
		case a.kind == flow.MeansCancel, (a.kind == flow.MeansMethod || a.kind == flow.MeansMaybe) && wished(rest.words): // "No, I want to use card"
			return a
		}
	}
	kind, found := s.guess()
	if s.claims() && !slices.Contains([]flow.IntentKind{flow.MeansHuman, flow.MeansMoney, flow.MeansOther, flow.MeansWho}, kind) {
		return answer{meaning: meaning{kind: flow.MeansPaid}, guess: true}
	}
	return answer{meaning: meaning{kind: kind}, guess: found}
}

// claims says whether it is said first that it is paid, whatever is asked or denied behind
// that: "I have paid, can you confirm?"
func (s sentence) claims() bool {
	return slices.ContainsFunc(s.has, func(c cue) bool {
		if c.kind != flow.MeansPaid || s.asks && !strings.HasPrefix(c.phrase, " i") || strings.HasPrefix(c.phrase, " paid ") { // "I was paid yesterday"
			return false
		}
		_, behind, found := strings.Cut(s.line, c.phrase)
		return found && !s.turned(c.phrase) && !strings.Contains(" "+behind, " pay ") // "how do I pay the rest?"
	})
}

// guess is what a sentence is most likely about that says nothing exactly, also a long one
// where it hints at one thing alone, and what a bank's message of a transfer is. It is only
// answered with where things stand, by asking the bank, with the other ways to pay or with
// a person: whoever is misread has lost nothing, and whoever is not did not have to learn
// our words.
func (s sentence) guess() (flow.IntentKind, bool) {
	alert, long := s.any(s.alert) || s.fields() >= alertFields && !s.asks, len(s.words) > maxAnswer
	var found cue
	sent, several := false, false
	for _, c := range s.hint {
		sent = sent || c.kind == flow.MeansPaid && strings.Contains(s.line, c.phrase)
		switch {
		case !strings.Contains(s.line, c.phrase),
			alert && c.kind != flow.MeansMoney && c.kind != flow.MeansOther,                          // it failed, or was reversed
			c.kind == flow.MeansPaid && told(c.phrase) && s.turned(c.phrase),                         // "when he has sent it"
			(c.kind == flow.MeansMenu || c.kind == flow.MeansWait) && s.besides(c.phrase).any(s.not), // "I do not want to pay"
			c.kind == flow.MeansMenu && found.kind == flow.MeansMoney && sent:                        // "you gave me wrong account number and I sent it"
		case found.phrase == "", strings.Contains(c.phrase, found.phrase): // "pay for my order" says more than "my order"
			found = c
		case c.kind != found.kind && (found.kind != flow.MeansMoney && found.kind != flow.MeansPaid || c.kind != flow.MeansPaid && c.kind != flow.MeansMenu && (c.kind != flow.MeansWho || !anyOf(s.words, spent...))):
			several = true // at money that was sent the bank is asked, whatever is asked about it
		}
	}
	switch {
	case found.phrase != "" && (alert || !long || !several && !s.spends(found.kind)): // in a letter, what it says one thing about
		return found.kind, true
	case alert:
		return flow.MeansPaid, true
	}
	return flow.MeansNothing, false
}

// fields counts what is named as banks do in their messages of a transfer, which each of them
// words otherwise: "Acct: 012***567 Amt: N5,000 Desc: NIP/ADA Bal: N200".
func (s sentence) fields() int {
	n := 0
	for _, names := range alertNames {
		if anyOf(s.words, names...) {
			n++
		}
	}
	return n
}

// alertNames are what such a message names, and alertFields is how much of it makes one.
var alertNames = [][]string{
	{"acct", "acc", "ac", "account"}, {"amt", "amount"}, {"desc", "description", "narr", "narration", "remarks"}, {"bal", "balance"}, {"dr", "cr"}, {"date"},
}

const alertFields = 3

// spends says whether a letter also tells of money that was sent, where what is guessed asks for
// some, or for time.
func (s sentence) spends(guess flow.IntentKind) bool {
	return slices.Contains([]flow.IntentKind{flow.MeansMenu, flow.MeansWait, flow.MeansTerms}, guess) && anyOf(s.words, spent...)
}

// spent are words of money that has left somebody.
var spent = []string{"sent", "paid", "transferred", "debited", "deducted", "charged", "credited", "mistake", "mistakenly", "don"}

// told says whether a hint tells of a payment that was made, which a word in front of it can deny.
func told(phrase string) bool {
	return slices.ContainsFunc([]string{" paid but ", " sent ", " transferred ", " transfer has ", " credited ", " he ", " she ", " successful "}, func(by string) bool { return strings.HasPrefix(phrase, by) })
}

// global says whether a kind of intent is the same wherever the talk stands.
func global(k flow.IntentKind) bool {
	return !slices.Contains([]flow.IntentKind{flow.MeansMethod, flow.MeansMaybe, flow.MeansYes, flow.MeansNo, flow.MeansThanks, flow.MeansWait}, k)
}

// about finds the first cue of a sentence, by the order of the kinds.
func (s sentence) about() (flow.IntentKind, bool) {
	for _, c := range s.has {
		if !strings.Contains(s.line, c.phrase) {
			continue
		}
		if c.kind == flow.MeansPaid && (s.asks || s.any(s.not) || s.any(s.unsure)) {
			continue // "I have not paid", "when I have paid"
		}
		behind := func(word string) bool { return strings.Contains(s.line, " "+word+c.phrase) }
		if c.kind == flow.MeansHuman && slices.ContainsFunc(accounts, func(a string) bool { return strings.Contains(s.line, c.phrase+a+" ") }) {
			continue // "give me a person account number"
		}
		if c.kind == flow.MeansHuman && (behind("our") || behind("dont") || behind("not") || s.any(s.alert) && (strings.Contains(s.line, c.phrase+"on ") || !s.asksFor(c.phrase))) {
			continue // of an alert: "call our customer care", "Need help? Talk to an agent"
		}
		return c.kind, true
	}
	return "", false
}

// accounts are words behind which a person is whose account is asked for.
var accounts = []string{"account", "acct", "acc", "aza"}

// asksFor says whether a payer asks in words of their own for what a phrase names: "let me",
// "I want to" or "please" stands a little before it.
func (s sentence) asksFor(phrase string) bool {
	before, _, _ := strings.Cut(s.line, phrase)
	words := strings.Fields(before)
	return len(words) == 0 || slices.ContainsFunc(words[max(0, len(words)-3):], func(w string) bool {
		return slices.Contains([]string{"i", "we", "me", "want", "wanna", "wan", "like", "please", "pls", "abeg", "biko", "jowo"}, w)
	})
}

// any says whether one of the phrases stands in the sentence.
func (s sentence) any(phrases map[string]bool) bool {
	for i := range s.words {
		for n := 1; n <= maxPhrase && i+n <= len(s.words); n++ {
			if phrases[strings.Join(s.words[i:i+n], " ")] {
				return true
			}
		}
	}
	return false
}
