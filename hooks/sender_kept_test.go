package hooks_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"till/hooks"
)

// seen counts what an endpoint got, by event.
type seen struct {
	mu  sync.Mutex
	ids map[string]int
}

// serve answers the requests of one connection with 204, as long as more says
// so of the next one; n is how many there were before.
func (s *seen) serve(t *testing.T, more func(c *net.TCPConn, n int) bool) func(net.Conn) {
	t.Helper()
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for n := 0; ; n++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if body, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(body, to(t, "").Body) {
				t.Errorf("a body of %q, %v", body, err)
			}
			if _, sent := r.Header["Idempotency-Key"]; sent {
				t.Error("the endpoint was told what only the transport is")
			}
			s.mu.Lock()
			s.ids[r.Header.Get("Webhook-Id")]++
			s.mu.Unlock()
			if !more(c.(*net.TCPConn), n) {
				return
			}
		}
	}
}

// times is how often an event came.
func (s *seen) times(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

func answer204(c net.Conn) bool {
	_, err := io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	return err == nil
}

// A kept connection that the endpoint closes without saying so costs no delivery
// and repeats none.
func TestSendOverConnectionsThatWereClosed(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	url := "http://" + raw(t, got.serve(t, func(c *net.TCPConn, _ int) bool {
		answer204(c)
		return false
	}))
	se := sender(t, nil)
	var all sync.WaitGroup
	for lane := range 10 {
		all.Go(func() {
			for i := range 20 {
				r := to(t, url)
				r.ID = fmt.Sprintf("evt_%d_%d", lane, i)
				if v := se.Send(t.Context(), r); !v.OK {
					t.Errorf("%s: verdict %+v", r.ID, v)
				}
				if n := got.times(r.ID); n != 1 {
					t.Errorf("%s came %d times", r.ID, n)
				}
			}
		})
	}
	all.Wait()
}

// Where a kept connection dies after the endpoint has read the request, the same
// event is sent once more on a new one: by its id the endpoint knows it.
func TestSendOverConnectionsThatDie(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	url := "http://" + raw(t, got.serve(t, func(c *net.TCPConn, n int) bool {
		if n > 0 {
			_ = c.SetLinger(0)
			return false
		}
		return answer204(c)
	}))
	se := sender(t, nil)
	for i := range 10 {
		r := to(t, url)
		r.ID = fmt.Sprintf("evt_%d", i)
		if v := se.Send(t.Context(), r); !v.OK {
			t.Errorf("%s: verdict %+v", r.ID, v)
		}
		if n, want := got.times(r.ID), min(i, 1)+1; n != want {
			t.Errorf("%s came %d times, want %d", r.ID, n, want)
		}
	}
}

// The one that takes the place of a kept connection is the last: where it dies too, the
// endpoint is left alone until its next time.
func TestSendReplacesADeadConnectionOnce(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	url := "http://" + raw(t, got.serve(t, func(c *net.TCPConn, n int) bool {
		if n == 0 && got.times("evt_2") == 0 {
			return answer204(c)
		}
		_ = c.SetLinger(0)
		return false
	}))
	se := sender(t, nil)
	for i, id := range []string{"evt_1", "evt_2"} {
		r := to(t, url)
		r.ID = id
		if v := se.Send(t.Context(), r); v.OK != (i == 0) || got.times(id) != i+1 {
			t.Errorf("%s: verdict %+v after %d", id, v, got.times(id))
		}
	}
}

// Where a kept connection dies in the middle of an answer, the endpoint has answered:
// the event is not sent again before its time.
func TestSendOverAConnectionThatDiesInAnAnswer(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	url := "http://" + raw(t, got.serve(t, func(c *net.TCPConn, n int) bool {
		if n > 0 {
			_, _ = io.WriteString(c, "HTTP/1.1 500 No\r\nX-A: ")
			return false
		}
		return answer204(c)
	}))
	se := sender(t, nil)
	for _, want := range []string{"", hooks.WordReset} {
		r := to(t, url)
		r.ID = "evt_" + want
		if v := se.Send(t.Context(), r); v.Err != want || got.times(r.ID) != 1 {
			t.Errorf("verdict %+v after %d", v, got.times(r.ID))
		}
	}
}

// A connection that dies the first time it is used is a failed attempt, and not
// tried again before its time. How the request was signed is told all the same: whoever
// looks into it compares that with what the endpoint saw.
func TestSendOverAConnectionThatDiesAtOnce(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	url := "http://" + raw(t, got.serve(t, func(c *net.TCPConn, _ int) bool {
		_ = c.SetLinger(0)
		return false
	}))
	r := to(t, url)
	signed, err := hooks.Sign(r.Secrets, r.ID, r.At, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	v := sender(t, nil).Send(t.Context(), r)
	if v.OK || v.Err != hooks.WordReset || v.Signature != signed || got.times("evt_1") != 1 {
		t.Errorf("verdict %+v after %d", v, got.times("evt_1"))
	}
}

// An endpoint that goes away with the connections that were kept is refused, not
// waited for.
func TestSendAfterAnEndpointIsGone(t *testing.T) {
	got := &seen{ids: map[string]int{}}
	l := listen(t)
	url := "http://" + serveOn(t, l, got.serve(t, func(c *net.TCPConn, n int) bool {
		if n == 0 {
			l.Close()
			return answer204(c)
		}
		_ = c.SetLinger(0)
		return false
	}))
	se := sender(t, nil)
	if v := se.Send(t.Context(), to(t, url)); !v.OK {
		t.Errorf("verdict %+v", v)
	}
	if v := se.Send(t.Context(), to(t, url)); v.OK || v.Err != hooks.WordRefused {
		t.Errorf("then: verdict %+v", v)
	}
}
