package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"till/api"
	"till/api/console"
	"till/flow"
)

// looks opens every page that a role may see about a merchant's things, and hands
// each to a check.
func (v *visitor) looks(role flow.Role, own things, check func(path string, got reply)) {
	v.w.t.Helper()
	table := rights()
	for _, page := range console.Pages() {
		row := table[page.Method+" "+page.Path]
		if page.Method != http.MethodGet || strings.HasSuffix(page.Path, "/live") || row.roles != "anybody" && !strings.Contains(row.roles, string(role)) {
			continue
		}
		path := strings.NewReplacer(":file", "console.css", "/ops/merchants/:id", "/ops/merchants/"+string(v.w.ada.project.ID)).Replace(page.Path)
		path = about(path, own[row.kind])
		check(path, v.get(path))
	}
}

// A payer's number stands on no page, file or picture that nobody gave a reason
// for, in no way that it is written.
func TestNoPageTellsAPayersNumber(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	w := open(t)
	// An endpoint that answers with what it was sent tells nobody either.
	w.answers(flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte(`{"got":{"customerPhone":"+2348057654321","call":"0803 123 4567"}}`)})
	own := w.have(w.ada, "7740")
	w.until("the endpoint has answered", func() bool { return len(w.deliveries()) > 0 })
	w.opened(w.ada, `,"customerPhone":"08057654321","customerName":"Ngozi"`)
	w.wants(w.ask(http.MethodGet, "/v1/whatsapp/checkout/sessions?customerPhone=%2B2348057654321", w.ada.secret, ""), http.StatusBadRequest)
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator} {
		w.as(role).looks(role, own, func(path string, got reply) {
			plain := strings.NewReplacer(" ", "", "-", "", "&#43;", "+").Replace(got.body)
			for _, number := range []string{"8031234567", "8057654321"} {
				if at := strings.Index(plain, number); at >= 0 {
					t.Errorf("%s as %s tells …%s", path, role, plain[max(0, at-80):at+20])
				}
			}
		})
	}
	developer := w.as(flow.RoleDeveloper)
	list := developer.get("/developers/requests").body
	for _, part := range strings.Split(list, `href="/developers/requests/`)[1:] {
		id, _, _ := strings.Cut(part, `"`)
		if got := developer.get("/developers/requests/" + id); strings.Contains(got.body, "8057654321") || strings.Contains(got.body, "8031234567") {
			t.Errorf("the log of requests tells a number: %s", got.main())
		}
	}
}

// In the path of an endpoint's URL some keep a secret: only who may handle endpoints
// reads it.
func TestOnlyDevelopersReadWhereWebhooksAreSentTo(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	w := open(t)
	w.answers(flow.Verdict{OK: true, Status: http.StatusOK})
	own := w.have(w.ada, "7742")
	w.until("the endpoint has answered", func() bool { return len(w.deliveries()) > 0 })
	seen := map[flow.Role]bool{}
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator} {
		w.as(role).looks(role, own, func(path string, got reply) {
			at := strings.Index(got.body, "7742.example/hook")
			if seen[role] = seen[role] || at >= 0; at >= 0 && !role.May(flow.MayDevelop) {
				t.Errorf("%s as %s tells …%s", path, role, got.body[max(0, at-80):at+20])
			}
		})
		if role.May(flow.MayDevelop) && !seen[role] {
			t.Errorf("a %s does not read where webhooks are sent to", role)
		}
	}
}

// No page is kept by anybody, framed by anybody, or runs what is not the
// server's, whether it is there or not.
func TestEveryPageIsSealed(t *testing.T) {
	w := open(t)
	own := w.have(w.ada, "7741")
	check := func(path string, got reply) {
		t.Helper()
		policy := got.header.Get("Content-Security-Policy")
		for _, must := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, must) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, must)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin"} {
			if got.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, got.header.Get(name))
			}
		}
		if kept := got.header.Get("Cache-Control"); kept != "no-store" && !strings.HasPrefix(path, "/console/") {
			t.Errorf("%s may be kept: %q", path, kept)
		}
		if got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may be read by other sites", path)
		}
		if !strings.HasPrefix(got.header.Get("X-Request-Id"), "req_") {
			t.Errorf("%s has no request id", path)
		}
	}
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleOperator} {
		w.as(role).looks(role, own, check)
	}
	nobody := w.visitor()
	for _, path := range []string{"/login", "/signup", "/sessions", "/ops", "/sessions/" + own["session"] + "/export"} {
		check(path, nobody.get(path))
	}
	check("an answer to a forged form", w.as(flow.RoleOwner).post("/developers/keys", form("csrf", "forged")))
}

