//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes a file for this process alone, until the process ends or
// unlock is called.
func lockFile(path string) (unlock func() error, err error) {
	syscall.Umask(0o077) // whatever is made from here on is for its owner alone
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another Till uses it")
		}
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
