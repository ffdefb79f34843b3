// Package whatsapp carries messages over one WhatsApp number. A Client keeps one
// linked device of that number online, hands over what people write to it and
// sends what it is told to.
//
// It knows WhatsApp's addresses, states and failures, and hides them: what
// leaves it is a person (their lasting LID), a phone as an attribute of that
// person, an id and a text. It must not know what a message means, what is paid
// for, in which language anybody speaks or where anything but its own keys is
// kept. The keys live in an SQLite file of their own.
//
// # What holds
//
//   - A message is acknowledged to WhatsApp only after Config.Receive returned
//     nil. If that fails or panics, the message comes again: the line is renewed,
//     because WhatsApp offers an unacknowledged message again only on a new one.
//   - The same message can be handed over twice, even at the same time. Whoever
//     keeps it tells by (number, person, id).
//   - Sending is told apart by id: to send again under the same id shows the
//     payer one message.
//   - Nothing ends the process. Being replaced, logged out or banned is a State.
package whatsapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store/sqlstore"

	"till/bot"
	"till/flow"
	"till/flow/checkout"
)

// State is where a Client stands.
type State string

// The states of a Client. The last three need somebody: only Resume leads out of
// them.
const (
	StateStopped    State = "stopped"    // Run is not running
	StateConnecting State = "connecting" // on its way to the network
	StatePairing    State = "pairing"    // shows a code to link a phone with
	StateConnected  State = "connected"  // hears and sends
	StateBanned     State = "banned"     // for a time that WhatsApp named; goes on by itself then
	StatePasskey    State = "passkey_required"
	StateReplaced   State = "replaced"   // another program runs this number
	StateLoggedOut  State = "logged_out" // the phone's owner unlinked us
	StateOutdated   State = "outdated"   // WhatsApp refuses this version of the library
)

// givenUp says whether only Resume leads on.
func (s State) givenUp() bool {
	return s == StateReplaced || s == StateLoggedOut || s == StateOutdated
}

var (
	// ErrOffline says that the number is not connected: nothing was sent.
	ErrOffline = errors.New("whatsapp: not connected")
	// ErrUnconfirmed says that a message may or may not have been sent. It is to
	// be sent again under the same id.
	ErrUnconfirmed = errors.New("whatsapp: not confirmed")
	// ErrRefused says that WhatsApp does not take a message.
	ErrRefused = errors.New("whatsapp: refused")
	// ErrInput says that an argument or a setting is no good.
	ErrInput = errors.New("whatsapp: not acceptable")
	// ErrPaired says that there is nothing to pair: the number is linked.
	ErrPaired = errors.New("whatsapp: already paired")
	// ErrKeys says that the keys of a number can be neither read nor kept.
	ErrKeys = errors.New("whatsapp: the keys cannot be used")
	// ErrClosed says that the client was closed, or runs already.
	ErrClosed = errors.New("whatsapp: closed or running")
)

// Config is what a Client is made of. File, Receive, Tick, Now and Log are
// needed.
type Config struct {
	// File is the SQLite file with the keys of this number. Nothing else may be
	// in it, and no other process may use it.
	File string
	// Dial connects to a WhatsApp network over plain TCP or a pipe. Nil is the
	// real one, over TLS.
	Dial func(ctx context.Context) (net.Conn, error)
	// RootKey is what the network's certificates lead to, nil for the real one.
	// It is the same for all clients of a process.
	RootKey *[32]byte
	// Receive keeps a message. It may be called from several goroutines.
	Receive func(ctx context.Context, m bot.Message) error
	// Tick is told what became of our messages. It may be called from several
	// goroutines; what it does not keep does not come again.
	Tick func(ctx context.Context, t checkout.Tick) error
	// OnPairing is called with the text of each new QR code to link a phone
	// with. It may be nil; Pairing knows the text too.
	OnPairing func(qr string)
	// Unreadable is told of each message of a person that could not be decrypted when
	// it came; most come again, and can be then. It may be nil.
	Unreadable func()
	// May is asked before each message that is sent and before each line that is
	// opened: an error says that it must not be, because the number is another
	// process's by now. It may be nil.
	May func(ctx context.Context) error
	// Ear is shown each message first, and says whether it was a sign between
	// our own numbers that nobody else is to see. It may be nil.
	Ear func(m bot.Message) bool
	// Version of WhatsApp Web to pass for, as 2.3000.1012345678; empty is that of
	// the library. It is the same for all clients of a process.
	Version string
	// Past is where the number stood when it was last run: a ban or a timelock
	// that is not over is kept, and one that was logged out stays so.
	Past flow.Number
	// Relink has a number that was logged out linked anew at once: on a network of
	// our own that is nobody's decision.
	Relink   bool
	PushName string // the name that people see
	Now      func() time.Time
	Log      *slog.Logger
}

// Client is one linked device of one WhatsApp number. It is safe for use from
// several goroutines.
type Client struct {
	cfg  Config
	log  *slog.Logger
	pace pace
	box  *sqlstore.Container
	file *keyFile
	web  *http.Client
	read chan receipt // messages to mark as read, by whoever has time

	sends chan struct{} // a slot is taken by each message under way
	turn  sync.Mutex    // held by the message that is being sent, from the question whether it may on
	ear   ear

	// gate is held for reading while an event is handled, so that Run can wait
	// for all that are under way and let no new one in.
	gate     sync.RWMutex
	stopping bool // guarded by gate

	mu      sync.Mutex // guards all below
	link    link
	changed chan struct{} // closed and replaced when link changes
	stop    context.CancelFunc
	ended   chan struct{} // closed when Run has returned
	closed  bool
}

