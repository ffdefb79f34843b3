package api

import (
	"net/http"

	"till/flow"
	"till/flow/checkout"
)

// endpointRecord is a webhook endpoint as its merchant reads it. The secret is
// there once, in the answer that made it.
type endpointRecord struct {
	ID          flow.EndpointID  `json:"id"`
	URL         string           `json:"url"`
	Description *string          `json:"description"`
	Events      []flow.EventKind `json:"events"`
	Status      string           `json:"status"`
	Secret      string           `json:"secret,omitempty"`
	SecretHint  string           `json:"secretHint,omitempty"`
	CreatedAt   string           `json:"createdAt"`
}

func recordEndpoint(e flow.Endpoint) endpointRecord {
	r := endpointRecord{ID: e.ID, URL: e.URL, Events: e.Events, Status: e.Status, CreatedAt: flow.Stamp(e.CreatedAt)}
	if e.Description != "" {
		r.Description = &e.Description
	}
	if r.Events == nil {
		r.Events = []flow.EventKind{}
	}
	return r
}

// addEndpoint is POST /v1/webhook-endpoints.
func (s *Server) addEndpoint(c *call) error {
	f, err := c.form(decodeRules{})
	if err != nil {
		return err
	}
	e := flow.Endpoint{
		Project: c.project.ID, URL: f.text("url", text{required: true, most: maxURL}), Description: f.text("description", text{most: maxDescription}),
	}
	var kinds []string
	for _, k := range flow.EventKinds() {
		kinds = append(kinds, string(k))
	}
	for _, name := range f.some("events", kinds) {
		e.Events = append(e.Events, flow.EventKind(name))
	}
	if e.URL != "" {
		if err := s.cfg.CheckURL(c.key.Environment, e.URL); err != nil {
			f.fail("url", flow.CodeInvalidField, "url is %s.", err)
		}
	}
	if err := f.done(); err != nil {
		return err
	}
	secret, err := s.cfg.NewSecret()
	if err != nil {
		return err
	}
	e.Secrets = []string{secret}
	once, err := c.once(func(m checkout.Made) (int, []byte, error) {
		record := recordEndpoint(m.Endpoint)
		record.Secret = m.Endpoint.Secrets[0]
		body, err := compose(record)
		return http.StatusCreated, body, err
	})
	if err != nil {
		return err
	}
	a, err := c.service.AddEndpoint(c.ctx, e, once)
	if err != nil {
		return err
	}
	return c.answer(a, "/v1/webhook-endpoints/"+a.Location)
}

// listEndpoints is GET /v1/webhook-endpoints.
func (*Server) listEndpoints(c *call) error {
	all, err := c.service.Endpoints(c.ctx, c.project.ID)
	if err != nil {
		return err
	}
	records := make([]endpointRecord, 0, len(all))
	for _, e := range all {
		r := recordEndpoint(e)
		if len(e.Secrets) > 0 {
			r.SecretHint = hint(e.Secrets[0])
		}
		records = append(records, r)
	}
	return c.send(http.StatusOK, page{Items: records})
}

// hint is enough of a secret to tell it from another.
func hint(secret string) string {
	const shown = 4
	if len(secret) < 4*shown {
		return "whsec_…"
	}
	return "whsec_…" + secret[len(secret)-shown:]
}
