package bot

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxHeard = 64 << 10 // bytes of a message that are looked at
	maxKept  = 1000     // runes of a message that are kept
)

// fold writes a text the way it is compared: lower case, digits of every script
// and shape as ASCII digits, full-width letters as plain ones, one kind of
// space and one kind of dash, nothing invisible. It is never shown or kept.
func fold(text string) string {
	if len(text) > maxHeard {
		text = text[:maxHeard]
	}
	text = strings.ReplaceAll(text, "%20", " ") // of a link that was pasted as it is
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		if d, ok := number(r); ok {
			b.WriteString(strconv.Itoa(d))
			continue
		}
		switch {
		case r >= 'Ａ' && r <= 'Ｚ':
			b.WriteRune(r - 'Ａ' + 'a')
		case r >= 'ａ' && r <= 'ｚ':
			b.WriteRune(r - 'ａ' + 'a')
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.Is(unicode.Pd, r) || r == '−' || r == '⁃':
			b.WriteByte('-')
		case r == '’' || r == '‘' || r == '`' || r == '´':
			b.WriteByte('\'')
		case r == utf8.RuneError, unicode.Is(unicode.C, r), unicode.Is(unicode.M, r):
			// Invisible, or the marks that make 1️⃣ out of 1.
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// circled are the shapes of numbers that Unicode does not call digits: the
// first rune of each row, and the value it has.
var circled = []struct {
	from, to rune
	value    int
}{
	{'①', '⑲', 1},
	{'⑴', '⒆', 1},
	{'⒈', '⒚', 1},
	{'❶', '❾', 1},
	{'➀', '➈', 1},
	{'➊', '➒', 1},
	{'⓵', '⓽', 1},
	{'⓫', '⓳', 11},
	{'⓪', '⓪', 0},
	{'⓿', '⓿', 0},
	{'⁴', '⁹', 4},
	{'⁰', '⁰', 0},
	{'¹', '¹', 1},
	{'²', '³', 2},
}

// number is the value of a digit of any script, or of a circled number.
func number(r rune) (int, bool) {
	if r < 0x80 {
		return int(r - '0'), r >= '0' && r <= '9'
	}
	if unicode.Is(unicode.Nd, r) {
		// Every run of decimal digits begins with a zero and is a multiple of
		// ten long.
		for _, t := range unicode.Nd.R16 {
			if r >= rune(t.Lo) && r <= rune(t.Hi) {
				return int(r-rune(t.Lo)) % 10, true
			}
		}
		for _, t := range unicode.Nd.R32 {
			if r >= rune(t.Lo) && r <= rune(t.Hi) { //nolint:gosec // runes fit
				return int(r-rune(t.Lo)) % 10, true //nolint:gosec // runes fit
			}
		}
	}
	for _, c := range circled {
		if r >= c.from && r <= c.to {
			return c.value + int(r-c.from), true
		}
	}
	return 0, false
}

// visible is a text without control characters and without the marks that
// change the direction of what stands around them. Lines are kept.
func visible(text string) string {
	if len(text) > maxHeard {
		text = text[:maxHeard]
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == utf8.RuneError:
			return -1
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.C, r):
			return -1
		default:
			return r
		}
	}, text)
}

// clip is the first runes of a text.
func clip(text string, limit int) string {
	seen := 0
	for i := range text {
		if seen == limit {
			return text[:i]
		}
		seen++
	}
	return text
}

// word is a run of letters and digits in a folded text, and what stands between
// it and the word before.
type word struct {
	text string
	gap  string
}

// split cuts a folded text into its words.
func split(folded string) []word {
	var words []word
	start, end := -1, 0
	for i, r := range folded {
		if inside := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\''; inside == (start >= 0) {
			continue
		} else if inside {
			start = i
			continue
		}
		words = append(words, word{text: folded[start:i], gap: folded[end:start]})
		start, end = -1, i
	}
	if start >= 0 {
		words = append(words, word{text: folded[start:], gap: folded[end:start]})
	}
	return words
}
