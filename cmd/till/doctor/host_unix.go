//go:build linux || darwin

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// runtimeWindows says that file modes mean nothing here.
const runtimeWindows = false

// DiskSpace asks the system how much room is on the disk of a folder.
func DiskSpace(dir string) (free, all uint64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil //nolint:gosec // sizes are positive
}

// maxFiles is how many files a process may have open at most.
func maxFiles() (uint64, error) {
	var r syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r)
	return r.Max, err
}

// heldBy says whether a process holds the lock of a data dir, and which one if
// it wrote that down; 0 where it did not.
func heldBy(lock string) (pid int, held bool, err error) {
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { _ = f.Close() }() // which also lets go of it
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false, err
	}
	text, err := os.ReadFile(lock)
	if err == nil {
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return pid, true, nil
}
