package hooks_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// smallBuffer is what a socket of a metered connection may hold, so that what is
// counted as written is nearly what was read. The system doubles it.
const smallBuffer = 16 << 10

// meter is a listener that counts what its endpoint could get rid of.
type meter struct {
	net.Listener
	open atomic.Int64 // connections
	most atomic.Int64 // bytes that one answer took
}

func (m *meter) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m.open.Add(1)
	tcp := c.(*net.TCPConn)
	return &metered{TCPConn: tcp, m: m}, tcp.SetWriteBuffer(smallBuffer)
}

// metered is a connection of a meter. Only Write may be used to write.
type metered struct {
	*net.TCPConn
	m       *meter
	written atomic.Int64 // since a request was read
	once    sync.Once
}

func (c *metered) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 {
		c.written.Store(0) // another answer begins
	}
	return n, err
}

func (c *metered) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	written := c.written.Add(int64(n))
	for most := c.m.most.Load(); written > most; most = c.m.most.Load() {
		if c.m.most.CompareAndSwap(most, written) {
			break
		}
	}
	return n, err
}

func (c *metered) Close() error {
	c.once.Do(func() { c.m.open.Add(-1) })
	return c.TCPConn.Close()
}

// listenSmall makes the other side's buffer small, before it connects.
func listenSmall(c syscall.RawConn) error { return small(c, syscall.SO_RCVBUF) }

// sendSmall makes our own buffer small, before we connect.
func sendSmall(c syscall.RawConn) error { return small(c, syscall.SO_SNDBUF) }

func small(c syscall.RawConn, which int) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = set(fd, which, smallBuffer) }); err != nil {
		return err
	}
	return failed
}

// endpoint is one behind a meter: its URL.
type endpoint func(t *testing.T, m *meter) string

// speaks is an endpoint that takes a request and does then as it likes.
func speaks(scheme string, serve func(c *metered)) endpoint {
	return func(t *testing.T, m *meter) string {
		t.Helper()
		return scheme + "://" + serveOn(t, m, func(c net.Conn) { serve(c.(*metered)) })
	}
}

// handles is an endpoint that speaks HTTP.
func handles(h http.HandlerFunc) endpoint {
	return func(t *testing.T, m *meter) string {
		t.Helper()
		s := httptest.NewUnstartedServer(h)
		s.Listener.Close()
		s.Listener = m
		s.Start()
		t.Cleanup(s.Close)
		return s.URL
	}
}

// says is an endpoint that answers a request with a text and hangs up.
func says(text string) endpoint {
	return speaks("http", func(c *metered) {
		drained(c)
		_, _ = io.WriteString(onlyWriter{c}, text)
	})
}

// never is an endpoint that answers with a beginning and then the same without
// end.
func never(begin, again string) endpoint {
	return speaks("http", func(c *metered) {
		drained(c)
		flood(c, begin, again)
	})
}

func flood(c *metered, begin, again string) {
	_, err := c.Write([]byte(begin))
	for chunk := bytes.Repeat([]byte(again), max(1, smallBuffer/len(again))); err == nil; {
		_, err = c.Write(chunk)
	}
}

// drips is an endpoint that answers by drips.
func drips(begin, more string) endpoint {
	return speaks("http", func(c *metered) {
		drained(c)
		drip(c, begin, more)
	})
}

// drip writes a beginning and then a byte of more each 20 ms, without end.
func drip(c *metered, begin, more string) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	_, err := c.Write([]byte(begin))
	for i := 0; err == nil; i++ {
		next := byte('x')
		if i < len(more) {
			next = more[i]
		}
		<-pace.C
		_, err = c.Write([]byte{next})
	}
}

// resets is an endpoint that begins to answer and resets the connection.
func resets(begin string) endpoint {
	return speaks("http", func(c *metered) {
		drained(c)
		_, _ = c.Write([]byte(begin))
		_ = c.SetLinger(0)
	})
}

// onlyWriter hides a connection's ways around Write.
type onlyWriter struct{ io.Writer }
