package disk

import (
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// slots are the locks of a log's index.
const slots = sqlite3.SQLITE_SHM_NLOCK

// locks are who may do what with a file, and the memory that connections share: the
// rules are SQLite's own (https://www.sqlite.org/lockingv3.html and
// https://www.sqlite.org/walformat.html).
type locks struct {
	shared                       int
	reserved, pending, exclusive *handle

	index         []uintptr // of the log: SQLite's memory, which it reckons with
	users         int       // handles that have it
	slotShared    [slots]int
	slotExclusive [slots]*handle
}

// handle is a file that somebody opened.
type handle struct {
	d    *Disk
	f    *file
	name string // "" of one that is gone when it is closed

	level    int32 // SQLITE_LOCK_…
	indexed  bool
	sharing  [slots]bool
	removing bool // when it is closed
}

// others says whether a lock is somebody else's.
func (h *handle) others(who *handle) bool { return who != nil && who != h }

// lock takes a lock, or says that somebody else has one against it.
func (h *handle) lock(level int32) bool {
	l := &h.f.locks
	if h.level >= level {
		return true
	}
	if h.level < sqlite3.SQLITE_LOCK_SHARED {
		if h.others(l.pending) || h.others(l.exclusive) {
			return false
		}
		l.shared++
		h.level = sqlite3.SQLITE_LOCK_SHARED
	}
	if level >= sqlite3.SQLITE_LOCK_RESERVED {
		if h.others(l.reserved) || h.others(l.pending) || h.others(l.exclusive) {
			return false
		}
		l.reserved = h
		h.level = max(h.level, sqlite3.SQLITE_LOCK_RESERVED)
	}
	if level == sqlite3.SQLITE_LOCK_EXCLUSIVE {
		l.pending = h
		h.level = sqlite3.SQLITE_LOCK_PENDING
		if l.shared > 1 {
			return false
		}
		l.exclusive = h
		h.level = sqlite3.SQLITE_LOCK_EXCLUSIVE
	}
	return true
}

// unlock lets go of what is above a level.
func (h *handle) unlock(level int32) {
	l := &h.f.locks
	if level >= h.level {
		return
	}
	for _, who := range []**handle{&l.reserved, &l.pending, &l.exclusive} {
		if *who == h {
			*who = nil
		}
	}
	if level < sqlite3.SQLITE_LOCK_SHARED && h.level >= sqlite3.SQLITE_LOCK_SHARED {
		l.shared--
	}
	h.level = level
}

// slot takes or gives back locks of the index.
func (h *handle) slot(from, n int, flags int32) bool {
	l := &h.f.locks
	if flags&sqlite3.SQLITE_SHM_UNLOCK != 0 {
		for i := from; i < from+n; i++ {
			if l.slotExclusive[i] == h {
				l.slotExclusive[i] = nil
			}
			if h.sharing[i] {
				h.sharing[i] = false
				l.slotShared[i]--
			}
		}
		return true
	}
	shares := flags&sqlite3.SQLITE_SHM_SHARED != 0
	for i := from; i < from+n; i++ {
		alone := l.slotShared[i] == 0 || l.slotShared[i] == 1 && h.sharing[i]
		if h.others(l.slotExclusive[i]) || !shares && !alone {
			return false
		}
	}
	for i := from; i < from+n; i++ {
		switch {
		case !shares:
			l.slotExclusive[i] = h
		case !h.sharing[i]:
			h.sharing[i] = true
			l.slotShared[i]++
		}
	}
	return true
}

// leave lets go of the index; it goes with the last who has it.
func (h *handle) leave(tls *libc.TLS) {
	if !h.indexed {
		return
	}
	h.slot(0, slots, sqlite3.SQLITE_SHM_UNLOCK)
	h.indexed = false
	if h.f.users--; h.f.users == 0 {
		for _, part := range h.f.index {
			libc.Xfree(tls, part)
		}
		h.f.index = nil
	}
}
