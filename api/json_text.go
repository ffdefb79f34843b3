package api

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string from its opening quote to its closing one.
func (p *reader) str() (string, error) {
	p.at++
	start := p.at
	for p.at < len(p.in) { // most strings hold no escape: no copy
		switch c := p.in[p.at]; {
		case c == '"':
			p.at++
			return p.in[start : p.at-1], nil
		case c == '\\':
			return p.escaped(start)
		case c < ' ':
			return "", p.fail("a control character stands in a string")
		}
		p.at++
	}
	return "", p.fail("a string is not closed")
}

func (p *reader) escaped(start int) (string, error) {
	var b strings.Builder
	b.WriteString(p.in[start:p.at])
	for p.at < len(p.in) {
		c := p.in[p.at]
		switch {
		case c == '"':
			p.at++
			return b.String(), nil
		case c < ' ':
			return "", p.fail("a control character stands in a string")
		case c != '\\':
			b.WriteByte(c)
			p.at++
			continue
		}
		p.at++
		if i := strings.IndexByte(`"\/bfnrt`, p.peek()); i >= 0 && p.peek() != 0 {
			b.WriteByte("\"\\/\b\f\n\r\t"[i])
			p.at++
			continue
		}
		r, err := p.unicode()
		if err != nil {
			return "", err
		}
		b.WriteRune(r)
	}
	return "", p.fail("a string is not closed")
}

// unicode reads uXXXX, and a second one where the first is half of a pair.
func (p *reader) unicode() (rune, error) {
	first, ok := p.hex()
	if !ok {
		return 0, p.fail("this is not an escape that JSON has")
	}
	if first == 0 {
		return 0, p.fail("a string holds the character NUL")
	}
	if !utf16.IsSurrogate(first) {
		return first, nil
	}
	if p.peek() != '\\' {
		return 0, p.fail("a string holds half of a surrogate pair")
	}
	p.at++
	second, ok := p.hex()
	whole := utf16.DecodeRune(first, second)
	if !ok || whole == utf8.RuneError {
		return 0, p.fail("a string holds half of a surrogate pair")
	}
	return whole, nil
}

func (p *reader) hex() (rune, bool) {
	const size = 5 // u and four digits
	if len(p.in)-p.at < size || p.in[p.at] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(p.in[p.at+1:p.at+size], 16, 16)
	if err != nil {
		return 0, false
	}
	p.at += size
	return rune(n), true
}
