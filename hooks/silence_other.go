//go:build !unix

package hooks

import "net"

// silence returns a look at a connection. Here it sees nothing, and so no
// connection serves twice: what the other side said unasked would be taken for
// the answer to the next post.
func silence(net.Conn) func() bool { return func() bool { return false } }
