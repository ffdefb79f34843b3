package hooks

import "syscall"

// NewWatched is New with a watch that hears of each address that is about to be
// dialled and of the guard's verdict on it, and has the last word. Only so can a
// test let an address be allowed that it must not dial.
func NewWatched(c Config, watch func(address string, verdict error, c syscall.RawConn) error) *Sender {
	check := guard(Allow{Loopback: c.AllowLoopback})
	return newSender(c, func(network, address string, conn syscall.RawConn) error {
		return watch(address, check(network, address, conn), conn)
	})
}
