package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of the server.
const (
	railPlaces    = 256 // rail calls at once; more are told that the bank is busy
	testPlaces    = 64  // test-door and page requests at once
	maxLatency    = 30 * time.Second
	hangsFor      = 30 * time.Second // an answer that never comes
	drainFor      = time.Second      // what still hangs is told to end before, and a connection that nothing came over counts as busy
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = maxLatency + hangsFor + 10*time.Second
	idleTimeout   = 60 * time.Second
	maxHeader     = 16 << 10
)

// Errors of running the bank.
var (
	// ErrNotLoopback: the bank was to listen where others can reach it.
	ErrNotLoopback = errors.New("the pretend bank listens on loopback only")
	// ErrRunning: the bank sends its notices already.
	ErrRunning = errors.New("the pretend bank runs already")
)

// Config says how a bank is opened. Now is required; it gives the bank's value
// times and the times of its signatures.
type Config struct {
	File    string // the books; "" keeps them in memory
	BaseURL string // where payers find the card page; "" takes the address that the rail called
	Log     *slog.Logger
	Now     func() time.Time
	Rand    io.Reader // numbers, card links and weather; nil is crypto/rand
	// Notifier carries notices in place of the network; nil dials, loopback alone.
	Notifier http.RoundTripper
	// Look is how long what is owed later is not looked for: by then it is noticed
	// that Now was moved. 0: a second.
	Look time.Duration
}

// Bank is the pretend bank. Its Handler answers; Run sends what it owes.
type Bank struct {
	cfg      Config
	file     *file
	log      *slog.Logger
	random   sync.Mutex // Config.Rand need not be safe for many
	handler  http.Handler
	notifier *http.Client
	wake     chan struct{} // something is owed that was not before
	running  atomic.Bool
	closing  chan struct{}
	once     sync.Once
	schedule []time.Duration
}

// Open opens a bank and its books as they were left. Close it after use.
func Open(c Config) (*Bank, error) {
	if c.Now == nil {
		return nil, errors.New("open the pretend bank: Config.Now is required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Look <= 0 {
		c.Look = look
	}
	f, err := openFile(c.File)
	if err != nil {
		return nil, err
	}
	b := &Bank{
		cfg: c, file: f, log: c.Log, notifier: newNotifier(c.Notifier), wake: make(chan struct{}, 1), closing: make(chan struct{}),
		schedule: schedule[:],
	}
	b.handler = b.routes()
	return b, nil
}

// Handler answers everything that the bank answers. It should be reachable on
// loopback only; Serve sees to that.
func (b *Bank) Handler() http.Handler { return b.handler }

// Serve answers on a listener and sends notices until ctx ends, then drains. It
// includes Run. Error: ErrNotLoopback for any listener but TCP on loopback.
func (b *Bank) Serve(ctx context.Context, ln net.Listener) error {
	if addr, ok := ln.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("%w, not on %s", ErrNotLoopback, ln.Addr()), ln.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: b.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
		// A hanging answer ends with the bank.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() {
		err := server.Serve(ln)
		cancel()
		served <- err
	}()
	b.log.LogAttrs(ctx, slog.LevelInfo, "the pretend bank listens", slog.String("address", ln.Addr().String()))
	err := b.Run(ctx)
	cancel()
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer stop()
	if down := server.Shutdown(drain); down != nil {
		err = errors.Join(err, server.Close())
	}
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the pretend bank: %w", e))
	}
	return err
}

// Close closes the books. What is owed stays in them.
func (b *Bank) Close() error {
	b.once.Do(func() { close(b.closing) })
	b.notifier.CloseIdleConnections()
	if err := b.file.close(); err != nil {
		return fmt.Errorf("close the bank's file: %w", err)
	}
	return nil
}

// nudge tells Run that there may be something to send.
func (b *Bank) nudge() {
	select {
	case b.wake <- struct{}{}:
	default: // it was told already
	}
}

// bytes draws random bytes.
func (b *Bank) bytes(n int) ([]byte, error) {
	b.random.Lock()
	defer b.random.Unlock()
	raw := make([]byte, n)
	if _, err := io.ReadFull(b.cfg.Rand, raw); err != nil {
		return nil, fmt.Errorf("draw random bytes: %w", err)
	}
	return raw, nil
}

// below draws a number from 0 to n-1; for the n used here the bias of the
// remainder is under one in ten million.
func (b *Bank) below(n uint64) (uint64, error) {
	raw, err := b.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(raw) % n, nil
}

// token draws a link that cannot be guessed: 256 random bits.
func (b *Bank) token() (string, error) {
	raw, err := b.bytes(32)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

// now is the bank's time, to the millisecond that its books keep.
func (b *Bank) now() time.Time { return b.cfg.Now().UTC().Truncate(time.Millisecond) }

// dayHeader says what time it is for who calls, where the clock of the test environment
// was moved and the bank's was not.
const dayHeader = "Till-Time"

// dayOf is at what time something is booked that a call asks for. When that is there
// goes by the bank's own clock all the same.
func (b *Bank) dayOf(r *http.Request) time.Time {
	day, err := time.Parse(time.RFC3339Nano, r.Header.Get(dayHeader))
	if err != nil || !bookable(day) {
		return b.now()
	}
	return day.UTC().Truncate(time.Millisecond)
}

// bookable says whether a time may be one of a movement.
func bookable(at time.Time) bool { return at.Year() >= 2000 && at.Year() <= 2200 }
