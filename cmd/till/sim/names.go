package sim

import (
	"regexp"
	"strings"
	"sync"
)

// ids are what the service and the bank name things by: a prefix and 26
// characters, or 32 digits. The network's message ids, phones and account numbers
// are named when they are met.
var ids = regexp.MustCompile(`[a-z]+(?:_[a-z]+)*_[0-9a-z]{26}\b|ttb_[0-9a-f]{32}`)

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
	w.naming.mu.Lock()
	defer w.naming.mu.Unlock()
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if name, known := w.naming.names[id]; known {
			return name
		}
		return id[:strings.LastIndexByte(id, '_')+1] + "…"
	})
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
