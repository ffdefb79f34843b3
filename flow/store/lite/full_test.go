package lite

import (
	"fmt"
	"syscall"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite has no one word for a disk without room: a disk that fails is told apart from
// one that is full by what the system said.
func TestAFullDiskIsToldApartFromABrokenOne(t *testing.T) {
	for _, c := range []struct {
		code   int32
		system syscall.Errno
		full   bool
	}{
		{sqlite3.SQLITE_FULL, 0, true},
		{sqlite3.SQLITE_IOERR_SHMSIZE, 0, true},
		{sqlite3.SQLITE_IOERR_WRITE, syscall.EDQUOT, true}, // that of a quota
		{sqlite3.SQLITE_IOERR_WRITE, syscall.EIO, false},
		{sqlite3.SQLITE_IOERR_FSYNC, syscall.ENOSPC, true},
		{sqlite3.SQLITE_IOERR_FSYNC, syscall.EIO, false},
		{sqlite3.SQLITE_IOERR_TRUNCATE, syscall.ENOSPC, true},
		{sqlite3.SQLITE_IOERR_READ, 0, false},
		{sqlite3.SQLITE_BUSY, syscall.ENOSPC, false}, // said of something earlier
		{sqlite3.SQLITE_CANTOPEN, syscall.EACCES, false},
	} {
		err := fmt.Errorf("keep: %w", &Error{Code: c.code, Text: "no", system: c.system})
		if Full(err) != c.full {
			t.Errorf("%v, %v: full is %v", err, c.system, !c.full)
		}
	}
}
