package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"till/api"
	"till/api/console"
	"till/bot"
	"till/bot/whatsapp"
	"till/cmd/till/meter"
	"till/cmd/till/sealing"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/hooks"
	"till/rail"
	"till/rail/sandbox"
)

// app is a running Till: what is open, and what is to be closed, in order.
type app struct {
	set      config.Settings
	log      *slog.Logger
	clock    *clock
	calendar flow.Calendar
	listener net.Listener
	group    *errgroup.Group
	closers  []func() error

	accounts  *checkout.Accounts
	settings  *store.DB // accounts: what is kept by name
	test      *checkout.Service
	live      *checkout.Service
	board     *checkout.Board // of the test environment
	liveBoard *checkout.Board
	bot       *bot.Bot
	fleet     *whatsapp.Fleet
	rail      *sandbox.Rail
	bankClock heardClock
	heardAt   string // where the bank reaches us
	bankKnows acquaintance
	redis     redis.UniversalClient
	checks    []func(ctx context.Context) api.Check
	meter     *meter.Meter
	metrics   net.Listener // nil where nobody reads them

	verifications map[flow.Environment]*checkout.Verifications
	running       []func(ctx context.Context) error // of both environments, as long as the program
}

// closing keeps what is to be closed, last opened first.
func (a *app) closing(f func() error) { a.closers = append(a.closers, f) }

