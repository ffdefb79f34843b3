package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"till/flow"
)

// eventsCmd is what a merchant's developer does with events.
type eventsCmd struct {
	List   eventsListCmd   `cmd:"" default:"withargs" help:"List events, newest first, and how their deliveries stand."`
	Get    eventsGetCmd    `cmd:"" help:"Show one event: its body, and each try of each delivery."`
	Resend eventsResendCmd `cmd:"" help:"Send events again: one, or those of the last while."`
}

const (
	eventsPath    = "/v1/events"
	endpointsPath = "/v1/webhook-endpoints"
)

// anEvent is what commands read of an event.
type anEvent struct {
	ID         string
	Event      string
	Reference  *string
	CreatedAt  string
	Deliveries standing
	Body       string
}

// standing says how many deliveries of an event stand where.
type standing struct{ Pending, Delivered, Dead, Held, Cancelled int }

// String says it in words, "-" where nobody is to be told.
func (s standing) String() string {
	var all []string
	for _, one := range []struct {
		n    int
		name string
	}{{s.Pending, "pending"}, {s.Delivered, "delivered"}, {s.Dead, "dead"}, {s.Held, "held"}, {s.Cancelled, "cancelled"}} {
		if one.n > 0 {
			all = append(all, fmt.Sprintf("%d %s", one.n, one.name))
		}
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// eventsListCmd lists events.
type eventsListCmd struct {
	remote
	listed

	Type    string        `help:"Only this kind, as charge.success."`
	Session string        `help:"Only those of this session: wsp_sess_…"`
	Since   time.Duration `help:"Only those of the last while, as 2h." placeholder:"2h"`
	Failed  bool          `help:"Only those that an endpoint has not got: dead or held."`
}

func (eventsListCmd) Help() string {
	return "Example:\n\n    till events list --since 2h --failed\n    till events --type charge.success"
}

// Run prints one line for each.
func (c *eventsListCmd) Run(w *world) error {
	var keep func(json.RawMessage) (bool, error)
	if c.Failed {
		keep = failed
	}
	items, more, err := c.ask(w, &c.remote, eventsPath, map[string]string{"type": c.Type, "sessionId": c.Session}, c.Since, keep)
	if err != nil {
		return err
	}
	return c.print(w, items, more, c.JSON, "EVENT\tKIND\tREFERENCE\tDELIVERIES\tCREATED", func(item json.RawMessage) (string, error) {
		var e anEvent
		err := json.Unmarshal(item, &e)
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", e.ID, e.Event, orDash(e.Reference), e.Deliveries, e.CreatedAt), err
	})
}

// failed says whether an endpoint has not got an event.
func failed(item json.RawMessage) (bool, error) {
	var e anEvent
	if err := json.Unmarshal(item, &e); err != nil {
		return false, fmt.Errorf("read an event: %w", err)
	}
	return e.Deliveries.Dead+e.Deliveries.Held > 0, nil
}

// eventsGetCmd shows an event.
type eventsGetCmd struct {
	remote

	Event string `arg:"" help:"Id of the event: evt_…"`
}

func (eventsGetCmd) Help() string { return "Example:\n\n    till events get evt_01jd…" }

// aDelivery is what commands read of a delivery.
type aDelivery struct {
	ID            string
	EndpointID    string
	URL           string
	Status        string
	NextAttemptAt *time.Time
	Attempts      []aTry
}

// aTry is what commands read of one try of a delivery.
type aTry struct {
	At             string
	ResponseStatus *int
	DurationMs     int64
	Error          *string
}

// answer says how the endpoint answered.
func (t aTry) answer() string {
	if t.ResponseStatus == nil {
		return "no answer: " + orDash(t.Error)
	}
	return fmt.Sprintf("answered %d", *t.ResponseStatus)
}

// Run shows it.
func (c *eventsGetCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := to.get(w.ctx, at(eventsPath, c.Event), &raw); err != nil {
		return err
	}
	deliveries, _, err := to.list(w.ctx, at(eventsPath, c.Event, "deliveries"), nil, maxListed)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, exportedEvent{raw, deliveries})
	}
	return printEvent(w.out, raw, deliveries)
}

