package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// webhooksCmd is what a merchant's developer does with webhook endpoints.
type webhooksCmd struct {
	List   webhooksListCmd   `cmd:"" default:"withargs" help:"List webhook endpoints."`
	Add    webhooksAddCmd    `cmd:"" help:"Add an endpoint; its signing secret is shown once."`
	Rotate webhooksRotateCmd `cmd:"" help:"Give an endpoint a new secret; the old one signs too for a day."`
	Test   webhooksTestCmd   `cmd:"" help:"Send an endpoint a ping and say how it answered."`
	Remove webhooksRemoveCmd `cmd:"" help:"Remove an endpoint; what it is owed is dropped."`
}

// anEndpoint is what commands read of an endpoint.
type anEndpoint struct {
	ID             string
	URL            string
	Description    *string
	Events         []string
	Status         string
	DisabledReason *string
	FailingSince   *string
	HeldSince      *string
	Secret         string
	SecretHint     string
	PublicKey      *string
}

// webhooksListCmd lists endpoints.
type webhooksListCmd struct {
	remote
	listed
}

func (webhooksListCmd) Help() string { return "Example:\n\n    till webhooks" }

// Run prints one line for each.
func (c *webhooksListCmd) Run(w *world) error {
	items, more, err := c.ask(w, &c.remote, endpointsPath, nil, 0, nil)
	if err != nil {
		return err
	}
	return c.print(w, items, more, c.JSON, "ENDPOINT\tSTATUS\tSECRET\tEVENTS\tURL\tDESCRIPTION", func(item json.RawMessage) (string, error) {
		var e anEndpoint
		err := json.Unmarshal(item, &e)
		kinds := "the usual"
		if len(e.Events) > 0 {
			kinds = strings.Join(e.Events, ",")
		}
		status := e.Status
		if e.DisabledReason != nil {
			status += " (" + *e.DisabledReason + ")"
		}
		switch {
		case e.HeldSince != nil:
			status += " held back since " + *e.HeldSince
		case e.FailingSince != nil:
			status += " failing since " + *e.FailingSince
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", e.ID, status, e.SecretHint, kinds, plain(e.URL), orDash(e.Description)), err
	})
}

// webhooksAddCmd adds an endpoint.
type webhooksAddCmd struct {
	remote

	To           string   `arg:"" name:"address" help:"Where events are posted to, as https://example.com/hook."`
	Events       []string `placeholder:"KIND" help:"Kinds of event, with commas between; without it all but session.*."`
	Description  string   `help:"A note for yourselves."`
	MaxPerSecond *int     `placeholder:"N" help:"How many it is sent a second at most: 1 to 100; without it as many as it takes."`
	Signature    string   `enum:"v1,v1a" default:"v1" help:"How events are signed: v1, by a secret that you hold too; v1a, by a key that you hold the public half of."`
}

func (webhooksAddCmd) Help() string {
	return "Example:\n\n    till webhooks add http://127.0.0.1:3000/hook --events charge.success,charge.late"
}

// Run adds it.
func (c *webhooksAddCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	body := map[string]any{"url": c.To, "signature": c.Signature}
	if len(c.Events) > 0 {
		body["events"] = c.Events
	}
	if c.Description != "" {
		body["description"] = c.Description
	}
	if c.MaxPerSecond != nil {
		body["maxPerSecond"] = c.MaxPerSecond
	}
	return c.secret(w, func(into any) error { return to.post(w.ctx, endpointsPath, body, into) })
}

// secret makes a call that shows an endpoint's secret or public key, and shows it.
func (r *remote) secret(w *world, call func(into any) error) error {
	var raw json.RawMessage
	if err := call(&raw); err != nil {
		return err
	}
	if r.JSON {
		return printJSON(w, raw)
	}
	var e anEndpoint
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("read an endpoint: %w", err)
	}
	if e.PublicKey != nil {
		_, err := fmt.Fprintf(w.out, "endpoint  %s\nurl       %s\nkey       %s\n", e.ID, plain(e.URL), *e.PublicKey)
		return err
	}
	if _, err := fmt.Fprintf(w.out, "endpoint  %s\nurl       %s\nsecret    %s\n", e.ID, plain(e.URL), e.Secret); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w.err, "till: the secret is shown this once")
	return err
}

// oneEndpoint is a command about one endpoint.
type oneEndpoint struct {
	remote

	Endpoint string `arg:"" help:"Id of the endpoint: wsp_we_…"`
}

type (
	webhooksRotateCmd struct {
		oneEndpoint

		Signature string `enum:"v1,v1a," default:"" placeholder:"v1a" help:"How the new one signs: v1 or v1a; without it as the old one did."`
	}
	webhooksTestCmd   struct{ oneEndpoint }
	webhooksRemoveCmd struct {
		oneEndpoint

		Yes bool `help:"Really: it cannot be undone."`
	}
)

func (webhooksRotateCmd) Help() string { return "Example:\n\n    till webhooks rotate wsp_we_01jd…" }

func (webhooksTestCmd) Help() string { return "Example:\n\n    till webhooks test wsp_we_01jd…" }

func (webhooksRemoveCmd) Help() string {
	return "Example:\n\n    till webhooks remove wsp_we_01jd… --yes"
}

// Run rotates the secret.
func (c *webhooksRotateCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var body any
	if c.Signature != "" {
		body = map[string]any{"signature": c.Signature}
	}
	return c.secret(w, func(into any) error {
		return to.post(w.ctx, at(endpointsPath, c.Endpoint, "rotate-secret"), body, into)
	})
}

// Run removes the endpoint.
func (c *webhooksRemoveCmd) Run(w *world) error {
	if !c.Yes {
		return errNeedsYes("to remove an endpoint, which drops what it is owed,")
	}
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := to.call(w.ctx, "DELETE", at(endpointsPath, c.Endpoint), nil, &raw); err != nil {
		return err
	}
	return printDone(w, c.JSON, raw, "%s is removed\n", c.Endpoint)
}

// Run sends a ping and waits for how it ended.
func (c *webhooksTestCmd) Run(w *world) error {
	to, err := c.dial(w)
	if err != nil {
		return err
	}
	var sent resent
	if err := to.post(w.ctx, at(endpointsPath, c.Endpoint, "ping"), nil, &sent); err != nil {
		return err
	}
	var raw json.RawMessage
	var d aDelivery
	err = to.until(w, "the endpoint's answer", func() (bool, error) {
		items, _, err := to.list(w.ctx, at(eventsPath, sent.EventID, "deliveries"), nil, 1)
		if err != nil || len(items) == 0 {
			return false, err
		}
		raw, d = items[0], aDelivery{}
		err = json.Unmarshal(raw, &d)
		return len(d.Attempts) > 0, err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		if err := printJSON(w, raw); err != nil {
			return err
		}
	} else if err := c.told(w, sent.EventID, d); err != nil {
		return err
	}
	if d.Status != "DELIVERED" {
		return fmt.Errorf("%s has not taken the ping", plain(d.URL))
	}
	return nil
}

// told says how an endpoint answered.
func (*webhooksTestCmd) told(w *world, event string, d aDelivery) error {
	last := d.Attempts[len(d.Attempts)-1]
	next := ""
	if d.NextAttemptAt != nil {
		next = "; next try at " + d.NextAttemptAt.UTC().Format(time.RFC3339)
	}
	_, err := fmt.Fprintf(w.out, "%s  %s %s in %d ms%s\n", event, plain(d.URL), last.answer(), last.DurationMs, next)
	return err
}
