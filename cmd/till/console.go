package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/mail"
	"os"
	"strings"
	"time"

	"till/flow/checkout"
)

// consoleCmd shows where the console is.
type consoleCmd struct{ local }

func (consoleCmd) Help() string {
	return "Example:\n\n    till console\n    xdg-open \"$(till console)\""
}

// firstOperator is the command that makes the first operator.
const firstOperator = "till people add YOU@EXAMPLE.COM --role operator"

// Run prints the address, and what is still to be done to get in.
func (c *consoleCmd) Run(w *world) error {
	if err := c.Check(); err != nil {
		return usageError{err}
	}
	base := cmp.Or(strings.TrimSuffix(string(c.PublicURL), "/"), "http://"+reached(c.HTTPAddr))
	runs := answers(w.ctx, "http://"+reached(c.HTTPAddr))
	operators, err := c.operators(w)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, map[string]any{"url": base + "/login", "running": runs, "operators": operators})
	}
	if _, err := fmt.Fprintln(w.out, base+"/login"); err != nil {
		return err
	}
	var notes []string
	if !runs {
		notes = append(notes, "No Till answers on "+c.HTTPAddr+" now. Start one:  till dev   or   till serve")
	}
	if operators == 0 {
		notes = append(notes, "There is no operator yet. Make the first:  "+firstOperator)
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(w.err, n); err != nil {
			return err
		}
	}
	return nil
}

// operators counts those who may log in.
func (c *consoleCmd) operators(w *world) (n int, err error) {
	if c.DatabaseURL == "" {
		if _, err := os.Stat(under(c.DataDir, "accounts.db")); errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
	}
	err = withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		list, err := a.People(w.ctx, "")
		for _, p := range list {
			if p.EndedAt.IsZero() {
				n++
			}
		}
		return err
	})
	return n, err
}

// reached is how this machine reaches an address that is listened on.
func reached(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// answers says whether something that is alive answers at an address.
func answers(ctx context.Context, base string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/livez", http.NoBody)
	if err != nil {
		return false
	}
	res, err := loopbackClient().Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// address says whether a text is an e-mail address and nothing else.
func address(text string) bool {
	got, err := mail.ParseAddress(text)
	return err == nil && got.Address == text && len(text) <= 254
}
