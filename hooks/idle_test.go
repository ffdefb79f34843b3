package hooks

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
)

// waiting is a connection that may be kept, and the other end of it.
func waiting(t *testing.T, i *idle, key string) (*conn, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	return &conn{net: here, tcp: here, idle: i, key: key, silent: func() bool { return true }}, there
}

// closed says whether the other end hung up. What it waits for is there already.
func closed(c net.Conn) bool {
	_ = c.SetReadDeadline(past)
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// For one endpoint so many connections are kept, and no more in all: then the one
// goes that was used last longest ago.
func TestIdleConnectionsAreBounded(t *testing.T) {
	i := new(idle)
	var others []net.Conn
	for range idlePerHost + 1 {
		c, other := waiting(t, i, "http://a")
		i.put(c)
		others = append(others, other)
	}
	for n, other := range others {
		if is := closed(other); is != (n == idlePerHost) {
			t.Errorf("connection %d of one endpoint is closed: %t", n, is)
		}
	}
	var rest []net.Conn
	for n := range idleConns {
		c, other := waiting(t, i, fmt.Sprintf("http://%d", n))
		i.put(c)
		rest = append(rest, other)
	}
	for n, other := range others {
		if !closed(other) {
			t.Errorf("connection %d is kept beyond the bound", n)
		}
	}
	last := i.take(t.Context(), "http://7")
	if i.all.Len() != idleConns-1 || len(i.to) != idleConns-1 || last == nil {
		t.Errorf("%d are kept for %d endpoints", i.all.Len(), len(i.to))
	}
	i.end()
	i.put(last)
	for n, other := range rest {
		if !closed(other) {
			t.Errorf("connection %d is left", n)
		}
	}
	if i.all.Len() != 0 || len(i.to) != 0 || i.take(t.Context(), "http://7") != nil {
		t.Errorf("%d are kept after the end", i.all.Len())
	}
}

// A connection that waited for long is closed, and one that was taken meanwhile is
// not.
func TestIdleConnectionsEnd(t *testing.T) {
	i := new(idle)
	one, there := waiting(t, i, "http://a")
	two, other := waiting(t, i, "http://a")
	i.put(one)
	i.put(two)
	if c := i.take(t.Context(), "http://a"); c != two {
		t.Error("not the one that was used last")
	}
	i.drop(one)
	i.drop(two)
	if !closed(there) || closed(other) {
		t.Errorf("closed: %t and %t", closed(there), closed(other))
	}
}
