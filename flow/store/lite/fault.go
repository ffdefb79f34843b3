package lite

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Error is a refusal by SQLite.
type Error struct {
	Code int32 // the extended one, of https://www.sqlite.org/rescode.html
	Text string

	system syscall.Errno // what the system last said to SQLite; it means something beside SQLITE_IOERR alone
}

// Error names it.
func (e *Error) Error() string { return fmt.Sprintf("sqlite: %s (%d)", e.Text, e.Code) }

// Busy says whether SQLite refused because of another connection, through
// its driver.
func Busy(err error) bool {
	driver, ok := errors.AsType[*sqlite.Error](err)
	return ok && driver.Code()&0xff == sqlite3.SQLITE_BUSY
}

// Bug says whether SQLite refused a statement for what it says, through its driver
// or not. The codes are those of https://www.sqlite.org/rescode.html.
func Bug(err error) bool {
	switch refusal(err) & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_TOOBIG:
		return true
	}
	return false
}

// refusal is what SQLite refused with, through its driver or not, as its extended code;
// 0 where it is no error of SQLite's.
func refusal(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return int(e.Code)
	}
	if driver, ok := errors.AsType[*sqlite.Error](err); ok {
		return driver.Code()
	}
	return 0
}

// Unopened says whether SQLite could not open a file, or was not let do with it
// what it has to: that says nothing of what is in it.
func Unopened(err error) bool {
	switch refusal(err) & 0xff {
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return true
	}
	return false
}

// Damaged says whether SQLite found that a file is no database, or no whole one.
func Damaged(err error) bool {
	code := refusal(err) & 0xff
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT
}

// Full says whether SQLite found no room on a disk. Where it writes to a database itself
// it says so; where it makes its files larger or waits for the disk, and where a quota is
// used up, it calls that an error of the disk, and what the system said tells.
func Full(err error) bool {
	code := refusal(err)
	switch code & 0xff {
	case sqlite3.SQLITE_FULL:
		return true
	case sqlite3.SQLITE_IOERR:
		e, ok := errors.AsType[*Error](err)
		return code == sqlite3.SQLITE_IOERR_SHMSIZE || ok && (e.system == syscall.ENOSPC || e.system == syscall.EDQUOT)
	}
	return false
}
