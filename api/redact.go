package api

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	"till/flow"
)

// What stands in the place of what is taken out of a body.
const redacted = `"[redacted]"`

// secretNames are the members of bodies whose values are never kept, in lower
// case.
var secretNames = map[string]bool{
	"password": true, "secret": true, "clientsecret": true, "token": true, "key": true, "bvn": true, "nin": true,
	"cardnumber": true, "pan": true, "cvv": true, "cvc": true, "pin": true, "otp": true, "authorization": true,
}

// The lengths of the names of secrets, in bytes.
const (
	shortestName = 3
	longestName  = 13
)

// longDigits is from how many digits on a number is one of a person or a card:
// BVN and NIN have eleven, cards thirteen and more, phones of Nigeria eleven and
// more. Account numbers have ten: they stay, for what goes wrong is seen by them.
const longDigits = 11

// scratch are buffers of redact.
var scratch = sync.Pool{New: func() any { b := make([]byte, 0, keptBody+len(redacted)); return &b }}

// redact is a copy of the beginning of a body without what is secret in it; cut
// says that there was more. It reads no further than it keeps.
func redact(body []byte) (kept []byte, cut bool) {
	if len(body) == 0 {
		return nil, false
	}
	buffer := scratch.Get().(*[]byte) //nolint:errcheck // nothing else is in the pool
	out := (*buffer)[:0]
	for rest := body; len(rest) > 0; {
		var piece []byte
		if rest[0] == '"' {
			piece, rest = stretch(rest)
		} else if end := bytes.IndexByte(rest, '"'); end >= 0 {
			piece, rest = rest[:end], rest[end:]
		} else {
			piece, rest = rest, nil
		}
		if shows(piece) {
			piece = []byte(redacted)
		}
		if len(out)+len(piece) > keptBody {
			out, cut = append(out, piece[:keptBody-len(out)]...), true
			break
		}
		out = append(out, piece...)
	}
	out = maskDigits(maskTokens(out))
	if cut { // a number that was cut may have been a long one
		out = bytes.TrimRight(out, "0123456789 -")
	}
	kept = bytes.Clone(out)
	*buffer = out
	scratch.Put(buffer)
	return kept, cut
}

// stretch takes a JSON string that begins a text, and what belongs to it: where it
// is the name of a secret, the value too, which is left out of what is kept.
func stretch(text []byte) (kept, rest []byte) {
	n := stringEnd(text)
	name, rest := text[:n], text[n:]
	value := behindBlanks(rest)
	secret := len(value) > 0 && value[0] == ':' && isSecret(name)
	if !secret && hidesDigits(name) {
		return []byte(redacted), rest
	}
	if !secret {
		return name, rest
	}
	value = behindBlanks(value[1:])
	end := valueEnd(value)
	return append(bytes.Clone(name), ":"+redacted...), value[end:]
}

// behindBlanks is a text without the blanks that it begins with.
func behindBlanks(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\r' || text[0] == '\n') {
		text = text[1:]
	}
	return text
}

// stringEnd is where a JSON string ends that begins a text.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		if text[i] == '"' {
			return i + 1
		}
		if text[i] == '\\' {
			i++
		}
	}
	return len(text)
}

// valueEnd is where a JSON value ends that begins a text: a string, a number or
// word, or everything between its brackets.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += stringEnd(text[i:]) - 1
			if depth == 0 {
				return min(i+1, len(text))
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// isSecret says whether a JSON string names a secret, however it is written.
func isSecret(name []byte) bool {
	if bytes.IndexByte(name, '\\') < 0 {
		var lower [longestName]byte
		inner := name[1:max(1, len(name)-1)]
		if len(inner) < shortestName || len(inner) > len(lower) {
			return false
		}
		for i, c := range inner {
			if c >= 'A' && c <= 'Z' {
				c += 'a' - 'A'
			}
			lower[i] = c
		}
		return secretNames[string(lower[:len(inner)])]
	}
	var plain string
	return json.Unmarshal(name, &plain) != nil || secretNames[strings.ToLower(plain)]
}

// shows says whether a piece of a body holds what is kept nowhere in a way that no
// stars are put over: in digits of another script, with dots between, as a part of a
// word, or behind escapes.
func shows(piece []byte) bool {
	plain, escaped := string(piece), bytes.IndexByte(piece, '\\') >= 0
	if escaped && json.Unmarshal(piece, &plain) != nil {
		plain = string(piece)
	}
	return flow.Held("", plain) != "" && (escaped || flow.Held("", string(maskDigits(maskTokens([]byte(plain))))) != "")
}

// hidesDigits says whether a JSON string writes digits as escapes, which would
// not be seen for what they are.
func hidesDigits(text []byte) bool {
	if bytes.IndexByte(text, '\\') < 0 {
		return false
	}
	for {
		i := bytes.Index(text, []byte(`\u003`))
		if i < 0 || i+5 >= len(text) {
			return false
		}
		if c := text[i+5]; c >= '0' && c <= '9' {
			return true
		}
		text = text[i+5:]
	}
}

// maskDigits puts stars in the place of every long number, in place. The digits of
// one may stand apart by one blank or hyphen.
func maskDigits(text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < '0' || c > '9' {
			continue
		}
		begin, n, last := i, 0, i
		for ; i < len(text); i++ {
			if isDigit(text[i]) {
				n, last = n+1, i
			} else if text[i] != ' ' && text[i] != '-' || i-last > 1 {
				break
			}
		}
		apart := (begin == 0 || !letter(text[begin-1])) && (last+1 == len(text) || !letter(text[last+1])) // else it is a part of an id
		if n >= longDigits && apart {
			for j := begin; j <= last; j++ {
				if isDigit(text[j]) {
					text[j] = '*'
				}
			}
		}
		i = last
	}
	return text
}

// maskTokens puts stars in the place of everything that is a secret by how it
// begins, in place.
func maskTokens(text []byte) []byte {
	for _, prefix := range [][]byte{[]byte("sk_test_"), []byte("sk_live_"), []byte("whsec_"), []byte("dash_")} {
		for rest := text; ; {
			i := bytes.Index(rest, prefix)
			if i < 0 {
				break
			}
			rest = rest[i+len(prefix):]
			for len(rest) > 0 && (letter(rest[0]) || isDigit(rest[0]) || strings.IndexByte("+/=_-", rest[0]) >= 0) {
				rest[0], rest = '*', rest[1:]
			}
		}
	}
	return text
}

// maskTarget is a path and its query with stars in the place of every long number,
// also of one that is written with escapes, as %2B for the plus before it: then
// all of it is shown without them. Of one that shows what is kept nowhere all the same,
// the route is shown.
func maskTarget(target []byte, route string) string {
	masked := maskedTarget(target)
	plain, err := url.QueryUnescape(masked)
	if err != nil {
		plain = masked
	}
	if flow.Held("", plain) != "" {
		return route + "?****"
	}
	return masked
}

func maskedTarget(target []byte) string {
	text := bytes.Clone(target)
	if i := bytes.LastIndexByte(text, '%'); i >= 0 && len(text)-i < len("%2B") { // it was cut there
		text = text[:i]
	}
	if plain, err := url.PathUnescape(string(text)); err == nil && plain != string(text) {
		if masked := string(maskDigits([]byte(plain))); masked != plain {
			return strings.ReplaceAll(masked, " ", "+")
		}
	}
	return string(maskDigits(text))
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