// printEvent prints an event for people.
func printEvent(to io.Writer, raw json.RawMessage, deliveries []json.RawMessage) error {
	var e anEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("read an event: %w", err)
	}
	var body json.RawMessage
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
		return fmt.Errorf("read the body of %s: %w", e.ID, err)
	}
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(out, "event\t%s\nkind\t%s\ncreated\t%s\ndeliveries\t%s\n\n%s\n", e.ID, e.Event, e.CreatedAt, e.Deliveries, text)
	err = each(deliveries, func(d aDelivery) error {
		next := ""
		if d.NextAttemptAt != nil {
			next = ", tried again at " + d.NextAttemptAt.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(out, "\n%s to %s: %s%s\n", d.ID, plain(d.URL), d.Status, next)
		for _, try := range d.Attempts {
			_, _ = fmt.Fprintf(out, "  %s\t%d ms\t%s\n", try.At, try.DurationMs, try.answer())
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

// eventsResendCmd sends events again.
type eventsResendCmd struct {
	remote

	Event    string        `arg:"" optional:"" help:"Id of the event: evt_…"`
	Since    time.Duration `help:"All events of the last while, as 2h, in place of one." placeholder:"2h"`
	Failed   bool          `help:"With --since, only those that an endpoint has not got."`
	Endpoint string        `help:"To this endpoint alone: wsp_we_…"`
}

func (eventsResendCmd) Help() string {
	return "Example:\n\n    till events resend evt_01jd…\n    till events resend --since 2h --failed"
}

// resent is an event that is on its way again.
type resent struct {
	EventID    string `json:"eventId"`
	Deliveries []struct {
		ID         string `json:"id"`
		EndpointID string `json:"endpointId"`
	} `json:"deliveries"`
}

// Run puts them on their way.
func (c *eventsResendCmd) Run(w *world) error {
	if (c.Event == "") == (c.Since == 0) || c.Failed && c.Since == 0 {
		return usageError{errors.New("name one event, or a while with --since, and perhaps --failed")}
	}
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	events := []string{c.Event}
	if c.Since != 0 {
		keep := func(json.RawMessage) (bool, error) { return true, nil }
		if c.Failed {
			keep = failed
		}
		items, more, err := to.pick(w.ctx, eventsPath, url.Values{"createdAfter": {to.since(w, c.Since)}}, maxListed, keep)
		if err != nil {
			return err
		}
		if more {
			return fmt.Errorf("these are more than %d events: take less time", maxListed)
		}
		events = nil
		for i := range items { // oldest first
			var e anEvent
			if err := json.Unmarshal(items[len(items)-1-i], &e); err != nil {
				return fmt.Errorf("read an event: %w", err)
			}
			events = append(events, e.ID)
		}
	}
	sent := []resent{}
	err = patiently(w, "still sending", func() error {
		for _, id := range events {
			var one resent
			body := map[string]string{}
			if c.Endpoint != "" {
				body["endpointId"] = c.Endpoint
			}
			if err := to.post(w.ctx, at(eventsPath, id, "resend"), body, &one); err != nil {
				return fmt.Errorf("send %s again, after %d others: %w", id, len(sent), err)
			}
			sent = append(sent, one)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, sent)
	}
	nowhere := 0
	for _, one := range sent {
		if len(one.Deliveries) == 0 {
			nowhere++
		}
		if _, err := fmt.Fprintf(w.out, "%s  on its way to %s\n", one.EventID, flow.Count(len(one.Deliveries), "endpoint")); err != nil {
			return err
		}
	}
	if nowhere > 0 {
		_, _ = fmt.Fprintf(w.err, "till: no endpoint asks for %d of them: till webhooks\n", nowhere)
	}
	_, err = fmt.Fprintf(w.err, "till: on their way: %s\n", flow.Count(len(sent)-nowhere, "event"))
	return err
}
