package api

import (
	"cmp"
	"net/http"
	"net/url"

	"till/api/phone"
	"till/flow"
)

// pagePolicy lets the phone page load its own files and nothing else, and nobody
// but the console show it within a page.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// servePhonePage is GET /phone and its files, for a browser on this machine.
func (s *Server) servePhonePage(c *call) error {
	body, kind, there := phone.File(cmp.Or(c.param("file"), "index.html"))
	if !there || !c.near() {
		return flow.Refuse(flow.CodeRouteNotFound, "There is nothing at this path.")
	}
	h := &c.http.Context().Response.Header
	write(c.http.Context(), http.StatusOK, body)
	h.SetContentType(kind)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	return nil
}

// followLink is GET /wa.me/{number}: the checkout link of development, which
// opens the phone page with the words of the link in its message field.
func (s *Server) followLink(c *call) error {
	if !c.near() {
		return flow.Refuse(flow.CodeRouteNotFound, "There is nothing at this path.")
	}
	to := "/phone"
	if words := c.query().text("text", maxMessage); words != "" {
		to += "?" + url.Values{"text": {words}}.Encode()
	}
	c.http.Set("Location", to)
	write(c.http.Context(), http.StatusFound, nil)
	return nil
}
