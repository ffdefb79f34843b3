package store

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"till/flow"
)

// lite is one connection to an SQLite file, for one goroutine at a time. It
// speaks to the library itself: the driver for database/sql allocates every
// text it binds, asks for name and type of every column of every answer, and
// takes the connection's lock for each word of it, which costs a small
// statement more than its work.
//
// No statement can be cancelled: SQLite answers an interrupted write by undoing
// the whole batch, other callers' work included.
type lite struct {
	tls  *libc.TLS
	db   uintptr
	word uintptr // room for one pointer that the library writes
	kept map[string]*liteStatement
	// wrote says whether a row was changed since it was last set to false.
	wrote bool
	// inside says that a transaction is begun and not ended. SQLite ends one by
	// itself when it is out of space or memory; what runs after that would be
	// kept by itself, so it is refused.
	inside bool
}

// liteStatement is a statement that was prepared once.
type liteStatement struct {
	at   uintptr
	args int
	cols int
	busy bool    // its rows are being read
	room uintptr // for the bytes of its arguments
	size int
}

// liteError is a refusal by SQLite.
type liteError struct {
	code int32 // the extended one
	text string
}

func (e *liteError) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.text, e.code) }

// busy says whether SQLite refused because of another connection, through
// its driver.
func busy(err error) bool {
	driver, ok := errors.AsType[*sqlite.Error](err)
	return ok && driver.Code()&0xff == sqlite3.SQLITE_BUSY
}

// sqliteBug says whether SQLite refused a statement for what it says. The codes
// are those of https://www.sqlite.org/rescode.html.
func sqliteBug(err error) bool {
	e, ok := errors.AsType[*liteError](err)
	if !ok {
		return false
	}
	switch e.code & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG:
		return true
	}
	return false
}

// errUndone says that a transaction is gone.
var errUndone = errors.New("SQLite has undone the transaction")

// openLite opens a file, by its URI, and runs the pragmas on it.
func openLite(uri string, pragmas ...string) (*lite, error) {
	l := &lite{tls: libc.NewTLS(), kept: map[string]*liteStatement{}}
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
		return nil, errors.Join(l.fault(code), l.close())
	}
	sqlite3.Xsqlite3_extended_result_codes(l.tls, l.db, 1)
	for _, p := range pragmas {
		if _, err := l.exec("PRAGMA " + p); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *lite) close() error {
	for _, s := range l.kept {
		sqlite3.Xsqlite3_finalize(l.tls, s.at)
		libc.Xfree(l.tls, s.room)
	}
	code := sqlite3.Xsqlite3_close_v2(l.tls, l.db)
	libc.Xfree(l.tls, l.word)
	l.tls.Close()
	if code != sqlite3.SQLITE_OK {
		return &liteError{code, "close"}
	}
	return nil
}

// memory is where the library's memory is for Go. It is none of Go's own.
func memory(at uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&at)) //nolint:gosec // the library knows its memory by number
}

func (l *lite) fault(code int32) error {
	return storageError(&liteError{code, libc.GoString(sqlite3.Xsqlite3_errmsg(l.tls, l.db))})
}

// undone says whether SQLite ended a transaction by itself.
func (l *lite) undone() bool { return l.inside && sqlite3.Xsqlite3_get_autocommit(l.tls, l.db) != 0 }

// undo ends a transaction without keeping it, unless SQLite did so itself.
func (l *lite) undo() error {
	l.inside = false
	if sqlite3.Xsqlite3_get_autocommit(l.tls, l.db) != 0 {
		return nil
	}
	_, err := l.exec("ROLLBACK")
	return err
}

// prepared finds a statement or prepares it.
func (l *lite) prepared(query string) (*liteStatement, error) {
	if s, ok := l.kept[query]; ok {
		return s, nil
	}
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(l.tls, text)
	if code := sqlite3.Xsqlite3_prepare_v2(l.tls, l.db, text, -1, l.word, 0); code != sqlite3.SQLITE_OK {
		return nil, l.fault(code)
	}
	s := &liteStatement{at: *(*uintptr)(memory(l.word))}
	s.args = int(sqlite3.Xsqlite3_bind_parameter_count(l.tls, s.at))
	s.cols = int(sqlite3.Xsqlite3_column_count(l.tls, s.at))
	l.kept[query] = s
	return s, nil
}

// exec runs a statement to its end and returns how many rows it touched.
func (l *lite) exec(query string, args ...any) (n int64, err error) {
	err = l.each(query, args, func(scanner) error { return nil })
	if err == nil {
		n = int64(sqlite3.Xsqlite3_changes(l.tls, l.db))
	}
	return n, err
}

// each calls scan for every row of a statement.
func (l *lite) each(query string, args []any, scan func(scanner) error) (err error) {
	if l.undone() {
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
		l.wrote = l.wrote || sqlite3.Xsqlite3_total_changes(l.tls, l.db) != before
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
func (l *lite) bind(s *liteStatement, args []any) error {
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
func (l *lite) scan(s *liteStatement, dest []any) error {
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
func (l *lite) bytes(s *liteStatement, n int32) []byte {
	at := sqlite3.Xsqlite3_column_blob(l.tls, s.at, n)                                      // of a text: its bytes
	return unsafe.Slice((*byte)(memory(at)), sqlite3.Xsqlite3_column_bytes(l.tls, s.at, n)) //nolint:gosec // the library says so
}

// liteWriter is the connection that writes.
type liteWriter struct{ *lite }

func (w liteWriter) run(_ context.Context, query string, args []any) (int64, error) {
	return w.exec(query, args...)
}

func (w liteWriter) each(_ context.Context, query string, args []any, scan func(scanner) error) error {
	return w.lite.each(query, args, scan)
}

// liteReaders are the connections that read. A caller may give up waiting for
// one, but what was begun is not cancelled.
type liteReaders struct {
	uri    string
	free   chan *lite // nil for one that is not open yet
	once   sync.Once
	closed chan struct{}
}

func newLiteReaders(uri string, count int) *liteReaders {
	p := &liteReaders{uri: uri, free: make(chan *lite, count), closed: make(chan struct{})}
	for range count {
		p.free <- nil
	}
	return p
}

func (p *liteReaders) run(ctx context.Context, query string, args []any) (n int64, err error) {
	err = p.with(ctx, func(l *lite) error {
		n, err = l.exec(query, args...)
		return err
	})
	return n, err
}

func (p *liteReaders) each(ctx context.Context, query string, args []any, scan func(scanner) error) error {
	return p.with(ctx, func(l *lite) error { return l.each(query, args, scan) })
}

func (p *liteReaders) with(ctx context.Context, do func(*lite) error) (err error) {
	var l *lite
	select {
	case l = <-p.free:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return flow.Refuse(flow.CodeStorage, "The store is closing.")
	}
	defer func() { p.free <- l }()
	if l == nil {
		if l, err = openLite(p.uri, append(sqlitePragmas(), "query_only(1)")...); err != nil {
			return storageError(err)
		}
	}
	return do(l)
}

// close waits for what is being read.
func (p *liteReaders) close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		for range cap(p.free) {
			if l := <-p.free; l != nil {
				err = errors.Join(err, l.close())
			}
		}
	})
	return err
}
