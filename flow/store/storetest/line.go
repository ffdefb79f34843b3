package storetest

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"till/flow/store"
)

// Line is a way to PostgreSQL that a test can cut, as an outage does: what is
// open breaks off, and nobody gets through any more. A line that is hushed carries
// nothing, and says so to nobody, as one to a host that is gone.
type Line struct {
	network string
	address string // of the server
	ln      net.Listener

	mu      sync.Mutex
	pooling Pooling
	cut     bool
	hush    chan struct{} // closed when it carries again; nil: it does
	open    map[net.Conn]bool
	done    sync.WaitGroup
}

// Through lays a line of its own to a place in PostgreSQL, and returns the same
// place at its other end.
func Through(tb testing.TB, c store.Config) (store.Config, *Line) {
	tb.Helper()
	to, err := pgconn.ParseConfig(c.URL)
	if err != nil {
		tb.Fatal(err)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		tb.Fatal(err)
	}
	l := &Line{open: map[net.Conn]bool{}}
	l.network, l.address = pgconn.NetworkAddress(to.Host, to.Port)
	var lc net.ListenConfig
	if l.ln, err = lc.Listen(tb.Context(), "tcp", "127.0.0.1:0"); err != nil {
		tb.Fatal(err)
	}
	l.done.Go(l.serve)
	tb.Cleanup(func() {
		_ = l.ln.Close()
		l.Cut()
		l.done.Wait()
	})
	host, port, err := net.SplitHostPort(l.ln.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query() // it wins over the address's own host
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	c.URL = u.String()
	return c, l
}

// Cut cuts the line.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	l.speak()
	for c := range l.open {
		_ = c.Close()
	}
}

// Hush keeps back whatever is said from now on.
func (l *Line) Hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hush == nil {
		l.hush = make(chan struct{})
	}
}

// Mend joins a line that was cut, and carries what was kept back.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = false
	l.speak()
}

// speak ends a hush. The caller holds the lock.
func (l *Line) speak() {
	if l.hush != nil {
		close(l.hush)
		l.hush = nil
	}
}

func (l *Line) serve() {
	for {
		near, err := l.ln.Accept()
		if err != nil {
			return
		}
		l.done.Go(func() { l.carry(near) })
	}
}

// carry carries what is said both ways until either side has ended.
func (l *Line) carry(near net.Conn) {
	var d net.Dialer
	defer l.holds(near)()
	far, err := d.DialContext(context.Background(), l.network, l.address) //nolint:forbidigo // ends with the line, not with a call
	if err != nil {
		return
	}
	defer l.holds(far)()
	l.mu.Lock()
	pooling := l.pooling
	l.mu.Unlock()
	if pooling != NotPooled && !pooling.greets(near, far) {
		return
	}
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		l.done.Go(func() {
			_, _ = io.Copy(way[0], spoken{l, way[1]}) // that it broke off is what the test is about
			ended <- struct{}{}
		})
	}
	<-ended
}

// spoken is what comes from one side while the line is not hushed.
type spoken struct {
	line *Line
	from net.Conn
}

func (s spoken) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.line.mu.Lock()
	hush := s.line.hush
	s.line.mu.Unlock()
	if hush != nil {
		<-hush
	}
	return n, err
}

// holds keeps a connection in mind, to be cut; what it returns closes it.
func (l *Line) holds(c net.Conn) (let func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = true
	if l.cut {
		_ = c.Close()
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.open, c)
		_ = c.Close()
	}
}