// Open opens the file with the keys, which it makes if there is none. Nothing
// is connected before Run.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.File == "" || cfg.Receive == nil || cfg.Tick == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, fmt.Errorf("%w: File, Receive, Tick, Now and Log are needed", ErrInput)
	}
	if err := settleProcess(cfg.RootKey, cfg.Version); err != nil {
		return nil, err
	}
	db, err := openFile(cfg.File)
	if err != nil {
		return nil, err
	}
	c := &Client{
		cfg: cfg, log: cfg.Log, pace: pacing(cfg), read: make(chan receipt, maxReads), sends: make(chan struct{}, maxSends),
		box:  sqlstore.NewWithDB(db, driver, logOf(cfg.Log, "store")),
		link: link{state: StateStopped}, changed: make(chan struct{}),
	}
	c.web = webClient(cfg.Dial, func(w *wire) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.link.wire = w
	})
	if err = c.box.Upgrade(ctx); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("preparing the keys in %s: %w", cfg.File, err)
	}
	if c.file, err = openKeys(cfg.File, cfg.Now, cfg.Log); err != nil {
		_ = db.Close()
		return nil, err
	}
	c.file.changed = func() { c.set(func(*link) {}) }
	return c, nil
}

const (
	driver  = "sqlite"
	maxConn = 8 // connections to the file; one writes at a time
)

// openFile opens a file that only its owner can read. What is deleted from it
// is overwritten: undelivered texts pass through it.
func openFile(name string) (*sql.DB, error) {
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("finding the keys: %w", err)
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator names it
	if err != nil {
		return nil, fmt.Errorf("opening the keys: %w", err)
	}
	if err = file.Close(); err != nil {
		return nil, fmt.Errorf("opening the keys: %w", err)
	}
	options := url.Values{"_txlock": {"immediate"}, "_pragma": keyPragmas()}
	path := url.URL{Path: filepath.ToSlash(name)}
	db, err := sql.Open(driver, "file:"+path.EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, fmt.Errorf("opening the keys: %w", err)
	}
	db.SetMaxOpenConns(maxConn)
	db.SetMaxIdleConns(maxConn)
	return db, nil
}

// device makes a whatsmeow client for the keys in the file. Fresh forgets them
// and begins as a device that nobody has linked yet.
func (c *Client) device(ctx context.Context, fresh bool) (*whatsmeow.Client, string, error) {
	known, err := c.box.GetAllDevices(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("reading the keys: %w", err)
	}
	for _, d := range known {
		if !fresh {
			break
		}
		c.file.forget()
		if err = c.box.DeleteDevice(ctx, d); err != nil {
			return nil, "", fmt.Errorf("forgetting old keys: %w", err)
		}
	}
	d, number := c.box.NewDevice(), ""
	if !fresh && len(known) > 0 {
		d, number = known[0], known[0].ID.User
	}
	if err = discreet(d, c.file); err != nil {
		return nil, "", err
	}
	if c.cfg.PushName != "" { // without one there is no presence
		d.PushName = c.cfg.PushName
	}
	wa := whatsmeow.NewClient(d, logOf(c.log, "client"))
	wa.BackgroundEventCtx = ctx
	wa.SetWebsocketHTTPClient(c.web)
	wa.SetPreLoginHTTPClient(c.web)
	wa.SetMediaHTTPClient(&http.Client{Transport: noMedia{}})
	// Run connects: with bounds, and so that State is always the truth.
	wa.EnableAutoReconnect = false
	wa.DisableLoginAutoReconnect = true
	// A text is kept until our handler has returned true; without this a failed
	// handler loses the message.
	wa.EnableDecryptedEventBuffer = true
	wa.UseRetryMessageStore = true
	wa.AutomaticMessageRerequestFromPhone = true
	wa.AutoTrustIdentity = true
	wa.ManualHistorySyncDownload = true
	wa.AddEventHandlerWithSuccessStatus(func(evt any) bool { return c.handle(ctx, wa, evt) })
	return wa, number, nil
}

// Number is our number in digits while it is connected, else "".
func (c *Client) Number() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.state != StateConnected {
		return ""
	}
	return c.link.number
}

// State says where the client stands.
func (c *Client) State() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.link.state)
}

// Trouble says why the network was not reached when it was last tried, "" where
// a line is open or none was tried.
func (c *Client) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.state != StateConnecting {
		return ""
	}
	return c.link.trouble
}

// Close ends Run, waits for it and closes the file. It can be called again.
func (c *Client) Close() error {
	c.mu.Lock()
	was, stop, ended := c.closed, c.stop, c.ended
	c.closed = true
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-ended
	}
	if was {
		return nil
	}
	c.web.CloseIdleConnections()
	if err := errors.Join(c.file.close(), c.box.Close()); err != nil {
		return fmt.Errorf("closing the keys: %w", err)
	}
	return nil
}
