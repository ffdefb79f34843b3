package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"till/bot"
	"till/bot/whatsapp"
	"till/config"
	"till/flow/checkout"
)

// pairCmd links the bot to a WhatsApp account.
type pairCmd struct {
	config.Settings

	Phone string `help:"Number of the account, digits with country code: an eight-letter code is shown instead of a QR code."`
}

// Help is the command's example.
func (pairCmd) Help() string {
	return "Example:  till pair --whatsapp-network=whatsapp\n          till pair --whatsapp-network=whatsapp --phone 2348012345678\nStop till serve first: a number is used by one process."
}

// errNotYet is a message that came while the number was only being linked: it
// is not taken, so it comes again when Till runs.
var errNotYet = errors.New("the number is only being linked")

// Run shows what is to be scanned or typed until the account is linked.
func (c *pairCmd) Run(w *world) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	if c.WhatsAppDial == "" && c.WhatsAppNetwork != "whatsapp" {
		return usageError{errors.New("on the local network till dev links the bot by itself; set --whatsapp-network=whatsapp, or --whatsapp-dial and --whatsapp-root-key")}
	}
	a := &app{set: c.Settings, log: logger(w.err, c.Settings)}
	defer func() { _ = a.close() }()
	if err := a.openDir(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	number, err := c.open(ctx, w, a.log)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return number.Run(ctx) })
	group.Go(func() error {
		defer cancel()
		return c.wait(ctx, w, number)
	})
	return errors.Join(stopped(group.Wait()), number.Close())
}

func (c *pairCmd) open(ctx context.Context, w *world, log *slog.Logger) (*whatsapp.Client, error) {
	cfg := whatsapp.Config{
		File: under(c.DataDir, "whatsapp.db"), PushName: botName, Now: time.Now, Log: log,
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
