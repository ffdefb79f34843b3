package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// webhookPages are about endpoints, what is sent to them, and events.
func webhookPages() []Page {
	get, post, develop := http.MethodGet, http.MethodPost, flow.MayDevelop
	const one = "/developers/webhooks/:id"
	return []Page{
		{Method: get, Path: "/developers/webhooks", Right: develop, do: (*Console).webhooksPage},
		{Method: post, Path: "/developers/webhooks", Right: develop, do: (*Console).addEndpoint},
		{Method: get, Path: one, Right: develop, do: (*Console).endpointPage},
		{Method: post, Path: one, Right: develop, do: (*Console).changeEndpoint},
		{Method: post, Path: one + "/status", Right: develop, do: (*Console).switchEndpoint},
		{Method: post, Path: one + "/secret", Right: develop, do: (*Console).rotateSecret},
		{Method: post, Path: one + "/ping", Right: develop, do: (*Console).pingEndpoint},
		{Method: post, Path: one + "/replay", Right: develop, do: (*Console).replayEndpoint},
		{Method: post, Path: one + "/delete", Right: develop, do: (*Console).removeEndpoint},
		{Method: get, Path: "/developers/events/:id", Right: develop, do: (*Console).eventPage},
		{Method: post, Path: "/developers/events/:id/resend", Right: flow.MayDevelop, do: (*Console).resendEvent},
	}
}

// How much of what was sent is shown.
const (
	outcomesOf      = 100 // newest deliveries that the success of an endpoint is of
	deliveriesShown = 25
)

// endpointRow is one endpoint and how it fares.
type endpointRow struct {
	flow.Endpoint

	Delivered int         // of the newest deliveries
	Ended     int         // of them, that are not on their way any more
	Waiting   int         // pending or held
	Signs     []time.Time // until when each older secret signs too
	PublicKey string      // that verifies; "": a secret does
}

// State is what is to be said of its state first.
func (e endpointRow) State() string {
	switch {
	case e.Status == flow.EndpointDisabled:
		return "disabled"
	case !e.OpenSince.IsZero():
		return "held back"
	case !e.FailingSince.IsZero():
		return "failing"
	}
	return "enabled"
}

// Why says why the endpoint is disabled, held back or failing, "" where it is none of them.
func (e endpointRow) Why() string {
	switch {
	case e.Status == flow.EndpointDisabled:
		return map[string]string{
			flow.DisabledGone: "it answered 410 Gone", flow.DisabledFailing: "nothing but failures for five days", flow.DisabledRequested: "somebody disabled it",
		}[e.DisabledReason]
	case !e.OpenSince.IsZero():
		return flow.Count(e.Failures, "failure") + " in a row: one delivery at a time tries whether it is back, the others wait"
	case e.Failures > 0:
		return flow.Count(e.Failures, "failure") + " in a row"
	case !e.FailingSince.IsZero():
		return "it refuses what it is sent"
	}
	return ""
}

// Percent is how many of the newest deliveries that ended were taken.
func (e endpointRow) Percent() string {
	if e.Ended == 0 {
		return "–"
	}
	return fmt.Sprintf("%d%%", e.Delivered*100/e.Ended)
}

// endpointForm is what is typed about an endpoint.
type endpointForm struct {
	URL         string
	Description string
	Events      []string
	PerSecond   string         // that it is sent at most; "": as many as it takes
	Signature   flow.Signature // of a new one
	Wrong       []string
}

// Asks says whether a kind of event is named.
func (f endpointForm) Asks(kind flow.EventKind) bool { return slices.Contains(f.Events, string(kind)) }

// webhooksView is what the page of endpoints is given.
type webhooksView struct {
	Endpoints []endpointRow
	Form      endpointForm
	Kinds     []flow.EventKind
	Of        int
}

func (c *Console) endpointRow(v *visit, e flow.Endpoint) (endpointRow, error) {
	n, err := v.service.Outcomes(v.ctx, v.project.ID, e.ID, outcomesOf)
	row := endpointRow{Endpoint: e, Delivered: n[flow.DeliveryDelivered], Waiting: n[flow.DeliveryPending] + n[flow.DeliveryHeld]}
	row.Ended = row.Delivered + n[flow.DeliveryDead]
	signing := e.Signing(v.service.Now())
	if len(signing) > 0 {
		row.PublicKey = flow.PublicKeyOf(signing[0])
	}
	if older := len(signing) - 1; older > 0 {
		row.Signs = e.Retiring[:older]
	}
	return row, err
}

// webhooksPage is GET /developers/webhooks.
func (c *Console) webhooksPage(v *visit) error { return c.showEndpoints(v, endpointForm{}) }

