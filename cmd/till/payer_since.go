package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// mostListed bounds how many payers are listed as not seen.
const mostListed = 100_000

// payerUnseenCmd lists who has not been seen for long.
type payerUnseenCmd struct {
	local

	For   time.Duration `arg:"" help:"For how long, in hours, as 17520h: two years."`
	Limit int           `default:"1000" help:"How many at most, those seen longest ago first."`
}

// Help is the command's example and what to do with the list.
func (payerUnseenCmd) Help() string {
	return "Example:  till payer unseen 17520h\n" +
		"          till payer unseen 17520h | while read -r payer rest; do till payer forget --yes -- \"$payer\"; done\n\n" +
		"By telephone number, or by the e-mail address of those who are known by no number: those for whom no session was made or paid, and who wrote nothing, in that time, in either environment. The second line forgets them; stop the server first. " +
		"It runs beside a server. It stands in the audit log that the list was made."
}

// unseenPayer is one of the list.
type unseenPayer struct {
	Phone string `json:"phone,omitempty"`
	Email string `json:"email,omitempty"` // of one who is known by no number
	Seen  string `json:"lastSeenAt"`

	at time.Time
}

// who is what the payer is known by.
func (p unseenPayer) who() string { return p.Phone + p.Email }

// Run prints the list.
func (c *payerUnseenCmd) Run(w *world) error {
	if c.For < time.Minute || c.Limit < 1 || c.Limit > mostListed {
		return usageError{fmt.Errorf("give a time of a minute or more, as 17520h, and a --limit from 1 to %d", mostListed)}
	}
	seen, err := c.unseen(w, time.Now().Add(-c.For))
	if err != nil {
		return err
	}
	list := []unseenPayer{}
	for who, at := range seen {
		one := unseenPayer{Email: who.email, Seen: flow.Stamp(at), at: at}
		if who.phone != "" {
			one.Phone = "+" + string(who.phone)
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b unseenPayer) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(a.who(), b.who()))
	})
	list = list[:min(len(list), c.Limit)]
	if err := withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		return keepAct(w, a, "", "payer.unseen", "", "")
	}); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, list)
	}
	for _, one := range list {
		if _, err := fmt.Fprintf(w.out, "%s  last seen %s\n", one.who(), one.Seen); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w.err, "%d payers were not seen for %s\n", len(list), c.For)
	return err
}

// unseen are those about whom nothing happened since a time in either environment, and
// when something last did.
func (c *payerUnseenCmd) unseen(w *world, before time.Time) (map[knownBy]time.Time, error) {
	list := map[knownBy]time.Time{}
	each := func(do func(*store.DB) error) error {
		of := payerOf{local: local{Settings: c.Settings}}
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

// payerTouchedCmd lists whose data was written in a time.
type payerTouchedCmd struct {
	config.Settings

	From time.Time `arg:"" help:"From when, as 2026-11-20T08:00:00Z."`
	To   time.Time `arg:"" optional:"" help:"Up to when; now, where it is not given."`
	JSON bool      `name:"json" help:"Print JSON: each session and each chat, with its project and telephone number, or else e-mail address."`
}

// Help is the command's example and what it lists.
func (payerTouchedCmd) Help() string {
	return "Example:  till payer touched 2026-11-20T08:00:00Z 2026-11-20T11:00:00Z --json > touched.json\n\n" +
		"For the report of a breach, which the law wants within 72 hours of its discovery: the sessions that were made, paid or talked about in that time, and the chats in which something was written, of both environments. " +
		"The list is whole, however long; where it cannot be, the command fails. It runs beside a server. It stands in the audit log that the list was made."
}

// touchedIn is one line of the list.
type touchedIn struct {
	Environment flow.Environment `json:"environment"`
	store.Touched
}

// Run prints the list.
func (c *payerTouchedCmd) Run(w *world) error {
	if c.To.IsZero() {
		c.To = time.Now()
	}
	if !c.From.Before(c.To) {
		return usageError{fmt.Errorf("nothing lies between %s and %s: give the earlier time first", flow.Stamp(c.From), flow.Stamp(c.To))}
	}
	if err := withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		return keepAct(w, a, "", "payer.touched", "", flow.Stamp(c.From)+" to "+flow.Stamp(c.To))
	}); err != nil {
		return err
	}
	list := touchedList{w: w, json: c.JSON, count: map[touchedAt]int{}, payers: map[flow.Phone]bool{}, addresses: map[string]bool{}}
	of := payerOf{local: local{Settings: c.Settings}}
	for _, env := range []flow.Environment{flow.Test, flow.Live} {
		err := of.in(w, env, func(db *store.DB) error {
			return db.TouchedBetween(w.ctx, c.From, c.To, touchedAtOnce, func(one store.Touched) error { return list.add(touchedIn{env, one}) })
		})
		if err != nil {
			return fmt.Errorf("the list is not whole: %w", err)
		}
	}
	return list.end()
}

// touchedAtOnce is how many are read at once.
const touchedAtOnce = 10_000

// touchedList is the list as it is told. What it remembers of what was touched is
// each payer once, and how often each project.
type touchedList struct {
	w      *world
	json   bool
	listed int
	places []touchedAt // in the order in which they came
	count  map[touchedAt]int
	payers map[flow.Phone]bool

	addresses map[string]bool // of those who are known by no number

	chats, nameless int
}

// touchedAt is where sessions were touched.
type touchedAt struct {
	env     flow.Environment
	project flow.ProjectID
}

// add prints one, or counts it, project by project.
func (l *touchedList) add(one touchedIn) error {
	if l.json {
		text, err := json.MarshalIndent(one, "  ", "  ")
		if err != nil {
			return err
		}
		begins := ",\n  "
		if l.listed == 0 {
			begins = "[\n  "
		}
		l.listed++
		_, err = fmt.Fprintf(l.w.out, "%s%s", begins, text)
		return err
	}
	switch {
	case one.Phone != "":
		l.payers[one.Phone] = true
	case one.Email != "":
		l.addresses[one.Email] = true
	default:
		l.nameless++
	}
	if one.What == "chat" {
		l.chats++
		return nil
	}
	at := touchedAt{one.Environment, one.Project}
	if l.count[at]++; l.count[at] == 1 {
		l.places = append(l.places, at)
	}
	return nil
}

// end prints what is left to say. JSON that was cut off has no end, and is none.
func (l *touchedList) end() error {
	if l.json {
		ends := "\n]\n"
		if l.listed == 0 {
			ends = "[]\n"
		}
		_, err := fmt.Fprint(l.w.out, ends)
		return err
	}
	for _, at := range l.places {
		if _, err := fmt.Fprintf(l.w.out, "%-5s %s  %d sessions\n", at.env, at.project, l.count[at]); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(l.w.out, "%d chats\n%d payers by their telephone numbers, %d by the e-mail addresses of sessions without one; %d sessions and chats name none\n", l.chats, len(l.payers), len(l.addresses), l.nameless)
	return err
}
