package hooks_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"till/hooks"
)

// An endpoint that answers before it has read what it is sent, and never reads
// the rest, has answered.
func TestSendTakesAnAnswerThatComesEarly(t *testing.T) {
	l := listen(t)
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err := errors.Join(err, listenSmall(raw)); err != nil {
		t.Fatal(err)
	}
	heard := make(chan struct{})
	url := "http://" + serveOn(t, l, func(c net.Conn) {
		if _, err := c.Read(make([]byte, 100)); err == nil && answer204(c) {
			<-heard
		}
	})
	se := hooks.NewWatched(settings(), func(_ string, verdict error, conn syscall.RawConn) error {
		return errors.Join(verdict, sendSmall(conn))
	})
	r := to(t, url)
	r.Body = make([]byte, 256<<10)
	v := se.Send(t.Context(), r)
	close(heard)
	if !v.OK || v.Status != 204 {
		t.Errorf("verdict %+v", v)
	}
	se.Close()
}

// What an endpoint says over a kept connection before it is asked answers
// nothing: neither right behind an answer nor a while later.
func TestSendHearsNothingThatItDidNotAskFor(t *testing.T) {
	const other = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"
	answered, said := make(chan struct{}), make(chan struct{})
	for name, more := range map[string]func(c net.Conn) error{
		"at once": func(c net.Conn) error { return write(c, "HTTP/1.1 204 No Content\r\n\r\n"+other) },
		"later": func(c net.Conn) error {
			err := write(c, "HTTP/1.1 204 No Content\r\n\r\n")
			<-answered
			err = errors.Join(err, write(c, other))
			said <- struct{}{}
			return err
		},
	} {
		var mu sync.Mutex
		conns := 0
		url := "http://" + raw(t, func(c net.Conn) {
			mu.Lock()
			conns++
			first := conns == 1
			mu.Unlock()
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err == nil {
					_, err = io.Copy(io.Discard, r.Body)
				}
				if err == nil && first {
					first, err = false, more(c)
				} else if err == nil {
					err = write(c, "HTTP/1.1 204 No Content\r\n\r\n")
				}
				if err != nil {
					return
				}
			}
		})
		se := sender(t, nil)
		for i := range 3 {
			if v := se.Send(t.Context(), to(t, url)); !v.OK {
				t.Errorf("%s: delivery %d: verdict %+v", name, i, v)
			}
			if i == 0 && name == "later" {
				answered <- struct{}{}
				<-said
			}
		}
		mu.Lock()
		if conns != 2 {
			t.Errorf("%s: %d connections", name, conns)
		}
		mu.Unlock()
	}
}

// A connection that the endpoint will not read from again serves no second delivery,
// although it stays open: one that it said it closes, one whose answer was not read to
// its end, and one over which not all was sent.
func TestSendUsesNoConnectionThatIsSpent(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		body   int // that is sent, of which the endpoint reads the beginning
	}{
		"said to be closed":       {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", 14},
		"HTTP/1.0":                {"HTTP/1.0 204 No Content\r\n\r\n", 14},
		"more than is read of it": {"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 64<<10), 14},
		"answered early":          {"HTTP/1.1 204 No Content\r\n\r\n", 256 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			small, err := l.(*net.TCPListener).SyscallConn()
			if err := errors.Join(err, listenSmall(small)); err != nil {
				t.Fatal(err)
			}
			var conns atomic.Int32
			over := make(chan struct{})
			url := "http://" + serveOn(t, l, func(conn net.Conn) {
				first := conns.Add(1) == 1
				if _, err := conn.Read(make([]byte, 4096)); err != nil {
					return
				}
				if !first {
					answer204(conn)
				} else if write(conn, c.answer) == nil {
					<-over
				}
			})
			t.Cleanup(func() { close(over) })
			se := hooks.NewWatched(settings(), func(_ string, verdict error, conn syscall.RawConn) error {
				return errors.Join(verdict, sendSmall(conn))
			})
			t.Cleanup(se.Close)
			long := to(t, url)
			long.Body = make([]byte, c.body)
			if v := se.Send(t.Context(), long); !v.OK {
				t.Errorf("the first delivery: verdict %+v", v)
			}
			if v := se.Send(t.Context(), to(t, url)); !v.OK || conns.Load() != 2 {
				t.Errorf("the second delivery: verdict %+v, over %d connections", v, conns.Load())
			}
		})
	}
}

func write(c net.Conn, text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// What is sent is one request, whatever its trace holds, and has nothing in it
// that was not asked for.
func TestSendWritesOneRequest(t *testing.T) {
	got := make(chan string, 1)
	url := "http://" + raw(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		head := ""
		for !strings.HasSuffix(head, "\r\n\r\n") {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			head += line
		}
		body := make([]byte, 14)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		answer204(c)
		rest, _ := io.ReadAll(in)
		got <- head + string(body) + string(rest)
	})
	se := sender(t, nil)
	r := to(t, url+"/a%20b?c=d&e")
	r.Traceparent, r.Tracestate = "00-1\r\nHost: other\r\n\r\nGET / HTTP/1.1", "x\n"
	v := se.Send(t.Context(), r)
	se.Close()
	if !v.OK {
		t.Fatalf("verdict %+v", v)
	}
	want := fmt.Sprintf("POST /a%%20b?c=d&e HTTP/1.1\r\nHost: %s\r\nContent-Length: 14\r\nContent-Type: application/json\r\n"+
		"Traceparent: 00-1  Host: other    GET / HTTP/1.1\r\nTracestate: x\r\nUser-Agent: Till-Webhooks/1\r\nWebhook-Id: evt_1\r\nWebhook-Signature: %s\r\n"+
		"Webhook-Timestamp: %d\r\n\r\n%s", strings.TrimPrefix(url, "http://"), v.Signature, r.At.Unix(), r.Body)
	if text := <-got; text != want {
		t.Errorf("sent:\n%q\nnot:\n%q", text, want)
	}
}

// Over TLS too a connection serves again and again, also to one that would rather
// speak HTTP/2.
func TestSendKeepsConnectionsOverTLS(t *testing.T) {
	var opened atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thank you") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	se := sender(t, func(c *hooks.Config) { c.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs })
	for range 5 {
		if v := se.Send(t.Context(), to(t, s.URL)); !v.OK || string(v.Body) != "thank you" {
			t.Errorf("verdict %+v", v)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 5 deliveries", n)
	}
}

// A TLS session is taken up again where its connection was not kept: negotiating anew
// costs both sides ten times as much.
func TestSendTakesUpTLSSessions(t *testing.T) {
	resumed := make(chan bool, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resumed <- r.TLS.DidResume
		w.Header().Set("Connection", "close")
	}))
	t.Cleanup(s.Close)
	se := sender(t, func(c *hooks.Config) { c.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs })
	for i := range 3 {
		if v := se.Send(t.Context(), to(t, s.URL)); !v.OK {
			t.Fatalf("delivery %d: verdict %+v", i, v)
		}
		if was := <-resumed; was != (i > 0) {
			t.Errorf("delivery %d: resumed is %t", i, was)
		}
	}
}
