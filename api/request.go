package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/crashpoint"
)

// maxKey bounds an Idempotency-Key.
const maxKey = 255

// form reads the call's body, strictly.
func (c *call) form(rules decodeRules) *form {
	if c.http.Get("Content-Encoding") != "" { // a few bytes that unpack to many
		return &form{refused: flow.Refuse(flow.CodeMediaType, "Send the body without a Content-Encoding.")}
	}
	f, err := decode(c.http.Get("Content-Type"), c.http.Request().Body(), rules)
	if err != nil {
		return &form{refused: err}
	}
	return f
}

// once is the call as what is done only once, where it brings an
// Idempotency-Key. The same request again has the same hash. shown are secrets of
// the caller's: where an answer shows one of ours, it is given again to who
// brings the same alone.
func (c *call) once(render func(checkout.Made) (int, []byte, error), shown ...string) (checkout.Call, error) {
	out := checkout.Call{Project: c.project.ID, By: c.key.ID, Scope: c.scope(), Render: render, Refuse: c.refused}
	raw := c.http.Request().Header.Peek("Idempotency-Key")
	if raw == nil {
		return out, nil
	}
	out.Key = string(raw)
	if out.Key == "" || len(out.Key) > maxKey || strings.ContainsFunc(out.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return out, flow.Refuse(flow.CodeInvalidField, "Idempotency-Key must be 1 to %d printable ASCII characters.", maxKey).At("Idempotency-Key")
	}
	request := []string{c.http.Method(), c.http.Path(), string(c.http.Request().Body())}
	out.Hash = hex.EncodeToString(hashOf(request...))
	out.Secret = hashOf(append(append(request, out.Key), shown...)...)
	return out, nil
}

// effect does a call that keeps its answer in the transaction of its effect: status
// and record are what do is answered with, below the path under which what it made
// can be read, "" for none. shown is once's.
func (c *call) effect(status int, record func(checkout.Made) any, below string, do func(once checkout.Call) (checkout.Answer, error), shown ...string) error {
	once, err := c.once(func(m checkout.Made) (int, []byte, error) {
		c.noted.session = cmp.Or(m.Session.ID, m.Payment.Session, m.Refund.Session, c.noted.session)
		body, err := compose(record(m))
		return status, body, err
	}, shown...)
	if err != nil {
		return err
	}
	a, err := do(once)
	if err != nil {
		return err
	}
	if below != "" {
		below += "/" + a.Location
	}
	return c.answer(a, below)
}

// scope is whose Idempotency-Keys a call's is one of: an account's, a project's
// in an environment, each of which has a database of its own, or, where a payer's
// browser calls with a public key, a session's: a payer must not use a key up
// that the merchant may send.
func (c *call) scope() string {
	switch {
	case c.token.Account != "":
		return "account/" + c.token.Account
	case c.key.Kind == flow.PublicKey:
		return string(c.project.ID) + "/" + c.param("id")
	}
	return string(c.project.ID)
}

// hashOf hashes some texts with their lengths, so that no two lists run together.
func hashOf(parts ...string) []byte {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		sum.Write([]byte{':'})
		sum.Write([]byte(part))
	}
	return sum.Sum(nil)
}

// answer sends what an idempotent call was answered with, then or now. location
// is where what was made can be read.
func (c *call) answer(a checkout.Answer, location string) error {
	if a.Replayed {
		c.http.Set("Idempotent-Replayed", "true")
	}
	if location != "" && a.Status < http.StatusBadRequest {
		c.http.Set("Location", location)
	}
	crashpoint.At(crashpoint.Reply)
	write(c.http.Context(), a.Status, a.Body)
	return nil
}

// param is a part of the path, unescaped.
func (c *call) param(name string) string {
	s, err := url.PathUnescape(c.http.Params(name))
	if err != nil {
		return ""
	}
	return s
}

// pathID is the id that ends the path, or stands before its verb; what cannot be
// an id does not exist.
func pathID[T ~string](c *call, prefix, what string) (T, error) {
	id := c.param("id")
	if !isID(id, prefix) {
		return "", flow.Refuse(flow.CodeNotFound, "There is no such %s.", what)
	}
	return T(id), nil
}

// sessionID is the session of the path.
func (c *call) sessionID() (flow.SessionID, error) {
	id, err := pathID[flow.SessionID](c, flow.PrefixSession, "session")
	if err == nil {
		c.noted.session = id
	}
	return id, err
}

// nothing reads the body of a call that takes no fields: none, or an empty object.
func (c *call) nothing() error { return c.form(decodeRules{optional: true}).done() }

// alone is what the path of a call names that takes no fields.
func alone[I any](c *call, named func() (I, error)) (I, error) {
	id, err := named()
	if err == nil {
		err = c.nothing()
	}
	return id, err
}

