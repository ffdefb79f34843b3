package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"till/bot/whatsapp"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// payerForgetCmd forgets a payer.
type payerForgetCmd struct {
	payerOf

	DryRun bool `help:"Show what would go, and change nothing; it may be run beside a server."`
	Yes    bool `help:"Do it. It cannot be undone."`
	Copies bool `help:"Also remove the copies in before-… of the data dir, and beside it, in which the payer still stands."`
}

// Help is the command's example and what it does.
func (payerForgetCmd) Help() string {
	return "Example:\n\n    till payer forget 08031234567 --dry-run\n    till payer forget 08031234567 --yes\n    till payer forget ada@example.com --yes\n\n" +
		"Stop the server first. Telephone number, name, e-mail address, WhatsApp id and all that the payer wrote go from every table of both environments, from what merchants were told and answered, " +
		"from the keys of our WhatsApp numbers, from Redis, the log and the audit log; a name that says nothing stands for them. The files are then written anew, so that no byte is left in them. " +
		"Amounts, the ledger, references and how each turn was understood stay: till verify, till ledger check and till replay work as before. " +
		"Nothing is forgotten while a session of theirs is open, or money is on its way or waits for a decision: what to do first is told. " +
		"Backups, PostgreSQL's own log and what merchants keep are not touched: after a restore, forget them again."
}

// forgetting is what is or would be done.
type forgetting struct {
	As       string            `json:"as"` // what stands for them; "" where nothing was changed
	Test     forgettingIn      `json:"test"`
	Live     forgettingIn      `json:"live"`
	WhatsApp []keyFile         `json:"whatsapp"`
	Redis    int64             `json:"redis"`
	Accounts int64             `json:"accounts"`  // places in the audit log and in searches that people keep
	Logs     int               `json:"logs"`      // places in the log
	LogsIn   bool              `json:"logsIn"`    // somebody does with their e-mail address: there it stays
	Left     int               `json:"chatsLeft"` // of whoever speaks of others' sessions too: they stay
	Copies   []string          `json:"copies"`    // in which they still stand
	Open     []store.Unsettled `json:"open"`      // what has to be over first
}

// forgettingIn is that of one environment.
type forgettingIn struct {
	checkout.Forgot

	Beside int `json:"sessionsOfOthers"`
}

// nothing says whether there was nothing of anybody, but for the keys of numbers.
func (f *forgetting) nothing() bool {
	none := func(in forgettingIn) bool { return int64(in.Sessions+in.Chats+in.Beside)+in.Places == 0 }
	return none(f.Test) && none(f.Live) && f.Redis+f.Accounts+int64(f.Logs) == 0
}

// Run forgets a payer, or says what that would do.
func (c *payerForgetCmd) Run(w *world) (err error) {
	of, err := c.who()
	if err != nil {
		return err
	}
	if !c.DryRun && !c.Yes {
		return refusedError{errors.New("it cannot be undone. See what would go with --dry-run, then give --yes")}
	}
	if !c.DryRun {
		var unlock func() error
		if unlock, err = c.alone(w); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	var out forgetting
	err = patiently(w, "still forgetting", func() (err error) {
		out, err = c.forget(w, of)
		if err == nil && !c.DryRun {
			out.Copies, err = c.end(w, out.Copies)
		}
		return err
	})
	if errors.Is(err, checkout.ErrUnsettled) {
		for _, one := range out.Open {
			if _, err := fmt.Fprintf(w.err, "till: %s\n", notOver(one)); err != nil {
				return err
			}
		}
		return refusedError{errors.New("nothing was changed: something of this payer's is not over")}
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, out)
	}
	return c.told(w, of, out)
}

// notOver says what is not over, and what is done first about it.
func notOver(u store.Unsettled) string {
	return fmt.Sprintf("%s %s is not over: %s", u.What, u.ID, firstDo(u))
}

// firstDo is what is done first about what is not over.
func firstDo(u store.Unsettled) string {
	switch u.What {
	case "session":
		return "cancel it (POST /v1/whatsapp/checkout/sessions/" + u.ID + "/cancel) or wait until it ends"
	case "refund":
		return "wait until the bank has sent it; one that needs attention is decided about in the console"
	case "payment":
		return "decide about it: POST /v1/payments/" + u.ID + "/resolve"
	case "chat":
		return "till desk release " + u.ID + " --as <you>"
	}
	return "it waits for a second person, in the console"
}

