package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"till/flow"
	"till/flow/await"
)

// teaser puts naughty strings wherever the document lets a string stand.
type teaser struct {
	*desk

	token string
	from  atomic.Int64 // the address of the next caller: nobody is to be limited
	calls atomic.Int64
}

// tease opens a desk whose log is judged when everything has ended.
func tease(t *testing.T) *teaser {
	t.Helper()
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	z := &teaser{}
	t.Cleanup(func() { // before open's own: so that it runs last
		if z.desk != nil && !t.Failed() {
			z.judgeLog(t)
		}
	})
	z.desk = openDesk(t)
	z.server.cfg.Proxies = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	z.token = z.tokenFor(z.project)
	return z
}

// judgeLog wants a line of JSON for every call, and nothing that came in.
func (z *teaser) judgeLog(t *testing.T) {
	t.Helper()
	requests := int64(0)
	for line := range strings.Lines(z.log.String()) {
		var one struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Errorf("a line of the log is none: %v\n%.300s", err, line)
		}
		if one.Msg == "request" {
			requests++
		}
		if one.Msg == "forged" {
			t.Errorf("a line was forged: %s", line)
		}
	}
	if requests < z.calls.Load() {
		t.Errorf("%d calls, %d lines in the log", z.calls.Load(), requests)
	}
	for _, n := range naughties() {
		if text := n.means(); len(text) > 12 && !strings.HasPrefix(text, "aaaa") && strings.Contains(z.log.String(), text) {
			t.Errorf("%s stands in the log", n.name)
		}
	}
}

// send sends a request from an address of its own, again while there are too
// many of them, which is for what works in the background to mend.
func (z *teaser) send(t *testing.T, method, path, key, body string, headers ...http.Header) reply {
	t.Helper()
	from := z.from.Add(1)
	h := http.Header{"X-Forwarded-For": {fmt.Sprintf("10.%d.%d.%d", from>>16&255, from>>8&255, from&255)}}
	var got reply
	await.Until(t, method+" "+path+" is let through", func() bool {
		z.calls.Add(1)
		got = z.as(t).ask(method, path, key, body, append(headers, h)...)
		return got.status != http.StatusTooManyRequests
	})
	return got
}

// as is the shop with the faults of a test of its own.
func (z *teaser) as(t *testing.T) *shop {
	t.Helper()
	return &shop{t: t, server: z.server, key: z.key, accounts: z.accounts}
}

// alone is who calls for one string: a merchant of its own where something is
// made, since names are used up and things are counted.
func (z *teaser) alone(t *testing.T, e *example, p *place) (path, key string) {
	t.Helper()
	s := z.as(t)
	switch scheme := keyOf(e.op); {
	case scheme == "":
		p.base = strings.Replace(p.base, "owner@", fmt.Sprintf("owner-%d@", z.from.Add(1)), 1) // an address signs up once
		return e.url, ""
	case scheme == "dashboardToken":
		token, p := s.desk("Naughty Stores")
		return strings.Replace(e.url, string(e.project.ID), string(p.ID), 1), token
	case e.op.OperationID == "playTransfer", strings.Contains(p.base, "sessionId"): // names a thing that is the desk's own
	case e.url == e.path():
		_, _, secret := s.merchant("Naughty Stores")
		return e.url, secret
	}
	return e.url, e.key
}

// path is the operation's path as it stands in the document, "" where it has parameters.
func (e *example) path() string {
	for path, item := range contract(e.t).Doc.Paths.Map() {
		for _, one := range item.Operations() {
			if one == e.op && !strings.Contains(path, "{") {
				return path
			}
		}
	}
	return ""
}

