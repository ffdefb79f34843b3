package api

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// watched hands out connections that look at the first line of what comes over
// them, because the server below us drops what the guard must see of it: empty
// lines before it, and an end of the line without CR.
type watched struct {
	net.Listener

	mu     sync.Mutex
	unused map[*wire]bool // nothing ever came over them
	ends   bool
}

// Accept waits for the next connection.
func (w *watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		return nil, err // the server compares it with net.ErrClosed
	}
	out := &wire{Conn: c, first: true, of: w}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ends {
		_ = c.Close()
		return out, nil
	}
	if w.unused == nil {
		w.unused = map[*wire]bool{}
	}
	w.unused[out] = true
	return out, nil
}

// used forgets a connection that something came over, or that is closed: also one that
// is refused unread, as where there are too many, or each would be kept for good.
func (w *watched) used(c *wire) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.unused, c)
}

// end closes what nobody has used, now and from now on. The server below us takes
// such a connection for one that a request is coming over, and waits for it;
// browsers open more than they need.
func (w *watched) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = true
	for c := range w.unused {
		_ = c.Conn.Close()
	}
	w.unused = nil
}

// wire is a connection. The server reads and writes it from one goroutine.
//
// What follows an answer is the first line of the next request. Of requests
// that come in one packet with the one before, the first line is not seen: they
// are judged by everything else.
type wire struct {
	net.Conn

	of    *watched
	came  bool // something did over it
	first bool // the next bytes are of a first line
	some  bool // something of it was read
	last  byte // that was read of it
	loose bool // a line ended in LF alone
	mute  bool // nothing is written any more

	unread atomic.Bool // what is still to come of a request is of no use
}

// How long, and for how many bytes, whoever sends what is of no use is heard out.
const (
	lingerTime  = 5 * time.Second
	lingerBytes = 32 << 20
)

// Close ends the connection. A request that was refused before it was read is heard out
// first, within bounds: bytes that nobody reads make the machine break the connection
// instead of ending it, and whoever is still writing, as a proxy is, takes that for no
// answer at all.
func (c *wire) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.unread.CompareAndSwap(true, false) && half.CloseWrite() == nil {
		_ = c.SetReadDeadline(time.Now().Add(lingerTime)) //nolint:forbidigo // connections know no other clock; where this fails, so does the read
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
	if c.of != nil {
		c.of.used(c)
	}
	err := c.Conn.Close()
	return err // it is the connection
}

// Read reads, and judges what belongs to a first line. Who wrote to us, or was too slow
// to, may be written to again: the server sets a bound for the answers of its handler
// alone, and that of the one before is over after a pause. What it says by itself (go on,
// too large, cannot be read) would then never be sent.
func (c *wire) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) //nolint:forbidigo // connections know no other clock; where this fails, so does the write
	if c.of != nil && !c.came {
		c.came = true
		c.of.used(c)
	}
	if c.first && n > 0 {
		c.judge(b[:n])
	}
	return n, err // it is the connection
}

func (c *wire) judge(b []byte) {
	for _, now := range b {
		last := c.last
		c.last = now
		if now != '\n' {
			c.some = c.some || now != '\r'
			continue
		}
		if last != '\r' {
			c.loose = true
		}
		if c.some || c.loose { // else it was an empty line, which servers skip
			c.first = false
			return
		}
	}
}

// silent says whether nothing of a request has come yet.
func (c *wire) silent() bool { return c.first && !c.some }

// Write writes an answer, after which another request may come.
func (c *wire) Write(b []byte) (int, error) {
	if c.mute {
		return len(b), nil
	}
	if !bytes.HasPrefix(b, []byte("HTTP/1.1 100 ")) { // its request goes on
		c.first, c.some, c.last = true, false, 0
	}
	n, err := c.Conn.Write(b)
	return n, err // it is the connection
}
