package bot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"till/flow"
)

// What stands for a message that held a secret. The rest of the message is
// dropped with it: who types a card number often types its date and code too.
const (
	shownCard  = "a card number, not kept"
	shownOther = "a secret, not kept"
)

// secret finds a card number, or the name of a secret with digits beside it, in
// a folded text, and returns what may be kept in place of the whole text.
func secret(folded string) (shown string, found bool) {
	folded = spelled(folded)
	groups := digitGroups(folded)
	if card(groups, 0) {
		return shownCard, true
	}
	if _, found := named(folded); found {
		return shownOther, true
	}
	return "", false
}

// secretIn is secret for a text as it was written, too: a key of ours that somebody
// pasted is told by its letters.
func secretIn(text, folded string) (shown string, found bool) {
	if flow.HoldsKey(text) {
		return shownOther, true
	}
	return secret(folded)
}

// spelled is a folded text with the names of the digits, in any language,
// written as digits: "four one one one" is as much of a card as 4111 is.
func spelled(folded string) string {
	var b strings.Builder
	done := 0
	for _, w := range split(folded) {
		n, found := vocabulary().numbers[w.text]
		if !found || n > 9 {
			continue
		}
		b.WriteString(folded[done:w.at])
		b.WriteString(strconv.Itoa(n))
		done = w.at + len(w.text)
	}
	if done == 0 {
		return folded
	}
	b.WriteString(folded[done:])
	return b.String()
}

// The digits that one card number can have, and how many signs may stand
// between two of them.
const (
	minCard = 15
	maxCard = 19
	maxGap  = 3
)

// separators may stand between the digits of one card number.
const separators = " -._/,*:;|+\\=~'\"()[]<>#&!?"

// card finds a card number: it begins where digits begin, and ends where they
// end or inside of a run that is too long to be anything else. So two account
// numbers next to each other are not taken for one card. What is found ends in
// the group with the number last or behind it.
func card(groups []group, last int) bool {
	for i, first := range groups {
		for n := maxCard; i >= last && n >= minCard; n-- {
			if len(first.digits) >= n && isCard(first.digits[:n]) {
				return true
			}
		}
		joined := first.digits
		for k, next := range groups[i+1:] {
			if !next.joins || len(joined)+len(next.digits) > maxCard || isPhone(joined) {
				break
			}
			joined += next.digits
			if i+1+k >= last && isCard(joined) {
				return true
			}
		}
	}
	return false
}

// isPhone says whether digits are a whole Nigerian phone number with its
// country code. What comes behind one is not the rest of a card that begins so.
func isPhone(digits string) bool {
	return len(digits) == 13 && strings.HasPrefix(digits, "234") && digits[3] >= '7'
}

// group is a run of digits; joins says whether it can go on with the number
// that the run before belongs to.
type group struct {
	digits string
	joins  bool
}

func digitGroups(folded string) []group {
	var groups []group
	start, end := -1, 0
	take := func(to int) {
		if start < 0 {
			return
		}
		gap := folded[end:start]
		joins := len(groups) > 0 && len(gap) <= maxGap && strings.Trim(gap, separators) == ""
		groups = append(groups, group{digits: folded[start:to], joins: joins})
		start, end = -1, to
	}
	for i, r := range folded {
		switch digit := r >= '0' && r <= '9'; {
		case digit && start < 0:
			start = i
		case !digit:
			take(i)
		}
	}
	take(len(folded))
	return groups
}

// issuer is a range of card numbers by their first digits, and how long the
// cards of it are.
type issuer struct {
	from, to string
	lengths  []int
}

// issuers are the ranges that circulate here. Thirteen-digit Visa cards are
// left out: they died out, and phone numbers have thirteen digits too.
var issuers = []issuer{
	{"4", "4", []int{16, 18, 19}},               // Visa
	{"51", "55", []int{16}},                     // Mastercard
	{"2221", "2720", []int{16}},                 // Mastercard
	{"34", "34", []int{15}},                     // American Express
	{"37", "37", []int{15}},                     // American Express
	{"506", "506", []int{16, 17, 18, 19}},       // Verve
	{"507865", "507964", []int{16, 17, 18, 19}}, // Verve
	{"650", "650", []int{16, 17, 18, 19}},       // Verve
}

// isCard says whether digits are a card number of a known issuer.
func isCard(digits string) bool {
	known := slices.ContainsFunc(issuers, func(i issuer) bool {
		head := digits[:min(len(i.from), len(digits))]
		return head >= i.from && head <= i.to && slices.Contains(i.lengths, len(digits))
	})
	return known && flow.LuhnHolds(digits)
}

// The bounds of a secret that is named.
const (
	maxSecretWords = 4 // between the name and the digits: "my pin for the card is 1234"
	minSecret      = 3 // digits
	maxSecretName  = 4 // words
)

// between are the words that may stand between digits and the name of a secret
// behind them: "1234 is my pin".
var between = []string{"is", "my", "the", "na", "be", "im", "as", "ni", "ne", "ce", "bu", "for", "our", "atm", "card", "dina", "mi", "shine", "that", "this"}

