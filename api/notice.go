package api

import (
	"net/http"

	"till/flow"
	"till/flow/crashpoint"
)

// hearBank is POST /v1/rails/{rail}/notifications. There is no key: the rail
// verifies the bank's signature. Anything but 200 makes the bank say it again,
// so 200 is only said of what is saved. What a bank adds behind the question mark
// is its own business: only what is signed counts.
func (s *Server) hearBank(c *call) error {
	env, known := s.cfg.Rails[c.param("rail")]
	service, open := s.cfg.Services[env]
	if !known || !open {
		return flow.Refuse(flow.CodeRouteNotFound, "There is no bank of this name.")
	}
	trace := c.noted.trace
	trace.State = "" // it is between the bank and us, and what follows is told to merchants
	c.ctx = flow.WithTrace(c.ctx, trace)
	h := http.Header{}
	for name, v := range c.http.Request().Header.All() {
		h.Add(string(name), string(v))
	}
	if err := service.Notice(c.ctx, h, append([]byte(nil), c.http.Request().Body()...)); err != nil {
		return err
	}
	crashpoint.At(crashpoint.NoticeKept)
	return c.send(http.StatusOK, map[string]bool{"received": true})
}
