package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"runtime"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"till/api"
	"till/bot"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/hooks"
	"till/rail"
	"till/rail/sandbox"
)

// look is how long the service does not look for what nobody told it of. In a
// world with one process nothing is missed by that, and a week of looking once a
// second would be all that a simulation does.
const look = 2 * time.Hour

// instance is the service, as one process runs it: what a crash takes with it.
type instance struct {
	w        *world
	dir      string
	dbs      []*store.DB // accounts, test, live
	accounts *checkout.Accounts
	test     *checkout.Service
	live     *checkout.Service
	board    *checkout.Board
	places   *places
	bot      *bot.Bot
	handler  fasthttp.RequestHandler
	ctx      context.Context //nolint:containedctx // of everything that runs in it
	cancel   context.CancelFunc
	killed   chan struct{} // closed by a crash
	once     sync.Once
	dead     atomic.Bool // nothing that it does reaches the world any more
	work     sync.WaitGroup
}

// source is a source of the same bytes every time.
type source struct {
	mu sync.Mutex
	r  *rand.ChaCha8
}

// Read never fails.
func (l *source) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Read(p)
}

// random is a source of bytes that depends on the seed and what it is for.
func (w *world) random(what string) io.Reader {
	var key [32]byte
	for i := range key {
		key[i] = byte(w.draw(256, what, fmt.Sprint(i))) //nolint:gosec // it is less
	}
	return &source{r: rand.NewChaCha8(key)}
}

// number is our WhatsApp number.
const number = "2349010000001"

// open starts the service on a directory.
func (w *world) open(dir string) (err error) {
	w.gen++
	ctx, cancel := context.WithCancel(context.Background()) // the process of the simulation
	i := &instance{w: w, dir: dir, ctx: ctx, cancel: cancel, killed: make(chan struct{}), places: &places{all: map[flow.ChatID]flow.Chat{}}}
	defer func() {
		if err != nil { // or what is open of it would hold the bubble up
			i.kill()
			err = errors.Join(err, i.end())
		}
	}()
	quiet := slog.New(slog.DiscardHandler)
	random := w.random(fmt.Sprintf("process %d", w.gen))
	for _, c := range []store.Config{{Schema: store.Accounts, Name: "accounts"}, {Schema: store.Checkout, Name: "test"}, {Schema: store.Checkout, Name: "live"}} {
		c.Dir, c.Keys, c.Log, c.VFS = dir, w.tpl.keys, quiet, w.tpl.disk.Name()
		if w.tpl.at != nil {
			c.URL = w.tpl.at.url(dir)
		}
		db, err := store.Open(ctx, c)
		if err != nil {
			return fmt.Errorf("open %s: %w", c.Name, err)
		}
		i.dbs = append(i.dbs, db)
	}
	i.accounts = checkout.NewAccounts(i.dbs[0], w.now, random)
	i.board = checkout.NewBoard(i.dbs[1], w.now, w.now, quiet)
	if err := i.board.Refresh(ctx); err != nil {
		return err
	}
	bankRail, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: bankURL, Secret: bankSecret, HTTP: w.bank.client(i), Now: w.now})
	if err != nil {
		return err
	}
	if err := bankRail.Register(ctx, noticeURL); err != nil {
		return fmt.Errorf("register with the bank: %w", err)
	}
	if i.test, err = i.service(flow.Test, checkout.Config{
		DB: i.dbs[1], Rail: bankRail, Board: i.board, Number: w.phones.number, Send: func(ctx context.Context, o checkout.Outgoing) error { return w.phones.send(ctx, i, o) },
	}, random); err != nil {
		return err
	}
	// As in the program: no live bank is connected.
	if i.live, err = i.service(flow.Live, checkout.Config{
		DB: i.dbs[2], Rail: rail.Closed{},
		Send: func(context.Context, checkout.Outgoing) error {
			w.breaks("I9", "a message of the live environment was sent")
			return nil
		},
	}, random); err != nil {
		return err
	}
	i.bot = bot.New(i.test.Hear, i.test.Tick, rail.USSDMenu(), w.now)
	if err := i.serve(random); err != nil {
		return err
	}
	for _, s := range []*checkout.Service{i.test, i.live} {
		i.work.Go(func() {
			if err := s.Run(ctx); err != nil && ctx.Err() == nil {
				w.breaks("sim", "the service ended by itself: %v", err)
			}
		})
	}
	w.inst = i
	synctest.Wait()
	return nil
}

// deepen has a goroutine that begins get the stack that SQLite needs at once. It would
// grow while that is at work, from size to size, and each time all that stands on it is
// moved.
//
//go:noinline
func deepen() {
	var room [deep]byte
	runtime.KeepAlive(&room)
}

// deep is what a call of the service stands on at most, about.
const deep = 28 << 10

