package flow

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LuhnHolds says whether the check digit at the end of a card number is right,
// by ISO/IEC 7812-1, annex B. What it is given must be digits.
func LuhnHolds[D ~string | ~[]byte](digits D) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// The lengths that card numbers have.
const (
	minCardDigits = 13
	maxCardDigits = 19
)

// HoldsCard says whether a text holds what looks like a card number: 13 to 19
// digits of any script, perhaps grouped by spaces, dashes or dots, or by slashes, underscores or
// commas as on the card, with a valid check digit and a prefix that an issuer uses. Longer runs
// of digits are something else.
func HoldsCard(text string) bool {
	if len(text) < minCardDigits {
		return false
	}
	text = plainDigits(text)
	for i := 0; i < len(text); {
		if !asciiDigit(text[i]) {
			i++
			continue
		}
		groups, end := digitGroups(text, i)
		if groupsHoldCard(groups) {
			return true
		}
		i = end
	}
	return holdsPrinted(text)
}

// maxGap is how many separators stand between two groups at most: " - ".
const maxGap = 3

// digitGroups cuts a run of digits out of the text, from a digit on: its groups
// and where it ends.
func digitGroups(text string, from int) (groups []string, end int) {
	i := from
	for i < len(text) {
		start := i
		for i < len(text) && asciiDigit(text[i]) {
			i++
		}
		groups = append(groups, text[start:i])
		next := i
		for next < len(text) && next-i < maxGap && (text[next] == ' ' || text[next] == '-' || text[next] == '.') {
			next++
		}
		if next == i || next >= len(text) || !asciiDigit(text[next]) {
			return groups, i
		}
		i = next
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
			if SchemeOf(digits) != NoScheme && LuhnHolds(digits) {
				return true
			}
		}
	}
	return false
}

// CardScheme is who gives out the cards whose numbers begin in some way.
type CardScheme string

// The schemes that are told apart.
const (
	NoScheme   CardScheme = ""
	Visa       CardScheme = "visa"
	Mastercard CardScheme = "mastercard"
	Verve      CardScheme = "verve" // Nigeria's own
	Amex       CardScheme = "amex"
	OtherCards CardScheme = "other"
)

// SchemeOf is the scheme that gives out numbers of this beginning and length,
// NoScheme for what is no card. The check digit is not looked at. Verve's ranges are
// wider than those it was assigned (506099 to 506198, 507865 to 507964, 650002 to
// 650027): the test cards of Nigerian processors lie beside them.
func SchemeOf[D ~string | ~[]byte](digits D) CardScheme {
	n, prefix := len(digits), 0
	if n < minCardDigits || n > maxCardDigits {
		return NoScheme
	}
	for i := range 6 {
		prefix = prefix*10 + int(digits[i]-'0')
	}
	in := func(from, to int) bool { return prefix >= from && prefix <= to }
	of := func(scheme CardScheme, length bool) CardScheme {
		if !length {
			return NoScheme
		}
		return scheme
	}
	switch {
	case in(400000, 499999):
		return of(Visa, n == 13 || n == 16 || n >= 18)
	case in(506000, 506999), in(507800, 507999), in(650000, 650999):
		return of(Verve, n >= 16)
	case in(510000, 559999), in(222100, 272099):
		return of(Mastercard, n == 16)
	case in(340000, 349999), in(370000, 379999):
		return of(Amex, n == 15)
	case in(300000, 305999), in(360000, 369999), in(380000, 399999): // Diners Club
		return of(OtherCards, n == 14 || n == 16)
	case in(601100, 601199), in(644000, 659999), in(352800, 358999): // Discover, JCB
		return of(OtherCards, n == 16 || n == 19)
	case in(620000, 629999): // UnionPay
		return of(OtherCards, n >= 16)
	case in(501800, 501899), in(502000, 502099), in(503800, 503899), in(675900, 676399): // Maestro
		return OtherCards
	}
	return NoScheme
}

func asciiDigit(b byte) bool { return b >= '0' && b <= '9' }

