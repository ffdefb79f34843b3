package whatsapp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite" // the driver of the keys

	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow/await"
	"till/flow/checkout"
)

const (
	ourNumber = "2348000000001"
	ada       = "2349000000002"
	bola      = "2349000000003"
	within    = 20 * time.Second
)

// rootSeed is the same for all networks: the root key is one for a process.
var rootSeed = []byte("the root of all networks of these tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// desk is a client on a network, and what it was handed.
type desk struct {
	*whatsapp.Client
	t        *testing.T
	net      *wanet.Network
	log      *await.Log
	messages chan bot.Message
	ticks    chan checkout.Tick
	codes    chan string
	stop     context.CancelFunc
	done     chan error

	failTicks  atomic.Bool
	unreadable atomic.Int64 // messages

	mu      sync.Mutex
	receive func(m bot.Message) error
}

func network(t *testing.T) *wanet.Network {
	t.Helper()
	n, err := wanet.Open(t.Context(), wanet.Config{RootSeed: rootSeed})
	must(t, err)
	t.Cleanup(func() { must(t, n.Close()) })
	return n
}

// open makes a client that does not run yet.
func open(t *testing.T, n *wanet.Network, file string, dial func(context.Context) (net.Conn, error)) *desk {
	t.Helper()
	d := &desk{
		t: t, net: n, log: &await.Log{}, messages: make(chan bot.Message, 100), ticks: make(chan checkout.Tick, 100), codes: make(chan string, 100),
	}
	root := n.RootKey()
	var err error
	d.Client, err = whatsapp.Open(t.Context(), whatsapp.Config{
		File: file, Dial: dial, RootKey: &root, PushName: "Till", Now: time.Now,
		Log:       slog.New(slog.NewTextHandler(d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnPairing: func(qr string) { d.codes <- qr }, Unreadable: func() { d.unreadable.Add(1) },
		Tick: func(ctx context.Context, tick checkout.Tick) error {
			if d.failTicks.Load() {
				return errors.New("the disk is full")
			}
			select {
			case d.ticks <- tick:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		Receive: func(ctx context.Context, m bot.Message) error {
			d.mu.Lock()
			receive := d.receive
			d.mu.Unlock()
			if receive != nil {
				if err := receive(m); err != nil {
					return err
				}
			}
			select {
			case d.messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	must(t, err)
	d.Hurry(time.Millisecond, within)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// run lets the client run until halt or the end of the test.
func (d *desk) run() {
	ctx, stop := context.WithCancel(d.t.Context())
	d.stop, d.done = stop, make(chan error, 1)
	go func() { d.done <- d.Run(ctx) }()
}

// halt ends Run as a signal to the process does.
func (d *desk) halt() {
	d.t.Helper()
	d.stop()
	must(d.t, <-d.done)
}

// onEach lets f decide about every message before it is kept.
func (d *desk) onEach(f func(m bot.Message) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.receive = f
}

// forgets lets go of what is kept, of which the desk has room for a hundred.
func (d *desk) forgets() {
	over := make(chan struct{})
	d.t.Cleanup(func() { close(over) })
	go func() {
		for {
			select {
			case <-d.messages:
			case <-d.ticks:
			case <-over:
				return
			}
		}
	}()
}

func (d *desk) await(want whatsapp.State) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), within)
	defer cancel()
	if err := d.Await(ctx, func(s whatsapp.State) bool { return s == want }); err != nil {
		d.t.Fatalf("never %s but %s: %v\n%s", want, d.State(), err, d.log)
	}
}

// disconnects waits until the client is not connected.
func (d *desk) disconnects() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), within)
	defer cancel()
	if err := d.Await(ctx, func(s whatsapp.State) bool { return s != whatsapp.StateConnected }); err != nil {
		d.t.Fatalf("always connected: %v", err)
	}
}

// breaks does what ends the line, and waits until it has ended: on a busy machine
// there may be another one before anybody looks.
func (d *desk) breaks(do func()) {
	d.t.Helper()
	ended := func() int { return strings.Count(d.log.String(), "whatsapp line ended") }
	before := ended()
	do()
	await.Until(d.t, "the line has ended", func() bool { return ended() > before })
}

func got[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(within):
		var none T
		t.Fatalf("no %T came", none)
		return none
	}
}

// written is a message without when the network took it in, which must be just now.
func written(t *testing.T, m bot.Message) bot.Message {
	t.Helper()
	if age := time.Since(m.Wrote); age < -time.Second || age > within {
		t.Errorf("%s was written %s ago", m.ID, age)
	}
	m.Wrote = time.Time{}
	return m
}

// link scans the QR code that the client shows.
func (d *desk) link(number string) *wanet.Account {
	d.t.Helper()
	owner, err := d.net.AddAccount(number, "Owner")
	must(d.t, err)
	must(d.t, owner.ScanQR(got(d.t, d.codes)))
	d.await(whatsapp.StateConnected)
	return owner
}

// paired is a client that is connected through pipes.
func paired(t *testing.T) *desk {
	t.Helper()
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.run()
	d.link(ourNumber)
	return d
}

func phone(t *testing.T, n *wanet.Network, number, name string) *wanet.Phone {
	t.Helper()
	p, err := n.NewPhone(number, name)
	must(t, err)
	return p
}

func say(t *testing.T, p *wanet.Phone, text string) wanet.Message {
	t.Helper()
	m, err := p.Send(t.Context(), ourNumber, text)
	must(t, err)
	return m
}

// hears waits until a phone shows that many messages of ours, and returns all.
func hears(t *testing.T, p *wanet.Phone, count int) []wanet.Message {
	t.Helper()
	var all []wanet.Message
	after := int64(0)
	for len(all) < count {
		items, next, err := p.Messages(t.Context(), after, within)
		must(t, err)
		if len(items) == 0 {
			t.Fatalf("the phone shows %v, want %d messages", all, count)
		}
		for _, m := range items {
			if !m.FromMe {
				all = append(all, m)
			}
		}
		after = next
	}
	return all
}

// settle waits until all devices have acknowledged everything.
func settle(t *testing.T, n *wanet.Network) {
	t.Helper()
	await.Until(t, "everything is acknowledged", func() bool { return n.Stats().Pending == 0 })
}

func (d *desk) send(p *wanet.Phone, id, text string) error {
	return d.Send(d.t.Context(), checkout.Outgoing{Number: ourNumber, Person: p.Account().LID(), ID: id, Text: text})
}

// device is the linked client as the network sees it.
func (d *desk) device() *wanet.Device {
	d.t.Helper()
	a, _ := d.net.Account(ourNumber)
	for _, dev := range a.Devices() {
		if dev.ID() != 0 {
			return dev
		}
	}
	d.t.Fatal("nothing is linked")
	return nil
}

// dials are the two ways into a network.
func dials(t *testing.T, n *wanet.Network) map[string]func(context.Context) (net.Conn, error) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- n.Serve(context.WithoutCancel(t.Context()), ln) }()
	t.Cleanup(func() {
		must(t, n.Close())
		if err := <-served; err != nil && !errors.Is(err, wanet.ErrClosed) {
			t.Error(err)
		}
	})
	return map[string]func(context.Context) (net.Conn, error){
		"pipe": n.DialContext,
		"tcp": func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String())
		},
	}
}
