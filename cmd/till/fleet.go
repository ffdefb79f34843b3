package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"

	"till/bot"
	"till/bot/whatsapp"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// keysDir is where the keys of the numbers are, in the data dir.
const keysDir = "whatsapp"

// localNumber is the number in a slot on the local network.
func localNumber(slot int) string {
	first, _ := strconv.Atoi(botNumber)
	return strconv.Itoa(first + slot - 1)
}

// openBoards lets both environments see what operators switch, and the test one
// its numbers.
func (a *app) openBoards(ctx context.Context, test, live *store.DB) error {
	a.board = checkout.NewBoard(test, time.Now, a.clock.Now, a.log.With(slog.String("environment", string(flow.Test))))
	a.liveBoard = checkout.NewBoard(live, time.Now, time.Now, a.log.With(slog.String("environment", string(flow.Live))))
	a.liveBoard.Heed(a.accounts.Suspended)
	a.checkMoney()
	return errors.Join(a.board.Refresh(ctx), a.liveBoard.Refresh(ctx))
}

// holder names this process among all that ever run a number.
func holder() string {
	raw := make([]byte, 6)
	_, _ = rand.Read(raw)
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return fmt.Sprintf("%.60s/%d/%x", host, os.Getpid(), raw)
}

// openFleet opens the bot's WhatsApp numbers. On the network inside, phones of
// its own link them by themselves; elsewhere the text to scan is printed.
func (a *app) openFleet(ctx context.Context, db *store.DB, out io.Writer, n *network) error {
	err := moveKeys(a.set.DataDir)
	if err != nil {
		return err
	}
	leases := checkout.NewLeases(db, a.redis, "till:"+string(flow.Test)+":", holder(), time.Now, a.log)
	if a.set.DatabaseURL == "" {
		leases.Alone()
	}
	a.fleet, err = whatsapp.NewFleet(whatsapp.FleetConfig{
		Dir: under(a.set.DataDir, keysDir), Name: string(flow.Test), Numbers: a.set.WhatsAppNumbers, Board: a.board,
		Leases: leases, Lock: lockFile,
		Every: a.set.WhatsAppCanary, Rand: rand.Reader,
		Client: whatsapp.Config{
			Dial: n.dial, RootKey: n.root, Relink: n.inside, PushName: botName, Now: time.Now, Log: a.log, Version: a.set.WhatsAppVersion,
			Receive:    func(ctx context.Context, m bot.Message) error { return a.bot.Receive(ctx, m) },
			Tick:       func(ctx context.Context, t checkout.Tick) error { return a.test.Tick(ctx, t) },
			Unreadable: a.meter.Unreadable,
		},
		OnPairing: func(slot int, text string) {
			if n.inside {
				if _, err := n.remote.ScanQR(ctx, localNumber(slot), botName, text); err != nil && ctx.Err() == nil {
					a.log.LogAttrs(ctx, slog.LevelError, "link the bot on the local network", slog.Int("slot", slot), slog.String("error", err.Error()))
				}
				return
			}
			_, _ = fmt.Fprintf(out, "pairing: %s\n", text)
		},
	})
	if err != nil {
		return fmt.Errorf("open the WhatsApp numbers: %w", err)
	}
	a.checkWhatsApp()
	return nil
}

// moveKeys puts the keys of the one number that there used to be where those of
// many are.
func moveKeys(dir string) error {
	old := under(dir, "whatsapp.db")
	if _, err := os.Stat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(under(dir, keysDir), 0o700); err != nil {
		return fmt.Errorf("make the folder of the keys: %w", err)
	}
	to := whatsapp.KeysFile(under(dir, keysDir), string(flow.Test), 1)
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("the keys in %s would take the place of those in %s: remove one of the two", old, to)
	}
	// The database itself last: until then the old place is whole.
	for _, ending := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(old+ending, to+ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("move the keys of the number: %w", err)
		}
	}
	return nil
}

// waitReady waits a while for WhatsApp, so that the first curl works.
func (a *app) waitReady(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for a.board.Any() == "" {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
