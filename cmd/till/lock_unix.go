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
	err = fs.WalkDir(in.FS(), name, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = roots(in, path, e, owner)
		}
		if errors.Is(err, fs.ErrNotExist) { // gone meanwhile: a server goes on beside
			return nil
		}
		return err
	})
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// roots gives one file to another owner, where it is root's.
func roots(in *os.Root, path string, e fs.DirEntry, owner *syscall.Stat_t) error {
	made, err := e.Info()
	if err != nil {
		return err
	}
	if at, ok := made.Sys().(*syscall.Stat_t); !ok || at.Uid != 0 {
		return nil
	}
	return in.Lchown(path, int(owner.Uid), int(owner.Gid))
}
