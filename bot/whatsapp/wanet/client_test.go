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
	"sync/atomic"
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
	_ "modernc.org/sqlite" // the stock client's store

	"till/bot/whatsapp/wanet"
	"till/flow/await"
)

const (
	botNumber = "2348012345678"
	// A stock client that is cut off inside its handshake notices after 20 s.
	within = 40 * time.Second
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
func open(tb testing.TB, file string) *wanet.Network {
	tb.Helper()
	n, err := wanet.Open(tb.Context(), wanet.Config{RootSeed: rootSeed, File: file, Log: testLog(tb)})
	must(tb, err)
	tb.Cleanup(func() { must(tb, n.Close()) })
	return n
}

func testLog(tb testing.TB) *slog.Logger {
	tb.Helper()
	if os.Getenv("WANET_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// client is a stock client with its events in channels.
type client struct {
	*whatsmeow.Client
	db       *sql.DB
	messages chan *events.Message
	receipts chan *events.Receipt
	others   chan any
	stopped  atomic.Bool
}

// newClient makes a stock client over a fresh or existing store, dialling by web.
func newClient(tb testing.TB, web *http.Client, path string) *client {
	tb.Helper()
	dsn := "file:" + path + "?_pragma=foreign_keys(1)&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
	db, err := sql.Open("sqlite", dsn)
	must(tb, err)
	log := waLog.Noop
	if os.Getenv("WANET_LOG") != "" {
		log = waLog.Stdout("client", "DEBUG", false)
	}
	box := sqlstore.NewWithDB(db, "sqlite", log)
	must(tb, box.Upgrade(tb.Context()))
	dev, err := box.GetFirstDevice(tb.Context())
	must(tb, err)
	c := &client{
		Client: whatsmeow.NewClient(dev, log), db: db,
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
		return !c.stopped.Load()
	}
	if dev.PushName == "" {
		dev.PushName = "Till"
	}
	c.AddEventHandlerWithSuccessStatus(c.onEvent)
	tb.Cleanup(c.stop)
	return c
}

// stop ends the client as a process does; its store stays.
func (c *client) stop() {
	c.stopped.Store(true)
	c.Disconnect()
	_ = c.db.Close()
}

type refuse struct{}

func (refuse) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no media here")
}

func (c *client) onEvent(evt any) bool {
	switch e := evt.(type) {
	case *events.Message:
		c.messages <- e
	case *events.Receipt:
		select {
		case c.receipts <- e:
		default: // nobody looks
		}
	default:
		select {
		case c.others <- evt:
		default:
		}
	}
	return true
}

// next waits for an event of a type.
func next[T any](tb testing.TB, c *client) T {
	tb.Helper()
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
			tb.Fatalf("no %T came", want)
			return want
		}
	}
}

func (c *client) message(tb testing.TB) *events.Message {
	tb.Helper()
	select {
	case m := <-c.messages:
		return m
	case <-time.After(within):
		tb.Fatal("no message came")
		return nil
	}
}

func (c *client) expect(tb testing.TB, text string) *events.Message {
	tb.Helper()
	m := c.message(tb)
	if got := textOf(m); got != text {
		tb.Fatalf("got %q, want %q", got, text)
	}
	return m
}

func textOf(m *events.Message) string {
	if s := m.Message.GetConversation(); s != "" {
		return s
	}
	return m.Message.GetExtendedTextMessage().GetText()
}

func (c *client) text(tb testing.TB, to types.JID, text string) whatsmeow.SendResponse {
	tb.Helper()
	r, err := c.SendMessage(tb.Context(), to, &waE2E.Message{Conversation: new(text)})
	must(tb, err)
	return r
}

// link pairs a stock client with the bot's number by QR and waits until it is online.
func link(tb testing.TB, n *wanet.Network, c *client) *wanet.Account {
	tb.Helper()
	a, err := n.AddAccount(botNumber, "Owner")
	must(tb, err)
	must(tb, c.Connect())
	must(tb, a.ScanQR(next[*events.QR](tb, c).Codes[0]))
	next[*events.Connected](tb, c)
	return a
}

// phone adds a payer.
func phone(tb testing.TB, n *wanet.Network, number string) *wanet.Phone {
	tb.Helper()
	a, err := n.AddAccount(number, "Ada "+number[len(number)-2:])
	must(tb, err)
	p, err := a.AddPhone()
	must(tb, err)
	return p
}

// ear is how far a phone has listened.
type ear struct{ next int64 }

// hears waits for the next message of the other side.
func (e *ear) hears(tb testing.TB, p *wanet.Phone, text string) wanet.Message {
	tb.Helper()
	limit := time.Now().Add(within)
	for time.Now().Before(limit) {
		items, next, err := p.Messages(tb.Context(), e.next, within)
		must(tb, err)
		for _, m := range items {
			e.next = m.Seq
			if m.FromMe {
				continue
			}
			if m.Text != text {
				tb.Fatalf("the phone got %q, want %q", m.Text, text)
			}
			return m
		}
		e.next = next
	}
	tb.Fatalf("the phone did not get %q", text)
	return wanet.Message{}
}

func say(tb testing.TB, p *wanet.Phone, to, text string) wanet.Message {
	tb.Helper()
	m, err := p.Send(tb.Context(), to, text)
	must(tb, err)
	return m
}

func bot(tb testing.TB, n *wanet.Network) *client {
	tb.Helper()
	c := newClient(tb, n.HTTPClient(), filepath.Join(tb.TempDir(), "bot.db"))
	link(tb, n, c)
	return c
}

// talking is a network with our bot and a payer on it.
func talking(tb testing.TB) (*wanet.Network, *client, *wanet.Phone) {
	tb.Helper()
	n := open(tb, "")
	return n, bot(tb, n), phone(tb, n, payer(1))
}

// eventually waits for a state that no event announces.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	if !await.Within(within, ok) {
		tb.Fatal("never: " + what)
	}
}

// settle waits until everything is acknowledged.
func settle(tb testing.TB, n *wanet.Network) {
	tb.Helper()
	eventually(tb, "all acked", func() bool { return n.Stats().Pending == 0 })
}

func payer(i int) string { return fmt.Sprintf("23490000001%02d", i) }
