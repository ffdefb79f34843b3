package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"till/api/console"
	"till/flow"
	"till/flow/store"
)

// things are one of each kind of thing that an address can name, of one merchant.
type things map[string]string

// right is who may open an address, and what it is about.
type right struct {
	roles string // that may; "anybody" for those that nobody logs in for
	kind  string // of what the last parameter of the address names; "" for nothing that belongs to a merchant
	form  string // names and values that would do it, in turn; {kind} is a thing's id
	own   string // what one's own things need in a form to be found, likewise
}

// everybody and the others are roles that go together.
const (
	everybody  = "owner developer support operator"
	developers = "owner developer"
	supporters = "owner support operator"
)

// rights are who may do what: each address of the console once.
func rights() map[string]right {
	why := "reason the-payer-called confirm yes "
	return map[string]right{
		"GET /login": {roles: "anybody"}, "POST /login": {roles: "anybody"}, "POST /enter": {roles: "anybody"}, "GET /signup": {roles: "anybody"},
		"POST /signup": {roles: "anybody"}, "GET /console/:file": {roles: "anybody"}, "POST /try/caught/:project": {roles: "anybody"},
		"GET /password": {roles: everybody}, "POST /password": {roles: everybody},
		"GET /": {roles: everybody}, "POST /logout": {roles: everybody}, "POST /choose": {roles: everybody},

		"GET /sessions.csv": {roles: everybody}, "POST /filters": {roles: everybody}, "POST /filters/drop": {roles: everybody},
		"GET /settings": {roles: "owner"}, "POST /settings": {roles: "owner"},
		"GET /team/audit": {roles: "owner"}, "GET /team/audit.csv": {roles: "owner"}, "GET /ops/audit.csv": {roles: "operator"},
		"GET /settlements": {roles: everybody}, "GET /settlements.csv": {roles: everybody},
		"GET /refunds": {roles: everybody}, "GET /refunds.csv": {roles: everybody}, "GET /reconciliation": {roles: everybody},
		"GET /settlements/:id": {roles: everybody, kind: "settlement"}, "GET /settlements/:id/transactions.csv": {roles: everybody, kind: "settlement"},
		"GET /sessions": {roles: everybody}, "GET /exceptions": {roles: everybody},
		"POST /exceptions/resolve":        {roles: supporters},
		"GET /sessions/:id":               {roles: everybody, kind: "session"},
		"GET /sessions/:id/live":          {roles: everybody, kind: "session"},
		"GET /sessions/:id/export":        {roles: everybody, kind: "session"},
		"GET /sessions/:id/receipt.png":   {roles: everybody, kind: "session"},
		"GET /sessions/:id/replay":        {roles: everybody, kind: "session"},
		"POST /sessions/:id/reveal":       {roles: supporters, kind: "session", form: why},
		"POST /sessions/:id/note":         {roles: supporters, kind: "session", form: "note hello"},
		"POST /sessions/:id/instructions": {roles: everybody, kind: "session", form: why},
		"POST /sessions/:id/check":        {roles: everybody, kind: "session", form: why},
		"POST /sessions/:id/resend":       {roles: everybody, kind: "session", form: why + "event {event}", own: "event {event}"},
		"POST /sessions/:id/resolve":      {roles: supporters, kind: "session", form: why + "decision accept payment {payment}"},
		"POST /sessions/:id/retry":        {roles: supporters, kind: "session", form: why + "refund wsp_rfd_none"},
		"POST /sessions/:id/by-hand":      {roles: supporters, kind: "session", form: why + "refund wsp_rfd_none transfer FT-7"},
		"POST /sessions/:id/cancel":       {roles: supporters, kind: "session", form: why},
		"POST /sessions/:id/expire":       {roles: supporters, kind: "session", form: why},
		"POST /exceptions/second":         {roles: supporters},
		"POST /exceptions/retry":          {roles: supporters},
		"POST /exceptions/by-hand":        {roles: supporters},
		"GET /chats/:id/replay":           {roles: everybody, kind: "chat"},
		"GET /inbox":                      {roles: supporters},
		"GET /inbox/live":                 {roles: supporters},
		"GET /inbox/:chat":                {roles: supporters, kind: "chat"},
		"GET /inbox/:chat/live":           {roles: supporters, kind: "chat"},
		"POST /inbox/:chat/claim":         {roles: supporters, kind: "chat", form: why},
		"POST /inbox/:chat/reply":         {roles: supporters, kind: "chat", form: "text hello"},
		"POST /inbox/:chat/release":       {roles: supporters, kind: "chat"},

		"GET /developers": {roles: developers}, "POST /developers/keys": {roles: developers}, "POST /developers/projects": {roles: "owner"},
		"POST /developers/keys/:id/rotate":     {roles: developers, kind: "key", form: "hours 0"},
		"POST /developers/keys/:id/revoke":     {roles: developers, kind: "key", form: "confirm {tail}"},
		"GET /developers/requests":             {roles: developers},
		"GET /developers/requests/:id":         {roles: developers, kind: "request"},
		"GET /developers/snippets":             {roles: developers},
		"GET /go-live":                         {roles: developers},
		"POST /go-live/kyc":                    {roles: "owner"},
		"POST /go-live/account":                {roles: "owner"},
		"POST /go-live/said":                   {roles: developers},
		"GET /team":                            {roles: "owner"},
		"POST /team":                           {roles: "owner"},
		"POST /team/:id/end":                   {roles: "owner", kind: "person", form: why},
		"GET /developers/webhooks":             {roles: developers},
		"POST /developers/webhooks":            {roles: developers},
		"GET /developers/webhooks/:id":         {roles: developers, kind: "endpoint"},
		"POST /developers/webhooks/:id":        {roles: developers, kind: "endpoint", form: "url https://evil.example/hook"},
		"POST /developers/webhooks/:id/status": {roles: developers, kind: "endpoint", form: "status DISABLED confirm yes"},
		"POST /developers/webhooks/:id/secret": {roles: developers, kind: "endpoint"},
		"POST /developers/webhooks/:id/ping":   {roles: developers, kind: "endpoint"},
		"POST /developers/webhooks/:id/replay": {roles: developers, kind: "endpoint", form: "from 2026-01-01T00:00 to 2026-01-02T00:00"},
		"POST /developers/webhooks/:id/delete": {roles: developers, kind: "endpoint", form: "confirm delete"},
		"GET /developers/events/:id":           {roles: developers, kind: "event"},
		"POST /developers/events/:id/resend":   {roles: developers, kind: "event"},

		"GET /ops": {roles: "operator"}, "GET /ops/live": {roles: "operator"}, "GET /ops/merchants": {roles: "operator"}, "GET /ops/merchants/:id": {roles: "operator"},
		"GET /ops/doctor": {roles: "operator"}, "GET /ops/audit": {roles: "operator"}, "GET /ops/people": {roles: "operator"}, "POST /ops/people": {roles: "operator"},
		"POST /ops/numbers/:slot/switch": {roles: "operator"}, "POST /ops/numbers/:slot/bounds": {roles: "operator"}, "POST /ops/methods/:method": {roles: "operator"},
		"POST /ops/merchants/:id/kyc": {roles: "operator"}, "POST /ops/merchants/:id/switch": {roles: "operator"}, "POST /ops/people/:id/end": {roles: "operator"},

		"GET /try": {roles: everybody}, "GET /try/live": {roles: everybody}, "POST /try/open": {roles: developers}, "POST /try/catch": {roles: developers},
		"POST /try/bank": {roles: everybody, own: "session {session}"}, "POST /try/card": {roles: everybody, own: "session {session}"},
		"POST /try/dial": {roles: everybody}, "POST /try/clock": {roles: everybody}, "POST /try/chaos": {roles: everybody}, "POST /try/catcher": {roles: everybody},
	}
}

