package disk

import (
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// What SQLite calls: https://www.sqlite.org/c3ref/vfs.html and
// https://www.sqlite.org/c3ref/io_methods.html say what each has to do.

// opened is a file as SQLite holds it.
type opened struct {
	methods uintptr
	handle  uintptr
}

// sector is how much is written at once, as SQLite takes it of the system's files.
const sector = 4096

var methods = sqlite3.Tsqlite3_io_methods{ // SQLite knows it by its place
	FiVersion: 2, FxClose: pointer(xClose), FxRead: pointer(xRead), FxWrite: pointer(xWrite), FxTruncate: pointer(xTruncate), FxSync: pointer(xSync),
	FxFileSize: pointer(xFileSize), FxLock: pointer(xLock), FxUnlock: pointer(xUnlock), FxCheckReservedLock: pointer(xCheckReservedLock),
	FxFileControl: pointer(xFileControl), FxSectorSize: pointer(xSectorSize), FxDeviceCharacteristics: pointer(xDeviceCharacteristics),
	FxShmMap: pointer(xShmMap), FxShmLock: pointer(xShmLock), FxShmBarrier: pointer(xShmBarrier), FxShmUnmap: pointer(xShmUnmap),
}

// on is the disk that a call is about.
func on(vfs uintptr) *Disk { return (*Disk)(memory((*sqlite3.Tsqlite3_vfs)(memory(vfs)).FpAppData)) }

// held is the file that a call is about. Its disk is locked, and the call lets go of it.
func held(at uintptr) *handle {
	h := (*handle)(memory((*opened)(memory(at)).handle))
	h.d.mu.Lock()
	return h
}

// bytesAt is memory of SQLite's.
func bytesAt(at uintptr, n int32) []byte { return unsafe.Slice((*byte)(memory(at)), n) } //nolint:gosec // SQLite says so

func set[T any](at uintptr, value T) {
	if at != 0 {
		*(*T)(memory(at)) = value
	}
}

func done(yes bool) int32 {
	if yes {
		return sqlite3.SQLITE_OK
	}
	return sqlite3.SQLITE_BUSY
}

func xOpen(_ *libc.TLS, vfs, name, at uintptr, flags int32, out uintptr) int32 {
	d := on(vfs)
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &handle{d: d, removing: name == 0 || flags&sqlite3.SQLITE_OPEN_DELETEONCLOSE != 0}
	if name != 0 {
		h.name = libc.GoString(name)
		h.f = d.files[h.name]
	}
	if h.f == nil {
		if name != 0 && flags&sqlite3.SQLITE_OPEN_CREATE == 0 {
			set(at, opened{})
			return sqlite3.SQLITE_CANTOPEN
		}
		h.f = &file{}
		if name != 0 {
			d.files[h.name] = h.f
		}
	}
	d.open[h] = true
	set(at, opened{methods: uintptr(unsafe.Pointer(&methods)), handle: uintptr(unsafe.Pointer(h))}) //nolint:gosec // both stay where they are for as long
	set(out, flags)
	return sqlite3.SQLITE_OK
}

func xDelete(_ *libc.TLS, vfs, name uintptr, _ int32) int32 {
	d := on(vfs)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[libc.GoString(name)] == nil {
		return sqlite3.SQLITE_IOERR_DELETE_NOENT
	}
	delete(d.files, libc.GoString(name))
	return sqlite3.SQLITE_OK
}

func xAccess(_ *libc.TLS, vfs, name uintptr, what int32, out uintptr) int32 {
	d := on(vfs)
	d.mu.Lock()
	defer d.mu.Unlock()
	f, there := d.files[libc.GoString(name)], int32(0)
	if f != nil && (what != sqlite3.SQLITE_ACCESS_EXISTS || f.size > 0) { // an empty file is none, as for the system's
		there = 1
	}
	set(out, there)
	return sqlite3.SQLITE_OK
}

func xFullPathname(_ *libc.TLS, _, name uintptr, room int32, out uintptr) int32 {
	text := libc.GoString(name)
	if len(text) >= int(room) {
		return sqlite3.SQLITE_CANTOPEN
	}
	to := bytesAt(out, room)
	to[copy(to, text)] = 0
	return sqlite3.SQLITE_OK
}

func xClose(tls *libc.TLS, at uintptr) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.leave(tls)
	h.unlock(sqlite3.SQLITE_LOCK_NONE)
	if h.removing && h.name != "" && h.d.files[h.name] == h.f {
		delete(h.d.files, h.name)
	}
	delete(h.d.open, h)
	return sqlite3.SQLITE_OK
}

func xRead(_ *libc.TLS, at, to uintptr, n int32, from int64) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	p := bytesAt(to, n)
	if got := h.f.read(p, from); got < len(p) {
		clear(p[got:])
		return sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return sqlite3.SQLITE_OK
}

func xWrite(_ *libc.TLS, at, from uintptr, n int32, to int64) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.f.write(bytesAt(from, n), to)
	h.d.changed(h.name)
	return sqlite3.SQLITE_OK
}

func xTruncate(_ *libc.TLS, at uintptr, size int64) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.f.truncate(size)
	h.d.changed(h.name)
	return sqlite3.SQLITE_OK
}

func xSync(_ *libc.TLS, at uintptr, _ int32) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.f.sync()
	h.d.changed(h.name)
	return sqlite3.SQLITE_OK
}

func xFileSize(_ *libc.TLS, at, out uintptr) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	set(out, h.f.size)
	return sqlite3.SQLITE_OK
}

func xLock(_ *libc.TLS, at uintptr, level int32) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	return done(h.lock(level))
}

func xUnlock(_ *libc.TLS, at uintptr, level int32) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.unlock(level)
	return sqlite3.SQLITE_OK
}

func xCheckReservedLock(_ *libc.TLS, at, out uintptr) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	reserved := int32(0)
	if h.f.reserved != nil {
		reserved = 1
	}
	set(out, reserved)
	return sqlite3.SQLITE_OK
}

func xFileControl(_ *libc.TLS, _ uintptr, _ int32, _ uintptr) int32 { return sqlite3.SQLITE_NOTFOUND }

func xSectorSize(*libc.TLS, uintptr) int32 { return sector }

func xDeviceCharacteristics(*libc.TLS, uintptr) int32 {
	return sqlite3.SQLITE_IOCAP_POWERSAFE_OVERWRITE | sqlite3.SQLITE_IOCAP_SUBPAGE_READ // as SQLite takes it of the system's files
}

func xShmMap(tls *libc.TLS, at uintptr, n, size, extend int32, out uintptr) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	if !h.indexed {
		h.indexed = true
		h.f.users++
	}
	for extend != 0 && len(h.f.index) <= int(n) {
		part := libc.Xcalloc(tls, 1, types.Size_t(size)) //nolint:gosec // a positive size
		if part == 0 {
			return sqlite3.SQLITE_NOMEM
		}
		h.f.index = append(h.f.index, part)
	}
	var where uintptr
	if int(n) < len(h.f.index) {
		where = h.f.index[n]
	}
	set(out, where)
	return sqlite3.SQLITE_OK
}

func xShmLock(_ *libc.TLS, at uintptr, from, n, flags int32) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	return done(h.slot(int(from), int(n), flags))
}

func xShmBarrier(_ *libc.TLS, at uintptr) {
	held(at).d.mu.Unlock()
}

func xShmUnmap(tls *libc.TLS, at uintptr, _ int32) int32 {
	h := held(at)
	defer h.d.mu.Unlock()
	h.leave(tls)
	return sqlite3.SQLITE_OK
}
