// Package disk is a disk in memory for SQLite, which loses what a real one may lose
// when the power goes: what was written and not synced.
//
// A write is there whole or not at all, and files are made and removed for good at once:
// a page that is torn in two, and a folder that forgets a file, are not tried here.
//
// It is for simulations and tests, which read and write very much, throw all of it
// away, and want to see what a crash leaves. It keeps files alone, and no folders: a
// name with slashes is a name. It knows SQLite's files, and nothing of what is in them.
package disk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// Disk is a disk in memory. SQLite reaches it by its name, as the vfs of a URI. It must
// be kept until it is closed: SQLite knows it by number alone.
type Disk struct {
	tls  *libc.TLS
	vfs  uintptr
	name string

	mu    sync.Mutex // guards what follows, and everything of the files
	files map[string]*file
	open  map[*handle]bool // SQLite knows these by number alone

	changed func(name string) // called after each change of a file, while the disk is locked
}

// New makes an empty disk.
func New() (*Disk, error) {
	d := &Disk{tls: libc.NewTLS(), files: map[string]*file{}, open: map[*handle]bool{}, changed: func(string) {}}
	usual := sqlite3.Xsqlite3_vfs_find(d.tls, 0)
	d.vfs = libc.Xmalloc(d.tls, types.Size_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	d.name = fmt.Sprintf("disk-%x", d.vfs) // no other has its place
	called, err := libc.CString(d.name)
	if err != nil || d.vfs == 0 || usual == 0 {
		return nil, errors.Join(errors.New("make a disk: out of memory"), err)
	}
	v := (*sqlite3.Tsqlite3_vfs)(memory(d.vfs))
	*v = *(*sqlite3.Tsqlite3_vfs)(memory(usual)) // time and chance are the system's
	v.FszOsFile = int32(unsafe.Sizeof(opened{}))
	v.FpNext, v.FzName, v.FpAppData = 0, called, uintptr(unsafe.Pointer(d)) //nolint:gosec // it is kept by whoever made it
	v.FxOpen, v.FxDelete, v.FxAccess, v.FxFullPathname = pointer(xOpen), pointer(xDelete), pointer(xAccess), pointer(xFullPathname)
	if code := sqlite3.Xsqlite3_vfs_register(d.tls, d.vfs, 0); code != sqlite3.SQLITE_OK {
		return nil, fmt.Errorf("make a disk: SQLite refuses it (%d)", code)
	}
	return d, nil
}

// Name is what SQLite knows it by.
func (d *Disk) Name() string { return d.name }

// Close takes the disk from SQLite. All that was opened on it must be closed.
func (d *Disk) Close() error {
	d.mu.Lock()
	left := len(d.open)
	d.mu.Unlock()
	if left > 0 {
		return fmt.Errorf("close the disk: %d files are open", left)
	}
	if code := sqlite3.Xsqlite3_vfs_unregister(d.tls, d.vfs); code != sqlite3.SQLITE_OK {
		return fmt.Errorf("close the disk: SQLite keeps it (%d)", code)
	}
	libc.Xfree(d.tls, (*sqlite3.Tsqlite3_vfs)(memory(d.vfs)).FzName)
	libc.Xfree(d.tls, d.vfs)
	d.tls.Close()
	return nil
}

// Read is what a file holds now, in room where that is enough; false where there is no
// such file.
func (d *Disk) Read(room []byte, name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[name]
	if f == nil {
		return room[:0], false
	}
	text := slices.Grow(room[:0], int(f.size))[:f.size]
	f.read(text, 0)
	return text, true
}

// Remove removes all files whose names begin so. Nobody may have them open.
func (d *Disk) Remove(prefix string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.files, func(name string, _ *file) bool { return strings.HasPrefix(name, prefix) })
}

// Copy copies all files whose names begin with from, to names that begin with to. What
// was not synced is asked about, write by write: kept says whether it is there. For a
// process that was killed all of it is, and for a machine without power any part of it
// may be. A nil kept keeps all, still unsynced: the power may go after that.
func (d *Disk) Copy(from, to string, kept func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.copyAll(from, to, kept)
}

// CutAfter has the power go after so many more changes of files whose names begin with
// from: what is found of them then is copied as Copy does, and then is called. Nothing
// is read or written meanwhile, and then must not. None more, 0, takes that back.
func (d *Disk) CutAfter(changes int, from, to string, kept func() bool, then func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = func(name string) {
		if changes == 0 || !strings.HasPrefix(name, from) {
			return
		}
		if changes--; changes == 0 {
			d.copyAll(from, to, kept)
			then()
		}
	}
}

func (d *Disk) copyAll(from, to string, kept func() bool) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if rest, ok := strings.CutPrefix(name, from); ok {
			d.files[to+rest] = d.files[name].found(kept)
		}
	}
}

// memory is where SQLite's memory is for Go, and an object of ours that it knows by
// number: those are kept in the disk for as long.
func memory(at uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&at)) //nolint:gosec // it is known by number
}

// pointer is a function as SQLite calls it.
func pointer(f any) uintptr {
	return (*[2]uintptr)(unsafe.Pointer(&f))[1] //nolint:gosec // the second word of an interface is its value
}