// have makes one of each thing for a merchant.
func (w *world) have(m merchant, person string) things {
	w.t.Helper()
	ctx, db := w.t.Context(), w.dbs[flow.Test]
	w.wants(w.ask(http.MethodPost, "/v1/webhook-endpoints", m.secret, `{"url":"https://`+person+`.example/hook"}`), http.StatusCreated)
	p := &payer{w: w, person: person, name: "Bola"}
	session := p.opens(m)
	p.transfers()
	w.pays(w.attempt(string(session)), 700_000)
	out := things{"session": string(session), "chat": string(p.chat)}
	w.until("the money is booked and told", func() bool {
		paid, err := db.Payments(context.Background(), session)
		events, worse := db.EventsOf(context.Background(), session, 9)
		if err != nil || worse != nil || len(paid) == 0 || len(events) == 0 {
			return false
		}
		out["payment"], out["event"] = string(paid[0].ID), string(events[0].ID)
		return true
	})
	out["settlement"] = string(w.paidOut(m, 7).ID)
	keys, _, err := w.accounts.Keys(ctx, m.project, "", 1)
	endpoints, worse := w.services[flow.Test].Endpoints(ctx, m.project.ID)
	somebody, worst := w.accounts.AddPerson(ctx, m.account, person+"@example.com", "a long password", flow.RoleSupport, "")
	if err != nil || worse != nil || worst != nil {
		w.t.Fatal(err, worse, worst)
	}
	out["key"], out["endpoint"], out["person"] = keys[0].ID, string(endpoints[0].ID), somebody.ID
	_, out["tail"], _ = strings.Cut(keys[0].Hint, "…")
	out["request"] = regexp.MustCompile(`/developers/requests/([^"?]+)"`).FindStringSubmatch(w.as(flow.RoleOwner, m).get("/developers/requests").body)[1]
	return out
}

