package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// mostListed bounds how many payers are listed as not seen.
const mostListed = 100_000

// payerUnseenCmd lists who has not been seen for long, or forgets them.
type payerUnseenCmd struct {
	local

	For    time.Duration `arg:"" help:"For how long, in hours, as 17520h: two years."`
	Limit  int           `default:"1000" help:"How many at most, those seen longest ago first."`
	Forget bool          `help:"Forget each of them, as till payer forget does; stop the server first. Whoever has something that is not over stays, and it is told."`
	Yes    bool          `help:"With --forget: do it. It cannot be undone."`
	Copies bool          `help:"With --forget: also remove the copies in before-… of the data dir, and beside it, in which they still stand."`
}

// Help is the command's example and what to do with the list.
func (payerUnseenCmd) Help() string {
	return "Example:\n\n    till payer unseen 17520h\n    till payer unseen 17520h --forget --yes\n\n" +
		"By telephone number, or by the e-mail address of those who are known by no number: those for whom no session was made or paid, and who wrote nothing, in that time, in either environment. " +
		"With --forget they are forgotten one after the other and the files written anew once, at the end: once a month, say, while the server is stopped. Cut off, it goes on where it is begun again. " +
		"Without it the command runs beside a server. Either stands in the audit log."
}

// unseenPayer is one of the list.
type unseenPayer struct {
	Phone string `json:"phone,omitempty"`
	Email string `json:"email,omitempty"` // of one who is known by no number
	Seen  string `json:"lastSeenAt"`

	of knownBy
	at time.Time
}

// who is what the payer is known by.
func (p unseenPayer) who() string { return p.Phone + p.Email }

// check says what of the command line cannot be done.
func (c *payerUnseenCmd) check() error {
	switch {
	case c.For < time.Minute || c.Limit < 1 || c.Limit > mostListed:
		return usageError{fmt.Errorf("give a time of a minute or more, as 17520h, and a --limit from 1 to %d", mostListed)}
	case (c.Yes || c.Copies) && !c.Forget:
		return usageError{errors.New("--yes and --copies stand beside --forget")}
	case c.Forget && !c.Yes:
		return refusedError{errors.New("it cannot be undone. See who it would be without --forget, then give --forget --yes")}
	}
	return nil
}

// Run prints the list, or forgets whoever is on it.
func (c *payerUnseenCmd) Run(w *world) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	forget := payerForgetCmd{payerOf: payerOf{local: c.local}, Yes: c.Yes, Copies: c.Copies}
	if c.Forget {
		var unlock func() error
		if unlock, err = forget.alone(w); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	list, err := c.list(w)
	if err != nil {
		return err
	}
	if err := withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		return keepAct(w, a, "payer.unseen", "", "")
	}); err != nil {
		return err
	}
	if c.Forget {
		return c.forget(w, &forget, list)
	}
	if c.JSON {
		return printJSON(w, list)
	}
	for _, one := range list {
		if _, err := fmt.Fprintf(w.out, "%s  last seen %s\n", one.who(), one.Seen); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w.err, "%s not seen for %s\n", flow.Counted(len(list), "payer", "was", "were"), c.For)
	return err
}

// list is who was not seen, longest ago first.
func (c *payerUnseenCmd) list(w *world) ([]unseenPayer, error) {
	seen, err := c.unseen(w, time.Now().Add(-c.For))
	if err != nil {
		return nil, err
	}
	list := []unseenPayer{}
	for of, at := range seen {
		one := unseenPayer{Email: of.email, Seen: flow.Stamp(at), of: of, at: at}
		if of.phone != "" {
			one.Phone = "+" + string(of.phone)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b unseenPayer) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.who(), b.who()))
	})
	return list[:min(len(list), c.Limit)], nil
}

// unseen are those about whom nothing happened since a time in either environment, and
// when something last did.
func (c *payerUnseenCmd) unseen(w *world, before time.Time) (map[knownBy]time.Time, error) {
	list := map[knownBy]time.Time{}
	each := func(do func(*store.DB) error) error {
		of := payerOf{local: c.local}
		for _, env := range []flow.Environment{flow.Test, flow.Live} {
			if err := of.in(w, env, do); err != nil {
				return err
			}
		}
		return nil
	}
	err := each(func(db *store.DB) error {
		seen, err := db.UnseenSince(w.ctx, before, mostListed)
		for _, one := range seen {
			if who := (knownBy{one.Phone, one.Email}); one.At.After(list[who]) {
				list[who] = one.At
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, each(func(db *store.DB) error {
		return db.SeenSince(w.ctx, before, func(one store.Seen) { delete(list, knownBy{one.Phone, one.Email}) })
	})
}

// unseenForgotten is what became of a list.
type unseenForgotten struct {
	Forgotten int          `json:"forgotten"`
	LogsIn    int          `json:"logsIn"` // of them, with whose address somebody logs in: there it stays
	Left      []unseenLeft `json:"left"`
	Copies    []string     `json:"copies"` // in which they still stand
}

// unseenLeft is one who was not forgotten, and why.
type unseenLeft struct {
	unseenPayer

	Why  string            `json:"why"`
	Open []store.Unsettled `json:"open"` // what has to be over first
}

// forget forgets whoever is on a list. One who cannot be forgotten yet keeps no other
// from it.
func (c *payerUnseenCmd) forget(w *world, one *payerForgetCmd, list []unseenPayer) error {
	out := unseenForgotten{Left: []unseenLeft{}}
	ticker := time.NewTicker(slowAfter)
	defer ticker.Stop()
	for i, payer := range list {
		select {
		case <-ticker.C:
			if _, err := fmt.Fprintf(w.err, "till: %d of %s\n", i, flow.Count(len(list), "payer")); err != nil {
				return err
			}
		default:
		}
		done, err := one.forget(w, payer.of)
		if _, no := errors.AsType[refusedError](err); no || errors.Is(err, checkout.ErrUnsettled) {
			out.Left = append(out.Left, unseenLeft{unseenPayer: payer, Why: err.Error(), Open: done.Open})
			continue
		}
		if err != nil {
			return fmt.Errorf("%d of %s forgotten, run it again for the rest: %w", out.Forgotten, flow.Count(len(list), "payer"), err)
		}
		if out.Forgotten++; done.LogsIn {
			out.LogsIn++
		}
	}
	// Also where nobody was left: a run before may have been cut off here, or told of copies.
	err := patiently(w, "still writing the files anew", func() (err error) {
		if out.Copies, err = one.copies(); err == nil {
			out.Copies, err = one.end(w, out.Copies)
		}
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, out)
	}
	return out.told(w)
}

// told says what became of a list.
func (f *unseenForgotten) told(w *world) error {
	for _, left := range f.Left {
		if _, err := fmt.Fprintf(w.out, "%s  stays: %s\n", left.who(), left.Why); err != nil {
			return err
		}
		for _, one := range left.Open {
			if _, err := fmt.Fprintf(w.out, "  %s\n", notOver(one)); err != nil {
				return err
			}
		}
	}
	if f.LogsIn > 0 {
		if _, err := fmt.Fprintf(w.err, "Somebody logs in with the address of %d of them: among the people who log in, and in what they did, it stays.\n", f.LogsIn); err != nil {
			return err
		}
	}
	if len(f.Copies) > 0 && f.Forgotten > 0 {
		if _, err := fmt.Fprintf(w.err, "They still stand in these copies; remove them, or give --copies: %s\n", strings.Join(f.Copies, ", ")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w.err, "%s forgotten, %d left\n", flow.Counted(f.Forgotten, "payer", "is", "are"), len(f.Left))
	return err
}
