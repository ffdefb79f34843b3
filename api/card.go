package api

import (
	"strings"
	"unicode/utf8"

	"till/flow"
)

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// safeName is a name that came from outside, as an answer may repeat it: short,
// never a card number or a key, and nothing in it that moves the words around it about.
func safeName(name string) string {
	const most = 64
	if flow.HoldsCard(name) || flow.HoldsKey(name) {
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
