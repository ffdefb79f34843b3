package main

import (
	"net"

	"github.com/rogpeppe/go-internal/testscript"
)

// listen takes a port of this machine until the script ends, and puts its
// address into a variable.
func listen(ts *testscript.TestScript, _ bool, args []string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = ln.Close() })
	ts.Setenv(args[0], ln.Addr().String())
}
