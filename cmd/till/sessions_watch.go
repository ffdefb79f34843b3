package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// sessionsWatchCmd follows a session.
type sessionsWatchCmd struct {
	remote

	Session string        `arg:"" help:"Id of the session: wsp_sess_…"`
	For     time.Duration `default:"1h" help:"How long to watch at most."`
}

func (sessionsWatchCmd) Help() string {
	return "Example:\n\n    till sessions watch wsp_sess_01jd… --for 5m\n\nEnds with 0 once the session is paid, expired or cancelled and its events are delivered, and with 1 where that does not happen in time, an event is dead, which only a resend delivers, or it is interrupted."
}

// watchEvery is how often a session is looked at.
const watchEvery = 500 * time.Millisecond

// seen is one thing that happened in a session.
type seen struct {
	At     string `json:"at"`
	What   string `json:"what"` // session, method, event
	Name   string `json:"name"`
	Status string `json:"status"`

	of string // tells it apart: a session has several events of a kind
}

// Run prints what changes, until the session is over.
func (c *sessionsWatchCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.ctx, c.For)
	defer cancel()
	last := map[string]string{}
	for {
		state, done, failure := look(ctx, to, c.Session)
		if ctx.Err() != nil && !done { // it was only not looked at to the end
			failure = nil
		}
		for _, s := range state {
			if key := s.What + s.Name + s.of; last[key] != s.Status {
				last[key] = s.Status
				if err := c.tell(w.out, s); err != nil {
					return err
				}
			}
		}
		if done || failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			if err := w.ctx.Err(); err != nil { // a script that goes on only after 0 must not
				return fmt.Errorf("the session is not over: %w", err)
			}
			return fmt.Errorf("the session is not over after %s", c.For)
		case <-time.After(watchEvery):
		}
	}
}

// tell prints one thing that happened.
func (c *sessionsWatchCmd) tell(out io.Writer, s seen) error {
	s.At = flow.Stamp(time.Now())
	if c.JSON {
		return json.NewEncoder(out).Encode(s)
	}
	_, err := fmt.Fprintf(out, "%s  %-7s  %-28s  %s\n", s.At, s.What, s.Name, s.Status)
	return err
}

// look says how a session and its events stand, and whether nothing more is
// awaited. Where only what is dead is left, which nothing brings by itself, it is an error.
func look(ctx context.Context, to *client, id string) (state []seen, done bool, err error) {
	var s aSession
	if err := to.get(ctx, at(sessionsPath, id), &s); err != nil {
		return nil, false, err
	}
	state = append(state, seen{What: "session", Name: s.ID, Status: strings.TrimSpace(s.state() + " " + naira(s.AmountPaidMinor))})
	for _, m := range s.PaymentMethods {
		if m.Status != string(flow.OfferAvailable) {
			state = append(state, seen{What: "method", Name: m.Method, Status: m.state()})
		}
	}
	items, _, err := to.list(ctx, eventsPath, url.Values{"sessionId": {s.ID}}, maxListed)
	if err != nil {
		return nil, false, err
	}
	done = s.over()
	var dead []string
	slices.Reverse(items)
	err = each(items, func(e anEvent) error {
		state = append(state, seen{What: "event", Name: e.Event, Status: strings.Trim(e.ID+" "+e.Deliveries.String(), " -"), of: e.ID})
		done = done && e.Deliveries.Pending+e.Deliveries.Held == 0
		if e.Deliveries.Dead > 0 {
			dead = append(dead, e.ID)
		}
		return nil
	})
	if err == nil && done && len(dead) > 0 {
		err = fmt.Errorf("the session is over, and its endpoint was never told of %s: nothing tries that again by itself (till events resend %s)", strings.Join(dead, ", "), dead[0])
	}
	return state, done, err
}

// sessionsExportCmd writes a session into a file.
type sessionsExportCmd struct {
	remote

	Session string `arg:"" help:"Id of the session: wsp_sess_…"`
	Output  string `short:"o" default:"-" placeholder:"FILE" help:"The file, which must not be there yet; - for standard output."`
}

func (sessionsExportCmd) Help() string {
	return "Example:\n\n    till sessions export wsp_sess_01jd… -o session.json\n\nIt holds who the payer is. For a conversation without that see:  till replay --export"
}

// exported is all that is known of a session.
type exported struct {
	Session  json.RawMessage   `json:"session"`
	Charge   json.RawMessage   `json:"charge"`
	Payments []json.RawMessage `json:"payments"`
	Refunds  []json.RawMessage `json:"refunds"`
	Events   []exportedEvent   `json:"events"`
	Timeline []json.RawMessage `json:"timeline"`
}

// exportedEvent is an event with its body and its deliveries.
type exportedEvent struct {
	Event      json.RawMessage   `json:"event"`
	Deliveries []json.RawMessage `json:"deliveries"`
}

// Run reads everything and writes it.
func (c *sessionsExportCmd) Run(w *world) (err error) {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var all exported
	if err := patiently(w, "still reading", func() (err error) {
		all, err = export(w.ctx, to, c.Session)
		return err
	}); err != nil {
		return err
	}
	if c.Output == "-" {
		return printJSON(w, all)
	}
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return printJSON(&world{out: file}, all)
}

