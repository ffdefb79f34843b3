package api

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"till/flow"
)

// maxFieldErrors bounds how many faults one answer lists.
const maxFieldErrors = 50

// form is the body of a request being read. Each getter takes one field out and
// notes what is wrong with it; done refuses with everything that was noted, and
// with every field that nobody took.
type form struct {
	refused error // the body as a whole: it cannot be read, and done says why
	value   value
	known   []string // names that were asked for
	needed  []string // names that may not be left out, whatever they are read as
	faults  []flow.FieldError
}

// decode reads a body. An empty one is a form without fields where that is
// allowed. Pass chat for what a pretend phone writes: there a card number is
// the very thing to be tried out, and the bot's to mask.
func decode(contentType string, body []byte, rules decodeRules) (*form, error) {
	if len(body) == 0 {
		if rules.optional {
			return &form{}, nil
		}
		if contentType == "" || isJSON(contentType) {
			return nil, flow.Refuse(flow.CodeMalformedJSON, "The body is empty. Send a JSON object.")
		}
	}
	if !isJSON(contentType) {
		return nil, flow.Refuse(flow.CodeMediaType, "Send the body as Content-Type: application/json.")
	}
	v, held, err := parse(string(body))
	if err != nil {
		return nil, malformed(err)
	}
	if held != nil && !rules.chat {
		return nil, held.refused()
	}
	if v.kind != kindObject {
		return nil, flow.Refuse(flow.CodeMalformedJSON, "The body must be a JSON object.")
	}
	return &form{value: v}, nil
}

// refused is the refusal of a body that holds what is not taken. It repeats nothing
// of it.
func (h heldBack) refused() error {
	refused, field := flow.Refuse(flow.CodeCardData, "Card numbers are not accepted here. Use pay/card: the payer types the card on the bank's own page."), "This looks like a card number."
	switch h.what {
	case flow.HeldKey:
		refused, field = flow.Refuse(flow.CodeInvalidField, "A secret key or a webhook's secret stands in the body. Send keys in the Authorization header alone; if this one was seen by others, rotate it."), "This looks like a secret of yours."
	case flow.HeldIdentity:
		refused, field = flow.Refuse(flow.CodeInvalidField, "A BVN or NIN stands in the body, and would be kept. Send it as number to /v1/verification/identities, which keeps none."), "This looks like a BVN or NIN."
	}
	if h.where != "" {
		refused.Fields = []flow.FieldError{{Field: h.where, Code: refused.Code, Message: field}}
	}
	return refused
}

// decodeRules says what a body may be.
type decodeRules struct {
	optional bool // no body is a body without fields
	chat     bool // card numbers and the like pass: they are masked further in
}

// isJSON says whether a Content-Type is application/json, in UTF-8.
func isJSON(contentType string) bool {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "application/json" {
		return false
	}
	for name, v := range params {
		if name != "charset" || !strings.EqualFold(v, "utf-8") {
			return false
		}
	}
	return true
}

// malformed is the refusal of a document that cannot be read.
func malformed(err error) error {
	refused := flow.Refuse(flow.CodeMalformedJSON, "The body is not JSON that can be read in one way only: %s.", err)
	if at, ok := errors.AsType[*syntaxError](err); ok && at.field != "" {
		refused.Fields = []flow.FieldError{{Field: at.field, Code: flow.CodeMalformedJSON, Message: "Reading stopped here: " + at.why + "."}}
	}
	return refused
}

// has says whether a field is there, without taking it.
func (f *form) has(name string) bool {
	_, there := f.value.find(name)
	return there
}

// take is a field's value; false where it is missing, or null, which is a fault.
func (f *form) take(name string, required bool) (value, bool) {
	f.known = append(f.known, name)
	v, there := f.value.find(name)
	required = required || slices.Contains(f.needed, name)
	switch {
	case !there && required:
		f.fail(name, flow.CodeMissingField, "%s is required.", name)
	case there && v.kind == kindNull:
		say := "%s is null. Leave it out instead."
		if required {
			say = "%s is null, and is required."
		}
		f.fail(name, flow.CodeInvalidField, say, name)
		return value{}, false
	}
	return v, there
}

// cleared says whether a field is null, and takes it then: for calls that change
// something, where null takes away what is there.
func (f *form) cleared(name string) bool {
	v, there := f.value.find(name)
	if there = there && v.kind == kindNull; there {
		f.known = append(f.known, name)
	}
	return there
}

// fail notes a fault.
func (f *form) fail(name string, code flow.Code, format string, args ...any) {
	if len(f.faults) < maxFieldErrors {
		f.faults = append(f.faults, flow.FieldError{Field: name, Code: code, Message: fmt.Sprintf(format, args...)})
	}
}

