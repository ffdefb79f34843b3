package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"till/bot/whatsapp/wanet"
	"till/rail/sandbox"
)

// listenAgain listens where it listened last time, so that links given out then
// still lead somewhere; where that is taken, anywhere on this machine.
func listenAgain(ctx context.Context, file string) (net.Listener, error) {
	var lc net.ListenConfig
	if last, err := os.ReadFile(file); err == nil {
		if ln, err := lc.Listen(ctx, "tcp", strings.TrimSpace(string(last))); err == nil {
			return ln, nil
		}
	}
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.WriteFile(file, []byte(ln.Addr().String()), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the address: %w", err), ln.Close())
	}
	return ln, nil
}

// listenHere listens on an address that only this machine reaches.
func listenHere(ctx context.Context, addr string) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("it cannot listen on %s: %w (give --addr as 127.0.0.1:8090)", addr, err)
	}
	if !at.IP.IsLoopback() {
		return nil, fmt.Errorf("it cannot listen on %s: it is for this machine only (give --addr as 127.0.0.1:%d)", addr, at.Port)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", at.String())
	if err != nil {
		return nil, fmt.Errorf("it cannot listen on %s: %w (choose another --addr)", addr, err)
	}
	return ln, nil
}

// networkCmd runs the local WhatsApp network alone.
type networkCmd struct {
	Addr string `default:"127.0.0.1:8090" help:"Where the network listens; this machine only."`
	File string `default:"./network.db" help:"Where it keeps its accounts, phones and messages."`
}

func (networkCmd) Help() string {
	return "Example:\n\n    till network --addr 127.0.0.1:8090 --file ./network.db\n\nThen, with a data dir of its own, since a number is linked to one network:\n\n" +
		"    TILL_WHATSAPP_DIAL=127.0.0.1:8090 TILL_WHATSAPP_ROOT_KEY=<the printed key> till dev --data-dir ./data-outside"
}

// Run serves the network until it is told to stop.
func (c *networkCmd) Run(w *world) error {
	ln, err := listenHere(w.ctx, c.Addr)
	if err != nil {
		return err
	}
	network, err := wanet.Open(w.ctx, wanet.Config{File: c.File, Now: time.Now})
	if err != nil {
		return errors.Join(fmt.Errorf("open the network: %w", err), ln.Close())
	}
	key := network.RootKey()
	if _, err := fmt.Fprintf(w.out, "whatsapp network: %s\nroot key: %x\nstop with Ctrl+C\n", ln.Addr(), key[:]); err != nil {
		return err
	}
	return errors.Join(network.Serve(w.ctx, ln), network.Close())
}

// bankCmd runs the sandbox bank alone.
type bankCmd struct {
	Addr string `default:"127.0.0.1:8091" help:"Where the bank listens; this machine only."`
	File string `default:"./bank.db" help:"Where it keeps its accounts and what it owes."`
}

func (bankCmd) Help() string {
	return "Example:\n\n    till bank --addr 127.0.0.1:8091 --file ./bank.db\n\nThen, with a data dir of its own, since this bank knows nothing of what was paid at another:\n\n    TILL_BANK_URL=http://127.0.0.1:8091 till dev --data-dir ./data-outside"
}

// Run serves the bank until it is told to stop.
func (c *bankCmd) Run(w *world) error {
	ln, err := listenHere(w.ctx, c.Addr)
	if err != nil {
		return err
	}
	bank, err := sandbox.Open(sandbox.Config{File: c.File, Now: time.Now})
	if err != nil {
		return errors.Join(fmt.Errorf("open the bank: %w", err), ln.Close())
	}
	if _, err := fmt.Fprintf(w.out, "sandbox bank: http://%s\nstop with Ctrl+C\n", ln.Addr()); err != nil {
		return err
	}
	return errors.Join(bank.Serve(w.ctx, ln), bank.Close())
}

// loopbackClient talks to the pretend outsides: no proxy, no redirect, bounded.
func loopbackClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 32, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// under is a file in the data dir.
func under(dir, name string) string { return filepath.Join(dir, name) }
