package whatsapp_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/bot/whatsapp/wanet"
	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// answering is a whole bot on a network: the store, the rules, the words and a
// client, and what became of each try to send.
type answering struct {
	*desk

	db    *store.DB
	mu    sync.Mutex
	tries []error
}

// answers runs a bot behind a client that runs already. Send is how it sends.
func answers(t *testing.T, d *desk, send func(context.Context, checkout.Outgoing) error) *answering {
	t.Helper()
	a := &answering{desk: d, db: storetest.Open(t, storetest.SQLite(t, store.Checkout))}
	words, err := bot.LoadWords()
	must(t, err)
	service, err := checkout.New(checkout.Config{
		DB: a.db, Rail: rail.Closed{}, Words: words.Render, Places: &checkout.MemoryPlaces{}, Now: time.Now, Rand: rand.Reader, Alone: true,
		Log: slog.New(slog.DiscardHandler),
		Send: func(ctx context.Context, o checkout.Outgoing) error {
			err := send(ctx, o)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.tries = append(a.tries, err)
			return err
		},
	})
	must(t, err)
	listener := bot.New(service.Hear, service.Tick, nil, time.Now)
	d.onEach(func(m bot.Message) error { return listener.Receive(context.WithoutCancel(t.Context()), m) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *answering) tried() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]error(nil), a.tries...)
}

// A message whose outcome the bot never learned is sent again under the same id,
// and the payer sees it once.
func TestAnUnconfirmedMessageIsRepeatedAndShownOnce(t *testing.T) {
	n := network(t)
	d := open(t, n, filepath.Join(t.TempDir(), "keys.db"), n.DialContext)
	d.Hurry(time.Millisecond, 100*time.Millisecond)
	d.run()
	d.link(ourNumber)
	p := phone(t, n, ada, "Ada")
	a := answers(t, d, d.Send)
	must(t, n.SetFaults(wanet.Faults{AckDelayMs: 2000}))
	say(t, p, "hello")
	hears(t, p, 1)
	await.Until(t, "it counts as unconfirmed", func() bool { return len(a.tried()) > 0 })
	must(t, n.SetFaults(wanet.Faults{}))
	await.Until(t, "it is sent again", func() bool { return slices.Contains(a.tried(), nil) })
	say(t, p, "hello again")
	hears(t, p, 2)
	settle(t, n)
	if tries := a.tried(); !errors.Is(tries[0], whatsapp.ErrUnconfirmed) {
		t.Errorf("sending came to %v", tries)
	}
	if all := hears(t, p, 2); len(all) != 2 || all[0].ID == all[1].ID {
		t.Errorf("the payer sees %+v", all)
	}
	d.halt()
}

// At the pace of a person the payer sees typing first, and then what they would
// have seen at once.
func TestAPacedAnswerIsTypedFirst(t *testing.T) {
	d := paired(t)
	p := phone(t, d.net, ada, "Ada")
	var seen []time.Duration
	var began time.Time
	typed := make(chan bool, 10)
	pacer := bot.NewPacer(bot.PacerConfig{
		Sender: senderFunc(func(ctx context.Context, o checkout.Outgoing) error {
			seen = append(seen, time.Since(began))
			typed <- p.PeerTyping(ourNumber)
			return d.Send(ctx, o)
		}),
		Pace: bot.Pace{Sends: 20, NewChats: 6}, Typing: d.Typing, Now: time.Now,
	})
	a := answers(t, d, pacer.Send)
	began = time.Now()
	sent := say(t, p, "hello")
	all := hears(t, p, 1)
	if ok, err := p.WaitStatus(t.Context(), sent.ID, wanet.StatusRead, within); err != nil || !ok {
		t.Errorf("the payer's message was not marked as read: %v", err)
	}
	if !<-typed {
		t.Error("nobody was seen to type")
	}
	if len(seen) != 1 || seen[0] < 600*time.Millisecond || len(a.tried()) > 1 {
		t.Errorf("the answer came after %v, tried %v", seen, a.tried())
	}
	said, found, err := a.db.Said(t.Context(), all[0].ID)
	if err != nil || !found || strings.TrimSpace(said.Text) != strings.TrimSpace(all[0].Text) {
		t.Errorf("the payer sees %q, meant was %q (%v)", all[0].Text, said.Text, err)
	}
	lines, err := a.db.Lines(t.Context(), string(said.Chat))
	if err != nil || len(lines) < 2 || lines[0].Kind != "heard" || flow.Millis(lines[0].At) < flow.Millis(began) {
		t.Errorf("the log holds %+v (%v)", lines, err)
	}
	d.halt()
}

type senderFunc func(ctx context.Context, o checkout.Outgoing) error

func (f senderFunc) Send(ctx context.Context, o checkout.Outgoing) error { return f(ctx, o) }
