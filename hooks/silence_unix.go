//go:build unix

package hooks

import (
	"errors"
	"net"
	"syscall"
)

// silence returns a look at a connection: true while nothing came over it. It
// spends what came; a connection that is not silent is of no more use.
func silence(c net.Conn) func() bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return func() bool { return true }
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return func() bool { return false }
	}
	var one [1]byte
	var still bool
	look := func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), one[:])
		still = errors.Is(err, syscall.EAGAIN)
		return true
	}
	return func() bool {
		still = false
		return raw.Read(look) == nil && still
	}
}
