package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"till/api"
	"till/bot/whatsapp/wanet"
	"till/cmd/till/sealing"
	"till/config"
	"till/flow"
	"till/rail/sandbox"
)

// devCmd runs everything on this machine, with nothing real.
type devCmd struct{ config.Settings }

func (devCmd) Help() string {
	return "Example:\n\n    till dev\n\nIt prints a test key, a curl that opens a chat session, and the address of the phone page where you play the payer."
}

// Run runs until it is told to stop.
func (c *devCmd) Run(w *world) error { return launch(w, c.Settings, true) }

// What the pretend world of till dev is made of, and how its start goes.
const (
	botNumber = "2349010000001" // the bot's own on the local network
	botName   = "Till"
	demoName  = "Ada Stores" // the project that is made, and below its owner
	demoEmail = "demo@till.test"
	// readyPatience is how long the start waits for WhatsApp before it says how
	// things stand.
	readyPatience = 10 * time.Second
	envFile       = ".env.till"
)

// launch runs the program: with its pretend outsides inside (dev), or with those
// that run elsewhere (serve).
func launch(w *world, set config.Settings, dev bool) (err error) {
	// Whoever reads what we say may go away: money is taken without them too.
	signal.Ignore(syscall.SIGPIPE)
	lines := &logTee{out: w.err}
	defer lines.loosen()()
	a, err := prepare(w.ctx, set, logger(lines, set), dev)
	if err == nil {
		defer func() { err = errors.Join(err, a.close()) }()
		a.keepLog(lines)
		err = a.run(w, dev)
	}
	if w.ctx.Err() != nil { // told to stop, maybe in the middle of its start
		err = stopped(err)
	}
	return err
}

// run opens what is left to open, and serves until it is told to stop.
func (a *app) run(w *world, dev bool) error {
	group, ctx := errgroup.WithContext(w.ctx)
	a.group = group
	opened := a.extended(ctx)
	test, live, err := a.openStores(ctx, dev)
	opened()
	if err != nil {
		return err
	}
	// The test environment's clock is moved by merchants: live keys never follow
	// it, and logins only where nothing is real.
	desk := time.Now
	if dev {
		desk = a.clock.Now
	}
	a.accounts.Clocks(time.Now, desk)
	if a.set.RedisURL != "" { // the one inside the program is this process's alone
		a.accounts.Together(a.redis, "till:tries:")
	}
	if err := a.openBank(ctx); err != nil {
		return err
	}
	net, err := a.openNetwork(ctx)
	if err != nil {
		return err
	}
	if err := a.openBoards(ctx, test, live); err != nil {
		return err
	}
	if err := errors.Join(a.holdIfOlder(ctx, flow.Test, test, a.board), a.holdIfOlder(ctx, flow.Live, live, a.liveBoard)); err != nil {
		return err
	}
	if err := a.openFleet(ctx, test, w.out, net); err != nil {
		return err
	}
	link := "https://wa.me/"
	if dev && net.remote != nil { // the phone page is only there in development
		link = a.publicURL() + "/wa.me/"
	}
	if err := a.openServices(ctx, test, live, link); err != nil {
		return err
	}
	var drivable api.Phones
	if net.remote != nil {
		drivable = &phones{network: net.remote, number: a.board.Any, ours: a.board.Ours}
	}
	server, err := a.api(drivable, dev)
	if err != nil {
		return err
	}
	a.watch(ctx, server, test, live)
	a.registerBankOnce(ctx) // so that the first call finds a bank that knows us
	spare()                 // not before: what only the start needs is tidied up meanwhile
	group.Go(func() error { return server.Serve(ctx, a.listener) })
	group.Go(func() error { return a.accounts.Run(ctx) })
	group.Go(func() error { return a.test.Run(ctx) })
	group.Go(func() error { return a.live.Run(ctx) })
	for _, run := range a.running {
		group.Go(func() error { return run(ctx) })
	}
	if a.shares() {
		group.Go(func() error { return a.clock.follow(ctx, a.test.Wake) })
	}
	group.Go(func() error { return a.board.Run(ctx) })
	group.Go(func() error { return a.liveBoard.Run(ctx) })
	group.Go(func() error { return a.fleet.Run(ctx) })
	group.Go(func() error { return a.registerBank(ctx) })
	group.Go(func() error { return a.supervised(ctx) })
	group.Go(func() error { return a.greet(ctx, w.out, net, dev) })
	return group.Wait()
}