// named says whether the name of a secret stands in a text (asked), and whether
// digits stand beside it (found).
func named(text string) (asked, found bool) {
	words := split(text)
	for i := range words {
		size := secretName(words[i:])
		if size == 0 {
			continue
		}
		asked = true
		for k := i + size; k < min(i+size+1+maxSecretWords, len(words)); k++ {
			if digitsFrom(words[k:]) >= minSecret {
				return true, true
			}
		}
		k := i - 1
		for k >= 0 && i-k <= maxSecretWords && slices.Contains(between, words[k].text) {
			k--
		}
		if k >= 0 && len(words[k].text) >= minSecret && isDigits(words[k].text) {
			return true, true
		}
	}
	return asked, false
}

// secretName is how many words the name of a secret has that words begin with.
func secretName(words []word) int {
	for n := min(maxSecretName, len(words)); n >= 1; n-- {
		var name []string
		for _, w := range words[:n] {
			name = append(name, strings.ReplaceAll(w.text, "'", ""))
		}
		if vocabulary().secrets[strings.Join(name, " ")] {
			return n
		}
	}
	return 0
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

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// The digits that are never kept: so many in one run, and all of a message that
// has so many, however they stand apart. A payer's PIN or half of a card number
// looks like any other number, so that no number of that length is kept at all.
const (
	maxRun   = 3
	maxTotal = 7
)

// run is a run of digits in a text, over whatever is neither a letter nor a
// digit.
type run struct {
	from, to int // bytes of the text
	digits   int
	written  bool // in digits, not in words
}

// kept is what may be kept of a text: without what cannot be seen, and with the
// count of its digits in place of each longer number. An entry code is kept.
func kept(text string, code place) string {
	text = heard(text)
	runs, total := digitRuns(text, code)
	var b strings.Builder
	done := 0
	for _, r := range runs {
		if r.digits <= maxRun && (total <= maxTotal || !r.written) {
			continue
		}
		b.WriteString(text[done:r.from] + "[" + many(r.digits) + "]")
		done = r.to
	}
	b.WriteString(text[done:])
	return clip(strings.TrimSpace(visible(b.String())), maxKept)
}

// broken says whether digits stand around what looks like an entry code as those
// of a card number do that somebody wrote with letters in between: many, and not
// in one piece like a phone or an account number.
func broken(text string, code place) bool {
	runs, total := digitRuns(heard(text), code)
	return total > maxTotal && slices.ContainsFunc(runs, func(r run) bool { return r.digits < lenAccount })
}

// lenAccount is how many digits a Nigerian account number (NUBAN) has; a phone
// number has more.
const lenAccount = 10

// many is how many digits there were, which itself is never a long number.
func many(digits int) string {
	if digits > maxShown {
		return fmt.Sprintf("more than %d digits", maxShown)
	}
	return count(digits, "digit")
}

// maxShown is the longest number whose length is told.
const maxShown = 99

// digitRuns finds the runs of digits in a text, and how many digits it has in
// all, without an entry code.
func digitRuns(text string, code place) (runs []run, total int) {
	var now run
	var letters strings.Builder
	begun, at := 0, 0 // of the word, and where the folded text stands
	end := func() {
		if now.digits > 0 {
			runs = append(runs, now)
			total += now.digits
		}
		now = run{}
	}
	add := func(i, next, digits int, written bool) {
		if now.digits == 0 {
			now.from = i
		}
		now.to, now.digits, now.written = next, now.digits+digits, now.written || written
	}
	word := func(i int) {
		if letters.Len() == 0 {
			return
		}
		if n, known := vocabulary().numbers[letters.String()]; known {
			add(begun, i, len(strconv.Itoa(n)), false)
		} else {
			end()
		}
		letters.Reset()
	}
	next := 0
	for next < len(text) {
		i := next
		r, size := utf8.DecodeRuneInString(text[i:])
		next += size
		folded := foldRune(r)
		inCode := at >= code.from && at < code.to
		at += len(folded)
		_, digit := number(r)
		switch {
		case folded == "":
			if now.to == i {
				now.to = next
			}
		case inCode:
			word(i)
			end()
		case digit:
			word(i)
			add(i, next, len(folded), true)
		case unicode.IsLetter(r) || folded == "'":
			if letters.Len() == 0 {
				begun = i
			}
			letters.WriteString(strings.Trim(folded, "'"))
		default:
			word(i)
		}
	}
	word(len(text))
	end()
	return runs, total
}

// masked is a text that came with a message, as it may be kept: a name, what a
// sign of approval says.
func masked(text string) string {
	folded := fold(text)
	if shown, found := secretIn(text, folded); found {
		return shown
	}
	return kept(text, place{})
}

// WasCard says of what is kept in place of a message with a secret whether that
// was a card number.
func WasCard(shown string) bool { return shown == shownCard }