// fields makes a form out of names and values in turn, with things in their
// places.
func (o things) fields(text string) url.Values {
	for kind, id := range o {
		text = strings.ReplaceAll(text, "{"+kind+"}", id)
	}
	return form(strings.Fields(text)...)
}

// about puts a thing into the place of an address's parameter.
func about(path, id string) string {
	return regexp.MustCompile(`:[a-z]+`).ReplaceAllString(path, url.PathEscape(id))
}

// asks sends a request for an address, and gives its status. Nobody waits for the
// end of what is live.
func (v *visitor) asks(method, path string, fields url.Values) int {
	v.w.t.Helper()
	switch {
	case method == http.MethodPost:
		return v.post(path, fields).status
	case strings.HasSuffix(path, "/live"):
		status, _ := v.stream(path)
		return status
	}
	return v.get(path).status
}

// Every address is tried as every role: about their own things, about another
// merchant's, in the other environment, without the form's token, and by nobody.
func TestWhoMayDoWhat(t *testing.T) {
	w := open(t)
	w.linked()
	eve := w.merchant("Eve Shoes")
	own, foreign := w.have(w.ada, "7730"), w.have(eve, "7731")
	operator, err := w.accounts.AddPerson(t.Context(), "", "other@example.com", "a long password", flow.RoleOperator, "")
	must(t, err)
	defaults := strings.NewReplacer(":file", "console.css", ":slot", "1", ":method", "ussd", "/ops/people/:id", "/ops/people/"+operator.ID, "/ops/merchants/:id", "/ops/merchants/"+string(w.ada.project.ID))
	table := rights()
	roles := []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator}
	here, live := map[flow.Role]*visitor{}, map[flow.Role]*visitor{}
	for _, role := range roles {
		for env, to := range map[string]map[flow.Role]*visitor{"test": here, "live": live} {
			to[role] = w.as(role)
			w.wants(to[role].post("/choose", form("env", env, "project", string(w.ada.project.ID))), http.StatusSeeOther)
		}
	}
	seen := map[string]bool{}
	for _, page := range console.Pages() {
		name := page.Method + " " + page.Path
		row, there := table[name]
		if seen[name] = true; !there {
			t.Errorf("nobody said who may open %s", name)
			continue
		}
		if row.roles == "anybody" {
			if page.Right != "" {
				t.Errorf("%s is for anybody, and asks for the right %s", name, page.Right)
			}
			continue
		}
		path := about(defaults.Replace(page.Path), own[row.kind])
		if got := w.visitor().asks(page.Method, path, nil); got != http.StatusSeeOther {
			t.Errorf("%s by nobody: %d", name, got)
		}
		for _, role := range roles {
			v, told := here[role], fmt.Sprintf("%s as %s", name, role)
			if page.Path == "/logout" {
				v = w.as(role)
			}
			if page.Method == http.MethodPost {
				if got := v.post(path, form("csrf", "guessed")).status; got != http.StatusForbidden {
					t.Errorf("%s without the form's token: %d", told, got)
				}
			}
			got := v.asks(page.Method, path, own.fields(row.own))
			if !slices.Contains(strings.Fields(row.roles), string(role)) {
				if got != http.StatusForbidden {
					t.Errorf("%s, who may not: %d", told, got)
				}
				continue
			}
			if got == http.StatusForbidden || got == http.StatusNotFound || page.Method == http.MethodGet && got != http.StatusOK {
				t.Errorf("%s, who may: %d", told, got)
			}
			if row.kind == "" {
				continue
			}
			if got := v.asks(page.Method, about(page.Path, foreign[row.kind]), foreign.fields(row.form)); got != http.StatusNotFound {
				t.Errorf("%s about another merchant's %s: %d", told, row.kind, got)
			}
			if row.kind == "person" { // people are of both environments
				continue
			}
			if got := live[role].asks(page.Method, path, own.fields(row.form)); got != http.StatusNotFound {
				t.Errorf("%s in the other environment: %d", told, got)
			}
		}
	}
	for name := range table {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
	for path, fields := range map[string]string{
		"/resend": "event {event}", "/resolve": "decision refund payment {payment}", "/retry": "refund {payment}",
	} {
		if got := here[flow.RoleSupport].asks(http.MethodPost, "/sessions/"+own["session"]+path, foreign.fields("reason the-payer-called confirm yes "+fields)); got != http.StatusNotFound {
			t.Errorf("%s of another merchant's, on the page of one's own session: %d", path, got)
		}
	}
	for kind, id := range foreign {
		list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Subject: id, Limit: 10})
		must(t, err)
		for _, a := range list {
			t.Errorf("the audit log says that %s did %s to another merchant's %s", a.Actor, a.Action, kind)
		}
	}
}
