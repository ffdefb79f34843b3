package flow

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReplaceAddress puts something else in the place of an e-mail address, and says how
// often. Where it is a part of a longer one it stays: that is somebody else's.
func ReplaceAddress(text, address, by string) (string, int) {
	var out strings.Builder
	n := 0
	for rest, before := text, rune(0); ; {
		i := strings.Index(rest, address)
		if i < 0 || address == "" {
			out.WriteString(rest)
			return out.String(), n
		}
		if i > 0 {
			before, _ = utf8.DecodeLastRuneInString(rest[:i])
		}
		out.WriteString(rest[:i])
		behind := strings.TrimLeft(rest[i+len(address):], ".-")
		after, _ := utf8.DecodeRuneInString(behind)
		if ofAddress(before) || strings.ContainsRune("._+-", before) || ofAddress(after) {
			out.WriteString(address)
		} else {
			out.WriteString(by)
			n++
		}
		rest = rest[i+len(address):]
		before, _ = utf8.DecodeLastRuneInString(address)
	}
}

func ofAddress(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
