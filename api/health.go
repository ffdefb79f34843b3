package api

import (
	"net/http"

	"till/flow"
)

// alive is GET /livez: the process answers.
func (*Server) alive(c *call) error {
	return c.send(http.StatusOK, map[string]bool{"alive": true})
}

// ready is GET /readyz: everything that a request needs answers too.
func (s *Server) ready(c *call) error {
	checks := []Check{}
	if s.cfg.Ready != nil {
		checks = append(checks, s.cfg.Ready(c.ctx)...)
	}
	refused := flow.Refuse(codeNotReady, "Till is up but cannot work: see details.")
	refused.Details = map[string]string{}
	for _, check := range checks {
		if !check.OK {
			refused.Details[check.Name] = check.Reason
		}
	}
	if len(refused.Details) > 0 {
		return refused
	}
	return c.send(http.StatusOK, map[string]any{"ready": true, "checks": checks})
}
