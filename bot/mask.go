package bot

import (
	"fmt"
	"regexp"
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

// secretIn finds a secret in a text, by its letters a key of ours that somebody
// pasted, and in its folded form a card number, or what stands beside the name of
// a secret. shown is what may be kept in place of the whole text, "" where there
// is none; asked says that there is none, and that one is spoken of. The code of a
// link of ours is none, though some have "PWD4" or "CVV1" in them, or digits that a
// phone number goes on to a card with.
func secretIn(text, folded string, code place) (shown string, asked bool) {
	if flow.HoldsKey(text) {
		return shownOther, false
	}
	folded = spelled(code.hidden(folded))
	if card(digitGroups(folded), 0) {
		return shownCard, false
	}
	says := named(folded)
	if says.found {
		return shownOther, false
	}
	return "", says.asked
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
		for n := min(maxCard, len(first.digits)); i >= last && n >= minCard; n-- {
			if isCard(first.digits[:n]) && goesOn(first.digits[n:]) && !stamp.MatchString(first.digits) {
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

// goesOn says whether digits that stand in one piece with a card number, behind it, are
// its date or its code, or none. Banks number transfers with twenty digits and more,
// and one in ten of those begins like a card.
func goesOn(digits string) bool { return cardTail.MatchString(digits) }

var (
	cardTail = regexp.MustCompile(`^((0[1-9]|1[0-2])(20)?\d{2})?(\d{3,4})?$`)
	// stamp is the time that a bank's number of a transfer begins with: year, month, day, hour, minute.
	stamp = regexp.MustCompile(`^2[2-7](0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d`)
)

// isPhone says whether digits are a whole Nigerian phone number with its
// country code. What comes behind one is not the rest of a card that begins so.
func isPhone(digits string) bool {
	return len(digits) == lenPhone && strings.HasPrefix(digits, "234") && digits[3] >= '7'
}

// A day, a time of it, and an amount: however many of those stand in a row, they are
// no digits of a card.
const (
	clockTime = `\b\d{1,2}:\d{2}(:\d{2})?( ?[ap]m)?\b`
	fullDate  = `\b(\d{1,2}(/\d{1,2}/|-\d{1,2}-|\.\d{1,2}\.)20\d{2}|20\d{2}(/\d{1,2}/|-\d{1,2}-)\d{1,2})\b`
	moments   = clockTime + "|" + fullDate
	amountOf  = `(₦ ?|\bn|\bngn)(\d{1,3}(,\d{3})+|\d{1,7})(\.\d{1,2})?\b|\b\d{1,3}(,\d{3})+(\.\d{1,2})?\b`
)

var (
	noCard = regexp.MustCompile(moments + "|" + amountOf)
	moment = regexp.MustCompile(moments)
)

// group is a run of digits; joins says whether it can go on with the number
// that the run before belongs to.
type group struct {
	digits string
	joins  bool
}

func digitGroups(folded string) []group {
	folded = noCard.ReplaceAllString(folded, "x")
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

// isCard says whether digits are the number of a card that circulates here. Shorter
// ones are left out: thirteen-digit Visa cards died out, and phone numbers have
// thirteen digits too. So are the schemes of elsewhere: account numbers with an amount
// behind them begin as theirs do.
func isCard(digits string) bool {
	here := []flow.CardScheme{flow.Visa, flow.Mastercard, flow.Verve, flow.Amex}
	return len(digits) >= minCard && slices.Contains(here, flow.SchemeOf(digits)) && flow.LuhnHolds(digits)
}

// The digits that are never kept: so many in one run, and all of a message that
// has so many, however they stand apart. A payer's PIN or half of a card number
// looks like any other number, so that no number of that length is kept at all.
const (
	maxRun     = 3
	maxRunNear = 2 // where a secret is spoken of: a CVV has three digits
	maxTotal   = 7
)

// run is a run of digits in a text, over whatever is neither a letter nor a
// digit.
type run struct {
	from, to int // bytes of the text
	digits   int
	written  bool // in digits, not in words
}

// kept is what may be kept of a text: without what cannot be seen, and with the
// count of its digits in place of each number of more than most. An entry code is
// kept.
func kept(text string, code place, most int) string {
	text = heard(text)
	runs, total := digitRuns(text, code)
	var b strings.Builder
	done := 0
	for _, r := range runs {
		if r.digits <= most && (total <= maxTotal || !r.written) {
			continue
		}
		b.WriteString(text[done:r.from] + "[" + many(r.digits) + "]")
		done = r.to
	}
	b.WriteString(text[done:])
	return clip(strings.TrimSpace(visible(b.String())), maxKept)
}

// mostKept is how long a number is kept at most in a text: near says that it, or
// what was written just before, is about a secret.
func mostKept(near bool) int {
	if near {
		return maxRunNear
	}
	return maxRun
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
	shown, asked := secretIn(text, fold(text), place{})
	if shown != "" {
		return shown
	}
	return kept(text, place{}, mostKept(asked))
}

// WasCard says of what is kept in place of a message with a secret whether that
// was a card number.
func WasCard(shown string) bool { return shown == shownCard }
