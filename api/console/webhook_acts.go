package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// rotateSecret is POST /developers/webhooks/{id}/secret.
func (c *Console) rotateSecret(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	kind, known := signatureField(v, e.Signature(v.service.Now()))
	if !known {
		return flow.Refuse(flow.CodeInvalidField, "There is no signature %q.", kind)
	}
	if err := v.audit("endpoint.rotate_secret", string(e.ID), "", false); err != nil {
		return err
	}
	secret, err := c.cfg.NewSecret(kind)
	if err != nil {
		return err
	}
	a, err := v.service.RotateSecret(v.ctx, e.ID, secret, v.once(showsSecret))
	if err != nil {
		return err
	}
	return c.showSecret(v, a, fmt.Sprintf("For the next %d hours the old secret signs too: every delivery carries both signatures.", int(flow.SecretOverlap/time.Hour)))
}

// pingEndpoint is POST /developers/webhooks/{id}/ping.
func (c *Console) pingEndpoint(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	if err := v.audit("endpoint.ping", string(e.ID), "", false); err != nil {
		return err
	}
	a, err := v.service.Ping(v.ctx, e.ID, v.once(func(m checkout.Made) any { return m.Sending.Event }))
	if err != nil {
		return err
	}
	var event flow.EventID
	if err := json.Unmarshal(a.Body, &event); err != nil {
		return fmt.Errorf("read which ping was sent: %w", err)
	}
	return v.to("/developers/events/"+string(event), "A ping is on its way. Load this page again to see the answer.")
}

// replayEndpoint is POST /developers/webhooks/{id}/replay.
func (c *Console) replayEndpoint(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	t := v.typing()
	r := checkout.Replay{Endpoint: e.ID, From: t.moment("from", "The beginning"), To: t.moment("to", "The end"), OnlyFailed: v.field("only") == "dead"}
	switch {
	case !t.ok():
	case !r.From.Before(r.To):
		t.fail("The end must be after the beginning.")
	case r.To.Sub(r.From) > checkout.MaxReplay:
		t.fail("One replay is of at most %d days.", checkout.MaxReplay/(24*time.Hour))
	}
	if !t.ok() {
		return flow.Refuse(flow.CodeInvalidField, "%s", strings.Join(t.Wrong, " "))
	}
	why := fmt.Sprintf("%s to %s", flow.Stamp(r.From), flow.Stamp(r.To))
	if err := v.audit("endpoint.replay", string(e.ID), why, false); err != nil {
		return err
	}
	a, err := v.service.Replay(v.ctx, r, v.once(func(m checkout.Made) any { return m.Replay }))
	if err != nil {
		return err
	}
	var did checkout.Replay
	if err := json.Unmarshal(a.Body, &did); err != nil {
		return fmt.Errorf("read what was sent again: %w", err)
	}
	words := fmt.Sprintf("Events on their way again: %d.", did.Count)
	if !did.Next.IsZero() {
		words += " There are more, from " + did.Next.In(flow.Lagos).Format("2 Jan 2006 15:04:05") + " on: replay again from then."
	}
	return v.to("/developers/webhooks/"+string(e.ID), words)
}

// removeEndpoint is POST /developers/webhooks/{id}/delete.
func (c *Console) removeEndpoint(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	if v.field("confirm") != "delete" {
		return flow.Refuse(flow.CodeInvalidField, "Nothing was deleted. To delete the endpoint, type the word delete.")
	}
	if err := v.audit("endpoint.delete", string(e.ID), flow.HostOf(e.URL), false); err != nil {
		return err
	}
	if err := v.service.RemoveEndpoint(v.ctx, v.project.ID, e.ID); err != nil {
		return err
	}
	return v.to("/developers/webhooks", "The endpoint is deleted. Nothing more is sent there.")
}

// eventView is what the page of an event is given.
type eventView struct {
	checkout.EventView

	Body       string
	Deliveries []store.Sent
	More       bool
	Enabled    bool // some endpoint is there that it can be sent to
	URL        string
}

// eventPage is GET /developers/events/{id}.
func (c *Console) eventPage(v *visit) error {
	id := flow.EventID(v.http.Params("id"))
	e, err := v.service.Event(v.ctx, v.project.ID, id)
	if err != nil {
		return v.elsewhere(err, func(s *checkout.Service, p flow.ProjectID) error {
			_, err := s.Event(v.ctx, p, id)
			return err
		})
	}
	out := eventView{EventView: e, Body: shownBody(e.Event.Body), URL: c.cfg.PublicURL}
	if out.Deliveries, out.More, err = v.service.DeliveriesOf(v.ctx, v.project.ID, e.Event.ID, "", deliveriesShown); err != nil {
		return err
	}
	endpoints, err := v.service.Endpoints(v.ctx, v.project.ID)
	if err != nil {
		return err
	}
	for _, one := range endpoints {
		out.Enabled = out.Enabled || one.Status == flow.EndpointEnabled
	}
	if e.Event.Session != "" { // an event may say who pays
		v.looks("look.session", v.project.ID, string(e.Event.Session))
	} else {
		v.looks("look.event", v.project.ID, string(e.Event.ID))
	}
	return v.show("event", "Event "+string(e.Event.ID), out)
}

// resendEvent is POST /developers/events/{id}/resend: to one endpoint, or to all
// that want it.
func (c *Console) resendEvent(v *visit) error {
	id := flow.EventID(v.http.Params("id"))
	if _, err := v.service.Event(v.ctx, v.project.ID, id); err != nil {
		return err
	}
	to := flow.EndpointID(v.field("endpoint"))
	if err := v.audit("event.resend", string(id), string(to), false); err != nil {
		return err
	}
	a, err := v.service.Resend(v.ctx, id, to, v.once(func(m checkout.Made) any { return len(m.Sending.To) }))
	if err != nil {
		return err
	}
	n := 0
	if err := json.Unmarshal(a.Body, &n); err != nil {
		return fmt.Errorf("read where an event was sent: %w", err)
	}
	next := cmp.Or(v.field("next"), "/developers/events/"+string(id))
	words := "The event is on its way again. Load the page again to see the answer."
	if n == 0 {
		words = "No endpoint that is enabled wants this event: nothing was sent."
	}
	return v.to(inside(next), words)
}

// phoneMember is a payer's number in a body.
var phoneMember = regexp.MustCompile(`("(?:[a-z]+P|p)hone"\s*:\s*")\+?([0-9]{7,15})"`)

// shownBody is a body as it is shown: a text over several lines, with payers'
// numbers masked.
func shownBody(body []byte) string {
	var lines bytes.Buffer
	if json.Indent(&lines, body, "", "  ") == nil {
		body = lines.Bytes()
	}
	return phoneMember.ReplaceAllStringFunc(strings.ToValidUTF8(string(body), "\ufffd"), func(s string) string {
		parts := phoneMember.FindStringSubmatch(s)
		return parts[1] + flow.Phone(parts[2]).String() + `"`
	})
}