// unseen are the fields that no answer gives back, and why.
func unseen() map[string]string {
	const policy = "what is to be done, not said again"
	const nobody = "whoever is looked up is not kept"
	const payer = "told in the record of what was paid"
	return map[string]string{
		"signUp password": "a secret", "logIn password": "a secret", "logIn email": "nobody has it",
		"openSession currency": policy, "openSession underpayment": policy, "openSession overpayment": policy, "openSession latePayment": policy,
		"openCharge currency": policy, "openCharge underpayment": policy, "openCharge overpayment": policy, "openCharge latePayment": policy,
		"verifyIdentity number": nobody, "verifyIdentity firstName": nobody, "verifyIdentity lastName": nobody, "verifyIdentity dateOfBirth": nobody,
		"playTransfer senderName": payer, "playTransfer senderBankCode": payer, "hearBank ": "a bank's own words",
	}
}

// records are where what was taken can be read.
func (z *teaser) records(t *testing.T, op *openapi3.Operation, got reply, path, key string) []string {
	t.Helper()
	out := []string{got.body}
	read := func(path string) { out = append(out, z.send(t, http.MethodGet, path, key, "").body) }
	switch op.OperationID {
	case "resolvePayment": // what was sent back says why
		read(refundsPath + "?paymentId=" + strings.Split(path, "/")[3])
	case "openSession", "verifyIdentity", "addProject":
		read(got.header.Get("Location"))
	case "openCharge":
		read(got.header.Get("Location"))
		read(sessions + "/" + got.text("data.sessionId"))
	case "addEndpoint", "typeMessage", "submitKYC":
		read(path)
	case "addPhone":
		read(path)
	}
	return out
}

// reads says whether a record gives back what was taken, under the same name.
func reads(record any, name string, same func(any) bool) bool {
	switch v := record.(type) {
	case map[string]any:
		for key, one := range v {
			if key == name && same(one) || reads(one, name, same) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return reads(one, name, same) })
	}
	return false
}

// same says whether a value is what was given, or what the document says that it becomes.
func (p place) same(given string) (name string, is func(any) bool) {
	name = p.path[len(p.path)-1]
	switch name {
	case "*name":
		return given, func(v any) bool { return v == "a" }
	case "*value":
		return "pair", func(v any) bool { return v == given }
	case "*":
		return p.path[0], func(v any) bool { list, ok := v.([]any); return ok && slices.Contains(list, any(given)) }
	case "phone", "customerPhone", "contactPhone": // with its country's code
		return name, func(v any) bool {
			text, _ := v.(string)
			n, ok := flow.Phone(strings.TrimPrefix(text, "+")), strings.HasPrefix(text, "+")
			return ok && strings.HasSuffix(onlyDigits(given), strings.TrimPrefix(string(n), "234"))
		}
	case "email": // people write theirs in either case
		return name, func(v any) bool { text, ok := v.(string); return ok && strings.EqualFold(text, given) }
	case "valueTime", "from", "to": // in UTC
		return name, func(v any) bool {
			text, _ := v.(string)
			got, err := time.Parse(time.RFC3339, text)
			want, wrong := time.Parse(time.RFC3339, given)
			return err == nil && wrong == nil && got.Equal(want)
		}
	}
	return name, func(v any) bool { return v == given }
}

func onlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
}

// nameless are the refusals that are not of one field.
func nameless() []string {
	return []string{"invalid_credentials", "resource_not_found", "duplicate_reference", "payment_not_resolvable"}
}

// Every string of every body, nested ones too, is given every naughty string: it
// is refused by its name, or taken and read back as it was.
func TestNaughtyStringsInBodies(t *testing.T) {
	z := tease(t)
	all := naughties()
	if len(all) < 100 {
		t.Errorf("only %d strings", len(all))
	}
	for call, op := range operations(t) {
		e, method, _ := z.ready(call, op, z.token)
		strs := e.places("string")
		t.Run(op.OperationID, func(t *testing.T) {
			t.Parallel()
			for i, n := range all {
				for _, p := range strs {
					if hashes(op, n) && i%8 != 0 {
						continue
					}
					z.naughty(t, e, method, p, n)
				}
			}
		})
	}
}

