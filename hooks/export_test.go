package hooks

import (
	"context"
	"net"
	"syscall"
)

// NewWatched is New with a watch that hears of each address that is about to be
// dialled and of the guard's verdict on it, and has the last word. Only so can a
// test let an address be allowed that it must not dial.
func NewWatched(c Config, watch func(address string, verdict error, c syscall.RawConn) error) *Sender {
	check := guard(Allow{Loopback: c.AllowLoopback})
	return newSender(c, func(network, address string, conn syscall.RawConn) error {
		return watch(address, check(network, address, conn), conn)
	})
}

// NewDialing is New with connections that are made as a test wants.
func NewDialing(c Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Sender {
	w := network(c, nil)
	w.dial = dial
	c.Transport = w
	return New(c)
}
