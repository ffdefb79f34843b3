//go:build unix

package main

import (
	"errors"
	"io/fs"
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

// handOver gives what root made in a folder to whom another one belongs, as far as root
// may: a server is seldom root, and could not open it.
func handOver(dir, name, like string) (err error) {
	info, err := os.Stat(like)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	in, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	err = fs.WalkDir(in.FS(), name, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, in.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
