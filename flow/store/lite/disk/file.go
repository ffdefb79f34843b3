package disk

import "slices"

// chunk is how much of a file is allocated at once, and copied at once when it is
// written to.
const chunk = 16 << 10

// file is what is kept under a name.
type file struct {
	size     int64
	parts    []part // beyond size they hold zeros
	unsynced []change
	bytes    []byte // of the changes
	locks
}

// part is a chunk of a file. A file and its copies have it together until one of them
// writes there.
type part struct {
	bytes  []byte
	shared bool
}

// change is what was done to a file and may be lost. What stood at the place before is
// among the bytes of the file; what was written stands there itself.
type change struct {
	at, long int64 // where it was written, and how much
	old, end int   // where the bytes begin that stood there, and where they end
	was, is  int64 // the size of the file
}

// read reads from at on, as far as the file goes.
func (f *file) read(p []byte, at int64) int {
	n := 0
	for n < len(p) && at < f.size {
		from := f.parts[at/chunk].bytes[at%chunk:]
		from = from[:min(int64(len(from)), f.size-at)]
		here := copy(p[n:], from)
		n, at = n+here, at+int64(here)
	}
	return n
}

// write writes at a place.
func (f *file) write(p []byte, at int64) {
	f.note(at, int64(len(p)), min(f.size-at, int64(len(p))), max(f.size, at+int64(len(p))))
	f.put(p, at)
}

// truncate makes the file as long as said.
func (f *file) truncate(size int64) {
	f.note(size, 0, f.size-size, size)
	f.resize(size)
}

// note remembers until it is synced that so much will be written, over so much that
// stands there.
func (f *file) note(at, long, over, is int64) {
	c := change{at: at, long: long, old: len(f.bytes), was: f.size, is: is}
	if over > 0 {
		f.bytes = slices.Grow(f.bytes, int(over))[:c.old+int(over)]
		f.read(f.bytes[c.old:], at)
	}
	c.end = len(f.bytes)
	f.unsynced = append(f.unsynced, c)
}

// sync keeps what was done so far for good.
func (f *file) sync() { f.unsynced, f.bytes = f.unsynced[:0], f.bytes[:0] }

func (f *file) put(p []byte, at int64) {
	f.resize(max(f.size, at+int64(len(p))))
	for len(p) > 0 {
		n := copy(f.own(at)[at%chunk:], p)
		p, at = p[n:], at+int64(n)
	}
}

// own is the chunk that a place is in, to be written to.
func (f *file) own(at int64) []byte {
	p := &f.parts[at/chunk]
	if p.shared {
		p.bytes, p.shared = slices.Clone(p.bytes), false
	}
	return p.bytes
}

// resize ends the file at a size; what is allocated beyond it holds zeros again.
func (f *file) resize(size int64) {
	need := int((size + chunk - 1) / chunk)
	if need < len(f.parts) {
		f.parts = slices.Delete(f.parts, need, len(f.parts))
	}
	if size < f.size && size%chunk > 0 {
		clear(f.own(size)[size%chunk:])
	}
	for len(f.parts) < need {
		f.parts = append(f.parts, part{bytes: make([]byte, chunk)})
	}
	f.size = size
}

// found is a copy of the file as it is found later: without what was not synced, but
// for what is kept of that.
func (f *file) found(kept func() bool) *file {
	for i := range f.parts {
		f.parts[i].shared = true
	}
	out := &file{size: f.size, parts: slices.Clone(f.parts)}
	if kept == nil { // the system has it, and it is on no disk yet
		out.unsynced, out.bytes = slices.Clone(f.unsynced), slices.Clone(f.bytes)
		return out
	}
	wrote := make([][]byte, len(f.unsynced))
	for i, c := range slices.Backward(f.unsynced) {
		wrote[i] = make([]byte, c.long)
		out.read(wrote[i], c.at)
		out.put(f.bytes[c.old:c.end], c.at)
		out.resize(c.was)
	}
	for i, c := range f.unsynced {
		if !kept() {
			continue
		}
		if c.is < c.was {
			out.resize(min(c.is, out.size))
			continue
		}
		out.put(wrote[i], c.at)
		out.resize(max(c.is, out.size))
	}
	return out
}
