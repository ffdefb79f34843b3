package bot

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The bounds of a secret that is named.
const (
	maxSecretWords = 4 // between the name and the digits: "my pin for the card is 1234"
	minSecret      = 3 // digits
	maxSecretName  = 5 // words
	minPassword    = 4 // letters and digits
)

// The digits of a code that stands beside a word which is also used for other
// things: so many, or fewer where it is said that this is the code.
const (
	minToken, minSureToken = 6, 4
	maxToken               = 8
)

// lenIdentity is how many digits a BVN and a NIN have, and a phone number without
// its country code; lenPhone how many it has with it.
const (
	lenIdentity = 11
	lenPhone    = 13
)

// between are the words that may stand between digits and the name of a secret
// behind them: "1234 is my pin".
var between = []string{"is", "my", "your", "the", "na", "be", "im", "as", "ni", "ne", "ce", "bu", "for", "our", "atm", "card", "dina", "mi", "shine", "that", "this", "at", "dey", "wey"}

// links are the words that say what something is, and owners whose, behind its
// name: "oro igbaniwole mi ni …".
var (
	links  = []string{"is", "na", "be", "as", "ni", "ne", "ce", "bu", "shine"}
	owners = []string{"mi", "m", "dina", "nawa"}
)

// naming is what a text says of secrets by their names.
type naming struct {
	asked   bool // a name stands in it
	letters bool // alone, and of a secret that can have letters
	found   bool // the secret stands beside it
}

// named finds the names of secrets in a folded text, and what stands beside them. A
// time or a day is none: "the OTP came at 10:30".
func named(folded string) naming {
	folded = moment.ReplaceAllString(folded, " ")
	t := telling{folded: folded, words: pieces(folded)}
	var says naming
	for i := range t.words {
		if size := t.name(i, vocabulary().secrets); size > 0 {
			letters := t.name(i, vocabulary().letters) == size
			says.asked, says.letters = true, says.letters || letters && t.only(i, size)
			says.found = says.found || t.digitsBeside(i, size) || letters && t.passwordBeside(i, size)
		}
		if size := t.name(i, vocabulary().perhaps); size > 0 {
			says.asked = says.asked || t.only(i, size)
			says.found = says.found || t.tokenBeside(i, size)
		}
		if says.found {
			break
		}
	}
	return says
}

// telling is a folded text that perhaps tells a secret, and its words.
type telling struct {
	folded string
	words  []word
}

// pieces are the words of a folded text, and those apart of which one is the name
// of a secret or a word beside it, and nobody put a space between: "cvv123", "na789".
func pieces(folded string) []word {
	var out []word
	for _, w := range split(folded) {
		w.at += len(w.text) - len(strings.TrimLeft(w.text, "'"))
		if w.text = strings.Trim(w.text, "'"); w.text == "" {
			continue
		}
		parts := runs(w)
		letter := func(p word) bool { // the last one of "o.t.p654321"
			return len(p.text) == 1 && len(out) > 0 && len(out[len(out)-1].text) == 1
		}
		glued := func(p word) bool {
			return vocabulary().secrets[p.text] || vocabulary().perhaps[p.text] || len(parts) == 2 && (slices.Contains(between, p.text) || letter(p))
		}
		if slices.ContainsFunc(parts, glued) {
			out = append(out, parts...)
		} else {
			out = append(out, w)
		}
	}
	return out
}

// runs are a word cut where letters and digits meet.
func runs(w word) []word {
	var out []word
	from := 0
	for i := range w.text {
		if i > 0 && isDigits(w.text[i-1:i]) != isDigits(w.text[i:i+1]) {
			out = append(out, word{text: w.text[from:i], at: w.at + from})
			from = i
		}
	}
	out = append(out, word{text: w.text[from:], at: w.at + from})
	out[0].gap = w.gap
	return out
}

