package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"till/flow"
)

// requestsShown is how many requests one page shows.
const requestsShown = 50

// requestsView is what the page of requests is given.
type requestsView struct {
	Requests []Request
	Class    string // of status: "", "2", "4" or "5"
	Older    string
	Most     int
	Try      string // a command that makes one
}

// requestsPage is GET /developers/requests.
func (c *Console) requestsPage(v *visit) error {
	out := requestsView{Most: c.cfg.Requests.Most(), Try: c.firstRequest("$TILL_SECRET_KEY")}
	class := 0
	switch s := v.query("status"); s {
	case "2", "4", "5":
		out.Class, class = s, int(s[0]-'0')
	}
	var more bool
	if v.project.ID != "" {
		out.Requests, more = c.cfg.Requests.Requests(v.project.ID, v.env, class, v.query("before"), requestsShown)
	}
	if more {
		out.Older = "/developers/requests?status=" + out.Class + "&before=" + out.Requests[len(out.Requests)-1].ID
	}
	return v.show("requests", "Requests", out)
}

// requestView is what the page of one request is given.
type requestView struct {
	Request

	Curl string
}

// requestPage is GET /developers/requests/{id}.
func (c *Console) requestPage(v *visit) error {
	r, found := c.cfg.Requests.Request(v.project.ID, v.env, v.http.Params("id"))
	if !found {
		return flow.Refuse(flow.CodeNotFound, "There is no such request here. The newest %d of each project and environment are kept, until the server starts anew.",
			c.cfg.Requests.Most())
	}
	return v.show("request", "Request "+r.ID, requestView{r, c.curl(r)})
}

// curl is a request as a command, with the key as a variable: it is not kept.
func (c *Console) curl(r Request) string {
	key := "$TILL_SECRET_KEY"
	if strings.HasPrefix(r.Key, "pk_") {
		key = "$TILL_PUBLIC_KEY"
	}
	var b strings.Builder
	b.WriteString("curl -sS ")
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case r.Method == http.MethodHead: // with -X curl waits for a body
		b.WriteString("-I ")
	case r.Method != http.MethodGet, len(r.Body) > 0: // with a body curl posts
		b.WriteString("-X " + r.Method + " ")
	}
	if r.Picture {
		b.WriteString("-o receipt.png ")
	}
	fmt.Fprintf(&b, "%s -H \"Authorization: Bearer %s\"", quoted(c.cfg.PublicURL+r.Target), key)
	if r.Payer {
		b.WriteString(` -H "X-Client-Secret: $TILL_CLIENT_SECRET"`)
	}
	if r.Once {
		b.WriteString(` -H "Idempotency-Key: $(openssl rand -hex 16)"`)
	}
	switch {
	case (r.Private || r.Busy) && !reads:
		b.WriteString(` -H 'Content-Type: application/json' -d @body.json`)
	case len(r.Body) > 0:
		b.WriteString(" -H 'Content-Type: application/json' --data-raw " + quoted(string(r.Body)))
	}
	return b.String()
}

// quoted is a text as one word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Text is a kept body as a text: over several lines, where it is whole.
func (Request) Text(body []byte) string {
	var lines bytes.Buffer
	if json.Indent(&lines, body, "", "  ") == nil {
		body = lines.Bytes()
	}
	return strings.ToValidUTF8(string(body), "\ufffd")
}

// Masked says whether something was taken out of the request.
func (r Request) Masked() bool {
	return bytes.Contains(r.Body, []byte("[redacted]")) || bytes.Contains(r.Body, []byte("****")) || strings.Contains(r.Target, "****")
}

// Ms is how long the request took, in milliseconds.
func (r Request) Ms() int64 { return r.Took.Milliseconds() }