// hashes says whether a call with a string makes a password's hash, which costs
// more than all that is asked here. The same judge reads every other field, so of
// those that pass it a few are tried.
func hashes(op *openapi3.Operation, n naughty) bool {
	return (op.OperationID == "signUp" || op.OperationID == "logIn") && !n.never && text{most: flow.MaxPassword}.judge(n.means()) == ""
}

// naughty makes one call with one string in one place.
func (z *teaser) naughty(t *testing.T, e *example, method string, p place, n naughty) {
	t.Helper()
	path, key := z.alone(t, e, &p)
	what := fmt.Sprintf("%s in %s of %s", n.name, p, e.op.OperationID)
	got := z.send(t, method, path, key, p.with(t, n.quoted()))
	given := n.means()
	switch {
	case got.status >= http.StatusInternalServerError:
		t.Errorf("%s: %d %s", what, got.status, got.body)
	case got.status >= http.StatusBadRequest:
		if !slices.Contains(nameless(), got.code()) && !named(got, p.field(given)) {
			t.Errorf("%s: the field %s is not named: %d %.400s", what, p.field(given), got.status, got.body)
		}
	case n.never:
		t.Errorf("%s is taken: %s", what, got.body)
	default:
		if unseen()[e.op.OperationID+" "+p.String()] != "" {
			return
		}
		name, same := p.same(given)
		for _, text := range z.records(t, e.op, got, path, key) {
			var record any
			if err := json.Unmarshal([]byte(text), &record); err != nil {
				t.Fatalf("%s: %v in %s", what, err, text)
			}
			if reads(record, name, same) {
				return
			}
		}
		t.Errorf("%s is taken and not read back as it was: %.600s", what, got.body)
	}
}

// named says whether a refusal names a field, what it stands in, or what stands in it.
func named(r reply, field string) bool {
	for i := range 50 {
		at := r.text(fmt.Sprintf("error.fields.%d.field", i))
		if at != "" && (at == field || strings.HasPrefix(field, at+".") || strings.HasPrefix(at, field+".")) {
			return true
		}
	}
	return false
}

// Every parameter of a path or a query is given every naughty string.
func TestNaughtyStringsInPathsAndQueries(t *testing.T) {
	z := tease(t)
	for call, op := range operations(t) {
		inPath, inQuery := parameters(t, call, op, "path"), parameters(t, call, op, "query")
		if len(inPath)+len(inQuery) == 0 {
			continue
		}
		e, method, key := z.ready(call, op, z.token)
		t.Run(op.OperationID, func(t *testing.T) {
			t.Parallel()
			_, template, _ := strings.Cut(call, " ")
			for _, n := range naughties() {
				given := n.means()
				if n.token != "" && n.never || len(given) > 8_000 {
					continue // cannot be written here, or is too long for any header
				}
				for _, p := range inPath {
					if given == "" {
						continue // another path
					}
					z.astray(t, method, detour(t, template, p.Name, op, e, url.PathEscape(given)), key, e.body, n.name+" as "+p.Name+" of "+call)
				}
				for _, p := range inQuery {
					what := n.name + " as " + p.Name + " of " + call
					got := z.send(t, method, asking(e.url, p.Name, given), key, e.body)
					switch {
					case got.status >= http.StatusInternalServerError:
						t.Errorf("%s: %d %s", what, got.status, got.body)
					case got.status >= http.StatusBadRequest && !named(got, p.Name):
						t.Errorf("%s is not named: %d %s", what, got.status, got.body)
					case got.status < http.StatusBadRequest && n.never:
						t.Errorf("%s is taken: %s", what, got.body)
					}
				}
			}
		})
	}
}

// astray makes a call that must find nothing.
func (z *teaser) astray(t *testing.T, method, path, key, body, what string) {
	t.Helper()
	got := z.send(t, method, path, key, body)
	if got.status < http.StatusBadRequest || got.status >= http.StatusInternalServerError {
		t.Errorf("%s: %d %s", what, got.status, got.body)
	}
}
