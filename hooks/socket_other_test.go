//go:build !unix

package hooks_test

import "syscall"

// set sets an option of a socket.
func set(fd uintptr, option, to int) error {
	return syscall.SetsockoptInt(syscall.Handle(fd), syscall.SOL_SOCKET, option, to)
}