func (c *Console) showEndpoints(v *visit, form endpointForm) error {
	out := webhooksView{Form: form, Kinds: flow.EventKinds(), Of: outcomesOf}
	if v.project.ID != "" {
		list, err := v.service.Endpoints(v.ctx, v.project.ID)
		if err != nil {
			return err
		}
		for _, e := range list {
			row, err := c.endpointRow(v, e)
			if err != nil {
				return err
			}
			out.Endpoints = append(out.Endpoints, row)
		}
	}
	return v.show("webhooks", "Webhooks", out)
}

// readEndpoint reads the form of an endpoint.
func (c *Console) readEndpoint(v *visit) endpointForm {
	t := v.typing()
	f := endpointForm{URL: v.field("url"), Description: v.field("description"), Events: v.form["events"], PerSecond: v.field("pace")}
	if t.text("url", "The URL", 1, maxTypedURL, false); t.ok() {
		if err := c.cfg.CheckURL(v.env, f.URL); err != nil {
			t.fail("The URL is %s.", err)
		}
	}
	t.text("description", "The description", 0, maxTypedNote, false)
	if n, err := strconv.Atoi(f.PerSecond); f.PerSecond != "" && (err != nil || n < 1 || n > flow.MostPerSecond) {
		t.fail("How many it is sent a second is a number from 1 to %d, or nothing.", flow.MostPerSecond)
	}
	var known bool
	if f.Signature, known = signatureField(v, flow.SignatureV1); !known {
		t.fail("There is no signature %q.", f.Signature)
	}
	for _, kind := range f.Events {
		if !slices.Contains(flow.EventKinds(), flow.EventKind(kind)) {
			t.fail("There is no kind of event %q.", kind)
		}
	}
	if len(f.Events) > len(flow.EventKinds()) {
		t.fail("Name each kind of event once.")
	}
	f.Wrong = t.Wrong
	return f
}