// stopped takes the ordinary end of a server for what it is.
func stopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// openBank starts the sandbox bank inside, or reaches one that runs by itself.
func (a *app) openBank(ctx context.Context) error {
	base, now := string(a.set.BankURL), time.Now
	day := a.clock.Now
	if base == "" {
		day = nil
		now = a.clock.Now
		ln, err := listenAgain(ctx, under(a.set.DataDir, "bank.addr"))
		if err != nil {
			return fmt.Errorf("start the sandbox bank: %w", err)
		}
		bank, err := sandbox.Open(sandbox.Config{File: under(a.set.DataDir, "bank.db"), Log: a.log, Now: now, Rand: rand.Reader})
		if err != nil {
			return errors.Join(fmt.Errorf("start the sandbox bank: %w", err), ln.Close())
		}
		a.closing(bank.Close)
		a.outlive(ctx, func(ctx context.Context) error { return bank.Serve(ctx, ln) })
		base = "http://" + ln.Addr().String()
	}
	secret, err := a.kept(ctx, sealing.BankSecret)
	if err != nil {
		return fmt.Errorf("start the sandbox bank: %w", err)
	}
	calls := loopbackClient()
	a.bankClock.next, a.bankClock.now, calls.Transport = calls.Transport, time.Now, &a.bankClock
	a.rail, err = sandbox.NewRail(sandbox.RailConfig{BaseURL: base, Secret: secret, HTTP: calls, Now: now, Day: day})
	return err
}

// network is the WhatsApp network the bot is on. remote is nil where no phones
// can be played on it.
type network struct {
	kind   string
	dial   func(ctx context.Context) (net.Conn, error)
	root   *[32]byte
	remote *wanet.Remote
	inside bool
}

// openNetwork starts the local network inside, or reaches the one it is told of.
func (a *app) openNetwork(ctx context.Context) (*network, error) {
	switch {
	case a.set.WhatsAppDial != "":
		key, err := a.set.RootKey()
		if err != nil {
			return nil, usageError{err}
		}
		n := &network{kind: "the network at " + a.set.WhatsAppDial, dial: dialer(a.set.WhatsAppDial), root: &key}
		remote := wanet.NewRemote("http://"+a.set.WhatsAppDial, loopbackClient())
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := remote.Info(short); err == nil || unreached(err) {
			n.remote = remote // it is one of ours, or may be when it comes up: its phones can be played
		}
		return n, nil
	case a.set.WhatsAppNetwork == "whatsapp":
		return &network{kind: "the real WhatsApp"}, nil
	}
	ln, err := listenAgain(ctx, under(a.set.DataDir, "network.addr"))
	if err != nil {
		return nil, fmt.Errorf("start the local WhatsApp network: %w", err)
	}
	file := under(a.set.DataDir, "network.db")
	inside, err := wanet.Open(ctx, wanet.Config{File: file, Log: a.log, Now: time.Now})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the local WhatsApp network: %w (where it is damaged, move %s away: till dev makes another, and links its numbers anew)", err, file), ln.Close())
	}
	a.closing(inside.Close)
	a.outlive(ctx, func(ctx context.Context) error { return inside.Serve(ctx, ln) })
	key := inside.RootKey()
	addr := ln.Addr().String()
	return &network{
		kind: "a local WhatsApp network inside this program", dial: dialer(addr), root: &key, inside: true,
		remote: wanet.NewRemote("http://"+addr, loopbackClient()),
	}, nil
}

