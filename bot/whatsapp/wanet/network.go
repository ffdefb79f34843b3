package wanet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.mau.fi/libsignal/logger"
)

// Bounds of the network. They are generous for a laptop and exist so that a
// misbehaving client is refused instead of filling memory.
const (
	maxConns    = 512
	maxAccounts = 20_000
	maxQueue    = 10_000 // undelivered stanzas of one device
	maxMessages = 5_000  // messages a phone remembers
	maxAhead    = 256    // stanzas on the line that the client has not acked yet, unless told
)

var (
	// ErrNoAccount says that a number is not on this network.
	ErrNoAccount = errors.New("wanet: this number is not on the network")
	// ErrQueueFull says that a device has too much waiting for it.
	ErrQueueFull = errors.New("wanet: too much is waiting for this device")
	// ErrInput says that a number, text or code given by the caller is no good.
	ErrInput = errors.New("wanet: not acceptable")
	// ErrClosed says that the network was closed or its file failed.
	ErrClosed = errClosed
)

// Config is what a network is opened with. The zero value of each field works.
type Config struct {
	File     string           // where the state is kept; empty: in memory only
	Log      *slog.Logger     // nil: no log
	Now      func() time.Time // nil: the system's clock
	Rand     io.Reader        // nil: crypto/rand
	RootSeed []byte           // given: the root key follows from it (tests)
	AckDelay time.Duration    // how long the server takes to ack a message
	Ahead    int              // stanzas on the line that the client has not acked yet; 0: 256
}

// Network is a running WhatsApp network. Open makes one; it serves clients
// through Serve and DialContext until Close.
type Network struct {
	log   *slog.Logger
	now   func() time.Time
	rand  io.Reader
	trust *trust
	j     *journal

	pipes  chan net.Conn
	done   chan struct{}
	cancel context.CancelFunc
	launch func(func(context.Context))

	life   sync.Mutex // guards closed and the start of goroutines
	closed bool
	wg     sync.WaitGroup

	mu        sync.Mutex // guards all below, and what the comments say elsewhere
	accounts  map[string]*Account
	byLID     map[string]*Account
	conns     map[*conn]struct{}
	refs      map[string]*conn // QR refs shown by connections that want pairing
	faults    Faults
	ackDelay  time.Duration // when no fault sets another
	ahead     int           // see Config.Ahead
	intercept func(Delivery) Action
	nack      func(Sent) int
	silent    func(xmlns string) bool
	stats     Stats
	dice      uint64
}

// Stats counts what happened since the network was opened.
type Stats struct {
	Accounts   int   `json:"accounts"`
	Phones     int   `json:"phones"`
	Devices    int   `json:"devices"` // linked clients
	Online     int   `json:"online"`
	Pending    int   `json:"pending"` // stanzas not acked by their device
	Sent       int64 `json:"sent"`    // messages accepted from senders
	Delivered  int64 `json:"delivered"`
	Retries    int64 `json:"retries"`
	Duplicates int64 `json:"duplicates"`
	Dropped    int64 `json:"dropped"`
	Nacked     int64 `json:"nacked"`
	Undecoded  int64 `json:"undecoded"` // frames and messages nobody could read
}

var quietOnce sync.Once

// quiet is a logger for libsignal, which else prints every bad MAC to stdout.
type quiet struct{}

func (quiet) Debug(string, string)   {}
func (quiet) Info(string, string)    {}
func (quiet) Warning(string, string) {}
func (quiet) Error(string, string)   {}
func (quiet) Configure(string)       {}

