package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"

	"till/flow"
)

// The bounds of a document, beside the bytes of its body.
const maxDepth = 16

// kind is what a JSON value is.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// value is one JSON value. A number stays as it was written: what it is worth
// depends on the field, and 5000.0 must not become 5000 on the way.
type value struct {
	kind    kind
	raw     string // number
	text    string // string, unescaped
	yes     bool   // bool
	items   []value
	members []member
}

// member is one name and its value.
type member struct {
	name  string
	value value
}

// find returns the member with this exact name.
func (v value) find(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// syntaxError says where a document stops being JSON that we accept.
type syntaxError struct {
	field  string // the path of names down to it, "" at the top
	offset int
	why    string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%s (at byte %d)", e.why, e.offset) }

// reader reads one document. encoding/json cannot be used: it takes the last of
// two equal names, any case of a name, null for 0, and mends broken UTF-8, and
// each of these lets two readers of one body see two amounts.
type reader struct {
	in   string
	at   int
	path []string
	held *heldBack // the first of what is not taken, nil for nothing
}

// heldBack is something that no body may hold: what, and where it stands.
type heldBack struct {
	what  string // as flow.Held names it
	where string
}

// parse reads a whole document; nothing but white space may follow it.
func parse(in string) (v value, held *heldBack, err error) {
	if at := invalidUTF8(in); at >= 0 {
		return value{}, nil, &syntaxError{field: fieldAt(in, at), offset: at, why: "the body is not valid UTF-8"}
	}
	p := &reader{in: in}
	if strings.HasPrefix(in, "\ufeff") {
		return value{}, nil, p.fail("a byte order mark stands in front: save the file as UTF-8 without one")
	}
	p.space()
	if v, err = p.value(1); err != nil {
		return value{}, nil, err
	}
	p.space()
	if p.at < len(p.in) {
		return value{}, nil, p.fail("something follows the end of the JSON document")
	}
	return v, p.held, nil
}

// invalidUTF8 is where a text stops being UTF-8, -1 where it never does.
func invalidUTF8(in string) int {
	if utf8.ValidString(in) {
		return -1
	}
	for at, r := range in {
		if r == utf8.RuneError && !strings.HasPrefix(in[at:], string(utf8.RuneError)) {
			return at
		}
	}
	return -1
}

// fieldAt is the path of names down to a byte of a document, as far as the
// document can be read up to there.
func fieldAt(in string, at int) string {
	p := &reader{in: in[:at]}
	p.space()
	if _, err := p.value(1); err != nil {
		if stop, ok := errors.AsType[*syntaxError](err); ok && stop.offset == at {
			return stop.field
		}
	}
	return ""
}

func (p *reader) fail(why string) error {
	return &syntaxError{field: strings.Join(p.path, "."), offset: p.at, why: why}
}

func (p *reader) space() {
	for p.at < len(p.in) && strings.IndexByte(" \t\r\n", p.in[p.at]) >= 0 {
		p.at++
	}
}

// peek is the next byte, 0 at the end; a literal 0 is refused wherever it is met.
func (p *reader) peek() byte {
	if p.at >= len(p.in) {
		return 0
	}
	return p.in[p.at]
}

func (p *reader) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, p.fail("the document is nested more than " + strconv.Itoa(maxDepth) + " levels deep")
	}
	switch c := p.peek(); {
	case c == '{':
		return p.object(depth)
	case c == '[':
		return p.array(depth)
	case c == '"':
		text, err := p.str()
		p.mark(text)
		return value{kind: kindString, text: text}, err
	case c == '-' || isDigit(c):
		raw, err := p.number()
		p.mark(raw)
		return value{kind: kindNumber, raw: raw}, err
	}
	for word, v := range map[string]value{"true": {kind: kindBool, yes: true}, "false": {kind: kindBool}, "null": {kind: kindNull}} {
		if strings.HasPrefix(p.in[p.at:], word) {
			p.at += len(word)
			return v, nil
		}
	}
	if p.at >= len(p.in) {
		return value{}, p.fail("the document ends too early")
	}
	return value{}, p.fail("this is not a JSON value")
}

func (p *reader) object(depth int) (value, error) {
	out := value{kind: kindObject}
	seen := map[string]bool{}
	p.at++
	p.space()
	if p.peek() == '}' {
		p.at++
		return out, nil
	}
	for {
		if p.peek() != '"' {
			return value{}, p.fail("a name in double quotes is missing")
		}
		name, err := p.str()
		if err != nil {
			return value{}, err
		}
		p.mark(name)
		p.path = append(p.path, safeName(name))
		if seen[name] {
			return value{}, p.fail("a name is given twice")
		}
		seen[name] = true
		p.space()
		if p.peek() != ':' {
			return value{}, p.fail("a colon is missing")
		}
		p.at++
		p.space()
		v, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		out.members = append(out.members, member{name, v})
		more, err := p.more('}')
		if err != nil {
			return value{}, err
		}
		p.path = p.path[:len(p.path)-1]
		if !more {
			return out, nil
		}
	}
}

func (p *reader) array(depth int) (value, error) {
	out := value{kind: kindArray}
	p.at++
	p.space()
	if p.peek() == ']' {
		p.at++
		return out, nil
	}
	for {
		v, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		out.items = append(out.items, v)
		more, err := p.more(']')
		if err != nil || !more {
			return out, err
		}
	}
}

// more says whether another element follows, and moves to it.
func (p *reader) more(end byte) (bool, error) {
	p.space()
	switch p.peek() {
	case ',':
		p.at++
		p.space()
		return true, nil
	case end:
		p.at++
		return false, nil
	}
	return false, p.fail("a comma or the closing " + string(rune(end)) + " is missing")
}

// number reads a number by the grammar of RFC 8259 and keeps it as written.
func (p *reader) number() (string, error) {
	start := p.at
	if p.peek() == '-' {
		p.at++
	}
	switch {
	case p.peek() == '0':
		p.at++
		if isDigit(p.peek()) {
			return "", p.fail("a number begins with 0; digits with leading zeros are a string, in quotes")
		}
	case !p.digits():
		return "", p.fail("this is not a JSON number")
	}
	if p.peek() == '.' {
		p.at++
		if !p.digits() {
			return "", p.fail("this is not a JSON number")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		if !p.digits() {
			return "", p.fail("this is not a JSON number")
		}
	}
	return p.in[start:p.at], nil
}

// digits moves over one digit or more.
func (p *reader) digits() bool {
	start := p.at
	for isDigit(p.peek()) {
		p.at++
	}
	return p.at > start
}

// abroad says whether a text is a telephone number with its country, in a field for
// one: it may have all that the number of a card has.
func abroad(name, text string) bool {
	if !strings.HasPrefix(text, "+") || name != "customerPhone" && name != "contactPhone" && name != "phone" {
		return false
	}
	number, valid := readPhone(text, phonenumbers.IsValidNumber)
	return valid && len(number) <= maxE164
}

// maxE164 is how many digits a number has at most, its country's included (E.164
// §6.2.1): German ones of more are allowed for, and have room for a card's.
const maxE164 = 15

// mark remembers where the first of what is not taken stands; the document is read
// to its end all the same, so that a broken one is called broken.
func (p *reader) mark(text string) {
	if p.held != nil {
		return
	}
	name := ""
	if len(p.path) > 0 {
		name = p.path[len(p.path)-1]
	}
	if len(p.path) == 1 && abroad(name, text) {
		return
	}
	if what := flow.Held(name, text); what != "" {
		p.held = &heldBack{what: what, where: strings.Join(p.path, ".")}
	}
}
