package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// The bounds of the log that is kept in the data dir.
const (
	logsDir  = "logs"
	logName  = "till.log"
	maxLog   = 10 << 20 // bytes of a file
	maxFiles = 5
)

// logTee writes each line of the log where it is told to, and to a file once
// there is one. A file that cannot be written to loses lines there and nowhere
// else, and that is said once: nobody is kept from working for want of a log.
type logTee struct {
	out io.Writer

	mu   sync.Mutex
	file *logFile
	lost bool // the last line is not in the file
}

// Write takes one line.
func (t *logTee) Write(line []byte) (int, error) {
	t.mu.Lock()
	if t.file != nil {
		err := t.file.write(line)
		if err != nil && !t.lost {
			slog.New(slog.NewJSONHandler(t.out, nil)).Warn("the log is not kept in the data dir: till logs does not show what comes", slog.String("error", err.Error()))
		}
		t.lost = err != nil
	}
	t.mu.Unlock()
	return t.out.Write(line)
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
