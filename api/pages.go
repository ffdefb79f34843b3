package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/nyaruka/phonenumbers"

	"till/api/console"
	"till/flow"
)

// openConsole mounts the pages that people see in a browser.
func (s *Server) openConsole() error {
	from := func(c *fiber.Ctx) *call { return &call{http: c, proxies: s.cfg.Proxies} }
	var err error
	s.console, err = console.New(console.Config{
		Accounts: s.cfg.Accounts, Services: s.cfg.Services, Boards: s.cfg.Boards, Demo: s.cfg.Demo, PublicURL: s.cfg.PublicURL,
		Secure:  strings.HasPrefix(s.cfg.PublicURL, "https://"),
		Address: func(c *fiber.Ctx) string { return from(c).address() },
		Near:    func(c *fiber.Ctx) bool { return from(c).near() },
		Count: func(ctx context.Context, c *fiber.Ctx, who string) error {
			one := from(c)
			one.ctx = ctx
			return s.countForm(one, who)
		},
		Request: func(c *fiber.Ctx) string { return s.note(c.Context()).request },
		Refused: func(c *fiber.Ctx, err error) int {
			n := s.note(c.Context())
			n.code, n.err = flow.CodeOf(err), err
			if own, ok := errors.AsType[*flow.Error](err); ok && own.RetryAfter > 0 {
				c.Set(fiber.HeaderRetryAfter, seconds(own.RetryAfter))
			}
			kind, known := classOf(n.code)
			if !known {
				return http.StatusInternalServerError
			}
			return kind.status
		},
		Verifications: s.cfg.Verifications, CheckURL: s.cfg.CheckURL, NewSecret: s.cfg.NewSecret, Requests: s.requests, Tasks: s.pages.programs(),
		Typed: console.Typed{
			Email: mailbox,
			Phone: func(t string) (flow.Phone, bool) { return readPhone(t, phonenumbers.IsValidNumber) },
			Text: func(t string, least, most int, multiline bool) string {
				return text{least: least, most: most, multiline: multiline, said: least > 0}.judge(t)
			},
		},
		Ready: s.parts, Doctor: s.cfg.Doctor, Pairing: s.cfg.Pairing,
		Sandbox: s.sandbox(),
		Closing: s.closing, Real: time.Now, Log: s.cfg.Log, //nolint:forbidigo // connections, logins and the machine know no other
	})
	if err != nil {
		return err
	}
	for _, p := range console.Pages() {
		if p.Method == http.MethodGet {
			s.app.Get(p.Path, s.page(p)) // answers HEAD too
		} else {
			s.app.Add(p.Method, p.Path, s.page(p))
		}
	}
	return nil
}

// sandbox is what the console tries out: a bank that tells how it is set.
func (s *Server) sandbox() console.Sandbox {
	out := console.Sandbox{AdvanceClock: s.cfg.AdvanceClock}
	if bank, ok := s.cfg.TestBank.(console.Bank); ok {
		out.Bank = bank
	}
	return out
}

// page serves one page of the console.
func (s *Server) page(p console.Page) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), workTimeout)
		defer cancel()
		s.note(c.Context()).route = p.Path
		return s.console.Serve(ctx, p, c)
	}
}

// parts are the parts of the server, as operators see them.
func (s *Server) parts(ctx context.Context) []console.Part {
	if s.cfg.Ready == nil {
		return nil
	}
	var out []console.Part
	for _, one := range s.cfg.Ready(ctx) {
		out = append(out, console.Part{Name: one.Name, OK: one.OK, Needed: one.Needed, Reason: one.Reason})
	}
	return out
}