// service wires one environment as the program does.
func (i *instance) service(env flow.Environment, c checkout.Config, random io.Reader) (*checkout.Service, error) {
	w := i.w
	sender := hooks.New(hooks.Config{AllowLoopback: env == flow.Test, Now: w.now, Transport: w.sinks.transport(i, env)})
	c.Around = flow.Surroundings{
		Live:         env == flow.Live,
		ClientSecret: func(id flow.SessionID) string { return "cs_" + string(id) },
		CheckoutURL: func(s flow.Session) string {
			return "https://wa.me/" + s.Number + "?text=" + url.PathEscape("Pay "+flow.ShowCode(s.EntryCode))
		},
	}
	c.Places, c.Words, c.Copy, c.Build, c.Banks = i.places, w.tpl.words.Render, w.tpl.words.Version(), "sim", rail.USSDMenu()
	c.Payee, c.Calendar, c.Look, c.Alone = i.accounts.Payee(env), w.tpl.calendar, look, true
	c.Known = func(ctx context.Context, id flow.ProjectID) (bool, error) { return i.accounts.Known(ctx, id, env) }
	c.Post = func(ctx context.Context, d flow.Delivery) flow.Verdict {
		deepen()
		at := w.now()
		v := sender.Send(ctx, hooks.Request{URL: d.URL, ID: string(d.Event), Body: d.Body, Secrets: d.Secrets, At: at})
		return flow.Verdict{
			OK: v.OK, Gone: v.Gone, Status: v.Status, Reason: v.Err, Body: v.Body, Duration: v.Duration, RetryAfter: v.RetryAfter,
			URL: v.URL, SignedAt: at, Signature: v.Signature,
		}
	}
	c.Next = func(d flow.Delivery, v flow.Verdict) (time.Duration, bool) {
		jitter := uint64(w.draw(2001, "jitter", d.URL, fmt.Sprint(d.Attempts))) //nolint:gosec // not negative
		return hooks.Next(d.Attempts+1, v.RetryAfter, jitter)
	}
	c.Before = func(t flow.Task) {
		deepen()
		w.takes("task", string(env), string(t.Kind), t.Subject) // or those of one moment would be done in no order
	}
	c.Now, c.Rand, c.Log = w.now, random, slog.New(slog.DiscardHandler)
	return checkout.New(c)
}

// serve makes the API.
func (i *instance) serve(random io.Reader) error {
	w := i.w
	looks := map[flow.Environment]*checkout.Verifications{}
	for _, env := range []flow.Environment{flow.Test, flow.Live} { // always the same first
		s := i.test
		if env == flow.Live {
			s = i.live
		}
		v, err := checkout.NewVerifications(s, "a pepper of the simulation")
		if err != nil {
			return err
		}
		looks[env] = v
		i.work.Go(func() { _ = v.Run(i.ctx) }) // it ends without an error when ctx does
	}
	server, err := api.New(api.Config{
		Verifications: looks,
		Accounts:      i.accounts, Services: map[flow.Environment]*checkout.Service{flow.Test: i.test, flow.Live: i.live},
		Rails: map[string]flow.Environment{"sandbox": flow.Test}, TestBank: w.bank.player,
		TestPairing: func() (string, bool) { return "", false }, Ready: func(context.Context) []api.Check { return nil },
		CheckURL: func(env flow.Environment, raw string) error {
			return hooks.CheckURL(raw, hooks.Allow{Loopback: env == flow.Test})
		},
		NewSecret: func(kind flow.Signature) (string, error) { return hooks.NewSecret(kind, random) },
		BankNames: rail.BankByCode, PublicURL: "http://127.0.0.1:8080", Now: w.now, IDs: flow.IDs{Now: w.now, Rand: random}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	i.handler = server.Handler()
	return nil
}

// kill lets go of what is held of a process that dies.
func (i *instance) kill() {
	i.dead.Store(true)
	i.once.Do(func() { close(i.killed) })
}

// end stops the service and closes its files. What it was doing is cut off.
func (i *instance) end() error {
	i.dead.Store(true)
	i.cancel()
	i.work.Wait()
	var failed error
	for _, db := range i.dbs {
		if err := db.Close(); err != nil {
			failed = err
		}
	}
	return failed
}

// restarts is how long nobody runs after a crash: longer than anything that a
// process which ends may still wait for, whatever that was.
const restarts = 20 * time.Second

// files are what the service keeps.
var files = []string{"accounts.db", "accounts.db-wal", "test.db", "test.db-wal", "live.db", "live.db-wal"}

// process begins the names of the folders of the service's processes, of which each has
// its own.
const process = "process "

// following is the folder of the next process.
func (w *world) following() string { return fmt.Sprintf("%s%d", process, w.gen+1) }

// power says of each write that was not synced whether it is there after the power
// went.
func (w *world) power(dir string) func() bool {
	dice := w.dice("power", dir)
	return func() bool { return dice.IntN(2) == 1 }
}

// crash takes what is on the disk, throws the process away and starts another one on
// that. Nothing writes meanwhile: everything is at rest. Half of the time it is the power
// that fails, and of what was not synced any part is gone. What was cut in the middle of
// a write was taken then.
func (w *world) crash(cut bool) {
	old := w.inst
	old.dead.Store(true)
	w.untrap() // nobody else would let the next process go, should it be caught in its start
	w.book.close()
	dir := w.following()
	if !cut {
		w.tpl.disk.Remove(dir + "/") // of a trap that nobody fell into
		var kept func() bool
		if w.draw(2, "power", dir) == 1 {
			kept = w.power(dir)
		}
		w.tpl.disk.Copy(old.dir+"/", dir+"/", kept)
	}
	died := w.age()
	end := func() error {
		old.kill()
		return old.end()
	}
	var failed error
	if w.tpl.at != nil {
		failed = w.tpl.at.dies(old.dir, end)
	} else {
		failed = end()
	}
	if failed != nil {
		w.breaks("sim", "end the old process: %v", failed)
	}
	time.Sleep(died + restarts - w.age())
	w.tpl.disk.Remove(old.dir + "/")
	if err := w.open(dir); err != nil {
		w.breaks("I11", "after a crash it does not start: %v", err)
		return
	}
	w.reopened()
}
