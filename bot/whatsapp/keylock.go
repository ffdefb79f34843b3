package whatsapp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// keyLock is the lock on a file of keys. The zero value holds nothing.
type keyLock struct {
	path   string
	unlock func() error
	fault  error // it cannot even be opened: that says nothing of another process
}

// goesPast stands before the name of who uses keys without holding their lock,
// so that nobody takes that one for dead because the lock is free.
const goesPast = "!"

// lock takes the lock beside a file of keys, if it is free, and reads who used
// them last: past, and as heir where that one is dead for certain. Beside, because whoever takes the keys over from a process that is
// paused, and so still has the lock, must be able to see whose it is.
func (f *Fleet) lock(file string) (l *keyLock, past, heir string) {
	l = &keyLock{path: file + lockEnding}
	if f.cfg.Lock == nil {
		l.unlock = func() error { return nil }
	} else if unlock, err := f.cfg.Lock(l.path); err == nil {
		l.unlock = unlock
	} else if at, ok := errors.AsType[*fs.PathError](err); ok {
		l.fault = fmt.Errorf("taking the keys: %w", at)
	}
	if raw, err := os.ReadFile(l.path); err == nil && len(raw) <= maxHolder {
		past = strings.TrimSpace(string(raw))
	}
	if name, found := strings.CutPrefix(past, goesPast); found {
		return l, name, ""
	}
	if l.held() && f.cfg.Lock != nil {
		heir = past
	}
	return l, past, heir
}

func (l *keyLock) held() bool { return l.unlock != nil }

// sign writes who holds the lock, or who goes past it.
func (l *keyLock) sign(holder string) error {
	if !l.held() {
		holder = goesPast + holder
	}
	if err := os.WriteFile(l.path, []byte(holder+"\n"), 0o600); err != nil {
		return fmt.Errorf("naming who uses the keys: %w", err)
	}
	return nil
}

func (l *keyLock) release() error {
	if l.unlock == nil {
		return nil
	}
	if err := l.unlock(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("letting go of the keys: %w", err)
	}
	return nil
}