// name is how many words a name of a list has that begins with the i-th word, 0 for
// none. One can be spelled: "o.t.p".
func (t telling) name(i int, list map[string]bool) int {
	if first := strings.ReplaceAll(t.words[i].text, "'", ""); len(first) != 1 && !vocabulary().heads[first] {
		if slices.ContainsFunc(vocabulary().long, func(name string) bool { return list[name] && near(first, name) }) {
			return 1 // "pasword"
		}
		return 0
	}
	words := t.words[i:min(i+maxSecretName, len(t.words))]
	plain := make([]string, len(words))
	letters := 0
	for n, w := range words {
		plain[n] = strings.ReplaceAll(w.text, "'", "")
		if letters == n && len(plain[n]) == 1 {
			letters++
		}
	}
	for n := len(plain); n >= 1; n-- {
		phrase := strings.Join(plain[:n], " ")
		switch {
		case vocabulary().spared[phrase]:
			return 0
		case list[phrase], n > 1 && n <= letters && list[strings.Join(plain[:n], "")]:
			return n
		}
	}
	return 0
}

// digitsBeside says whether digits stand behind a name or before it that are not
// written as money: "I put the OTP and ₦5,000 was debited" tells none.
func (t telling) digitsBeside(i, size int) bool {
	beside := true // the name, or what says that they are it: such digits are money only behind a sign of it
	for k := i + size; k < min(i+size+1+maxSecretWords, len(t.words)); k++ {
		end := k
		for end < len(t.words) && isDigits(t.words[end].text) {
			end++
		}
		switch {
		case end == k:
			beside = beside && slices.Contains(links, t.words[k].text)
		case t.moneyFrom(k) || !beside && t.naira(end):
			k = end - 1
		case t.longFrom(k) > k:
			k = t.longFrom(k) - 1
		case digitsFrom(t.words[k:]) >= minSecret:
			return true
		}
	}
	last := t.before(i)
	if last < 0 || len(t.words[last].text) < minSecret || !isDigits(t.words[last].text) {
		return false
	}
	k := last
	for k > 0 && isDigits(t.words[k-1].text) {
		k--
	}
	for t.longFrom(k) > k {
		if k = t.longFrom(k); k > last {
			return false
		}
	}
	return !t.moneyFrom(k)
}

// longFrom is where a number ends that begins with the k-th word and is longer than
// any secret, k where it is none: a phone, also in pieces, an account or a reference.
// A BVN or a NIN has eleven digits as a phone has, and does not begin with a zero.
func (t telling) longFrom(k int) int {
	if first := t.words[k].text; len(first) > maxToken && isDigits(first) {
		if len(first) == lenIdentity && first[0] != '0' {
			return k
		}
		return k + 1
	}
	digits := ""
	for n := k; n < len(t.words) && isDigits(t.words[n].text) && len(digits) < lenPhone; n++ {
		if n > k && strings.Trim(t.words[n].gap, " -()") != "" {
			break
		}
		digits += t.words[n].text
		if len(digits) == lenIdentity && digits[0] == '0' || isPhone(strings.Replace(digits, "2340", "234", 1)) { // +234 (0) 803 …
			return n + 1
		}
	}
	return k
}

// moneyFrom says whether the digits that begin with the k-th word come behind what
// makes an amount of them: "₦5,000", "NGN 5,000", "N5,000".
func (t telling) moneyFrom(k int) bool {
	if strings.ContainsFunc(t.words[k].gap, func(r rune) bool { return unicode.Is(unicode.Sc, r) }) {
		return true
	}
	if k == 0 {
		return false
	}
	was := t.words[k-1].text
	n, found := strings.CutPrefix(was, "n")
	return t.naira(k-1) || found && t.words[k].gap == "," && isDigits(strings.TrimPrefix(n, "gn"))
}

// naira says whether the k-th word names our money.
func (t telling) naira(k int) bool {
	return k < len(t.words) && slices.Contains([]string{"naira", "ngn"}, t.words[k].text)
}

// before is the word before a name and what may stand between, -1 for none.
func (t telling) before(i int) int {
	k := i - 1
	for k >= 0 && i-k <= maxSecretWords && slices.Contains(between, t.words[k].text) {
		k--
	}
	return k
}

// tokenBeside says whether digits that look like a code and not like money stand
// right beside a name: "token 123456", but not "token of 150,000".
func (t telling) tokenBeside(i, size int) bool {
	sure := i > 0 && t.words[i-1].text == "my"
	k := i + size
	for ; k < len(t.words) && (slices.Contains(links, t.words[k].text) || slices.Contains([]string{"code", "no", "number"}, t.words[k].text)); k++ {
		sure = sure || slices.Contains(links, t.words[k].text)
	}
	if t.token(k, sure) {
		return true
	}
	k = t.before(i)
	return k >= 0 && slices.ContainsFunc(t.words[k+1:i], func(w word) bool { return slices.Contains(links, w.text) }) && t.token(k, true)
}

