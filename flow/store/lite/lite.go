// Package lite speaks to SQLite itself, for whoever runs the same few small
// statements all day. The driver for database/sql allocates every text it binds,
// asks for name and type of every column of every answer, prepares a statement
// each time and takes the connection's lock for each word of it, which costs a
// small statement more than its work.
//
// It is the one home of SQLite's library: its driver, named "sqlite", is
// registered by importing this package.
package lite

import (
	"errors"
	"fmt"
	"reflect"
	"syscall"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	sqlite3 "modernc.org/sqlite/lib"
)

// Conn is one connection to an SQLite file, for one goroutine at a time.
//
// No statement can be cancelled: SQLite answers an interrupted write by undoing
// the whole batch, other callers' work included. Until is for a connection that has
// none.
type Conn struct {
	tls  *libc.TLS
	db   uintptr
	word uintptr // room for one pointer that the library writes
	kept map[string]*statement
	// Wrote says whether a row was changed since it was last set to false.
	Wrote bool
	// Inside says that a transaction is begun and not ended. SQLite ends one by
	// itself when it is out of space or memory; what runs after that would be
	// kept by itself, so it is refused.
	Inside bool
}

// Scanner reads the columns of one row. None may be NULL.
type Scanner = func(dest ...any) error

// statement is a statement that was prepared once.
type statement struct {
	at   uintptr
	args int
	cols int
	busy bool    // its rows are being read
	room uintptr // for the bytes of its arguments
	size int
}

// errUndone says that a transaction is gone.
var errUndone = errors.New("SQLite has undone the transaction")

