package flow

import (
	"strings"
	"unicode"
)

// Unseen says of a character that nobody sees it, and that it changes what is
// seen: controls, and the marks that turn round what stands behind them, break a
// line or hide. New lines and tabs are seen; what joins letters or pictures into
// one does no harm.
func Unseen(r rune) bool {
	const zeroWidthSpace, wordJoiner, byteOrderMark = 0x200b, 0x2060, 0xfeff
	switch {
	case r == '\n' || r == '\r' || r == '\t':
		return false
	case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), unicode.In(r, unicode.Zl, unicode.Zp):
		return true
	}
	return r == zeroWidthSpace || r == wordJoiner || r == byteOrderMark
}

// OneLine is a text on one line, without what nobody sees and what is no text.
func OneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if Unseen(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// Says counts the characters of a text that somebody reads.
func Says(s string) int {
	n := 0
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.M, r) {
			n++
		}
	}
	return n
}