// plainDigits is a text with the digits of every script as those of ASCII, its
// blanks and dashes likewise, and without what shows nothing at all. Most texts are
// returned as they are.
func plainDigits(text string) string {
	for i := 0; ; i++ {
		if i == len(text) {
			return text
		}
		if text[i] >= utf8.RuneSelf {
			break
		}
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return r
		case unicode.Is(unicode.Nd, r):
			// The ten digits of a script follow each other, and begin where its first one stands.
			zero := r
			for n := 0; n < 9 && unicode.Is(unicode.Nd, zero-1); n++ {
				zero--
			}
			return '0' + (r-zero)%10
		case unicode.Is(unicode.Zs, r):
			return ' '
		case unicode.Is(unicode.Pd, r):
			return '-'
		case unicode.In(r, unicode.Cf, unicode.Mn):
			return -1
		}
		return r
	}, text)
}

// Keepable is a text of somebody else's as it may be kept: one that holds a number of
// a card or a person, or a key, is not.
func Keepable(text string) string {
	if Held("", text) != "" {
		return "(not kept: it held a card number, a key, or a BVN or NIN)"
	}
	return text
}

// What is kept nowhere, as people are told.
const (
	HeldCard     = "a card number"
	HeldKey      = "a secret key"
	HeldIdentity = "a BVN or NIN"
)

// Held names what of a text, which may be the value of a name, is kept nowhere: ""
// for nothing.
func Held(name, text string) string {
	switch {
	case HoldsCard(text):
		return HeldCard
	case HoldsKey(text):
		return HeldKey
	case holdsIdentity(name, text):
		return HeldIdentity
	}
	return ""
}

// MayKeep refuses a text that holds what is kept nowhere.
func MayKeep(what, name, text string) error {
	if held := Held(name, text); held != "" {
		return Refuse(CodeCardData, "%s holds %s, which is not kept here. Nothing was done. Take it out, and send it again.", what, held)
	}
	return nil
}

// leastKey is how many characters a key of ours has at least behind its beginning.
const leastKey = 20

// HoldsKey says whether a text holds one of our own secrets: the secret key of a
// project, the secret of a webhook or of a login. Each is shown once, and kept by
// nobody but its owner.
func HoldsKey(text string) bool {
	if len(text) < leastKey {
		return false
	}
	for _, begins := range [...]string{"sk_test_", "sk_live_", "whsec_", "dash_"} {
		for rest := text; ; {
			i := strings.Index(rest, begins)
			if i < 0 {
				break
			}
			rest = rest[i+len(begins):]
			n := 0
			for n < len(rest) && (asciiDigit(rest[n]) || rest[n] >= 'a' && rest[n] <= 'z' || rest[n] >= 'A' && rest[n] <= 'Z' || strings.IndexByte("+/=_-", rest[n]) >= 0) {
				n++
			}
			if n >= leastKey {
				return true
			}
		}
	}
	return false
}

// holdsIdentity says whether a text holds a BVN or NIN, and says so: the word and a
// number of eleven digits. A number by itself may as well be one of an order or a
// telephone. name is what the text is the value of, "" for nothing.
func holdsIdentity(name, text string) bool {
	if len(text) < identityDigits {
		return false
	}
	digits, said := 0, namesIdentity(name)
	for i := 0; i < len(text) && !said; i++ {
		if c := text[i] | 0x20; c == 'b' || c == 'n' {
			said = namesIdentity(text)
			break
		}
	}
	if !said {
		return false
	}
	run := func() bool { return digits == identityDigits }
	for _, r := range plainDigits(text) {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r == ' ' || r == '-' || r == '.':
		default:
			if run() {
				return true
			}
			digits = 0
		}
	}
	return run()
}

// namesIdentity says whether one of the two words stands in a text by itself, or its letters
// do, as in B.V.N.
func namesIdentity(text string) bool {
	text = strings.ToLower(text)
	is := func(word string) bool { return word == "bvn" || word == "nin" }
	if slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }), is) {
		return true
	}
	spelled := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		letter := strings.TrimRightFunc(word, unicode.IsDigit)
		single := utf8.RuneCountInString(letter) == 1
		if single {
			spelled += letter
		}
		if single && letter == word {
			continue
		}
		if is(spelled) {
			return true
		}
		spelled = ""
	}
	return is(spelled)
}
