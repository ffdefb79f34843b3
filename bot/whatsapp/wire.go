package whatsapp

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// wire is one connection to the network. It is there to be hung up without
// harm: the library leaves a goroutine behind for ever when it hangs up while
// something is arriving, so first nothing must arrive any more.
type wire struct {
	net.Conn
	once  sync.Once
	ended chan struct{} // closed when the library has let go

	mu      sync.Mutex
	muted   bool
	reading bool
	parked  chan struct{} // closed when muted and nothing that arrived is under way
}

func newWire(conn net.Conn) *wire {
	return &wire{Conn: conn, ended: make(chan struct{}), parked: make(chan struct{})}
}

// Read reads, until the wire is muted: then it waits for the end.
func (w *wire) Read(p []byte) (int, error) {
	w.mu.Lock()
	w.reading = true
	w.park()
	w.mu.Unlock()
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	w.reading = w.muted // who waits for the end is still reading
	muted := w.muted
	w.mu.Unlock()
	if !muted {
		return n, err // a connection hands its errors on
	}
	<-w.ended
	return 0, net.ErrClosed
}

// Write writes, until the wire is muted: then it fails in a way that the
// library does not take for a closed wire, or it would wait for the other side
// to say good-bye.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	muted := w.muted
	w.mu.Unlock()
	if muted {
		return 0, io.ErrClosedPipe
	}
	return w.Conn.Write(p) // a connection hands its errors on
}

// Close ends the wire for the library.
func (w *wire) Close() error {
	err := w.Conn.Close()
	w.once.Do(func() { close(w.ended) })
	if errors.Is(err, net.ErrClosed) {
		return nil // cut before
	}
	return err // a connection hands its errors on
}

// park notes that all that arrived was taken. The caller holds mu.
func (w *wire) park() {
	if !w.muted || !w.reading {
		return
	}
	select {
	case <-w.parked:
	default:
		close(w.parked)
	}
}

// mute lets nothing arrive any more and waits until what has arrived is taken,
// within bounds.
func (w *wire) mute(within time.Duration) {
	w.mu.Lock()
	w.muted = true
	w.park()
	w.mu.Unlock()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-w.parked:
	case <-w.ended:
	case <-late.C:
	}
}

// cut ends the wire under the library, as a network that breaks does.
func (w *wire) cut() { _ = w.Conn.Close() }

// over says whether the library has let go of the wire.
func (w *wire) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}