// alone takes the data dir for this process: what a server that runs has in memory
// would be written again.
func (c *payerForgetCmd) alone(w *world) (unlock func() error, err error) {
	if _, err := os.Stat(c.DataDir); err != nil {
		return nil, fmt.Errorf("there is nothing kept: %w (is --data-dir right?)", err)
	}
	unlock, err = lockDir(c.DataDir, "changed")
	if err != nil {
		return nil, err
	}
	if c.DatabaseURL == "" {
		return unlock, nil // nobody else can use it, whatever one that was killed had taken
	}
	// Servers that share a PostgreSQL do not hold the dir: who runs a number does.
	err = beside(w, c.Settings, store.Checkout, string(flow.Test), "there is nothing kept", func(db *store.DB) error {
		b := checkout.NewBoard(db, time.Now, time.Now, logger(w.err, c.Settings))
		if err := b.Refresh(w.ctx); err != nil {
			return err
		}
		for _, n := range b.Numbers() {
			if time.Now().Before(n.HeldUntil) {
				return fmt.Errorf("%s runs a WhatsApp number (stop every server first, and start them again afterwards; one that was killed lets go of it at %s)", n.Holder, flow.Stamp(n.HeldUntil))
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

// forget looks for everything, and changes it with --yes. What tells where else to
// look goes last: killed in the middle, it is done again from the beginning.
func (c *payerForgetCmd) forget(w *world, of knownBy) (out forgetting, err error) {
	out = forgetting{WhatsApp: []keyFile{}, Copies: []string{}, Open: []store.Unsettled{}}
	found, err := c.find(w, of, nil)
	if err == nil {
		out.LogsIn, err = c.logsIn(w, of.email)
	}
	if err != nil {
		return out, err
	}
	numbered, left := besides(found)
	if out.Left = left; numbered > 0 {
		return out, refusedError{fmt.Errorf("nothing was changed: %s this address, and telephone numbers stand for them. Forget those payers by their numbers first, without --email, which takes every session of the address, whoever's it is",
			flow.Counted(numbered, "session", "holds", "hold"))}
	}
	for _, f := range found {
		out.Open = append(out.Open, f.open...)
	}
	if out.WhatsApp, err = keyFiles(w.ctx, c.Settings, ids(found)); err != nil {
		return out, err
	}
	if out.Copies, err = c.copies(); err != nil {
		return out, err
	}
	if len(out.Open) > 0 && !c.DryRun {
		return out, checkout.ErrUnsettled
	}
	words := []string{string(of.phone)}
	for _, f := range found {
		words = append(words, f.payer.Everywhere()...)
	}
	for _, f := range out.WhatsApp {
		words = append(words, f.ids...)
	}
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(s string) bool { return s == "" })
	if out.Logs, err = c.logs(words, ""); err != nil {
		return out, err
	}
	if c.DryRun {
		for _, f := range found {
			in := out.of(f.env)
			in.Sessions, in.Chats, in.Beside = len(f.payer.Sessions), len(f.payer.Chats), len(f.payer.Beside)
		}
		return out, nil
	}
	err = c.change(w, &out, found, words, of)
	return out, err
}

// logsIn says whether somebody logs in with an e-mail address: where people log in it
// stays then, or they would be locked out.
func (c *payerForgetCmd) logsIn(w *world, email string) (is bool, err error) {
	if email == "" {
		return false, nil
	}
	err = withAccounts(w, c.Settings, func(a *checkout.Accounts) (err error) {
		is, err = a.LogsIn(w.ctx, email)
		return err
	})
	return is, err
}

// of is what is done in an environment.
func (f *forgetting) of(env flow.Environment) *forgettingIn {
	if env == flow.Live {
		return &f.Live
	}
	return &f.Test
}

// change does it but for the files, in an order in which a second try finds what a
// first one left: the keys know numbers that nothing else does, and the environments
// who is in the keys.
func (c *payerForgetCmd) change(w *world, out *forgetting, found []payerIn, words []string, of knownBy) (err error) {
	if out.As, err = checkout.NewForgetter(nil, time.Now, rand.Reader).NewName(); err != nil {
		return err
	}
	if _, err = c.logs(words, out.As); err != nil {
		return err
	}
	if err := c.accounts(w, out, found, words, of); err != nil {
		return err
	}
	for _, f := range out.WhatsApp {
		if err := whatsapp.Forget(w.ctx, f.path, f.ids); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if out.Redis, err = c.places(w.ctx, found); err != nil {
		return err
	}
	for _, f := range found {
		err := c.in(w, f.env, func(db *store.DB) error {
			in := out.of(f.env)
			in.Beside = len(f.payer.Beside)
			in.Forgot, err = checkout.NewForgetter(db, clockOf(c.Settings, f.env), rand.Reader).Forget(w.ctx, f.payer, out.As)
			return err
		})
		if err != nil {
			return err
		}
	}
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) error { return keepAct(w, a, "payer.forget", out.As, "") })
}

// accounts takes the words out of what is kept of people who log in, and why they did
// something about what is the payer's.
func (c *payerForgetCmd) accounts(w *world, out *forgetting, found []payerIn, words []string, of knownBy) error {
	traces := checkout.Traces{Texts: words}
	for _, f := range found {
		traces.Things = append(traces.Things, f.things...)
		traces.Names, traces.Projects = append(traces.Names, f.names...), append(traces.Projects, f.of...)
	}
	if out.LogsIn {
		traces.Texts = slices.DeleteFunc(slices.Clone(words), func(s string) bool { return flow.FoldEmail(s) == of.email })
	}
	return withAccounts(w, c.Settings, func(a *checkout.Accounts) (err error) {
		out.Accounts, err = a.Forget(w.ctx, traces, out.As)
		return err
	})
}

// places makes Redis forget where a payer's talks stand.
func (c *payerForgetCmd) places(ctx context.Context, found []payerIn) (n int64, err error) {
	if c.RedisURL == "" {
		return 0, nil
	}
	client, err := redisAt(c.Settings)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, f := range found {
		for _, chat := range f.payer.Chats {
			gone, err := checkout.ForgetPlace(ctx, client, placesOf(f.env), chat.ID)
			if err != nil {
				return n, fmt.Errorf("make Redis forget: %w (is it running? --redis-url)", err)
			}
			n += gone
		}
	}
	return n, nil
}

// told says what was done.
func (c *payerForgetCmd) told(w *world, of knownBy, out forgetting) error {
	rows := 0
	for _, f := range out.WhatsApp {
		rows += f.Rows
	}
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		in := out.of(env)
		if _, err := fmt.Fprintf(w.out, "%-9s %s, %s, %s of others spoken of there\n", env, flow.Count(in.Sessions, "session"), flow.Count(in.Chats, "chat"), flow.Count(in.Beside, "session")); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w.out, "whatsapp  %s of keys and names\nlog       %s\n", flow.Count(rows, "row"), flow.Count(out.Logs, "place")); err != nil {
		return err
	}
	if out.LogsIn {
		if _, err := fmt.Fprintln(w.err, "Somebody logs in with this address: among the people who log in, and in what they did, it stays."); err != nil {
			return err
		}
	}
	if out.Left > 0 {
		if _, err := fmt.Fprintf(w.err, "%s of other sessions too: there stays what is of nobody's session, and who writes.\n", flow.Counted(out.Left, "chat", "speaks", "speak")); err != nil {
			return err
		}
	}
	if len(out.Copies) > 0 {
		if _, err := fmt.Fprintf(w.err, "They still stand in these copies; remove them, or give --copies: %s\n", strings.Join(out.Copies, ", ")); err != nil {
			return err
		}
	}
	for _, one := range out.Open {
		if _, err := fmt.Fprintln(w.err, notOver(one)); err != nil {
			return err
		}
	}
	last := "Nothing was changed. With --yes, and no server running, all of this goes.\n"
	switch {
	case out.nothing() && rows == 0: // a digit that is typed wrongly must not read as a payer who is forgotten
		last = fmt.Sprintf("Nothing is kept of %s, in test or live: is it right, and --data-dir?\n", of.name())
	case len(out.Open) > 0:
		last = "Nothing was changed, and nothing will be while these are not over.\n"
	case !c.DryRun:
		last = "The payer is forgotten: " + out.As + " stands for them.\n"
	}
	_, err := fmt.Fprint(w.err, last)
	return err
}
