package hooks_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"till/hooks"
)

const noContent204 = "HTTP/1.1 204 No Content\r\n\r\n"

// held is a connection that may hold back what is written, so that several records
// of TLS leave as one.
type held struct {
	net.Conn
	back []byte
	on   bool
}

func (h *held) Write(p []byte) (int, error) {
	if !h.on {
		return h.Conn.Write(p)
	}
	h.back = append(h.back, p...)
	return len(p), nil
}

func (h *held) release() error {
	h.on = false
	_, err := h.Conn.Write(h.back)
	h.back = nil
	return err
}

// What follows an answer in a record of its own, but came with it, was read by TLS
// and not by us; in the same record, by us. It answers nothing either way.
func TestSendHearsNothingThatTLSHasReadAhead(t *testing.T) {
	ours := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{ours.issue(t, -time.Hour, time.Hour)}}
	const another, stray = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "this is no answer"
	for name, records := range map[string][]string{
		"an answer":                    {noContent204, another},
		"a body of 204":                {noContent204, stray},
		"an answer in the same record": {noContent204 + another},
		"a body of 204 in its record":  {noContent204 + stray},
		"one and one in the record":    {noContent204 + another, another},
	} {
		var posts atomic.Int32
		url := "https://" + raw(t, func(c net.Conn) {
			h := &held{Conn: c}
			secured := tls.Server(h, config)
			in := bufio.NewReader(secured)
			for {
				r, err := http.ReadRequest(in)
				if err == nil {
					_, err = io.Copy(io.Discard, r.Body)
				}
				if err != nil {
					return
				}
				answers := []string{noContent204}
				if posts.Add(1) == 1 {
					answers = records
				}
				h.on = true
				for _, record := range answers {
					err = errors.Join(err, write(secured, record))
				}
				if err = errors.Join(err, h.release()); err != nil {
					return
				}
			}
		})
		se := sender(t, func(c *hooks.Config) { c.RootCAs = ours.pool() })
		for i := range 3 {
			if v := se.Send(t.Context(), to(t, url)); !v.OK {
				t.Errorf("%s: delivery %d: verdict %+v", name, i, v)
			}
		}
	}
}

// An endpoint that does not read what it is sent costs no more by TLS, which would
// say goodbye to it and wait until that is read.
func TestSendHangsUpOnWhoDoesNotRead(t *testing.T) {
	ours := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{ours.issue(t, -time.Hour, time.Hour)}}
	l := listen(t)
	socket, err := l.(*net.TCPListener).SyscallConn()
	if err := errors.Join(err, listenSmall(socket)); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	url := "https://" + serveOn(t, l, func(c net.Conn) {
		if tls.Server(c, config).HandshakeContext(t.Context()) == nil {
			<-over
		}
	})
	c := settings()
	c.RootCAs, c.Timeout, c.ConnectTimeout = ours.pool(), time.Second, time.Second
	se := hooks.NewWatched(c, func(_ string, verdict error, conn syscall.RawConn) error {
		return errors.Join(verdict, sendSmall(conn))
	})
	// Whether the goodbye waits depends on which of two gets up first, so there are
	// many.
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r := to(t, url)
			r.Body = make([]byte, 256<<10)
			if v := se.Send(t.Context(), r); v.Err != hooks.WordTimeout || v.Duration > 4*time.Second {
				t.Errorf("verdict %+v", v)
			}
		})
	}
	all.Wait()
	close(over)
	se.Close()
}
