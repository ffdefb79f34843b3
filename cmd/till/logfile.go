package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The bounds of the log that is kept in the data dir.
const (
	logsDir  = "logs"
	logName  = "till.log"
	maxLog   = 10 << 20 // bytes of a file
	maxFiles = 5
	// maxUnread is how many lines wait for whoever reads what is told.
	maxUnread  = 4096
	toldWithin = 2 * time.Second // at the end
)

// logTee writes each line of the log where it is told to, and to a file once
// there is one. A file that cannot be written to loses lines there and nowhere
// else, and that is said once: nobody is kept from working for want of a log.
type logTee struct {
	out io.Writer

	mu   sync.Mutex
	file *logFile
	lost bool // the last line is not in the file

	unread chan []byte // nil: each line is told before Write returns
	missed int         // lines that nobody was told since the last that was
}

// loosen has lines told in the background, so that nobody waits for whoever reads
// them: a terminal that was stopped, or a pipe that is full, holds up no payment. What
// is more than waits is told to nobody. end tells what waits still.
func (t *logTee) loosen() (end func()) {
	unread, told := make(chan []byte, maxUnread), make(chan struct{})
	t.unread = unread
	go func() {
		defer close(told)
		for line := range unread {
			_, _ = t.out.Write(line)
		}
	}()
	return func() {
		t.mu.Lock()
		t.unread = nil
		t.mu.Unlock()
		close(unread)
		late := time.NewTimer(toldWithin)
		defer late.Stop()
		select {
		case <-told:
		case <-late.C:
		}
	}
}

// tell has a line told as soon as those before it are, where there is room. The caller
// holds the lock.
func (t *logTee) tell(line []byte) {
	if t.missed > 0 && len(t.unread) < cap(t.unread)-1 {
		var note bytes.Buffer
		slog.New(slog.NewJSONHandler(&note, nil)).Warn("lines of the log were told to nobody: whoever reads it did not", slog.Int("lines", t.missed))
		t.missed = 0
		t.unread <- note.Bytes()
	}
	select {
	case t.unread <- line:
	default:
		t.missed++
	}
}

// Write takes one line.
func (t *logTee) Write(line []byte) (int, error) {
	t.mu.Lock()
	var note bytes.Buffer
	if t.file != nil {
		err := t.file.write(line)
		if err != nil && !t.lost {
			slog.New(slog.NewJSONHandler(&note, nil)).Warn("the log is not kept in the data dir: till logs does not show what comes", slog.String("error", err.Error()))
		}
		t.lost = err != nil
	}
	all := slices.Concat(note.Bytes(), line)
	if t.unread != nil {
		defer t.mu.Unlock()
		t.tell(all)
		return len(line), nil
	}
	t.mu.Unlock()
	_, err := t.out.Write(all)
	return len(line), err
}

// keep has a file keep the lines from now on.
func (t *logTee) keep(f *logFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.file = f
}

// keepLog has the data dir keep the log, unless several processes share it.
func (a *app) keepLog(lines *logTee) {
	if a.shares() {
		return
	}
	f := &logFile{path: under(under(a.set.DataDir, logsDir), logName)}
	lines.keep(f)
	a.closing(func() error {
		lines.keep(nil)
		return f.close()
	})
}

// logFile keeps the newest lines in a few files: till.log, and older ones as
// till.log.1 and so on.
type logFile struct {
	path string
	f    *os.File
	size int64
}

// open opens the log, and makes its place: with the first line, so that a start
// in vain leaves nothing.
func (l *logFile) open() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.size = f, info.Size()
	return nil
}

func (l *logFile) write(line []byte) error {
	if l.f != nil && l.size+int64(len(line)) > maxLog {
		l.turn()
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			l.f = nil
			return err
		}
	}
	n, err := l.f.Write(line)
	l.size += int64(n)
	return err
}

// turn begins a new file and lets go of the oldest.
func (l *logFile) turn() {
	_ = l.f.Close()
	l.f = nil
	for n := maxFiles - 1; n > 0; n-- {
		_ = os.Rename(older(l.path, n-1), older(l.path, n))
	}
}

// older is the file of the log that was turned so many times.
func older(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

// close closes the file.
func (l *logFile) close() error {
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}