// done refuses everything that was wrong, all of it at once.
func (f *form) done() error {
	if f.refused != nil {
		return f.refused
	}
	for _, m := range f.value.members {
		if !slices.Contains(f.known, m.name) {
			name := safeName(m.name)
			f.fail(name, flow.CodeUnknownField, "%s is not a field of this request.%s", name, f.meant(m.name))
		}
	}
	if len(f.faults) == 0 {
		return nil
	}
	refused := flow.Refuse(f.faults[0].Code, "%s", f.faults[0].Message)
	refused.Fields = f.faults
	if len(f.faults) > 1 {
		names := make([]string, 0, len(f.faults))
		for _, fault := range f.faults {
			if !slices.Contains(names, fault.Field) {
				names = append(names, fault.Field)
			}
		}
		refused.Message = fmt.Sprintf("%s There is more: see fields (%s).", f.faults[0].Message, strings.Join(names, ", "))
	}
	return refused
}

// meant is a hint at the name that was probably meant.
func (f *form) meant(name string) string {
	plain := func(s string) string {
		s = strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r == ' ' {
				return -1
			}
			return r
		}, strings.ToLower(s))
		return strings.TrimSuffix(s, "minor") // so answers call what is sent as amount
	}
	for _, known := range f.known {
		if plain(known) == plain(name) {
			return " Did you mean " + known + "?"
		}
	}
	return ""
}

// text is what a string field must be.
type text struct {
	required  bool
	least     int // characters
	most      int
	multiline bool // line breaks and tabs are allowed
	said      bool // something of it can be seen: spaces name nobody, and are anybody's password
	code      flow.Code
}

// text takes a string field, "" where it is missing or wrong.
func (f *form) text(name string, rule text) string {
	v, there := f.take(name, rule.required)
	if !there {
		return ""
	}
	code := cmp.Or(rule.code, flow.CodeInvalidField)
	if v.kind != kindString {
		f.fail(name, code, "%s must be a string.", name)
		return ""
	}
	if why := rule.judge(v.text); why != "" {
		f.fail(name, code, "%s %s.", name, why)
		return ""
	}
	return v.text
}

// judge says what is wrong with a string, "" where nothing is.
func (t text) judge(s string) string {
	n := utf8.RuneCountInString(s)
	switch {
	case !utf8.ValidString(s): // only a query can hold it: a body was judged whole
		return "must be valid UTF-8"
	case n == 0 && t.least <= 1:
		return "must not be empty"
	case n < t.least:
		return fmt.Sprintf("must have at least %d characters", t.least)
	case n > t.most:
		return fmt.Sprintf("must have at most %d characters", t.most)
	case strings.ContainsFunc(s, t.control):
		return "must not hold control characters"
	case t.said && flow.Says(s) == 0:
		return "must hold something that can be seen"
	}
	return ""
}

// control says whether a character may not stand in a text: controls, and the
// marks that turn the direction of what is read after them.
func (t text) control(r rune) bool {
	switch {
	case t.multiline && (r == '\n' || r == '\r' || r == '\t'):
		return false
	case r < ' ', r >= 0x7f && r <= 0x9f, r == 0x2028, r == 0x2029:
		return true
	}
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// whole takes an integer field between two bounds, missing where it is missing.
func (f *form) whole(name string, least, most, missing int64) int64 {
	v, there := f.take(name, false)
	if !there {
		return missing
	}
	n, err := strconv.ParseInt(v.raw, 10, 64)
	if v.kind != kindNumber || err != nil || v.raw == "-0" || n < least || n > most {
		f.fail(name, flow.CodeInvalidField, "%s must be an integer from %d to %d.", name, least, most)
		return missing
	}
	return n
}

// yes takes a boolean field.
func (f *form) yes(name string, missing bool) bool {
	v, there := f.take(name, false)
	if !there {
		return missing
	}
	if v.kind != kindBool {
		f.fail(name, flow.CodeInvalidField, "%s must be true or false.", name)
		return missing
	}
	return v.yes
}

// oneOf takes a string field with few values; the first of them stands for a
// missing one.
func (f *form) oneOf(name string, code flow.Code, values ...string) string {
	v, there := f.take(name, false)
	if !there {
		return values[0]
	}
	if v.kind != kindString || !slices.Contains(values, v.text) {
		f.fail(name, code, "%s must be one of: %s.", name, strings.Join(values, ", "))
		return values[0]
	}
	return v.text
}

// leftOut is what to do for the default of a list.
const leftOut = "Leave it out for the default."

// some takes a non-empty list of different strings out of few; nil where it is
// missing. What is none is told what to do instead.
func (f *form) some(name string, values []string, or string) []string {
	v, there := f.take(name, false)
	if !there {
		return nil
	}
	var out []string
	for _, item := range v.items {
		if item.kind != kindString || !slices.Contains(values, item.text) || slices.Contains(out, item.text) {
			out = nil
			break
		}
		out = append(out, item.text)
	}
	if len(out) == 0 {
		f.fail(name, flow.CodeInvalidField, "%s must be a list of one or more, each once, of: %s. %s", name, strings.Join(values, ", "), or)
	}
	return out
}
