package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// What a page of another origin may send, read and remember.
const (
	corsHeaders = "Authorization, Content-Type, X-Client-Secret, Idempotency-Key"
	corsExposed = "ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Limit, RateLimit-Policy, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id"
	corsMemory  = "600" // seconds
)

// forPages says whether a route is for pages too: those that a public key opens.
func (r Route) forPages() bool { return r.Key == KeySession || r.Key == KeyPublic }

// allowOrigin lets any page read the answer to a call with a public key. There
// are no cookies that it could abuse. A secret key has no business in a page,
// so its answers cannot be read there.
func allowOrigin(c *call, r Route) {
	if !r.forPages() || strings.Contains(c.http.Get("Authorization"), "sk_") {
		return
	}
	c.http.Set("Access-Control-Allow-Origin", "*")
	c.http.Set("Access-Control-Expose-Headers", corsExposed)
}

// answerPreflights answers browsers that ask before they call a route for pages.
func (s *Server) answerPreflights() {
	methods := map[string][]string{}
	for _, r := range Routes() {
		if r.forPages() && (!r.Dev || s.cfg.Dev) {
			methods[r.Path] = append(methods[r.Path], r.Method)
		}
	}
	for path, allowed := range methods {
		slices.Sort(allowed)
		list := strings.Join(allowed, ", ")
		s.app.Options(path, func(c *fiber.Ctx) error {
			n := s.note(c.Context())
			n.route = path
			c.Set("Access-Control-Allow-Origin", "*")
			c.Set("Access-Control-Allow-Methods", list)
			c.Set("Access-Control-Allow-Headers", corsHeaders)
			c.Set("Access-Control-Max-Age", corsMemory)
			c.Set("Allow", list+", "+http.MethodOptions)
			c.Set("X-Request-Id", n.request)
			return c.SendStatus(http.StatusNoContent)
		})
	}
}
