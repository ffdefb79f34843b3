package sim

import (
	"regexp"
)

// ids are what the service names its things by: a prefix and 26 characters. The
// network's message ids, phones and account numbers are named when they are met.
var ids = regexp.MustCompile(`[a-z]+(?:_[a-z]+)*_[0-9a-z]{26}\b`)

// name calls something by a canonical name from now on. The first name stays.
func (w *world) name(id, canonical string) {
	if id == "" {
		return
	}
	if _, known := w.names[id]; !known {
		w.names[id] = canonical
	}
}

// canonical is a text in which every id is what the trace calls it: which random
// numbers an id is made of, and which of two goroutines drew first, must not
// matter.
func (w *world) canonical(text string) string {
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if name, known := w.names[id]; known {
			return name
		}
		return id[:len(id)-26] + "…"
	})
}

// called is the canonical name of an id, or its prefix.
func (w *world) called(id string) string {
	if name, known := w.names[id]; known {
		return name
	}
	return w.canonical(id)
}
