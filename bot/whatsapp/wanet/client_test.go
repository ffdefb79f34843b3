package wanet_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite" // the stock client's store

	"till/bot/whatsapp/wanet"
)

const (
	botNumber = "2348012345678"
	within    = 15 * time.Second
)

var rootSeed = []byte("one root for all tests: the client's trust is a process-wide variable")

type quietSignal struct{}

func (quietSignal) Debug(string, string)   {}
func (quietSignal) Info(string, string)    {}
func (quietSignal) Warning(string, string) {}
func (quietSignal) Error(string, string)   {}
func (quietSignal) Configure(string)       {}

func TestMain(m *testing.M) {
	var none logger.Loggable = quietSignal{}
	logger.Setup(&none)
	n, err := wanet.Open(context.Background(), wanet.Config{RootSeed: rootSeed})
	if err != nil {
		panic(err)
	}
	whatsmeow.WACertPubKey = n.RootKey()
	if err = n.Close(); err != nil {
		panic(err)
	}
	// The stock client's reader never gives up handing over a frame that arrives
	// while the client disconnects.
	// The standard server waits half a second before it closes on a bad request.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("go.mau.fi/whatsmeow/socket.(*FrameSocket).frameComplete"),
		goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// open starts a network that the test's end closes.
func open(t *testing.T, file string) *wanet.Network {
	t.Helper()
	n, err := wanet.Open(t.Context(), wanet.Config{RootSeed: rootSeed, File: file, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, n.Close()) })
	return n
}

func testLog(t *testing.T) *slog.Logger {
	t.Helper()
	if os.Getenv("WANET_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client is a stock client with its events in channels.
type client struct {
	*whatsmeow.Client
	t        *testing.T
	db       *sql.DB
	messages chan *events.Message
	receipts chan *events.Receipt
	others   chan any

	mu     sync.Mutex
	handle func(any) bool
}

// newClient makes a stock client over a fresh or existing store, dialling by web.
func newClient(t *testing.T, web *http.Client, path string) *client {
	t.Helper()
	dsn := "file:" + path + "?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	must(t, err)
	log := waLog.Noop
	if os.Getenv("WANET_LOG") != "" {
		log = waLog.Stdout("client", "DEBUG", false)
	}
	box := sqlstore.NewWithDB(db, "sqlite", log)
	must(t, box.Upgrade(t.Context()))
	dev, err := box.GetFirstDevice(t.Context())
	must(t, err)
	c := &client{
		Client: whatsmeow.NewClient(dev, log), t: t, db: db,
		messages: make(chan *events.Message, 1000), receipts: make(chan *events.Receipt, 1000), others: make(chan any, 1000),
	}
	c.SetWebsocketHTTPClient(web)
	c.SetPreLoginHTTPClient(web)
	c.SetMediaHTTPClient(&http.Client{Transport: refuse{}})
	c.EnableDecryptedEventBuffer = true
	c.UseRetryMessageStore = true
	// Its own pause grows by two seconds with every failure.
	c.AutoReconnectHook = func(error) bool {
		c.AutoReconnectErrors = 0
		<-time.After(20 * time.Millisecond)
		return true
	}
	if dev.PushName == "" {
		dev.PushName = "Till"
	}
	c.AddEventHandlerWithSuccessStatus(c.onEvent)
	t.Cleanup(c.stop)
	return c
}

// stop ends the client as a process does; its store stays.
func (c *client) stop() {
	c.Disconnect()
	_ = c.db.Close()
}

type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no media here")
}

func (c *client) onEvent(evt any) bool {
	c.mu.Lock()
	handle := c.handle
	c.mu.Unlock()
	if handle != nil && !handle(evt) {
		return false
	}
	switch e := evt.(type) {
	case *events.Message:
		c.messages <- e
	case *events.Receipt:
		c.receipts <- e
	default:
		select {
		case c.others <- evt:
		default:
		}
	}
	return true
}

func (c *client) onEach(f func(any) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handle = f
}

// next waits for an event of a type.
func next[T any](t *testing.T, c *client) T {
	t.Helper()
	limit := time.NewTimer(within)
	defer limit.Stop()
	for {
		select {
		case evt := <-c.others:
			if e, ok := evt.(T); ok {
				return e
			}
		case <-limit.C:
			var want T
			t.Fatalf("no %T came", want)
			return want
		}
	}
}

func (c *client) message(t *testing.T) *events.Message {
	t.Helper()
	select {
	case m := <-c.messages:
		return m
	case <-time.After(within):
		t.Fatal("no message came")
		return nil
	}
}

func (c *client) expect(t *testing.T, text string) *events.Message {
	t.Helper()
	m := c.message(t)
	if got := textOf(m); got != text {
		t.Fatalf("got %q, want %q", got, text)
	}
	return m
}

func textOf(m *events.Message) string {
	if s := m.Message.GetConversation(); s != "" {
		return s
	}
	return m.Message.GetExtendedTextMessage().GetText()
}

func (c *client) text(t *testing.T, to types.JID, text string) whatsmeow.SendResponse {
	t.Helper()
	r, err := c.SendMessage(t.Context(), to, &waE2E.Message{Conversation: proto.String(text)})
	must(t, err)
	return r
}

// link pairs a stock client with an account by QR and waits until it is online.
func link(t *testing.T, n *wanet.Network, c *client, phone string) *wanet.Account {
	t.Helper()
	a, err := n.AddAccount(phone, "Owner")
	must(t, err)
	must(t, c.Connect())
	must(t, a.ScanQR(next[*events.QR](t, c).Codes[0]))
	next[*events.Connected](t, c)
	return a
}

// phone adds a payer.
func phone(t *testing.T, n *wanet.Network, number string) *wanet.Phone {
	t.Helper()
	a, err := n.AddAccount(number, "Ada "+number[len(number)-2:])
	must(t, err)
	p, err := a.AddPhone()
	must(t, err)
	return p
}

// hears waits for the next message of the other side.
type ear struct{ next int64 }

func (e *ear) hears(t *testing.T, p *wanet.Phone, text string) wanet.Message {
	t.Helper()
	limit := time.Now().Add(within)
	for time.Now().Before(limit) {
		items, next, err := p.Messages(t.Context(), e.next, within)
		must(t, err)
		for _, m := range items {
			e.next = m.Seq
			if m.FromMe {
				continue
			}
			if m.Text != text {
				t.Fatalf("the phone got %q, want %q", m.Text, text)
			}
			return m
		}
		e.next = next
	}
	t.Fatalf("the phone did not get %q", text)
	return wanet.Message{}
}

func say(t *testing.T, p *wanet.Phone, to, text string) wanet.Message {
	t.Helper()
	m, err := p.Send(t.Context(), to, text)
	must(t, err)
	return m
}

func bot(t *testing.T, n *wanet.Network) *client {
	t.Helper()
	c := newClient(t, n.HTTPClient(), filepath.Join(t.TempDir(), "bot.db"))
	link(t, n, c, botNumber)
	return c
}

// eventually waits for a state that no event announces; it yields, not sleeps.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(within)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatal("never: " + what)
		}
	}
}

// settle waits until everything is acknowledged.
func settle(t *testing.T, n *wanet.Network) {
	t.Helper()
	eventually(t, "all acked", func() bool { return n.Stats().Pending == 0 })
}

func payer(i int) string { return fmt.Sprintf("23490000001%02d", i) }
