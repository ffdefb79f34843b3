package main

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"till/config"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// payerTouchedCmd lists whose data was written in a time.
type payerTouchedCmd struct {
	config.Settings

	From time.Time `arg:"" help:"From when, as 2026-11-20T08:00:00Z."`
	To   time.Time `arg:"" optional:"" help:"Up to when; without it, all since then."`
	JSON bool      `name:"json" help:"Print JSON: each session and each chat, with its project and telephone number, or else e-mail address."`
}

// Help is the command's example and what it lists.
func (payerTouchedCmd) Help() string {
	return "Example:\n\n    till payer touched 2026-11-20T08:00:00Z 2026-11-20T11:00:00Z --json > touched.json\n\n" +
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
	span := flow.Stamp(c.From) + " to " + flow.Stamp(c.To)
	if c.To.IsZero() { // and not the machine's clock: that of test may have been moved ahead of it
		span, c.To = "since "+flow.Stamp(c.From), time.UnixMilli(math.MaxInt64)
	}
	if !c.From.Before(c.To) {
		return usageError{fmt.Errorf("nothing lies between %s and %s: give the earlier time first", flow.Stamp(c.From), flow.Stamp(c.To))}
	}
	if err := withAccounts(w, c.Settings, func(a *checkout.Accounts) error {
		return keepAct(w, a, "payer.touched", "", span)
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
		if _, err := fmt.Fprintf(l.w.out, "%-5s %s  %s\n", at.env, at.project, flow.Count(l.count[at], "session")); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(l.w.out, "%s\n%s by telephone number, %d by the e-mail address of sessions without one; sessions and chats that name none: %d\n", flow.Count(l.chats, "chat"), flow.Count(len(l.payers), "payer"), len(l.addresses), l.nameless)
	return err
}
