package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"till/cmd/till/sealing"
	"till/flow"
	"till/flow/store"
	"till/rail"
	"till/rail/sandbox"
)

// books is what the commands about money are told: an environment, whose bank is
// reached too.
type books struct {
	environment

	Env string `help:"The environment: test or live. --live is the same as --env live." enum:"test,live" default:"test"`
}

// env is the environment that the command is about, however it was named.
func (b *books) env() flow.Environment {
	if b.Env == string(flow.Live) {
		return flow.Live
	}
	return b.environment.env()
}

// beside is beside for the store of the environment.
func (b *books) beside(w *world, none string, do func(*store.DB) error) error {
	return besideEnv(w, b.Settings, b.env(), "", none, do)
}

// open opens the store of the environment and reaches its bank, for as long as
// do takes. bank is nil where the environment has none.
func (b *books) open(w *world, do func(db *store.DB, bank rail.Rail, now time.Time) error) error {
	return b.beside(w, "there is no ledger", func(db *store.DB) error {
		if b.env() == flow.Live { // no live bank is connected yet
			return do(db, nil, time.Now())
		}
		now := b.now
		if b.BankURL != "" { // it has the machine's time
			now = time.Now
		}
		return b.withBank(w, now, func(bank rail.Rail) error { return do(db, bank, now()) })
	})
}

// now is the time of the environment, whichever clock its bank has.
func (b *books) now() time.Time {
	return clockOf(b.Settings, b.env())()
}

// withBank reaches the sandbox bank: one that runs by itself, the one inside a
// program that runs, or else its books alone.
func (b *books) withBank(w *world, now func() time.Time, do func(rail.Rail) error) (err error) {
	base, ended, err := b.bankAt(w.ctx, now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ended()) }()
	var secret string
	err = beside(w, b.Settings, store.Accounts, "accounts", "there are no settings", func(db *store.DB) (err error) {
		secret, err = db.Secret(w.ctx, sealing.BankSecret)
		return err
	})
	if errors.Is(err, store.ErrKey) {
		err = fmt.Errorf("the bank is called with a secret: %w (%s)", err, giveKey(b.Settings))
	}
	if err != nil {
		return err
	}
	if secret == "" {
		return errors.New("this Till has never reached a bank: there is nothing to compare with")
	}
	bank, err := sandbox.NewRail(sandbox.RailConfig{BaseURL: base, Secret: secret, HTTP: loopbackClient(), Now: now})
	if err != nil {
		return err
	}
	defer bank.Close()
	return do(bank)
}

// bankAt is where the bank answers until ended is called.
func (b *books) bankAt(ctx context.Context, now func() time.Time) (base string, ended func() error, err error) {
	if b.BankURL != "" {
		return string(b.BankURL), func() error { return nil }, nil
	}
	if addr, err := os.ReadFile(under(b.DataDir, "bank.addr")); err == nil {
		d := net.Dialer{Timeout: time.Second}
		if conn, err := d.DialContext(ctx, "tcp", strings.TrimSpace(string(addr))); err == nil {
			return "http://" + conn.RemoteAddr().String(), func() error { return nil }, conn.Close()
		}
	}
	file := under(b.DataDir, "bank.db")
	if _, err := os.Stat(file); err != nil {
		return "", nil, fmt.Errorf("the bank cannot be reached: %w (a bank that runs by itself needs --bank-url)", err)
	}
	return readBank(ctx, file, now)
}

// readBank lets the books of the sandbox bank answer while no program runs it. It
// sends none of the notices that it owes.
func readBank(ctx context.Context, file string, now func() time.Time) (base string, ended func() error, err error) {
	bank, err := sandbox.Open(sandbox.Config{File: file, Now: now})
	if err != nil {
		return "", nil, unread(filepath.Base(file), err)
	}
	ln, err := listenHere(ctx, "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, bank.Close())
	}
	server := &http.Server{Handler: bank.Handler(), ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	return "http://" + ln.Addr().String(), func() error {
		err := server.Close()
		if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
			err = errors.Join(err, ended)
		}
		return errors.Join(err, bank.Close())
	}, nil
}

// bankFault says of a bank's fault what to do about it.
func bankFault(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, rail.ErrUnavailable) || errors.Is(err, rail.ErrUnknown) {
		return fmt.Errorf("%w (is --bank-url right? A bank that is down answers later)", err)
	}
	return err
}

// printTable prints a list for people: a heading and a line for each thing, with tabs
// between what is to stand in columns.
func printTable[T any](w *world, heading string, list []T, line func(T) string) error {
	out := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(out, heading); err != nil {
		return err
	}
	for _, one := range list {
		if _, err := fmt.Fprintln(out, line(one)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// printJSON prints a value for programs.
func printJSON(w *world, v any) error {
	out := json.NewEncoder(w.out)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// printDone prints what was done: a value for programs, or words for people.
func printDone(w *world, asJSON bool, v any, words string, args ...any) error {
	if asJSON {
		return printJSON(w, v)
	}
	_, err := fmt.Fprintf(w.out, words, args...)
	return err
}

// slowAfter is when a command that reads much says that it still does.
const slowAfter = time.Second

// patiently runs what may take long and says so on stderr, once a second.
func patiently(w *world, what string, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	ticker := time.NewTicker(slowAfter)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			if _, err := fmt.Fprintf(w.err, "till: %s, %s\n", what, time.Duration(n)*slowAfter); err != nil {
				return errors.Join(err, <-ended)
			}
		}
	}
}