// export reads all that is known of a session.
func export(ctx context.Context, to *client, id string) (exported, error) {
	all := exported{Events: []exportedEvent{}, Timeline: []json.RawMessage{}}
	err := to.get(ctx, at(sessionsPath, id), &all.Session)
	if err != nil {
		return all, err
	}
	if all.Payments, _, err = to.list(ctx, paymentsPath, url.Values{"sessionId": {id}}, maxListed); err != nil {
		return all, err
	}
	if all.Refunds, _, err = to.list(ctx, refundsPath, url.Values{"sessionId": {id}}, maxListed); err != nil {
		return all, err
	}
	items, _, err := to.list(ctx, eventsPath, url.Values{"sessionId": {id}}, maxListed)
	if err != nil {
		return all, err
	}
	slices.Reverse(items)
	err = each(items, func(e anEvent) error {
		one := exportedEvent{Deliveries: []json.RawMessage{}}
		if err := to.get(ctx, at(eventsPath, e.ID), &one.Event); err != nil {
			return err
		}
		if one.Deliveries, _, err = to.list(ctx, at(eventsPath, e.ID, "deliveries"), nil, maxListed); err != nil {
			return err
		}
		all.Events = append(all.Events, one)
		return nil
	})
	if err != nil {
		return all, err
	}
	charge, err := chargeOf(ctx, to, all.Session)
	if err != nil || charge == "" {
		return all, err
	}
	if err := to.get(ctx, at(chargesPath, charge), &all.Charge); err != nil {
		return all, err
	}
	story, more, err := to.list(ctx, at(chargesPath, charge, "timeline"), nil, maxExported)
	if err == nil && more {
		err = fmt.Errorf("the story of %s has more than %d lines", charge, maxExported)
	}
	all.Timeline = append(all.Timeline, story...)
	return all, err
}

// chargeOf is the charge of a session, "" where it has none. One that nobody paid may
// have no event that names it: it is found among those of the session's payer and
// millisecond.
func chargeOf(ctx context.Context, to *client, session json.RawMessage) (charge string, err error) {
	var s aSession
	if err := json.Unmarshal(session, &s); err != nil {
		return "", fmt.Errorf("read a session: %w", err)
	}
	made, err := time.Parse(time.RFC3339, s.CreatedAt)
	if err != nil {
		return "", fmt.Errorf("read a session: %w", err)
	}
	query := url.Values{"customerEmail": {s.CustomerEmail}, "createdAfter": {s.CreatedAt}, "createdBefore": {flow.Stamp(made.Add(time.Millisecond))}}
	items, _, err := to.list(ctx, chargesPath, query, maxListed)
	if err != nil {
		return "", err
	}
	err = each(items, func(c struct{ ID, SessionID string }) error {
		if c.SessionID == s.ID {
			charge = c.ID
		}
		return nil
	})
	return charge, err
}

// sessionsExpireCmd lets a session expire.
type sessionsExpireCmd struct {
	calling

	Session string `arg:"" help:"Id of the session: wsp_sess_…"`
}

func (sessionsExpireCmd) Help() string {
	return "Example:\n\n    till sessions expire wsp_sess_01jd…\n\nThe clock is that of the whole test environment: everything that ends earlier ends too. Test keys only."
}

// Run moves the clock and waits for the session to expire.
func (c *sessionsExpireCmd) Run(w *world) error {
	to, err := c.pretend()
	if err != nil {
		return err
	}
	s, err := to.expire(w, c.Session, time.Second)
	if err != nil {
		return err
	}
	return printDone(w, c.JSON, map[string]string{"id": s.ID, "status": s.Status}, "%s  %s\n", s.ID, s.state())
}

// expire moves the test clock so far past the end of a session and waits until it
// is over.
func (c *client) expire(w *world, id string, past time.Duration) (s aSession, err error) {
	if err := c.get(w.ctx, at(sessionsPath, id), &s); err != nil {
		return s, err
	}
	now, err := c.clock(w.ctx, 0)
	if err != nil {
		return s, err
	}
	if ahead := s.ExpiresAt.Add(past).Sub(now); ahead > 0 {
		if _, err := c.clock(w.ctx, ahead+time.Second); err != nil {
			return s, err
		}
	}
	err = c.until(w, "the session to be over", func() (bool, error) {
		err := c.get(w.ctx, at(sessionsPath, id), &s)
		return s.over(), err
	})
	return s, err
}

// The bounds of waiting for what the Till does by itself.
const (
	untilEvery = 50 * time.Millisecond
	untilFor   = 30 * time.Second
)

// until waits for something that the Till does by itself, and says on stderr that
// it does where it takes long.
func (*client) until(w *world, what string, is func() (bool, error)) error {
	return patiently(w, "still waiting for "+what, func() error {
		ctx, cancel := context.WithTimeout(w.ctx, untilFor)
		defer cancel()
		for {
			done, err := is()
			if done || err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return errors.Join(w.ctx.Err(), fmt.Errorf("waited %s for %s", untilFor, what))
			case <-time.After(untilEvery):
			}
		}
	})
}
