package flow

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsAddress says whether a text is an e-mail address, which may stand in a longer one
// that is somebody else's.
func IsAddress(text string) bool { return strings.Contains(text, "@") }

// Address is an e-mail address, folded by FoldEmail; it hides most of itself when it
// is printed.
type Address string

// String shows the first letter and the host.
func (a Address) String() string {
	first, host, _ := strings.Cut(string(a), "@")
	_, size := utf8.DecodeRuneInString(first)
	return first[:size] + "•••@" + host
}

// GoString hides the address in %#v too.
func (a Address) GoString() string { return a.String() }

// Replace puts something else in the place of what a text holds, and says how often:
// of an e-mail address as ReplaceAddress does.
func Replace(text, what, by string) (string, int) {
	if IsAddress(what) {
		return ReplaceAddress(text, what, by)
	}
	return strings.ReplaceAll(text, what, by), strings.Count(text, what)
}

// ReplaceAddress puts something else in the place of an e-mail address, in a text or
// in JSON and in whatever case, and says how often. Where it is a part of a longer one
// it stays: that is somebody else's.
func ReplaceAddress(text, address, by string) (string, int) {
	if address == "" {
		return text, 0
	}
	folded := foldLetters(text)
	address = foldLetters(address)
	var out strings.Builder
	n, from := 0, 0
	for {
		i := strings.Index(folded[from:], address)
		if i < 0 {
			out.WriteString(text[from:])
			return out.String(), n
		}
		out.WriteString(text[from : from+i])
		at, end := from+i, from+i+len(address)
		if endsInAddress(text[:at]) || beginsInAddress(text[end:]) {
			out.WriteString(text[at:end])
		} else {
			out.WriteString(by)
			n++
		}
		from = end
	}
}

// foldLetters is a text with small letters in the place of those of ASCII, byte by
// byte: addresses have no others.
func foldLetters(text string) string {
	folded := []byte(text)
	for i, c := range folded {
		if c >= 'A' && c <= 'Z' {
			folded[i] = c + 'a' - 'A'
		}
	}
	return string(folded)
}

// escaped is an escape of JSON at the end of a text (RFC 8259 §7): its last letter is
// none of what follows.
var escaped = regexp.MustCompile(`\\(?:[bfnrt]|u[0-9a-fA-F]{4})$`)

// endsInAddress says whether what follows a text may go on with an address in it.
func endsInAddress(text string) bool {
	last, _ := utf8.DecodeLastRuneInString(text)
	return (ofAddress(last) || strings.ContainsRune("._+-", last)) && !escaped.MatchString(text[max(0, len(text)-len(`\u0000`)):])
}

// beginsInAddress says whether a text goes on with an address before it. A stop may
// end a sentence as well.
func beginsInAddress(text string) bool {
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, ".-"))
	return ofAddress(next)
}

func ofAddress(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
