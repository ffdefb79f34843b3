package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"till/api/apitest"
	"till/cmd/till/tilltest"
	"till/flow/redistest"
)

// The numbers of what is pushed through the doors.
const (
	searchCards  = 200
	searchPeople = 100 // BVNs and NINs, half each
	searchKeys   = 50
	// searchPassword is looked for too, and goes through no door but the one for it.
	searchPassword = "correct horse battery of the search"
	searchEmail    = "search@example.com"
)

// rummage is a Till whose doors secrets are pushed through.
type rummage struct {
	t     *testing.T
	x     *till
	redis *redistest.Server
	m     *merchant
	sink  *parrot
	bank  atomic.Pointer[string] // why it refuses what it is ordered to send
	s     secrets
	doors map[string]int // how often each was used

	project string // of searchEmail
	login   string // of searchEmail, for the calls that a secret key may not make
	metrics string // where they are read
}

// A number of a card or a person, and a key, is pushed through every door there is;
// afterwards no byte of it is anywhere, not even of what Till was handling when it
// was killed.
func TestNoSecretIsKeptWhicheverDoorItComesThrough(t *testing.T) {
	r := newRummage(t)
	r.api()
	r.requests()
	r.headers()
	r.console()
	r.commands()
	r.chat()
	r.refusals()
	r.killed()
	r.nowhere()
	t.Logf("%d cards, %d BVNs and NINs, %d keys; used: %v", len(r.s.cards), len(r.s.people), len(r.s.keys), r.doors)
	for _, door := range []string{"api", "header", "method", "path", "query", "console", "command", "chat", "notice", "bank", "webhook"} {
		if r.doors[door] == 0 {
			t.Errorf("nothing was pushed through %s", door)
		}
	}
}

func newRummage(t *testing.T) *rummage {
	t.Helper()
	redis, o := redistest.Start(t), newOutside(t)
	metrics := tilltest.FreePort(t)
	r := &rummage{t: t, redis: redis, s: drawn(searchCards, searchPeople), doors: map[string]int{}, metrics: metrics}
	o.between(r.refuses)
	o.env = append(o.env, "TILL_REDIS_URL="+redis.URL, "TILL_LOG_LEVEL=debug", "TILL_METRICS_ADDR="+metrics)
	r.x, r.m = running(t, o)
	r.makeKeys() // that of the first start is printed, once, as it says
	r.sink = newParrot(t, r.all())
	made := r.m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": r.sink.server.URL, "events": []string{"charge.success", "session.created", "refund.failed"}})
	r.s.keys = append(r.s.keys, made["secret"].(string))
	return r
}

// makeKeys has Till make keys, secrets and logins.
func (r *rummage) makeKeys() {
	r.t.Helper()
	email, password := searchEmail, searchPassword
	token := r.m.call(http.MethodPost, "/v1/auth/signup", object{"email": email, "password": password, "businessName": "Search"})
	login := r.m.call(http.MethodPost, "/v1/auth/login", object{"email": email, "password": password})
	for _, answer := range []object{token, login} {
		text, err := json.Marshal(answer)
		must(r.t, err)
		r.s.keys = append(r.s.keys, regexp.MustCompile(`(?:sk_test_|sk_live_|dash_)\w{20,}`).FindAllString(string(text), -1)...)
	}
	r.login = regexp.MustCompile(`dash_\w+`).FindString(fmt.Sprint(login))
	owner := &merchant{t: r.t, base: r.m.base, key: r.login}
	project := regexp.MustCompile(`wsp_prj_\w+`).FindString(fmt.Sprint(token, login))
	if project == "" {
		r.t.Fatalf("a new account has no project: %v", token)
	}
	r.project = project
	for len(r.s.keys) < searchKeys {
		made := owner.call(http.MethodPost, "/v1/projects/"+project+"/keys", object{"environment": "test", "kind": "secret"})
		r.s.keys = append(r.s.keys, made["key"].(string))
		if len(r.s.keys)%10 == 0 {
			secret := r.m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": "http://127.0.0.1:9999/", "events": []string{"refund.failed"}})
			r.s.keys = append(r.s.keys, secret["secret"].(string))
		}
	}
}

// all are the secrets, numbers as people write them: a number of a person, where a
// text is free, with the word that says so.
func (r *rummage) all() []string {
	var list []string
	for i, card := range r.s.cards {
		ways := renderings(card)
		list = append(list, ways[i%len(ways)])
	}
	for i, number := range r.s.people {
		list = append(list, []string{"BVN " + number, "my NIN: " + number, "bvn=" + number}[i%3])
	}
	return append(list, r.s.keys...)
}