// bodiless refuses a body where none is read: filters in one, as curl sends them without
// -G, would be passed over, and everything would look like what was asked for. An
// empty object is what some clients send by themselves.
func (c *call) bodiless() error {
	if body := strings.TrimSpace(string(c.http.Request().Body())); body == "" || body == "{}" {
		return nil
	}
	return flow.Refuse(flow.CodeUnknownField, "A %s takes no body. What a list is asked for stands behind the question mark of its address (curl: -G).", c.http.Method()).At("body")
}

// hostname is the host that the call was sent to, without its port.
func (c *call) hostname() string {
	host := string(c.http.Request().Header.Host())
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}

// query reads the parameters behind the question mark, as strictly as form
// reads a body: each once, none unknown.
type query struct {
	values url.Values
	known  []string
	form   form // keeps the faults
}

func (c *call) query() *query {
	raw := c.http.Request().URI().QueryString()
	if len(raw) == 0 {
		return &query{}
	}
	values, err := url.ParseQuery(string(raw))
	q := &query{values: values}
	if err != nil {
		why := "The query has a broken escape."
		if bytes.ContainsRune(raw, ';') {
			why = "The query holds a semicolon: parameters are joined by &, and in a value it is written %3B."
		}
		q.form.fail("query", flow.CodeInvalidField, "%s", why)
	}
	return q
}

func (q *query) text(name string, most int) string {
	q.known = append(q.known, name)
	if !q.values.Has(name) {
		return ""
	}
	given := q.values[name]
	why := ""
	switch {
	case len(given) > 1:
		why = "must be given once"
	case given[0] != "":
		why = text{most: most}.judge(given[0])
	case !slices.Contains([]string{"after", "cursor", "date"}, name): // so a first page is asked for, and a day is missing
		why = "must not be empty: leave it out where it is not meant"
	}
	if why != "" {
		code := flow.CodeInvalidField
		if name == "cursor" { // however it is wrong, no list gave it out
			code = flow.CodeInvalidCursor
		}
		q.form.fail(name, code, "%s %s.", name, why)
		return ""
	}
	return given[0]
}

func (q *query) whole(name string, least, most, missing int) int {
	s := q.text(name, 20)
	if s == "" {
		return missing
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most || strings.Trim(s, "0123456789") != "" {
		q.form.fail(name, flow.CodeInvalidField, "%s must be an integer from %d to %d.", name, least, most)
		return missing
	}
	return n
}

// bound takes a time that what is listed was made from on, or before.
func (q *query) bound(name string) time.Time {
	s := q.text(name, 40)
	if s == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		q.form.fail(name, flow.CodeInvalidField, "%s must be a time such as 2026-11-21T09:30:00Z.%s", name, plusMeant(s))
	}
	return bound(at.UTC())
}

// made takes the times between which what is listed was made.
func (q *query) made() (after, before time.Time) {
	after, before = q.bound("createdAfter"), q.bound("createdBefore")
	if !before.IsZero() && before.Before(after) {
		q.form.fail("createdBefore", flow.CodeInvalidField, "createdBefore must not be before createdAfter.")
	}
	return after, before
}

// email takes an address to look for. None holds a space: nothing would be found, and
// that would look like an answer.
func (q *query) email(name string) string {
	s := q.text(name, maxEmail)
	if hint := plusMeant(s); hint != "" {
		q.form.fail(name, flow.CodeInvalidEmail, "%s holds a space, and no e-mail address does.%s", name, hint)
	}
	return s
}

// plusMeant is a hint for a value with a space in it, which is what a plus that is not
// escaped stands for in a query.
func plusMeant(s string) string {
	if strings.Contains(s, " ") {
		return " In a query a plus is written as %2B."
	}
	return ""
}

// bound is a time that divides what was made before it from the rest. That is kept to
// the millisecond, so that a bound between two of them is the second.
func bound(at time.Time) time.Time {
	return at.Add(time.Millisecond - time.Nanosecond).Truncate(time.Millisecond)
}

// among fails a parameter that was given and is none of those that are known.
func among[T ~string](q *query, name string, given T, known []T) {
	if given != "" && !slices.Contains(known, given) {
		q.form.fail(name, flow.CodeInvalidField, "%s must be one of: %s.", name, strings.Join(namesOf(known), ", "))
	}
}

// namesOf are words of ours as callers write them.
func namesOf[T ~string](words []T) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = string(word)
	}
	return out
}

// done refuses everything that was wrong, all of it at once.
func (q *query) done() error {
	unknown := make([]string, 0, len(q.values))
	for name := range q.values {
		if !slices.Contains(q.known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	q.form.known = q.known
	for _, name := range unknown {
		hint := q.form.meant(name)
		if hint == "" && len(q.known) > 0 {
			hint = " It takes: " + strings.Join(q.known, ", ") + "."
		}
		q.form.fail(safeName(name), flow.CodeUnknownField, "%s is not a parameter of this call.%s", safeName(name), hint)
	}
	return q.form.done()
}
