package api

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"till/flow"
	"till/flow/checkout"
)

const endpointsPath = "/v1/webhook-endpoints"

// endpointRecord is a webhook endpoint as its merchant reads it. A secret is
// there once, in the answer that made it; a public key always.
type endpointRecord struct {
	flow.EndpointRecord

	MaxPerSecond            *int           `json:"maxPerSecond"`
	HeldSince               *string        `json:"heldSince"`
	Signature               flow.Signature `json:"signature"`
	Secret                  string         `json:"secret,omitempty"`
	SecretHint              string         `json:"secretHint"`
	PublicKey               *string        `json:"publicKey"`
	PreviousSecretExpiresAt *string        `json:"previousSecretExpiresAt"`
}

// recordEndpoint makes the record of an endpoint as it stands now.
func (c *call) recordEndpoint(e flow.Endpoint) endpointRecord {
	r := endpointRecord{EndpointRecord: flow.RecordEndpoint(e), HeldSince: flow.StampOrNull(e.OpenSince), Signature: e.Signature(c.service.Now())}
	if e.MaxPerSecond > 0 {
		r.MaxPerSecond = &e.MaxPerSecond
	}
	signing := e.Signing(c.service.Now())
	if len(signing) > 0 {
		r.SecretHint, r.PublicKey = flow.SecretHint(signing[0]), flow.OrNull(flow.PublicKeyOf(signing[0]))
	}
	if len(signing) > 1 {
		r.PreviousSecretExpiresAt = flow.StampOrNull(e.Retiring[0])
	}
	return r
}

// kinds takes the kinds of event that an endpoint asks for; or says what to send for
// those that are not on request.
func (f *form) kinds(or string) []flow.EventKind {
	var out []flow.EventKind
	for _, k := range f.some("events", namesOf(flow.EventKinds()), or) {
		out = append(out, flow.EventKind(k))
	}
	return out
}

// signature takes how an endpoint is signed for; as where nothing is said of it.
func (f *form) signature(as flow.Signature) flow.Signature {
	if !f.has("signature") {
		return as
	}
	return flow.Signature(f.oneOf("signature", flow.CodeInvalidField, namesOf(flow.Signatures())...))
}

// pace takes how many a second an endpoint is sent at most; 0 where nothing is said of it.
func (f *form) pace() int { return int(f.whole("maxPerSecond", 1, flow.MostPerSecond, 0)) }

// hook takes the URL of an endpoint, which one that is changed may keep.
func (s *Server) hook(c *call, f *form, required bool) string {
	at := f.text("url", text{required: required, most: maxURL})
	if at == "" {
		return ""
	}
	if err := s.cfg.CheckURL(c.key.Environment, at); err != nil {
		f.fail("url", flow.CodeInvalidField, "url is %s.", err)
	}
	return at
}

// addEndpoint is POST /v1/webhook-endpoints.
func (s *Server) addEndpoint(c *call) error {
	f := c.form(decodeRules{})
	e := flow.Endpoint{
		Project: c.project.ID, URL: s.hook(c, f, true), Description: f.text("description", text{most: maxDescription, said: true}), Events: f.kinds(leftOut), MaxPerSecond: f.pace(),
	}
	kind := f.signature(flow.SignatureV1)
	if err := f.done(); err != nil {
		return err
	}
	if err := c.audit(c.key.Environment, "endpoint.add", string(c.project.ID), "to "+flow.HostOf(e.URL)); err != nil {
		return err
	}
	secret, err := s.cfg.NewSecret(kind)
	if err != nil {
		return err
	}
	e.Secrets = []string{secret}
	return c.effect(http.StatusCreated, c.recordSecret, endpointsPath, func(once checkout.Call) (checkout.Answer, error) {
		return c.service.AddEndpoint(c.ctx, e, once)
	})
}

// recordSecret is the answer of a call that shows an endpoint's new secret.
func (c *call) recordSecret(m checkout.Made) any {
	record := c.recordEndpoint(m.Endpoint)
	if record.Signature == flow.SignatureV1 { // the private key of another is for nobody else
		record.Secret = m.Endpoint.Secrets[0]
	}
	return record
}

// endpointID is the endpoint of the path.
func (c *call) endpointID() (flow.EndpointID, error) {
	return pathID[flow.EndpointID](c, flow.PrefixEndpoint, "webhook endpoint")
}

// listEndpoints is GET /v1/webhook-endpoints, oldest first.
func (*Server) listEndpoints(c *call) error {
	limit, after, err := c.turnedPage(flow.PrefixEndpoint)
	if err != nil {
		return err
	}
	list, err := c.service.Endpoints(c.ctx, c.project.ID)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e flow.Endpoint) bool { return string(e.ID) <= after })
	more := len(list) > limit
	return sendPage(c, list[:min(limit, len(list))], more, c.recordEndpoint, func(e flow.Endpoint) string { return string(e.ID) })
}

