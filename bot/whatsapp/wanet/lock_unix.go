//go:build unix

package wanet

import (
	"fmt"
	"os"
	"syscall"
)

// lockFile makes sure that one process at a time writes a journal. The kernel
// lets go of the lock when the process dies, however it dies.
func lockFile(dir *os.Root, name string) (unlock func(), err error) {
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("another process has this network open: %w", err)
	}
	return func() { _ = f.Close() }, nil
}
