package sim

import (
	"strings"
	"sync"
)

// What the service and the bank name things by: a prefix and 26 characters, or 32 digits
// of the bank's. The network's message ids, phones and account numbers are named when
// they are met.
const (
	idTail   = 26
	bankID   = "ttb"
	bankTail = 32
)

// nextID is where the first id of a text begins and ends; an end of 0 where there is none.
func nextID(text string) (begin, end int) {
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], '_')
		if next < 0 {
			return 0, 0
		}
		at += next
		tail := text[at+1:]
		switch {
		case at == 0 || !small(text[at-1]):
		case run(tail, idTail, smallOrDigit) && (len(tail) == idTail || !inWord(tail[idTail])):
			for begin = at - 1; begin > 0 && (small(text[begin-1]) || text[begin-1] == '_' && begin > 1 && small(text[begin-2])); begin-- {
			}
			return begin, at + 1 + idTail
		case strings.HasSuffix(text[:at], bankID) && run(tail, bankTail, hexDigit):
			return at - len(bankID), at + 1 + bankTail
		}
	}
}

// run says whether a text begins with so many characters of a kind.
func run(text string, n int, is func(byte) bool) bool {
	if len(text) < n {
		return false
	}
	for i := range n {
		if !is(text[i]) {
			return false
		}
	}
	return true
}

func small(c byte) bool        { return 'a' <= c && c <= 'z' }
func digit(c byte) bool        { return '0' <= c && c <= '9' }
func smallOrDigit(c byte) bool { return small(c) || digit(c) }
func hexDigit(c byte) bool     { return digit(c) || 'a' <= c && c <= 'f' }
func inWord(c byte) bool       { return smallOrDigit(c) || 'A' <= c && c <= 'Z' || c == '_' }

// naming is what the trace calls things.
type naming struct {
	mu    sync.Mutex
	names map[string]string
}

// name calls something by a canonical name from now on. The first name stays.
func (w *world) name(id, canonical string) {
	if id == "" {
		return
	}
	w.naming.mu.Lock()
	defer w.naming.mu.Unlock()
	if _, known := w.naming.names[id]; !known {
		w.naming.names[id] = canonical
	}
}

// canonical is a text in which every id is what the trace calls it: which random
// numbers an id is made of, and which of two goroutines drew first, must not
// matter.
func (w *world) canonical(text string) string {
	begin, end := nextID(text)
	if end == 0 {
		return text
	}
	w.naming.mu.Lock()
	defer w.naming.mu.Unlock()
	var out strings.Builder
	for ; end > 0; begin, end = nextID(text) {
		id := text[begin:end]
		name, known := w.naming.names[id]
		if !known {
			name = id[:strings.LastIndexByte(id, '_')+1] + "…"
		}
		_, _ = out.WriteString(text[:begin]) // a builder never fails to be written to
		_, _ = out.WriteString(name)
		text = text[end:]
	}
	return out.String() + text
}

// called is the canonical name of an id, or its prefix.
func (w *world) called(id string) string {
	w.naming.mu.Lock()
	name, known := w.naming.names[id]
	w.naming.mu.Unlock()
	if known {
		return name
	}
	return w.canonical(id)
}