// Open opens a file, by its URI, and runs the pragmas on it.
func Open(uri string, pragmas ...string) (*Conn, error) {
	l := &Conn{tls: libc.NewTLS(), kept: map[string]*statement{}}
	l.word = libc.Xmalloc(l.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	name, err := libc.CString(uri)
	if err != nil || l.word == 0 {
		return nil, errors.Join(errors.New("open a connection: out of memory"), err)
	}
	defer libc.Xfree(l.tls, name)
	const flags = sqlite3.SQLITE_OPEN_READWRITE | sqlite3.SQLITE_OPEN_CREATE | sqlite3.SQLITE_OPEN_URI | sqlite3.SQLITE_OPEN_NOMUTEX
	code := sqlite3.Xsqlite3_open_v2(l.tls, name, l.word, flags, 0)
	l.db = *(*uintptr)(memory(l.word))
	if code != sqlite3.SQLITE_OK {
		return nil, errors.Join(l.fault(code), l.Close())
	}
	sqlite3.Xsqlite3_extended_result_codes(l.tls, l.db, 1)
	if err := l.steady(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	for _, p := range pragmas {
		if err := l.set(p); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// How long a pragma is set again, and how often.
const (
	pragmaPatience = 2 * time.Second
	pragmaPause    = 10 * time.Millisecond
)

// set sets a pragma. Of several that turn a new file to WAL at one moment each
// would wait for the others, so that SQLite refuses some at once, whatever
// busy_timeout says: those try again.
func (l *Conn) set(pragma string) error {
	over := time.NewTimer(pragmaPatience)
	defer over.Stop()
	for {
		_, err := l.Exec("PRAGMA " + pragma)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code&0xff != sqlite3.SQLITE_BUSY {
			return err
		}
		select {
		case <-over.C:
			return err
		case <-time.After(pragmaPause):
		}
	}
}

// steady has statements planned without a look at what is bound to them. Else each
// that says LIMIT ? is planned anew each time it runs, which costs more than the
// small ones themselves.
func (l *Conn) steady() error {
	args := libc.NewVaList(int32(1), uintptr(0))
	if args == 0 {
		return errors.New("open a connection: out of memory")
	}
	defer libc.Xfree(l.tls, args)
	if code := sqlite3.Xsqlite3_db_config(l.tls, l.db, sqlite3.SQLITE_DBCONFIG_ENABLE_QPSG, args); code != sqlite3.SQLITE_OK {
		return l.fault(code)
	}
	return nil
}

// Close closes the connection.
func (l *Conn) Close() error {
	for _, s := range l.kept {
		sqlite3.Xsqlite3_finalize(l.tls, s.at)
		libc.Xfree(l.tls, s.room)
	}
	code := sqlite3.Xsqlite3_close_v2(l.tls, l.db)
	libc.Xfree(l.tls, l.word)
	l.tls.Close()
	if code != sqlite3.SQLITE_OK {
		return &Error{Code: code, Text: "close"}
	}
	return nil
}

// memory is where the library's memory is for Go. It is none of Go's own.
func memory(at uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&at)) //nolint:gosec // the library knows its memory by number
}

func (l *Conn) fault(code int32) error {
	return &Error{
		Code: code, Text: libc.GoString(sqlite3.Xsqlite3_errmsg(l.tls, l.db)), system: syscall.Errno(sqlite3.Xsqlite3_system_errno(l.tls, l.db)), //nolint:gosec // what the system calls its errors
	}
}

// Undone says whether SQLite ended a transaction by itself.
func (l *Conn) Undone() bool { return l.Inside && sqlite3.Xsqlite3_get_autocommit(l.tls, l.db) != 0 }

// Undo ends a transaction without keeping it, unless SQLite did so itself.
func (l *Conn) Undo() error {
	l.Inside = false
	if sqlite3.Xsqlite3_get_autocommit(l.tls, l.db) != 0 {
		return nil
	}
	_, err := l.Exec("ROLLBACK")
	return err
}

// prepared finds a statement or prepares it.
func (l *Conn) prepared(query string) (*statement, error) {
	if s, ok := l.kept[query]; ok {
		return s, nil
	}
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(l.tls, text)
	// It is kept, and says so: else all of it would lie in the little memory that the
	// connection has at hand for what a statement needs while it runs.
	if code := sqlite3.Xsqlite3_prepare_v3(l.tls, l.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, l.word, 0); code != sqlite3.SQLITE_OK {
		return nil, l.fault(code)
	}
	s := &statement{at: *(*uintptr)(memory(l.word))}
	s.args = int(sqlite3.Xsqlite3_bind_parameter_count(l.tls, s.at))
	s.cols = int(sqlite3.Xsqlite3_column_count(l.tls, s.at))
	l.kept[query] = s
	return s, nil
}

// Exec runs a statement to its end and returns how many rows it touched.
func (l *Conn) Exec(query string, args ...any) (n int64, err error) {
	err = l.Each(query, args, func(Scanner) error { return nil })
	if err == nil {
		n = int64(sqlite3.Xsqlite3_changes(l.tls, l.db))
	}
	return n, err
}

// Script runs the statements of a text one after the other. Nothing of them is
// remembered: it is for what is run once, as tables are made.
func (l *Conn) Script(text string) error {
	if l.Undone() {
		return errUndone
	}
	script, err := libc.CString(text)
	if err != nil {
		return err
	}
	defer libc.Xfree(l.tls, script)
	if code := sqlite3.Xsqlite3_exec(l.tls, l.db, script, 0, 0, 0); code != sqlite3.SQLITE_OK {
		return l.fault(code)
	}
	return nil
}

// Each calls scan for every row of a statement.
func (l *Conn) Each(query string, args []any, scan func(Scanner) error) (err error) {
	if l.Undone() {
		return errUndone
	}
	s, err := l.prepared(query)
	if err != nil {
		return err
	}
	if s.busy {
		return errors.New("a statement is run while its rows are read")
	}
	if err := l.bind(s, args); err != nil {
		return err
	}
	s.busy = true
	before := sqlite3.Xsqlite3_total_changes(l.tls, l.db)
	defer func() {
		s.busy = false
		sqlite3.Xsqlite3_reset(l.tls, s.at)
		l.Wrote = l.Wrote || sqlite3.Xsqlite3_total_changes(l.tls, l.db) != before
	}()
	for {
		switch code := sqlite3.Xsqlite3_step(l.tls, s.at); code {
		case sqlite3.SQLITE_ROW:
			if err := scan(func(dest ...any) error { return l.scan(s, dest) }); err != nil {
				return err
			}
		case sqlite3.SQLITE_DONE:
			return nil
		default:
			return l.fault(code)
		}
	}
}

// bind gives a statement its arguments. Their bytes are copied to room that the
// statement keeps: the library must not be left with memory of Go's.
func (l *Conn) bind(s *statement, args []any) error {
	if len(args) != s.args {
		return fmt.Errorf("%d arguments for a statement of %d", len(args), s.args)
	}
	need := 1 // an address even for empty ones: without one they would be NULL
	for _, a := range args {
		switch a := a.(type) {
		case string:
			need += len(a)
		case []byte:
			need += len(a)
		case int64, int:
		default:
			if v := reflect.ValueOf(a); v.Kind() == reflect.String {
				need += v.Len()
			}
		}
	}
	if need > s.size {
		libc.Xfree(l.tls, s.room)
		s.size = need + need/2
		if s.room = libc.Xmalloc(l.tls, types.Size_t(s.size)); s.room == 0 { //nolint:gosec // a positive length
			s.size = 0
			return errors.New("out of memory")
		}
	}
	room := unsafe.Slice((*byte)(memory(s.room)), s.size) //nolint:gosec // the library gave that much
	used := 0
	for i, a := range args {
		n, code := int32(i+1), int32(0)
		text := func(length int) {
			code = sqlite3.Xsqlite3_bind_text(l.tls, s.at, n, s.room+uintptr(used), int32(length), 0) //nolint:gosec // bodies are bounded
			used += length
		}
		switch a := a.(type) {
		case string:
			text(copy(room[used:], a))
		case int64:
			code = sqlite3.Xsqlite3_bind_int64(l.tls, s.at, n, a)
		case int:
			code = sqlite3.Xsqlite3_bind_int64(l.tls, s.at, n, int64(a))
		case []byte:
			length := copy(room[used:], a)
			code = sqlite3.Xsqlite3_bind_blob(l.tls, s.at, n, s.room+uintptr(used), int32(length), 0) //nolint:gosec // bodies are bounded
			used += length
		default:
			switch v := reflect.ValueOf(a); {
			case v.Kind() == reflect.String:
				text(copy(room[used:], v.String()))
			case v.CanInt():
				code = sqlite3.Xsqlite3_bind_int64(l.tls, s.at, n, v.Int())
			default:
				return fmt.Errorf("an argument is a %T", a)
			}
		}
		if code != sqlite3.SQLITE_OK {
			return l.fault(code)
		}
	}
	return nil
}

// scan reads the columns of the row that a statement stands on.
func (l *Conn) scan(s *statement, dest []any) error {
	if len(dest) != s.cols {
		return fmt.Errorf("%d places for a row of %d columns", len(dest), s.cols)
	}
	for i, d := range dest {
		n := int32(i)
		if sqlite3.Xsqlite3_column_type(l.tls, s.at, n) == sqlite3.SQLITE_NULL {
			return fmt.Errorf("column %d is NULL", i)
		}
		switch d := d.(type) {
		case *string:
			*d = string(l.bytes(s, n))
		case *int64:
			*d = sqlite3.Xsqlite3_column_int64(l.tls, s.at, n)
		case *int:
			*d = int(sqlite3.Xsqlite3_column_int64(l.tls, s.at, n))
		case *[]byte:
			*d = append([]byte(nil), l.bytes(s, n)...)
		default:
			switch v := reflect.ValueOf(d).Elem(); {
			case v.Kind() == reflect.String:
				v.SetString(string(l.bytes(s, n)))
			case v.CanInt():
				v.SetInt(sqlite3.Xsqlite3_column_int64(l.tls, s.at, n))
			default:
				return fmt.Errorf("a place for a column is a %T", d)
			}
		}
	}
	return nil
}

// bytes are a column's, until the next step.
func (l *Conn) bytes(s *statement, n int32) []byte {
	at := sqlite3.Xsqlite3_column_blob(l.tls, s.at, n)                                      // of a text: its bytes
	return unsafe.Slice((*byte)(memory(at)), sqlite3.Xsqlite3_column_bytes(l.tls, s.at, n)) //nolint:gosec // the library says so
}
