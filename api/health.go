package api

import (
	"log/slog"
	"net/http"
	"sync"

	"till/flow"
)

// Check is what one part answered to "are you ready?".
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Needed says that nothing is served without the part; without another,
	// some things are not, or are slower.
	Needed bool `json:"needed"`
	// Reason says in one line why it is not OK. Anybody may read it.
	Reason string `json:"reason"`
	// Err is the whole reason, for the log alone.
	Err error `json:"-"`
}

// How things stand, as GET /readyz says.
const (
	stateReady    = "ready"
	stateDegraded = "degraded" // something is away that not everything needs
)

// readiness is what GET /readyz answers while requests can be served.
type readiness struct {
	Ready  bool    `json:"ready"`
	State  string  `json:"state"`
	Checks []Check `json:"checks"`
}

// health remembers which parts were away when last asked, so that the log has a
// line for each change and none for each question.
type health struct {
	mu   sync.Mutex
	away map[string]bool
}

// changed says whether a part is not as it was.
func (h *health) changed(one Check) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away[one.Name] == !one.OK {
		return false
	}
	if h.away == nil {
		h.away = map[string]bool{}
	}
	h.away[one.Name] = !one.OK
	return true
}

// alive is GET /livez: the process answers.
func (*Server) alive(c *call) error {
	c.noted.probe = true
	return c.send(http.StatusOK, map[string]bool{"alive": true})
}

// ready is GET /readyz: whether what every request needs answers, and what else
// does not. Whoever balances load takes a server out of it for a 503, so what
// only some requests need makes none.
func (s *Server) ready(c *call) error {
	c.noted.probe = true
	now := readiness{Ready: true, State: stateReady, Checks: []Check{}}
	if s.cfg.Ready != nil {
		now.Checks = append(now.Checks, s.cfg.Ready(c.ctx)...)
	}
	refused := flow.Refuse(codeNotReady, "Till is up but cannot work: see details.")
	refused.Details = map[string]string{}
	for _, one := range now.Checks {
		if s.health.changed(one) {
			s.logPart(c, one)
		}
		if one.OK {
			continue
		}
		now.State, now.Ready = stateDegraded, now.Ready && !one.Needed
		refused.Details[one.Name] = one.Reason
	}
	if !now.Ready {
		return refused
	}
	return c.send(http.StatusOK, now)
}

// logPart tells the log that a part went away or came back.
func (s *Server) logPart(c *call, one Check) {
	attrs := []slog.Attr{slog.String("request", c.noted.request), slog.String("part", one.Name)}
	if one.OK {
		s.cfg.Log.LogAttrs(c.ctx, slog.LevelWarn, "a part is back", attrs...) // as loud as its being away
		return
	}
	level := slog.LevelWarn
	if one.Needed {
		level = slog.LevelError
	}
	attrs = append(attrs, slog.String("reason", one.Reason))
	if one.Err != nil {
		attrs = append(attrs, slog.String("error", one.Err.Error()))
	}
	s.cfg.Log.LogAttrs(c.ctx, level, "a part is away", attrs...)
}