// Whoever logs in goes on to a page of the console, wherever a link that they
// followed wants them to go.
func TestNoLoginLeadsElsewhere(t *testing.T) {
	w := open(t)
	for _, next := range []string{
		"https://evil.example", "//evil.example", "///evil.example", `/\evil.example`, `\\evil.example`, "/\t/evil.example", "/\n/evil.example", "/%09/evil.example",
		"javascript:alert(1)", "http:evil.example", "evil.example", "/..//evil.example", "//evil.example/%2f..", "https:/evil.example", "/%5cevil.example", "/%2f/evil.example", "?next=//evil.example", "/.//evil.example",
	} {
		for _, entry := range []url.Values{form("role", "owner", "next", next), form("role", "owner", "next", next, "env", "test")} {
			v := w.visitor()
			v.get("/login?next=" + url.QueryEscape(next))
			path := "/enter"
			if entry.Has("env") {
				v, path = w.as(flow.RoleOwner), "/choose"
			}
			got := v.post(path, entry)
			w.wants(got, http.StatusSeeOther)
			base, _ := url.Parse(w.base + "/login")
			to, err := base.Parse(got.header.Get("Location"))
			if err != nil || to.Host != base.Host || to.Scheme != "http" || strings.ContainsAny(got.header.Get("Location"), "\\\t\n\r") || strings.HasPrefix(got.header.Get("Location"), "//") {
				t.Errorf("%s with next=%q leads to %q", path, next, got.header.Get("Location"))
			}
		}
	}
}

// The cookies of the console are the browser's alone; over https they are taken
// from nobody else.
func TestCookiesAreTheBrowsersAlone(t *testing.T) {
	check := func(got reply, secure bool) {
		t.Helper()
		cookies := (&http.Response{Header: got.header}).Cookies()
		if len(cookies) == 0 {
			t.Fatal("no cookie was set")
		}
		for _, c := range cookies {
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != secure || c.Domain != "" || c.Path != "/" || secure != strings.HasPrefix(c.Name, "__Host-") {
				t.Errorf("a cookie is set as %q", c.Raw)
			}
		}
	}
	w := open(t)
	check(w.visitor().get("/login"), false)
	check(w.as(flow.RoleOwner).post("/choose", form("env", "test")), false)
	check(w.visitor().post("/enter", form("role", "owner")), false)
	safe := open(t, func(c *api.Config) { c.PublicURL = "https://pay.example" })
	check(safe.visitor().get("/login"), true)
	in, err := safe.accounts.EnterAs(t.Context(), safe.ada.email, flow.RoleOwner)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, safe.base+"/", http.NoBody)
	must(t, err)
	r.AddCookie(&http.Cookie{Name: "__Host-till-visit", Value: in.Text})
	home := safe.do(http.DefaultClient, r)
	token := csrfField.FindStringSubmatch(home.body)
	if token == nil {
		t.Fatalf("the cookie is not known: %d", home.status)
	}
	r, err = http.NewRequestWithContext(t.Context(), http.MethodPost, safe.base+"/choose", strings.NewReader(form("env", "test", "csrf", token[1]).Encode()))
	must(t, err)
	r.AddCookie(&http.Cookie{Name: "__Host-till-visit", Value: in.Text})
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	check(safe.do(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, r), true)
	// One that a plain connection, or another host, could have set is nobody's.
	plain := safe.carrying(in.Text)
	safe.wants(plain.get("/"), http.StatusSeeOther)
}

// Browsers send the cookies of a host to each of its ports: who logs in at one Till of a
// machine stays logged in at another.
func TestTwoTillsOfAHostKeepTheirLogins(t *testing.T) {
	one, other := open(t), open(t)
	here, there := one.visitor(), other.visitor()
	there.http.Jar = here.http.Jar // the same browser, which knows hosts and no ports
	for _, v := range []*visitor{here, there} {
		v.get("/login")
		v.w.wants(v.post("/enter", form("role", "owner")), http.StatusSeeOther)
	}
	one.wants(here.get("/team"), http.StatusOK)
	one.wants(here.post("/choose", form("env", "live")), http.StatusSeeOther)
	other.wants(there.get("/"), http.StatusOK, "No real money moves here")
	other.wants(there.post("/logout", nil), http.StatusSeeOther)
	one.wants(here.get("/team"), http.StatusOK)
}

// A form is of one login: neither another's token nor another site's page sends
// it, and no login takes over what was there before it.
func TestAFormIsOfOneLogin(t *testing.T) {
	w := open(t)
	owner, colleague := w.as(flow.RoleOwner), w.as(flow.RoleOwner)
	owner.get("/")
	w.wants(colleague.post("/choose", form("env", "test", "csrf", owner.csrf)), http.StatusForbidden)
	for _, site := range []string{"cross-site", "same-site", "none"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+"/choose", strings.NewReader(form("env", "test", "csrf", owner.csrf).Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		w.wants(w.do(owner.http, r), http.StatusForbidden)
	}
	// A cookie that somebody planted before is not the one that is logged in.
	planted := w.carrying("form_AAAAAAAAAAAAAAAAAAAAAAAA")
	planted.get("/login")
	w.wants(planted.post("/enter", form("role", "owner")), http.StatusSeeOther)
	w.wants(w.carrying("form_AAAAAAAAAAAAAAAAAAAAAAAA").get("/"), http.StatusSeeOther)
	// An account is guessed at so often from one place, and then no more there.
	if _, err := w.accounts.AddPerson(t.Context(), w.ada.account, "obi@example.com", "a long password", flow.RoleSupport, ""); err != nil {
		t.Fatal(err)
	}
	guess := w.visitor()
	for range 10 {
		w.wants(guess.post("/login", form("email", "obi@example.com", "password", "no password at all")), http.StatusUnauthorized)
	}
	w.wants(guess.post("/login", form("email", "OBI@example.com", "password", "a long password")), http.StatusTooManyRequests, "Too many tries. Try again in 15 minutes.")
}