// readEndpoint is GET /v1/webhook-endpoints/{id}.
func (*Server) readEndpoint(c *call) error {
	return sendOne(c, c.endpointID, c.service.Endpoint, c.recordEndpoint)
}

// changeEndpoint is PATCH /v1/webhook-endpoints/{id}: what is not named stays as
// it is.
func (s *Server) changeEndpoint(c *call) error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	var to checkout.EndpointChange
	if f.has("url") {
		at := s.hook(c, f, false)
		to.URL = &at
	}
	if f.has("description") {
		note := ""
		if !f.cleared("description") {
			note = f.text("description", text{most: maxDescription, said: true})
		}
		to.Description = &note
	}
	if f.has("events") {
		var kinds []flow.EventKind
		if !f.cleared("events") {
			kinds = f.kinds("null is for every kind that is not on request.")
		}
		to.Events = &kinds
	}
	if f.has("maxPerSecond") {
		pace := 0
		if !f.cleared("maxPerSecond") {
			pace = f.pace()
		}
		to.PerSecond = &pace
	}
	if f.has("status") {
		to.Status = f.oneOf("status", flow.CodeInvalidField, flow.EndpointEnabled, flow.EndpointDisabled)
	}
	if f.has("deliverHeld") {
		to.DropHeld = !f.yes("deliverHeld", true)
		if to.Status != flow.EndpointEnabled {
			f.fail("deliverHeld", flow.CodeInvalidField, "deliverHeld goes with status ENABLED alone.")
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	e, err := c.service.Endpoint(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	if err := c.audit(c.key.Environment, "endpoint.change", string(id), to.Told(e)); err != nil {
		return err
	}
	e, err = c.service.ChangeEndpoint(c.ctx, c.project.ID, id, to)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, c.recordEndpoint(e))
}

// removeEndpoint is DELETE /v1/webhook-endpoints/{id}.
func (*Server) removeEndpoint(c *call) error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	e, err := c.service.Endpoint(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	if err := c.audit(c.key.Environment, "endpoint.delete", string(id), flow.HostOf(e.URL)); err != nil {
		return err
	}
	if err := c.service.RemoveEndpoint(c.ctx, c.project.ID, id); err != nil {
		return err
	}
	return c.send(http.StatusOK, struct {
		ID      flow.EndpointID `json:"id"`
		Deleted bool            `json:"deleted"`
	}{id, true})
}

// rotateSecret is POST /v1/webhook-endpoints/{id}/rotate-secret.
func (s *Server) rotateSecret(c *call) error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{optional: true})
	kind := f.signature("")
	if err := f.done(); err != nil {
		return err
	}
	e, err := c.service.Endpoint(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	if err := c.audit(c.key.Environment, "endpoint.rotate_secret", string(id), flow.HostOf(e.URL)); err != nil {
		return err
	}
	secret, err := s.cfg.NewSecret(cmp.Or(kind, e.Signature(c.service.Now())))
	if err != nil {
		return err
	}
	return c.effect(http.StatusOK, c.recordSecret, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.RotateSecret(c.ctx, id, secret, once)
	})
}

// pingEndpoint is POST /v1/webhook-endpoints/{id}/ping.
func (*Server) pingEndpoint(c *call) error {
	id, err := alone(c, c.endpointID)
	if err != nil {
		return err
	}
	return c.effect(http.StatusOK, recordSending, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Ping(c.ctx, id, once)
	})
}

// replayRecord says what a replay has put on its way.
type replayRecord struct {
	EndpointID flow.EndpointID `json:"endpointId"`
	From       string          `json:"from"`
	To         string          `json:"to"`
	OnlyFailed bool            `json:"onlyFailed"`
	Count      int             `json:"count"`
	NextFrom   *string         `json:"nextFrom"`
}

// replayEndpoint is POST /v1/webhook-endpoints/{id}/replay.
func (*Server) replayEndpoint(c *call) error {
	id, err := c.endpointID()
	if err != nil {
		return err
	}
	f := c.form(decodeRules{})
	f.required("from", "to")
	r := checkout.Replay{Endpoint: id, From: f.moment("from"), To: f.moment("to"), OnlyFailed: f.yes("onlyFailed", false)}
	switch {
	case r.From.IsZero() || r.To.IsZero(): // said already
	case !r.From.Before(r.To):
		f.fail("to", flow.CodeInvalidField, "to must be after from.")
	case r.To.Sub(r.From) > checkout.MaxReplay:
		f.fail("to", flow.CodeInvalidField, "to must be at most %d days after from.", checkout.MaxReplay/(24*time.Hour))
	}
	if err := f.done(); err != nil {
		return err
	}
	r.From, r.To = bound(r.From), bound(r.To)
	record := func(m checkout.Made) any {
		did := m.Replay
		return replayRecord{id, flow.Stamp(did.From), flow.Stamp(did.To), did.OnlyFailed, did.Count, flow.StampOrNull(did.Next)}
	}
	return c.effect(http.StatusOK, record, "", func(once checkout.Call) (checkout.Answer, error) {
		return c.service.Replay(c.ctx, r, once)
	})
}