// Open starts a network, with the state of c.File if there is any. It serves
// nobody yet. The context bounds the opening only; Close ends the network.
//
// libsignal has one logger for the whole process; unless the program chose one,
// Open silences it, so open the network before any client runs.
func Open(ctx context.Context, c Config) (*Network, error) {
	quietOnce.Do(func() {
		if logger.Logger == nil {
			var none logger.Loggable = quiet{}
			logger.Setup(&none)
		}
	})
	n := &Network{
		log: c.Log, now: c.Now, rand: &lockedReader{r: c.Rand},
		pipes: make(chan net.Conn), done: make(chan struct{}),
		accounts: map[string]*Account{}, byLID: map[string]*Account{},
		conns: map[*conn]struct{}{}, refs: map[string]*conn{},
	}
	n.ackDelay, n.ahead = c.AckDelay, cmp.Or(c.Ahead, maxAhead)
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	if n.now == nil {
		n.now = time.Now //nolint:forbidigo // the default of an injected clock
	}
	if c.Rand == nil {
		n.rand = rand.Reader
	}
	var err error
	if n.j, err = openJournal(c.File); err != nil {
		return nil, fmt.Errorf("opening the network: %w", err)
	}
	if err = n.loadRoot(c.RootSeed); err == nil {
		err = n.load()
	}
	if err != nil {
		_ = n.j.close()
		return nil, fmt.Errorf("opening the network: %w", err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	n.launch = func(f func(context.Context)) { n.wg.Go(func() { f(run) }) }
	n.start(n.servePipes)
	n.resume()
	return n, nil
}

// resume lets phones handle what was waiting for them when the process ended.
func (n *Network) resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.accounts {
		for _, d := range a.devices {
			n.pump(d)
		}
	}
}

func (n *Network) loadRoot(seed []byte) error {
	var root [32]byte
	switch kept := n.j.get("root"); {
	case len(seed) > 0:
		root = sha256.Sum256(append([]byte("wanet root "), seed...))
	case len(kept) == 32:
		root = [32]byte(kept)
	default:
		key, err := newKey(n.rand)
		if err != nil {
			return err
		}
		root = [32]byte(key.Bytes())
	}
	var t batch
	t.put("root", root[:])
	if err := n.j.apply(&t); err != nil {
		return err
	}
	var err error
	n.trust, err = newTrust(root, n.rand)
	return err
}

// RootKey is the public key every server certificate of this network leads to;
// it goes into whatsmeow.WACertPubKey before the first connection.
func (n *Network) RootKey() [32]byte { return n.trust.root }

// Close ends all connections and phones and closes the file. It is idempotent.
func (n *Network) Close() error {
	n.life.Lock()
	was := n.closed
	n.closed = true
	n.life.Unlock()
	if was {
		return nil
	}
	close(n.done)
	n.cancel()
	n.mu.Lock()
	for c := range n.conns {
		c.close()
	}
	n.mu.Unlock()
	n.wg.Wait()
	return n.j.close()
}

// start runs f in a goroutine that Close waits for; after Close it does nothing.
func (n *Network) start(f func(context.Context)) bool {
	n.life.Lock()
	defer n.life.Unlock()
	if n.closed {
		return false
	}
	n.launch(f)
	return true
}

// commit makes a batch durable and sets moving what it queued. The caller holds
// n.mu. After an error nothing of the batch was told to anybody.
func (n *Network) commit(t *batch) error {
	if err := n.j.apply(t); err != nil {
		return err
	}
	for _, d := range t.touched {
		n.pump(d)
	}
	return nil
}

// Stats returns a snapshot of the counters.
func (n *Network) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.stats
	s.Accounts = len(n.accounts)
	for _, a := range n.accounts {
		for _, d := range a.devices {
			s.Pending += len(d.queue)
			switch {
			case d.phone != nil:
				s.Phones++
			case d.conn != nil:
				s.Online++
				s.Devices++
			default:
				s.Devices++
			}
		}
	}
	return s
}

// lockedReader lets several goroutines draw from one seeded source.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := io.ReadFull(l.r, p)
	if err != nil {
		return n, fmt.Errorf("drawing random bytes: %w", err)
	}
	return n, nil
}

// random draws n bytes. The network's source does not fail; if a test's does,
// the bytes are zero and the test sees it.
func (n *Network) random(size int) []byte {
	b := make([]byte, size)
	_, _ = io.ReadFull(n.rand, b)
	return b
}
