package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"till/flow"
)

// envelope is what every success looks like.
type envelope struct {
	Status bool `json:"status"`
	Data   any  `json:"data"`
}

// page is the data of a list.
type page struct {
	Items      any     `json:"items"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
}

// sendOne answers with the thing of the project that the path names.
func sendOne[I, T, R any](c *call, named func() (I, error), find func(context.Context, flow.ProjectID, I) (T, error), record func(T) R) error {
	id, err := named()
	if err != nil {
		return err
	}
	one, err := find(c.ctx, c.project.ID, id)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, record(one))
}

// sendPage answers with a page of a list: record makes what is shown of each, and at
// says where a page ends that ends with it.
func sendPage[T, R any](c *call, list []T, more bool, record func(T) R, at func(T) string) error {
	records := make([]R, len(list))
	for i, one := range list {
		records[i] = record(one)
	}
	out := page{Items: records, HasMore: more}
	if more {
		out.NextCursor = cursorOf(at(list[len(list)-1]))
	}
	return c.send(http.StatusOK, out)
}

// compose makes the bytes of a success.
func compose(data any) ([]byte, error) {
	body, err := json.Marshal(envelope{Status: true, Data: data})
	if err != nil {
		return nil, fmt.Errorf("compose an answer: %w", err)
	}
	return body, nil
}

// send answers with data.
func (c *call) send(status int, data any) error {
	body, err := compose(data)
	if err != nil {
		return err
	}
	write(c.http.Context(), status, body)
	return nil
}

// write answers with a body that is JSON already. Nothing of ours is for a
// cache: answers hold keys, client secrets and states that move. The body is sent
// as it is, not a copy of it: two thousand clients that read a long page slowly
// would have as many made. Nobody may change it afterwards.
func write(ctx *fasthttp.RequestCtx, status int, body []byte) {
	h := &ctx.Response.Header
	h.SetContentType("application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if n, ok := ctx.UserValue(notedKey).(*noted); ok {
		h.Set("X-Request-Id", n.request)
	}
	ctx.SetStatusCode(status)
	ctx.Response.SetBodyRaw(body)
}

// refuse answers with an error.
func (s *Server) refuse(ctx *fasthttp.RequestCtx, err error) {
	known := refusal(err)
	kind, _ := classOf(known.Code)
	n := s.note(ctx)
	n.code = known.Code
	if n.err == nil {
		n.err = err
	}
	f := failure{
		Type: kind.kind, Code: known.Code, Message: known.Message, Fields: known.Fields, Details: known.Details,
		Retryable: kind.retryable, RequestID: n.request, DocURL: s.cfg.Docs + string(known.Code),
	}
	if f.Fields == nil {
		f.Fields = []flow.FieldError{}
	}
	if f.Details == nil {
		f.Details = map[string]string{}
	}
	body, err := json.Marshal(struct {
		Status bool    `json:"status"`
		Error  failure `json:"error"`
	}{false, f})
	if err != nil { // strings alone: cannot happen
		body = []byte(`{"status":false}`)
	}
	switch {
	case kind.kind == "authentication" && known.Code != codeInvalidSignature:
		ctx.Response.Header.Set("WWW-Authenticate", "Bearer")
	case kind.retryable:
		ctx.Response.Header.Set("Retry-After", seconds(max(known.RetryAfter, time.Second)))
	}
	write(ctx, kind.status, body)
}

// cursorOf makes an opaque cursor out of where a page ended.
func cursorOf(at string) *string {
	s := base64.RawURLEncoding.EncodeToString([]byte(at))
	return &s
}

// cursor takes where a page ended, as cursorOf wrote it; ok judges what it holds.
func (q *query) cursor(ok func(string) bool) string {
	s := q.text("cursor", 200)
	if s == "" {
		return ""
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > 128 || !ok(string(raw)) {
		q.form.fail("cursor", flow.CodeInvalidCursor, "cursor is not one that this list gave out.")
		return ""
	}
	return string(raw)
}

// isID says whether a text could be an id with this prefix.
func isID(s, prefix string) bool {
	const ulid = 26
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && len(rest) == ulid && strings.Trim(rest, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}