// token says whether the digits that begin with the k-th word are as many as a code
// has, and no amount.
func (t telling) token(k int, sure bool) bool {
	least := minToken
	if sure {
		least = minSureToken
	}
	n, digits := k, 0
	for ; n < len(t.words) && isDigits(t.words[n].text) && digits+len(t.words[n].text) <= maxToken; n++ {
		if n > k && strings.Contains(t.words[n].gap, ",") {
			return false
		}
		digits += len(t.words[n].text)
	}
	longer := n < len(t.words) && isDigits(t.words[n].text) && len(t.words[n].text) == len(t.words[k].text) // that of a meter: 1234 5678 9012 …
	return digits >= least && !longer && !t.naira(n) && (n == len(t.words) || t.words[n].text != "k") && !t.moneyFrom(k)
}

// only says whether nothing stands in the text but a name, and words that say whose
// it is: "my token is".
func (t telling) only(i, size int) bool {
	for k, w := range t.words {
		if (k < i || k >= i+size) && !slices.Contains(between, w.text) && w.text != "here" {
			return false
		}
	}
	return true
}

// passwordBeside says whether a secret that can have letters stands beside its
// name: a word with digits or signs in it, or any that is told to be it and is not
// what people say of one. "My password is wrong" tells none.
func (t telling) passwordBeside(i, size int) bool {
	k := i + size
	for k < len(t.words) && slices.Contains(owners, t.words[k].text) {
		k++
	}
	told := k < len(t.words) && strings.ContainsAny(t.words[k].gap, ":=")
	if k < len(t.words) && slices.Contains(links, t.words[k].text) {
		told = true
		k++
	}
	if k < len(t.words) && (t.mixed(k) || told && t.unusual(k)) {
		return true
	}
	for k++; k < min(i+size+1+maxSecretWords, len(t.words)); k++ {
		if slices.Contains(links, t.words[k-1].text) && t.mixed(k) {
			return true
		}
	}
	k = t.before(i)
	if k < 0 || !slices.ContainsFunc(t.words[k+1:i], func(w word) bool { return slices.Contains(links, w.text) }) {
		return false
	}
	for k > 0 && !strings.Contains(t.words[k].gap, " ") { // "emeka_99"
		k--
	}
	return t.mixed(k) || k == 0 && i+size == len(t.words) && t.unusual(k)
}

// unusual says whether a word is of letters alone, and none that people say of a password.
func (t telling) unusual(k int) bool {
	l, w := vocabulary(), strings.ReplaceAll(t.words[k].text, "'", "")
	if _, means := l.is[w]; means || utf8.RuneCountInString(w) < minPassword || strings.ContainsAny(w, digitChars) {
		return false
	}
	return !l.usual[w] && !l.not[w] && !l.unsure[w] && !l.lead[w] && !l.tail[w]
}

// mixed is isMixed of what is written from the k-th word on to the next space.
func (t telling) mixed(k int) bool {
	text, _, _ := strings.Cut(t.folded[t.words[k].at:], " ")
	return isMixed(text)
}

// isMixed says whether a word has letters, and digits or signs among them, and is
// not written as an entry code is.
func isMixed(text string) bool {
	text = strings.TrimRight(text, ".,;:!?)'\"")
	letters := strings.ContainsFunc(text, unicode.IsLetter)
	if !letters || !strings.ContainsAny(text, digitChars+"@#$%&*_^+~") || utf8.RuneCountInString(text) < minPassword {
		return false
	}
	left, right, dash := strings.Cut(text, "-")
	return !dash || !candidate{left: left, right: right}.crockford()
}

// digitsFrom counts the digits that words begin with, in one group or more.
func digitsFrom(words []word) int {
	n := 0
	for _, w := range words {
		if !isDigits(w.text) {
			break
		}
		n += len(w.text)
	}
	return n
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, digitChars) == "" }
