package hooks

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	// smallPost is how long a post may be to be written before its answer is read:
	// any socket takes as much without the other side reading.
	smallPost = 8 << 10
	keptPost  = 16 << 10 // of memory that is used again for the next post
	// answerBuffer bounds a line of a chunked body, and with it how much may stand
	// around each chunk.
	answerBuffer = 4 << 10
)

// errLongHeader is for an answer whose header does not end.
var errLongHeader = fmt.Errorf("the header of an answer is longer than %d bytes", maxHeader)

// past is a time that every deadline has passed.
var past = time.Unix(1, 0)

// wire posts by HTTP/1.1. The standard library's transport has two goroutines for
// each connection, and each post goes through both of them and back; here whoever
// posts writes and reads by itself, which costs about half. What is read is still
// understood by the standard library. It makes no request but ours: it sends to the
// very host that the URL names, through no proxy, asks for no compression, and
// every answer is the last.
type wire struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config
	connect time.Duration // for a handshake
	idle    idle
	posts   sync.Pool // of *bytes.Buffer
}

// RoundTrip makes one post. A kept connection that turns out to be dead, before a
// byte of an answer, is replaced by a new one, once: the endpoint knows the repeat
// by its id.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	post, err := w.compose(r)
	if err != nil {
		return nil, err
	}
	defer w.done(post)
	c := w.idle.take(ctx, keyOf(r.URL))
	kept := c != nil
	for {
		if c == nil {
			if c, err = w.open(ctx, r.URL); err != nil {
				return nil, err
			}
		}
		resp, err := c.exchange(r, post.Bytes())
		if err == nil {
			return resp, nil
		}
		c.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !kept || c.answered {
			return nil, err
		}
		c, kept = nil, false
	}
}

// CloseIdleConnections closes what waits for the next post, and what is at work
// once it is done.
func (w *wire) CloseIdleConnections() { w.idle.end() }

// keyOf is whose a connection is. Only what is sent to the very same place shares
// one.
func keyOf(u *url.URL) string { return u.Scheme + "://" + u.Host }

// compose writes a post.
func (w *wire) compose(r *http.Request) (*bytes.Buffer, error) {
	b, ok := w.posts.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	b.Reset()
	b.WriteString(r.Method + " " + r.URL.RequestURI() + " HTTP/1.1\r\nHost: " + r.URL.Host + "\r\nContent-Length: ")
	b.WriteString(strconv.FormatInt(r.ContentLength, 10) + "\r\n")
	if err := r.Header.Write(b); err != nil { // a line break in a value becomes a space
		return nil, err
	}
	b.WriteString("\r\n")
	_, err := io.Copy(b, r.Body)
	return b, errors.Join(err, r.Body.Close())
}

// done keeps the memory of a post for the next one. That of a long one may still
// be read by whoever writes it.
func (w *wire) done(post *bytes.Buffer) {
	if post.Len() <= smallPost && post.Cap() <= keptPost {
		w.posts.Put(post)
	}
}

// open makes a connection to where a URL leads.
func (w *wire) open(ctx context.Context, u *url.URL) (*conn, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	tcp, err := w.dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	c := &conn{net: tcp, tcp: tcp, idle: &w.idle, key: keyOf(u), silent: silence(tcp)}
	c.in = bufio.NewReaderSize(c, answerBuffer)
	if u.Scheme != "https" {
		return c, nil
	}
	config := w.tls.Clone()
	config.ServerName = u.Hostname()
	shake, cancel := context.WithTimeout(ctx, w.connect)
	defer cancel()
	secured := tls.Client(tcp, config)
	if err := secured.HandshakeContext(shake); err != nil {
		_ = tcp.Close()
		return nil, handshakeError{err}
	}
	c.net = secured
	return c, nil
}

// conn is a connection. It is in one pair of hands at a time.
type conn struct {
	net    net.Conn
	tcp    net.Conn      // below TLS; the same where there is none
	in     *bufio.Reader // of what Read reads
	idle   *idle
	key    string
	silent func() bool // whether the other side has neither said anything nor hung up

	left     int         // bytes that the header of this answer may still have
	bounded  bool        // whether that holds
	answered bool        // a byte of this answer came
	release  func() bool // of the post's context
	broken   bool        // it serves no further post

	place *list.Element // among those that wait
	timer *time.Timer   // closes it when it has waited for long
}

// Read reads an answer; while that is its header, no more than a bound.
func (c *conn) Read(p []byte) (int, error) {
	if !c.bounded {
		return c.net.Read(p)
	}
	if c.left <= 0 {
		return 0, errLongHeader
	}
	n, err := c.net.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// exchange sends a post and reads the header of its answer. The end of the
// request's context ends every wait, also that for the answer's body.
func (c *conn) exchange(r *http.Request, post []byte) (*http.Response, error) {
	c.release = context.AfterFunc(r.Context(), func() { _ = c.net.SetDeadline(past) })
	c.left, c.bounded, c.answered, c.broken = maxHeader, true, false, false
	written := make(chan error, 1)
	if len(post) <= smallPost {
		_, err := c.net.Write(post)
		written <- err
	} else { // an endpoint may answer before it has read all
		go func() {
			_, err := c.net.Write(post)
			written <- err
		}()
	}
	resp, err := c.header(r) // also where writing failed: the answer may tell why
	if c.answered && err != nil {
		err = answerError{err}
	}
	if err != nil {
		return nil, err
	}
	c.bounded = false
	select {
	case err := <-written:
		c.broken = err != nil
	default:
		c.broken = true
	}
	c.broken = c.broken || resp.Close || resp.StatusCode == http.StatusSwitchingProtocols
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = io.NopCloser(c.in)
	}
	if resp.Body == http.NoBody {
		c.end()
		return resp, nil
	}
	resp.Body = &answerBody{Reader: resp.Body, conn: c}
	return resp, nil
}

// header reads the header of an answer, past those that only announce one.
func (c *conn) header(r *http.Request) (*http.Response, error) {
	for {
		if _, err := c.in.Peek(1); err != nil {
			return nil, err
		}
		c.answered = true
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
}

// end keeps a connection for the next post where its answer was read to the end
// and nothing follows.
func (c *conn) end() {
	spent := c.broken || c.more() // while the post's context still ends every wait
	if !c.release() || spent {
		c.hangUp()
		return
	}
	c.idle.put(c)
}

// more says whether something follows an answer and was read with it. TLS reads
// ahead too, where the look at the socket does not see it; it gives what it has,
// and waits for nothing, once the deadline has passed.
func (c *conn) more() bool {
	secured, ok := c.net.(*tls.Conn)
	if !ok || c.in.Buffered() > 0 {
		return c.in.Buffered() > 0
	}
	var one [1]byte
	err := secured.SetReadDeadline(past)
	if err == nil {
		_, err = secured.Read(one[:])
	}
	return !errors.Is(err, os.ErrDeadlineExceeded) || secured.SetReadDeadline(time.Time{}) != nil
}

// close gives up a connection.
func (c *conn) close() {
	c.release()
	c.hangUp()
}

// hangUp closes a connection at once. TLS would first say so, and wait 5 s for
// that where the other side does not read.
func (c *conn) hangUp() { _ = c.tcp.Close() }

// answerBody is the body of an answer, and gives its connection up when it is
// closed.
type answerBody struct {
	io.Reader // whose own Close would read on

	conn  *conn
	ended bool
}

// Read reads the body.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF) // one that is cut off ends otherwise
	return n, err
}

// Close keeps the connection where the body was read to its end.
func (b *answerBody) Close() error {
	if !b.ended {
		b.conn.broken = true
	}
	b.conn.end()
	return nil
}
