package bot

import (
	"regexp"
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
// and shape as ASCII digits, full-width letters as plain ones, letters without
// their marks, one kind of space and one kind of dash, nothing invisible. It is
// never shown or kept.
func fold(text string) string {
	text = heard(text)
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range text {
		b.WriteString(foldRune(r))
	}
	return b.String()
}

// heard is what is looked at of a text.
func heard(text string) string {
	if len(text) > maxHeard {
		text = text[:maxHeard]
	}
	return unescaped(text)
}

// escape is a sign as a link writes it: "%20" for a space, and "%2520" where the link
// stands inside of another one.
var escape = regexp.MustCompile(`%(25)*[0-9A-Fa-f]{2}`)

// unescaped is a text with the signs of a link that was pasted as it is. Letters and
// digits are never written so.
func unescaped(text string) string {
	return escape.ReplaceAllStringFunc(text, func(was string) string {
		sign, err := strconv.ParseUint(was[len(was)-2:], 16, 8)
		if err != nil || sign != '\n' && strings.IndexByte(separators, byte(sign)) < 0 {
			return was
		}
		return string(rune(sign))
	})
}

// foldRune is a sign as it is compared, "" for what is invisible.
func foldRune(r rune) string {
	if d, ok := number(r); ok {
		return strconv.Itoa(d)
	}
	switch {
	case r >= 'Ａ' && r <= 'Ｚ':
		return string(r - 'Ａ' + 'a')
	case r >= 'ａ' && r <= 'ｚ':
		return string(r - 'ａ' + 'a')
	case unicode.IsSpace(r):
		return " "
	case unicode.Is(unicode.Pd, r) || r == '−' || r == '⁃':
		return "-"
	case r == '’' || r == '‘' || r == '`' || r == '´':
		return "'"
	case r == utf8.RuneError, unicode.Is(unicode.C, r), unicode.Is(unicode.M, r):
		return "" // or the marks that make 1️⃣ out of 1
	default:
		return string(plain(unicode.ToLower(r)))
	}
}

// bases are the letters of the five languages that carry marks, and those that
// people put in their place, behind the letter that they are compared as: some
// write the tones and the dots below, most do not.
var bases = func() map[rune]rune {
	all := map[rune]rune{}
	for _, row := range []string{
		"aàáâãäåāăąǎạảấầẩẫậ", "bɓ", "cçćč", "dɗđḍ", "eèéêëēĕėęěẹẻẽếềểễệɛǝ", "gğǵġ", "hḥ", "iìíîïĩīĭįǐıịỉ", "kƙķ", "mḿṃ", "nñńňņǹṅṇŋ",
		"oòóôõöøōŏőǒọỏốồổỗộɔ", "sśšşṣș", "tţťṭ", "uùúûüũūŭůűǔụủ", "yýÿŷƴỳ", "zźżž",
	} {
		letters := []rune(row)
		for _, r := range letters[1:] {
			all[r] = letters[0]
		}
	}
	return all
}()

// plain is a letter without its marks, and out of the alphabets that look like
// bold or slanted print.
func plain(r rune) rune {
	if r < 0x80 {
		return r
	}
	if base, found := bases[r]; found {
		return base
	}
	if r >= '𝐀' && r <= '𝚣' { // thirteen alphabets of 26 capital and 26 small letters
		return 'a' + (r-'𝐀')%26
	}
	return r
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
// change the direction of what stands around them. Lines are kept, and between two
// signs what joins them into one picture or letter, or keeps two letters apart.
func visible(text string) string {
	if len(text) > maxHeard {
		text = text[:maxHeard]
	}
	const nonJoiner, joiner = '\u200c', '\u200d'
	var b strings.Builder
	last, between := ' ', rune(0)
	for _, r := range text {
		switch {
		case r == nonJoiner || r == joiner:
			between = r
			continue
		case r == '\n':
		case unicode.IsSpace(r), unicode.IsControl(r):
			r = ' '
		case r == utf8.RuneError, unicode.Is(unicode.C, r):
			continue
		}
		if between != 0 && !unicode.IsSpace(last) && !unicode.IsSpace(r) {
			b.WriteRune(between)
		}
		b.WriteRune(r)
		last, between = r, 0
	}
	return b.String()
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
	at   int // where it begins
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
		words = append(words, word{text: folded[start:i], gap: folded[end:start], at: start})
		start, end = -1, i
	}
	if start >= 0 {
		words = append(words, word{text: folded[start:], gap: folded[end:start], at: start})
	}
	return words
}
