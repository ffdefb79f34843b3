package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"till/bot"
	"till/bot/whatsapp"
	"till/cmd/till/meter"
	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// pairCmd links the bot to a WhatsApp account.
type pairCmd struct {
	config.Settings

	Phone string `help:"Number of the account, digits with country code: an eight-letter code is shown instead of a QR code."`
	Slot  int    `help:"Place of the number, as till numbers lists it; without it, one that is not linked, or one more."`
}

func (pairCmd) Help() string {
	return "Example:\n\n    till pair --whatsapp-network=whatsapp\n    till pair --whatsapp-network=whatsapp --phone 2348012345678\n\nEach run links one more number, or again one that was unlinked. Stop till serve first, unless several processes share the data dir: one of them runs it within seconds."
}

// errNotYet is a message that came while the number was only being linked: it
// is not taken, so it comes again when Till runs.
var errNotYet = errors.New("the number is only being linked")

// Run shows what is to be scanned or typed until the account is linked.
func (c *pairCmd) Run(w *world) (err error) {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.InsideWhatsApp() {
		return usageError{errors.New("on the local network till dev links the bot by itself; set --whatsapp-network=whatsapp, or --whatsapp-dial and --whatsapp-root-key")}
	}
	a := &app{set: c.Settings, log: logger(w.err, c.Settings), clock: newClock(""), meter: meter.New(version, time.Now)}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.openRedis(w.ctx); err != nil {
		return err
	}
	if err := a.openDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, handOver(c.DataDir, ".", c.DataDir)) }()
	test, _, err := a.openStores(w.ctx, false)
	if err != nil {
		return err
	}
	a.board = checkout.NewBoard(test, time.Now, time.Now, a.log)
	lease, err := c.take(w.ctx, a, test)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Drop(context.WithoutCancel(w.ctx))) }()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	number, err := c.open(ctx, w, a.log, lease)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return number.Run(ctx) })
	group.Go(func() error { return lease.Keep(ctx) })
	group.Go(func() error {
		defer cancel()
		if err := c.wait(ctx, w, number); err != nil {
			return err
		}
		return a.board.Report(ctx, linked(number, lease))
	})
	return errors.Join(stopped(group.Wait()), number.Close())
}

// keys is the file with the keys of the number in a slot.
func (c *pairCmd) keys(slot int) string {
	return whatsapp.KeysFile(under(c.DataDir, keysDir), string(flow.Test), slot)
}

// linked is what is kept of a number that was just linked.
func linked(number *whatsapp.Client, lease *checkout.Lease) flow.Number {
	n := number.Standing()
	n.Slot, n.Token, n.State = lease.Slot, lease.Token, flow.NumberOffline
	return n
}

// take chooses the place of the number and keeps it from every other process.
func (c *pairCmd) take(ctx context.Context, a *app, db *store.DB) (*checkout.Lease, error) {
	if err := moveKeys(c.DataDir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(under(c.DataDir, keysDir), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the keys: %w", err)
	}
	list, err := db.Numbers(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	slot := c.Slot
	for next := 1; slot == 0; next++ {
		i := slices.IndexFunc(list, func(n flow.Number) bool { return n.Slot == next })
		_, err := os.Stat(c.keys(next))
		if i < 0 && err != nil || i >= 0 && (list[i].Digits == "" || list[i].State == flow.NumberLoggedOut) {
			slot = next
		}
	}
	if slot < 1 || slot > whatsapp.MaxNumbers {
		return nil, usageError{fmt.Errorf("--slot is a number from 1 to %d", whatsapp.MaxNumbers)}
	}
	lease, err := checkout.NewLeases(db, a.redis, "till:"+string(flow.Test)+":", holder(), time.Now, a.log).Take(ctx, slot, idle(list, slot))
	if errors.Is(err, checkout.ErrHeld) {
		return nil, fmt.Errorf("number %d is run by a Till that lives, or died less than %s ago: stop it, or wait; where it is to be linked, that one shows the code itself", slot, checkout.LeaseLasts)
	}
	return lease, err
}

// idle is the process that runs the number in a slot and can do nothing with it, as it
// was unlinked: it need not end for the number to be linked again, and takes it up then.
func idle(list []flow.Number, slot int) string {
	for _, n := range list {
		if n.Slot == slot && n.State == flow.NumberLoggedOut {
			return n.Holder
		}
	}
	return ""
}

func (c *pairCmd) open(ctx context.Context, w *world, log *slog.Logger, lease *checkout.Lease) (*whatsapp.Client, error) {
	cfg := whatsapp.Config{
		File: c.keys(lease.Slot), Version: c.WhatsAppVersion, PushName: botName, Now: time.Now, Log: log,
		Receive: func(context.Context, bot.Message) error { return errNotYet },
		Tick:    func(context.Context, checkout.Tick) error { return nil },
		OnPairing: func(text string) {
			if c.Phone == "" {
				_, _ = fmt.Fprintf(w.out, "%s\npairing: %s\nOn the phone: WhatsApp, Linked devices, Link a device.\n", whatsapp.TerminalQR(text), text)
			}
		},
	}
	if c.WhatsAppDial != "" {
		key, err := c.RootKey()
		if err != nil {
			return nil, usageError{err}
		}
		cfg.Dial, cfg.RootKey = dialer(c.WhatsAppDial), &key
	}
	number, err := whatsapp.Open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the WhatsApp number: %w", err)
	}
	return number, nil
}

// wait shows the code, if one was asked for, and waits until it is linked.
func (c *pairCmd) wait(ctx context.Context, w *world, number *whatsapp.Client) error {
	if c.Phone != "" {
		code, err := number.PairCode(ctx, c.Phone)
		if err != nil {
			return fmt.Errorf("ask for a code: %w", err)
		}
		_, _ = fmt.Fprintf(w.out, "code: %s\nOn the phone: WhatsApp, Linked devices, Link with phone number.\n", code)
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for number.Number() == "" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	_, err := fmt.Fprintf(w.out, "linked: +%s\n", number.Number())
	return err
}