// unreached says of a failed call that nobody answered: nothing is known of who
// will.
func unreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// outlive runs a pretend outside until all of ours has ended, so that what is
// under way when the program is told to stop still meets it.
func (a *app) outlive(ctx context.Context, serve func(ctx context.Context) error) {
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- serve(own)
	}()
	a.group.Go(func() error {
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	a.closing(func() error {
		stop()
		return stopped(<-ended)
	})
}

// dialer reaches a network over plain TCP.
func dialer(addr string) func(ctx context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		d := net.Dialer{Timeout: 5 * time.Second}
		return d.DialContext(ctx, "tcp", addr)
	}
}

// greet says what is running: what is fake and what is real, the console, the keys, a first
// request and where the phone is.
func (a *app) greet(ctx context.Context, out io.Writer, n *network, dev bool) error {
	if n.inside {
		a.waitReady(ctx)
	}
	if !dev {
		a.say(ctx, out, fmt.Sprintf("API       %s\nWhatsApp  %s\nbank      %s\n", a.publicURL(), n.kind, a.set.BankURL))
		return nil
	}
	public, secret, err := a.demo(ctx)
	if err != nil {
		return fmt.Errorf("make the demo project: %w", err)
	}
	var b strings.Builder
	b.WriteString("fake  bank      sandbox, no money moves: " + cmp.Or(a.set.BankURL.String(), "inside this program") + "\n")
	switch {
	case a.realNumber():
		b.WriteString("real  WhatsApp  messages reach real people\n")
	case n.inside:
		b.WriteString("fake  WhatsApp  " + n.kind + "; nothing leaves this machine\n")
	default:
		b.WriteString("fake  WhatsApp  " + n.kind + "\n")
	}
	b.WriteString("real  the rest  API, store, conversation, encryption, webhooks\n\n")
	key := "$(sed -n 's/^TILL_SECRET_KEY=//p' " + envFile + ")"
	fmt.Fprintf(&b, "console     %s\npublic key  %s\n", a.publicURL(), public)
	if secret != "" {
		key = secret
		fmt.Fprintf(&b, "secret key  %s   (shown this once; also in %s)\n\n", secret, envFile)
	} else if keepEnvFile(a.publicURL(), public) {
		fmt.Fprintf(&b, "secret key  in %s since the first start\n\n", envFile)
	} else {
		key = "$TILL_SECRET_KEY"
		fmt.Fprintf(&b, "secret key  shown on the first start only, and %s holds none of %s. To make another:\n\n  till keys create --kind secret --project %s --data-dir %s\n\n",
			envFile, a.set.DataDir, a.demoProject(ctx), a.set.DataDir)
	}
	fmt.Fprintf(&b, "Open a checkout in a chat:\n\n  curl -s %s/v1/whatsapp/checkout/sessions \\\n    -H \"Authorization: Bearer %s\" \\\n    -H 'Content-Type: application/json' \\\n"+
		"    -d '{\"amount\":500000,\"customerEmail\":\"ada@example.com\",\"mode\":\"chat\"}'\n\n", a.publicURL(), key)
	if n.remote != nil {
		fmt.Fprintf(&b, "Then open the checkoutUrl of its answer, or play the payer here:\n\n  %s/phone\n", a.publicURL())
	} else {
		b.WriteString("Then open the checkoutUrl of its answer on a phone of that network.\n")
	}
	a.say(ctx, out, b.String())
	return nil
}

// say says something to whoever started the program. Where that cannot be written, as
// on a full disk, it is served without.
func (a *app) say(ctx context.Context, out io.Writer, text string) {
	if _, err := io.WriteString(out, text); err != nil {
		a.log.LogAttrs(ctx, slog.LevelWarn, "what is said at the start could not be written", slog.String("error", err.Error()))
	}
}