func (f endpointForm) kinds() []flow.EventKind {
	var out []flow.EventKind
	for _, k := range f.Events {
		if kind := flow.EventKind(k); !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	return out
}

// pace is how many a second it is sent at most; 0: as many as it takes.
func (f endpointForm) pace() int {
	n, _ := strconv.Atoi(f.PerSecond) // judged where it was read
	return n
}

// madeSecret is what is kept, sealed, of a call that made a signing secret. Of a
// private key that is only the public one.
type madeSecret struct {
	ID     flow.EndpointID
	Secret string
	Public bool
}

func showsSecret(m checkout.Made) any {
	secret := m.Endpoint.Secrets[0]
	if public := flow.PublicKeyOf(secret); public != "" {
		return madeSecret{m.Endpoint.ID, public, true}
	}
	return madeSecret{ID: m.Endpoint.ID, Secret: secret}
}

// signatureField reads how an endpoint is to be signed for, and whether there is such
// a signature; as where nothing is said.
func signatureField(v *visit, as flow.Signature) (kind flow.Signature, known bool) {
	kind = cmp.Or(flow.Signature(v.field("signature")), as)
	return kind, slices.Contains(flow.Signatures(), kind)
}

// addEndpoint is POST /developers/webhooks.
func (c *Console) addEndpoint(v *visit) error {
	f := c.readEndpoint(v)
	if len(f.Wrong) > 0 {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return c.showEndpoints(v, f)
	}
	if err := v.here(); err != nil {
		return err
	}
	if err := v.audit("endpoint.add", string(v.project.ID), "to "+flow.HostOf(f.URL), false); err != nil {
		return err
	}
	secret, err := c.cfg.NewSecret(f.Signature)
	if err != nil {
		return err
	}
	e := flow.Endpoint{Project: v.project.ID, URL: f.URL, Description: f.Description, Events: f.kinds(), MaxPerSecond: f.pace(), Secrets: []string{secret}}
	a, err := v.service.AddEndpoint(v.ctx, e, v.once(showsSecret))
	if err != nil {
		return err
	}
	return c.showSecret(v, a, "The endpoint is there. Send it a ping next, from its page.")
}

// showSecret answers with a signing secret that was just made.
func (c *Console) showSecret(v *visit, a checkout.Answer, note string) error {
	var made madeSecret
	if err := json.Unmarshal(a.Body, &made); err != nil {
		return fmt.Errorf("read a secret that was made: %w", err)
	}
	if made.Public {
		return v.show("secret", "Public key", secretView{
			Lead:   "This public key verifies what is sent to the endpoint. It is no secret, and stands on the endpoint's page too.",
			Public: true, Secrets: []shownSecret{{"Public key", made.Secret}}, Notes: []string{note},
			Next: "/developers/webhooks/" + string(made.ID), Words: "To the endpoint", Command: "export TILL_WEBHOOK_PUBLIC_KEY=" + made.Secret,
		})
	}
	return v.show("secret", "Signing secret", secretView{
		Lead:    "This secret signs what is sent to the endpoint. It is shown on this page alone: copy it now.",
		Secrets: []shownSecret{{"Signing secret", made.Secret}}, Notes: []string{note},
		Next: "/developers/webhooks/" + string(made.ID), Words: "I have copied it: to the endpoint", Command: "export TILL_WEBHOOK_SECRET=" + made.Secret,
	})
}

// endpointView is what the page of one endpoint is given.
type endpointView struct {
	Endpoint   endpointRow
	Form       endpointForm
	Kinds      []flow.EventKind
	Of         int
	Deliveries []store.SentTo
	Dead       bool // those alone that were given up
	Older      string
	From, To   string // of a replay, as a browser writes times
	MaxDays    int
	MaxEvents  int
}

// ownEndpoint finds the endpoint of the path; another account's does not exist.
func (*Console) ownEndpoint(v *visit) (flow.Endpoint, error) {
	id := flow.EndpointID(v.http.Params("id"))
	e, err := v.service.Endpoint(v.ctx, v.project.ID, id)
	return e, v.elsewhere(err, func(s *checkout.Service, p flow.ProjectID) error {
		_, err := s.Endpoint(v.ctx, p, id)
		return err
	})
}

// endpointPage is GET /developers/webhooks/{id}.
func (c *Console) endpointPage(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	f := endpointForm{URL: e.URL, Description: e.Description}
	if e.MaxPerSecond > 0 {
		f.PerSecond = strconv.Itoa(e.MaxPerSecond)
	}
	for _, k := range e.Events {
		f.Events = append(f.Events, string(k))
	}
	return c.showEndpoint(v, e, f)
}

func (c *Console) showEndpoint(v *visit, e flow.Endpoint, f endpointForm) error {
	row, err := c.endpointRow(v, e)
	if err != nil {
		return err
	}
	now := v.service.Now().In(flow.Lagos)
	out := endpointView{
		Endpoint: row, Form: f, Kinds: flow.EventKinds(), Of: outcomesOf, Dead: v.query("show") == "dead",
		From: now.Add(-24 * time.Hour).Format("2006-01-02T15:04"), To: now.Add(time.Minute).Format("2006-01-02T15:04"),
		MaxDays: int(checkout.MaxReplay / (24 * time.Hour)), MaxEvents: checkout.MaxReplayed,
	}
	list, more, err := v.service.DeliveriesTo(v.ctx, v.project.ID, e.ID, v.query("before"), out.Dead, deliveriesShown)
	if err != nil {
		return err
	}
	out.Deliveries = list
	if more {
		out.Older = "?show=" + map[bool]string{true: "dead"}[out.Dead] + "&before=" + list[len(list)-1].ID
	}
	return v.show("endpoint", "Endpoint "+string(e.ID), out)
}

// changeEndpoint is POST /developers/webhooks/{id}.
func (c *Console) changeEndpoint(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	f := c.readEndpoint(v)
	if len(f.Wrong) > 0 {
		v.refuses(http.StatusBadRequest, flow.CodeInvalidField)
		return c.showEndpoint(v, e, f)
	}
	kinds, pace := f.kinds(), f.pace()
	to := checkout.EndpointChange{URL: &f.URL, Description: &f.Description, Events: &kinds, PerSecond: &pace}
	if err := v.audit("endpoint.change", string(e.ID), to.Told(e), false); err != nil {
		return err
	}
	if _, err := v.service.ChangeEndpoint(v.ctx, v.project.ID, e.ID, to); err != nil {
		return err
	}
	return v.to("/developers/webhooks/"+string(e.ID), "The endpoint is changed.")
}

// switchEndpoint is POST /developers/webhooks/{id}/status.
func (c *Console) switchEndpoint(v *visit) error {
	e, err := c.ownEndpoint(v)
	if err != nil {
		return err
	}
	to := checkout.EndpointChange{Status: v.field("status")}
	words := "The endpoint is disabled. What it was owed waits until it is enabled. What happens from now on is not kept for it: replay sends that."
	switch to.Status {
	case flow.EndpointDisabled:
		if v.field("confirm") == "" {
			return flow.Refuse(flow.CodeMissingField, "Nothing was disabled: tick that you mean it.")
		}
	case flow.EndpointEnabled:
		to.DropHeld = v.field("held") == "drop"
		words = "The endpoint is enabled. What waited is on its way. What happened while it was disabled is sent by a replay alone."
		if to.DropHeld {
			words = "The endpoint is enabled. What waited is dropped: replay sends it again."
		}
	default:
		return flow.Refuse(flow.CodeInvalidField, "An endpoint is enabled or disabled.")
	}
	if err := v.audit("endpoint."+strings.ToLower(to.Status), string(e.ID), "", false); err != nil {
		return err
	}
	if _, err := v.service.ChangeEndpoint(v.ctx, v.project.ID, e.ID, to); err != nil {
		return err
	}
	return v.to("/developers/webhooks/"+string(e.ID), words)
}
