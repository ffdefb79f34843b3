package lite

import (
	"fmt"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// Rewind brings all of the write-ahead log into the file and has the next who
// writes begin it again at its start, waiting up to patience for those who read what
// is not in the file yet, and once more for those who read in the log: the RESTART
// of https://www.sqlite.org/pragma.html#pragma_wal_checkpoint. It says whether it
// could. No transaction of this connection may be open.
func (l *Conn) Rewind(patience time.Duration) (bool, error) {
	var usual, busy int
	if err := l.Each("PRAGMA busy_timeout", nil, func(s Scanner) error { return s(&usual) }); err != nil {
		return false, fmt.Errorf("rewind the log: %w", err)
	}
	sqlite3.Xsqlite3_busy_timeout(l.tls, l.db, int32(patience/time.Millisecond)) //nolint:gosec // a moment
	defer sqlite3.Xsqlite3_busy_timeout(l.tls, l.db, int32(usual))               //nolint:gosec // it came from there
	var frames, moved int
	err := l.Each("PRAGMA wal_checkpoint(RESTART)", nil, func(s Scanner) error { return s(&busy, &frames, &moved) })
	if err != nil {
		return false, fmt.Errorf("rewind the log: %w", err)
	}
	return busy == 0, nil
}