// send makes a call that is answered with one of some statuses, by what stands
// behind the door: a door that is not there keeps nothing.
func (r *rummage) send(door, method, path string, header http.Header, body []byte, want ...int) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.m.base+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatalf("%s %q: %v", method, path, err)
	}
	req.Header.Set("Authorization", "Bearer "+r.m.key)
	if strings.HasPrefix(path, "/v1/projects") {
		req.Header.Set("Authorization", "Bearer "+r.login)
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, header)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	text, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if missing := bytes.Contains(text, []byte("route_not_found")); missing && door != "path" || !slices.Contains(want, answer.StatusCode) {
		r.t.Errorf("%s: %s %s: %d, not %v: %s", door, method, path, answer.StatusCode, want, text)
	}
	r.doors[door]++
}

// operation is one call of the document.
type operation struct {
	method, path string
	fields       []string
	example      map[string]any
}

// operations are all calls of the document that have nothing to do with the real
// world's end of things: the clock, which would end everything, and phones that go;
// and nothing with the end of a login.
func (r *rummage) operations() []operation {
	r.t.Helper()
	answer, err := http.Get(r.m.base + "/openapi.yaml")
	must(r.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(r.t, err)
	contract, err := apitest.Load(context.Background(), text)
	must(r.t, err)
	var list []operation
	for _, path := range slices.Sorted(maps.Keys(contract.Doc.Paths.Map())) {
		for method, op := range contract.Doc.Paths.Value(path).Operations() {
			if path == "/v1/test/clock" || path == "/v1/test/bank/conditions" || path == "/v1/auth/logout" {
				continue
			}
			list = append(list, operation{method: method, path: path})
			if op.RequestBody == nil || op.RequestBody.Value.Content.Get("application/json") == nil {
				continue
			}
			one := &list[len(list)-1]
			kind := op.RequestBody.Value.Content.Get("application/json")
			one.example, _ = kind.Example.(map[string]any)
			one.fields = textFields(kind.Schema)
		}
	}
	return list
}

// textFields are the fields of a body that are texts.
func textFields(schema *openapi3.SchemaRef) (names []string) {
	if schema == nil || schema.Value == nil {
		return nil
	}
	for name, field := range schema.Value.Properties {
		if field.Value.Type == nil || field.Value.Type.Is("string") || field.Value.Type.Includes("string") || name == "metadata" {
			names = append(names, name)
		}
	}
	for _, part := range slices.Concat(schema.Value.AllOf, schema.Value.OneOf, schema.Value.AnyOf) {
		names = append(names, textFields(part)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// api pushes secrets through every field, path and query of every call: each secret
// through some, each door with some.
func (r *rummage) api() {
	r.t.Helper()
	ops, all := r.operations(), r.all()
	refusals := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound}
	next := 0
	secret := func() string { next++; return all[next%len(all)] }
	for round := range 4 {
		for _, op := range ops {
			path := regexp.MustCompile(`\{\w+\}`).ReplaceAllStringFunc(op.path, func(string) string { return url.PathEscape(secret()) })
			door := "query"
			if path != op.path {
				door = "path"
			}
			r.send(door, op.method, path+"?cursor="+url.QueryEscape(secret())+"&"+url.QueryEscape(secret())+"=1&reference="+url.QueryEscape(secret()), nil, r.body(op, "", ""), refusals...)
			for _, field := range op.fields {
				one := secret()
				r.send("api", op.method, strings.NewReplacer("{id}", "wsp_sess_x", "{rail}", "sandbox").Replace(op.path), nil, r.body(op, field, one), refusals...)
			}
		}
		for _, one := range all[round*len(all)/4 : (round+1)*len(all)/4] { // each where merchants write what they like
			r.send("api", http.MethodPost, "/v1/whatsapp/checkout/sessions", nil, jsonOf(r.t, object{"amount": 500_000, "customerEmail": "bola@example.com", "mode": "chat", "description": "for " + one, "metadata": object{"note": one}}), http.StatusBadRequest)
			r.notice(one)
		}
	}
}

// body is a call's body with a secret in one of its fields.
func (r *rummage) body(op operation, field, secret string) []byte {
	body := map[string]any{}
	maps.Copy(body, op.example)
	switch field {
	case "":
	case "metadata":
		body[field] = map[string]any{"note": secret, secret: "x"}
	default:
		body[field] = secret
	}
	return jsonOf(r.t, body)
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// headers pushes secrets through headers.
func (r *rummage) headers() {
	r.t.Helper()
	names := []string{"User-Agent", "X-Request-Id", "Idempotency-Key", "Authorization", "Origin", "Referer", "Cookie", "X-Forwarded-For", "Traceparent", "Tracestate", "Accept-Language", "X-Card"}
	for i, one := range r.all() {
		if one = strings.Map(func(c rune) rune {
			if c > '~' || c < ' ' {
				return -1
			}
			return c
		}, one); one == "" {
			continue
		}
		name := names[i%len(names)]
		body := jsonOf(r.t, object{"amount": 500_000, "customerEmail": "bola@example.com", "mode": "chat"})
		want, header := http.StatusCreated, http.Header{name: {one}}
		switch name {
		case "Authorization":
			want = http.StatusUnauthorized
		case "Tracestate": // goes on to the merchant's endpoint, beside a trace
			header = http.Header{"Traceparent": {parent}, name: {"shop=" + strings.NewReplacer("=", " ", ",", " ").Replace(one)}}
		}
		r.send("header", http.MethodPost, "/v1/whatsapp/checkout/sessions", header, body, want)
	}
	for _, one := range r.s.cards {
		r.send("method", one, "/v1/whatsapp/checkout/sessions", nil, nil, http.StatusMethodNotAllowed)
	}
}

// console pushes secrets through its forms and searches.
func (r *rummage) console() {
	r.t.Helper()
	v := enter(r.t, r.m.base, "owner")
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(v.page("/settings"))
	if csrf == nil {
		r.t.Fatal("the settings have no form")
	}
	session, _ := r.m.openChat(400_000, "console")
	forms := []string{"/sessions/" + session + "/note", "/filters", "/settings", "/developers/webhooks", "/developers/projects", "/team", "/go-live/kyc", "/sessions/" + session + "/cancel", "/try/open", "/inbox/chat_x/reply", "/login", "/choose"}
	fields := []string{"text", "name", "q", "reason", "url", "description", "email", "businessName", "note", "order", "words", "project"}
	for i, one := range r.all() {
		form := url.Values{"csrf": csrf[1:]}
		for _, name := range fields {
			form.Set(name, one)
		}
		r.visit(func() (*http.Response, error) { return v.http.PostForm(v.url+forms[i%len(forms)], form) })
		for _, page := range []string{"/sessions?q=", "/developers/requests?status="} {
			r.visit(func() (*http.Response, error) { return v.http.Get(v.url + page + url.QueryEscape(one)) })
		}
	}
	for _, jar := range v.http.Jar.Cookies(mustURL(r.t, v.url)) {
		if len(jar.Value) > 30 && strings.Contains(jar.Name, "visit") {
			r.s.keys = append(r.s.keys, jar.Value)
		}
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	must(t, err)
	return u
}

func (r *rummage) visit(do func() (*http.Response, error)) {
	r.t.Helper()
	answer, err := do()
	must(r.t, err)
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusBadRequest {
		r.t.Errorf("console: %s: %d", answer.Request.URL.Path, answer.StatusCode)
	}
	r.doors["console"]++
}

// commands pushes secrets through the command line.
func (r *rummage) commands() {
	r.t.Helper()
	all := r.all()
	p := payerNamed(r.m, "+2348039991097", "Desk")
	_, text := r.m.openChat(500_000, "desk")
	p.says(text)
	p.says("9")
	chat := ""
	r.m.until("a payer waits for a person", func() bool {
		out, err := r.x.p.Beside("desk")
		chat = regexp.MustCompile(`chat_\w+`).FindString(out)
		return err == nil && chat != ""
	})
	for i, args := range [][]string{
		{"replay", "@"},
		{"desk", "claim", chat, "--reason", "waits for long", "--as", "@"},
		{"payer", "export", "@"},
		{"methods", "off", "ussd", "--reason", "@"},
		{"methods", "on", "ussd"},
		{"desk", "reply", "chat_x", "--as", "ngozi", "@"},
		append([]string{"desk", "reply", "chat_x", "--as", "ngozi"}, strings.Fields(renderings(r.s.cards[0])[1])...),
		{"projects", "create", "--account", searchEmail, "@"},
		{"merchants", "kyc", "suspend", r.project, "--reason", "@"},
		{"people", "add", "@", "--role", "operator"},
		{"logs", "--session", "@"},
		{"numbers", "drain", "@"},
		{"merchants", "stop", "@"},
	} {
		at := slices.Index(args, "@")
		for kind, first := range []int{0, len(r.s.cards), len(r.s.cards) + len(r.s.people)} {
			if at < 0 && kind > 0 {
				break
			}
			if at >= 0 {
				args[at] = all[first+i]
			}
			out, err := r.x.p.Beside(args...) // what it says to who typed it is theirs
			if said := strings.Contains(out, "a card number stands in an argument"); at >= 0 && kind == 0 && !said {
				r.t.Errorf("%v: %v\n%s", args, err, out)
			}
			r.doors["command"]++
		}
	}
}
