package disk

import "slices"

// chunk is how much of a file is allocated at once.
const chunk = 64 << 10

// file is what is kept under a name.
type file struct {
	size     int64
	chunks   [][]byte // each of chunk bytes; beyond size they hold zeros
	unsynced []change
	bytes    []byte // of the changes
	locks
}

// change is what was done to a file and may be lost. Its bytes are those of the file:
// what stood at the place, and then what was written there.
type change struct {
	at       int64
	old, end int   // where they begin and where all end
	new      int   // where the new ones begin
	was, is  int64 // the size of the file
}

// read reads from at on, as far as the file goes.
func (f *file) read(p []byte, at int64) int {
	n := 0
	for n < len(p) && at < f.size {
		from := f.chunks[at/chunk][at%chunk:]
		from = from[:min(int64(len(from)), f.size-at)]
		here := copy(p[n:], from)
		n, at = n+here, at+int64(here)
	}
	return n
}

// write writes at a place.
func (f *file) write(p []byte, at int64) {
	f.note(at, min(f.size-at, int64(len(p))), p, max(f.size, at+int64(len(p))))
	f.put(p, at)
}

// truncate makes the file as long as said.
func (f *file) truncate(size int64) {
	f.note(size, f.size-size, nil, size)
	f.resize(size)
}

// note remembers a change until it is synced.
func (f *file) note(at, over int64, p []byte, is int64) {
	c := change{at: at, old: len(f.bytes), was: f.size, is: is}
	if over > 0 {
		f.bytes = slices.Grow(f.bytes, int(over))[:c.old+int(over)]
		f.read(f.bytes[c.old:], at)
	}
	c.new = len(f.bytes)
	f.bytes = append(f.bytes, p...)
	c.end = len(f.bytes)
	f.unsynced = append(f.unsynced, c)
}

// sync keeps what was done so far for good.
func (f *file) sync() { f.unsynced, f.bytes = f.unsynced[:0], f.bytes[:0] }

func (f *file) put(p []byte, at int64) {
	f.resize(max(f.size, at+int64(len(p))))
	for len(p) > 0 {
		n := copy(f.chunks[at/chunk][at%chunk:], p)
		p, at = p[n:], at+int64(n)
	}
}

// resize ends the file at a size; what is allocated beyond it holds zeros again.
func (f *file) resize(size int64) {
	for at := size; at < f.size; at += chunk - at%chunk {
		clear(f.chunks[at/chunk][at%chunk:])
	}
	need := int((size + chunk - 1) / chunk)
	for len(f.chunks) < need {
		f.chunks = append(f.chunks, make([]byte, chunk))
	}
	f.size, f.chunks = size, f.chunks[:need]
}

// found is a copy of the file as it is found later: without what was not synced, but
// for what is kept of that.
func (f *file) found(kept func() bool) *file {
	out := &file{size: f.size, chunks: make([][]byte, len(f.chunks))}
	for i := range f.chunks {
		out.chunks[i] = slices.Clone(f.chunks[i])
	}
	if kept == nil { // the system has it, and it is on no disk yet
		out.unsynced, out.bytes = slices.Clone(f.unsynced), slices.Clone(f.bytes)
		return out
	}
	for _, c := range slices.Backward(f.unsynced) {
		out.put(f.bytes[c.old:c.new], c.at)
		out.resize(c.was)
	}
	for _, c := range f.unsynced {
		if !kept() {
			continue
		}
		if c.is < c.was {
			out.resize(min(c.is, out.size))
			continue
		}
		out.put(f.bytes[c.new:c.end], c.at)
		out.resize(max(c.is, out.size))
	}
	return out
}