// close closes everything that was opened.
func (a *app) close() error {
	var err error
	for _, f := range slices.Backward(a.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// prepare checks everything that can be wrong before anything is made: the
// settings, the port, Redis, the data dir and that no other Till uses it.
func prepare(ctx context.Context, set config.Settings, log *slog.Logger, dev bool) (*app, error) {
	if err := set.Check(); err != nil {
		return nil, usageError{err}
	}
	if err := misnamed(); err != nil {
		return nil, usageError{err}
	}
	days, err := calendar(set)
	if err != nil {
		return nil, err
	}
	takeStdLog(log)
	a := &app{set: set, log: log, calendar: days, meter: meter.New(version, time.Now)}
	var lc net.ListenConfig
	if a.listener, err = lc.Listen(ctx, "tcp", set.HTTPAddr); err != nil {
		return nil, fmt.Errorf("the API cannot listen on %s: %w (is another Till running? choose another --http-addr)", set.HTTPAddr, err)
	}
	a.closing(func() error {
		if err := a.listener.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	if err := a.listenForBank(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the API cannot listen on this machine as well, where the bank tells of money: %w", err), a.close())
	}
	if err := a.openMetrics(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	if err := a.openRedis(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	if dev {
		if err := a.checkEnvFile(); err != nil {
			return nil, errors.Join(err, a.close())
		}
	}
	if err := a.openDir(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	a.clock = newClock(under(set.DataDir, "clock"))
	if err := a.clock.lost(); err != nil { // of a pretend world: live is served all the same
		log.LogAttrs(ctx, slog.LevelWarn, "the test clock is back at the machine's time: move it forward again by till clock advance",
			slog.String("file", a.clock.file), slog.String("error", err.Error()))
	}
	return a, nil
}

// openServices wires both environments.
func (a *app) openServices(ctx context.Context, test, live *store.DB, linkBase string) error {
	words, err := bot.LoadWords()
	if err != nil {
		return err
	}
	last, err := a.lastOrdersOf(ctx, flow.Test)
	if err != nil {
		return err
	}
	if a.test, err = a.openService(ctx, checkout.Config{
		DB: test, Rail: a.meter.Rail(flow.Test, remembering{a.rail, last}), Words: words.Render, Copy: words.Version(), Build: version, Number: a.board.Pick, Board: a.board, Now: a.clock.Now,
		Send: a.send(), Syncing: func() bool { return a.fleet.Syncing() },
	}, flow.Test, linkBase); err != nil {
		return err
	}
	// No live bank is connected yet: sessions can be made, and say so.
	if a.live, err = a.openService(ctx, checkout.Config{
		DB: live, Rail: rail.Closed{}, Board: a.liveBoard, Words: words.Render, Copy: words.Version(), Build: version, Now: time.Now,
		Send: func(context.Context, checkout.Outgoing) error { return errNoLiveNumber },
	}, flow.Live, linkBase); err != nil {
		return err
	}
	if err := a.openVerifications(ctx); err != nil {
		return err
	}
	a.bot = bot.New(a.test.Hear, a.test.Tick, rail.USSDMenu(), a.clock.Now)
	return nil
}

// errNoLiveNumber cannot be met: nobody writes to a number that is not there.
var errNoLiveNumber = errors.New("no WhatsApp number is connected to the live environment")

// openService wires one environment; nothing below knows which of the two it is.
func (a *app) openService(ctx context.Context, c checkout.Config, env flow.Environment, linkBase string) (*checkout.Service, error) {
	pepper, err := a.kept(ctx, sealing.ClientPepper(string(env)))
	if err != nil {
		return nil, err
	}
	log := a.log.With(slog.String("environment", string(env)))
	sender := a.sender(env)
	a.closing(func() error { sender.Close(); return nil })
	signing := make([]byte, 32)
	_, _ = rand.Read(signing)
	places := checkout.NewNearPlaces(checkout.NewRedisPlaces(a.redis, placesOf(env), signing, log))
	a.running = append(a.running, places.Run)
	c.Places = places
	c.Around = flow.Surroundings{
		Live:         env == flow.Live,
		ClientSecret: func(id flow.SessionID) string { return clientSecret(pepper, id) },
		CheckoutURL: func(s flow.Session) string {
			return linkBase + s.Number + "?text=" + url.PathEscape("Pay "+flow.ShowCode(s.EntryCode))
		},
	}
	c.Banks = rail.USSDMenu()
	c.Payee, c.Calendar, c.SecondAbove = a.accounts.Payee(env), a.calendar, flow.Kobo(a.set.SecondAbove)
	c.KeepChats, c.KeepAnswers, c.Real = a.set.RetentionChat, a.set.RetentionHooks, time.Now
	c.Known = func(ctx context.Context, id flow.ProjectID) (bool, error) { return a.accounts.Known(ctx, id, env) }
	c.Post = func(ctx context.Context, d flow.Delivery) flow.Verdict { return post(ctx, sender, d, time.Now()) }
	c.Meter = a.meter.Of(env)
	c.Next, c.Rand, c.Alone, c.Log = nextTry, rand.Reader, a.set.DatabaseURL == "", log
	return checkout.New(c)
}

// loopback says whether webhooks may go to this machine: in test alone, and
// only while the operator allows it and nobody outside could have them sent there.
func (a *app) loopback(env flow.Environment) bool {
	return env == flow.Test && a.set.LoopbackWebhooks()
}

// sender makes the posts of an environment.
func (a *app) sender(env flow.Environment) *hooks.Sender {
	return hooks.New(hooks.Config{AllowLoopback: a.loopback(env), Now: time.Now, Timeout: checkout.PostLasts})
}

// post sends a delivery and says what became of it in the words of the rules.
// Signatures carry the real time: a receiver's clock was not moved.
func post(ctx context.Context, sender *hooks.Sender, d flow.Delivery, at time.Time) flow.Verdict {
	trace := d.Step()
	v := sender.Send(ctx, hooks.Request{
		URL: d.URL, ID: string(d.Event), Body: d.Body, Secrets: d.Secrets, At: at, Traceparent: trace.Parent(), Tracestate: trace.State,
	})
	if v.Signature == "" { // nothing was sent
		at = time.Time{}
	}
	return flow.Verdict{
		OK: v.OK, Gone: v.Gone, Ours: v.Ours, Unsent: v.Unsent, Status: v.Status, Reason: v.Err, Body: v.Body, Duration: v.Duration, RetryAfter: v.RetryAfter,
		URL: v.URL, SignedAt: at, Signature: v.Signature,
	}
}

// nextTry is the schedule of webhooks.
func nextTry(d flow.Delivery, v flow.Verdict) (time.Duration, bool) {
	var jitter [8]byte
	_, _ = rand.Read(jitter[:])
	return hooks.Next(d.Attempts+1, v.RetryAfter, binary.BigEndian.Uint64(jitter[:]))
}

// publicURL is where others reach the API.
func (a *app) publicURL() string {
	if a.set.PublicURL != "" {
		return strings.TrimSuffix(string(a.set.PublicURL), "/")
	}
	return "http://" + reached(a.listener.Addr().String())
}

// realNumber says that the test number is a real one: strangers have test keys then,
// and share what the environment has. None of them may move its time or break its
// bank for the others, or link the number with a phone of theirs.
func (a *app) realNumber() bool { return a.set.RealWhatsApp() }

// api wires the front door.
func (a *app) api(phones api.Phones, dev bool) (*api.Server, error) {
	limits, err := a.limits()
	if err != nil {
		return nil, err
	}
	proxies, err := a.set.Proxies()
	if err != nil {
		return nil, usageError{err}
	}
	demo := ""
	if dev {
		demo = demoEmail
	}
	advance, pairing := a.advance, a.fleet.Pairing
	if a.realNumber() {
		advance, pairing = nil, nil
	}
	return api.New(api.Config{
		Proxies: proxies,
		Limits:  limits, Accounts: a.accounts, Services: map[flow.Environment]*checkout.Service{flow.Test: a.test, flow.Live: a.live},
		Verifications: a.verifications, Rails: map[string]flow.Environment{"sandbox": flow.Test}, TestBank: testBank{a.rail, a.clock.Now}, Phones: phones,
		Pairing: a.fleet.Pairing, TestPairing: pairing, AdvanceClock: advance, SharedBank: a.realNumber() && !dev, Dev: dev, Docs: a.publicURL() + "/docs/errors/",
		Ready: a.ready, Doctor: a.doctor, Boards: map[flow.Environment]*checkout.Board{flow.Test: a.board, flow.Live: a.liveBoard},
		Demo: demo, PublicURL: a.publicURL(), Answering: a.meter.Answering,
		CheckURL: func(env flow.Environment, raw string) error {
			return hooks.CheckURL(raw, hooks.Allow{Loopback: a.loopback(env)})
		},
		NewSecret: func(kind flow.Signature) (string, error) { return hooks.NewSecret(kind, rand.Reader) },
		BankNames: rail.BankByCode, Now: time.Now, IDs: flow.IDs{Now: time.Now, Rand: rand.Reader}, Log: a.log,
	})
}

// advance moves the test environment's clock and lets what is due now be done.
func (a *app) advance(seconds int64) (time.Time, bool) {
	now, moved := a.clock.Advance(seconds)
	a.test.Wake()
	return now, moved
}

// testBank is the sandbox bank as merchants play with it: money is sent now by
// the test environment's clock, whichever clock the bank has.
type testBank struct {
	console.Bank

	now func() time.Time
}

// Transfer plays a payer who sends money.
func (b testBank) Transfer(ctx context.Context, t rail.Transfer) (rail.TransferResult, error) {
	if t.ValueTime.IsZero() {
		t.ValueTime = b.now().Add(time.Duration(t.PendingMs) * time.Millisecond)
	}
	return b.Bank.Transfer(ctx, t)
}
