package store

import (
	"log/slog"
	"os"
	"time"

	"till/flow/store/lite"
)

// The bounds of SQLite's write-ahead log, in bytes.
const (
	logKept = 24 << 20 // what a log that is begun again keeps of its file
	logLong = 32 << 20 // from which on readers are waited for, to begin it again
	logMore = 4        // of how many parts it grows by one until that is tried once more
	// logPatience is how long they are waited for, and with them whoever writes.
	logPatience = 200 * time.Millisecond
)

// tail is an SQLite file's write-ahead log. SQLite begins it again only at a moment
// when all of it is in the file and nobody reads in it. Where one reader follows the
// other without a gap, as beside a check of the whole ledger, there is none, and the
// log would grow for as long: so the writer makes one. Who begins to read while
// nothing is written and all is in the file does not read in the log, so that only
// those have to be waited for that had begun before.
type tail struct {
	file string
	from int64 // how large it is when that is tried next
	log  *slog.Logger
}

func newTail(file string, log *slog.Logger) *tail { return &tail{file: file, from: logLong, log: log} }

// bound has the log begun again where it is long. That it could not be is no
// failure: somebody reads for long, and it is tried again once the log has grown.
func (t *tail) bound(w *lite.Conn) {
	info, err := os.Stat(t.file)
	if err != nil || info.Size() < t.from {
		return
	}
	done, err := w.Rewind(logPatience)
	if err != nil {
		t.log.Warn("the write-ahead log is not begun again", slog.String("error", err.Error()))
	}
	t.from = logLong
	if !done {
		t.from = info.Size() + info.Size()/logMore
	}
}
