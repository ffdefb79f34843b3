package api

import (
	"strings"
	"unicode/utf8"

	"till/flow"
)

// The lengths that card numbers have.
const (
	minCardDigits = 13
	maxCardDigits = 19
)

// holdsCard says whether a text holds what looks like a card number: 13 to 19
// digits, perhaps grouped by spaces or dashes, with a valid check digit and a
// prefix that an issuer uses. Longer runs of digits are something else.
func holdsCard(text string) bool {
	if len(text) < minCardDigits {
		return false
	}
	for i := 0; i < len(text); {
		if !isDigit(text[i]) {
			i++
			continue
		}
		groups, end := digitGroups(text, i)
		if groupsHoldCard(groups) {
			return true
		}
		i = end
	}
	return false
}

// digitGroups cuts a run of digits out of the text, from a digit on: its groups
// and where it ends. One separator may stand between two groups.
func digitGroups(text string, from int) (groups []string, end int) {
	i := from
	for i < len(text) {
		start := i
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		groups = append(groups, text[start:i])
		if i+1 >= len(text) || (text[i] != ' ' && text[i] != '-') || !isDigit(text[i+1]) {
			return groups, i
		}
		i++
	}
	return groups, i
}

// groupsHoldCard tries every row of neighbouring groups, so that an expiry date
// behind the number does not hide it.
func groupsHoldCard(groups []string) bool {
	var row [maxCardDigits]byte
	for first := range groups {
		digits := row[:0]
		for _, group := range groups[first:] {
			if len(digits)+len(group) > maxCardDigits {
				break
			}
			digits = append(digits, group...)
			if len(digits) >= minCardDigits && issued(digits) && flow.LuhnHolds(digits) {
				return true
			}
		}
	}
	return false
}

// issued says whether a scheme gives out numbers of this prefix and length.
// Verve is Nigeria's own.
func issued(digits []byte) bool {
	prefix := 0
	for _, d := range digits[:6] {
		prefix = prefix*10 + int(d-'0')
	}
	in := func(from, to int) bool { return prefix >= from && prefix <= to }
	n := len(digits)
	switch {
	case in(400000, 499999): // Visa
		return n == 13 || n == 16 || n == 19
	case in(506099, 506198), in(507865, 507964), in(650002, 650027): // Verve
		return n == 16 || n == 18 || n == 19
	case in(510000, 559999), in(222100, 272099): // Mastercard
		return n == 16
	case in(340000, 349999), in(370000, 379999): // American Express
		return n == 15
	case in(300000, 305999), in(360000, 369999), in(380000, 399999): // Diners Club
		return n == 14 || n == 16
	case in(601100, 601199), in(644000, 659999), in(352800, 358999): // Discover, JCB
		return n == 16 || n == 19
	case in(620000, 629999): // UnionPay
		return n >= 16
	case in(501800, 501899), in(502000, 502099), in(503800, 503899), in(675900, 676399): // Maestro
		return true
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// safeName is a name that came from outside, as an answer may repeat it: short,
// never a card number, and nothing in it that moves the words around it about.
func safeName(name string) string {
	const most = 64
	if holdsCard(name) {
		return "[hidden]"
	}
	if len(name) > most {
		name = name[:most] + "…"
	}
	return strings.Map(func(r rune) rune {
		if (text{}).control(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, string(utf8.RuneError)))
}
