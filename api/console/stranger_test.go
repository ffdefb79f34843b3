package console_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"till/api"
	"till/flow"
	"till/flow/checkout"
)

// A page of another site whose name leads to this machine may send what headers
// it likes: it is not near.
func TestAHeaderDoesNotMakeAStrangerNear(t *testing.T) {
	w, v := tries(t)
	send := func(v *visitor, method, path, fields string) reply {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, w.base+path, strings.NewReader(fields))
		must(t, err)
		for _, cookie := range v.http.Jar.Cookies(r.URL) { // whoever asks for a name that leads here sends that name's cookies
			r.AddCookie(cookie)
		}
		r.Host = "evil.example"
		r.Header.Set("X-Forwarded-Host", "localhost")
		if fields != "" {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		return w.do(v.http, r)
	}
	anybody := w.visitor()
	login := send(anybody, http.MethodGet, "/login", "")
	at, _ := url.Parse(w.base)
	anybody.http.Jar.SetCookies(at, (&http.Response{Header: login.header}).Cookies())
	token := csrfField.FindStringSubmatch(login.body)
	if strings.Contains(login.body, "Pretend world") || token == nil {
		t.Errorf("the pretend world is offered to another site: %s", login.main())
	}
	w.wants(send(anybody, http.MethodPost, "/enter", form("csrf", token[1], "role", "owner").Encode()), http.StatusForbidden)
	w.wants(send(v, http.MethodGet, "/try", ""), http.StatusNotFound)
}

// reader is a browser that asks for pages, as people's do.
type reader struct{}

func (reader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	return http.DefaultTransport.RoundTrip(r)
}

// A person who mistypes an address, or follows half a link, is shown a page that says
// so, with the way back; a program reads JSON, and so does everybody of the API.
func TestAnAddressThatIsNoneIsAPageForPeople(t *testing.T) {
	w := open(t)
	owner, anybody := w.as(flow.RoleOwner), w.visitor()
	for _, v := range []*visitor{owner, anybody} {
		for _, path := range []string{"/session", "/sessions/", "/sessions/x/y/z", "/webhook"} {
			program := v.get(path)
			w.wants(program, http.StatusNotFound, `"route_not_found"`)
			v.http.Transport = reader{}
			w.wants(v.get(path), http.StatusNotFound, "<h1>Not found</h1>", "no page at this address", `href="/docs/errors/route_not_found"`, `<a href="/">`)
			w.wants(v.get("/v1"+path), http.StatusNotFound, `"route_not_found"`)
			v.http.Transport = nil
		}
		// Where a form is sent to there is none to look at, as by who loads its answer anew.
		for _, path := range []string{"/developers/projects", "/sessions/x/note", "/logout"} {
			w.wants(v.get(path), http.StatusMethodNotAllowed, `"method_not_allowed"`)
			v.http.Transport = reader{}
			w.wants(v.get(path), http.StatusNotFound, "<h1>Not found</h1>", "no page at this address", `<a href="/">`)
			v.http.Transport = nil
		}
	}
}

// forwarded is a browser behind a proxy that says whom it heard.
type forwarded string

func (f forwarded) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Forwarded-For", string(f))
	return http.DefaultTransport.RoundTrip(r)
}

// Whoever comes through a proxy of this machine is where the proxy heard them.
func TestAProxyDoesNotMakeAStrangerNear(t *testing.T) {
	w := open(t, func(c *api.Config) { c.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	owner := w.as(flow.RoleOwner)
	w.wants(owner.post("/try/catch", nil), http.StatusSeeOther)
	catcher := "/try/caught/" + string(w.ada.project.ID)
	for from, here := range map[string]bool{
		"203.0.113.7": false, "::ffff:203.0.113.7": false, "2001:db8::1": false, "127.0.0.1, 203.0.113.7": false, "127.0.0.1": true, "::1": true,
	} {
		either := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[here]
		anybody := w.visitor()
		owner.http.Transport, anybody.http.Transport = forwarded(from), forwarded(from)
		w.wants(owner.get("/try"), either)
		w.wants(anybody.post(catcher, nil), either)
		if login := anybody.get("/login"); strings.Contains(login.body, "Pretend world") != here {
			t.Errorf("what is offered to %s: %s", from, login.main())
		}
		w.wants(anybody.post("/enter", form("role", "operator")), map[bool]int{true: http.StatusSeeOther, false: http.StatusForbidden}[here])
	}
}

// A proxy of this machine that nobody named to us may ask for us by our own name, as
// Apache does unless it is told not to: whoever comes through it is a stranger still.
func TestAProxyThatNobodyNamedMakesNobodyNear(t *testing.T) {
	w := open(t)
	owner, anybody := w.as(flow.RoleOwner), w.visitor()
	w.wants(owner.get("/try"), http.StatusOK)
	for _, from := range []string{"203.0.113.7", "127.0.0.1", "unknown"} {
		owner.http.Transport, anybody.http.Transport = forwarded(from), forwarded(from)
		w.wants(owner.get("/try"), http.StatusNotFound)
		if login := anybody.get("/login"); strings.Contains(login.body, "Pretend world") {
			t.Errorf("what is offered to %s: %s", from, login.main())
		}
		w.wants(anybody.post("/enter", form("role", "operator")), http.StatusForbidden)
	}
}

// A cookie of before that names an environment which is not open any more locks
// nobody out.
func TestAnEnvironmentThatIsClosedLocksNobodyOut(t *testing.T) {
	w := open(t, func(c *api.Config) {
		c.Services = map[flow.Environment]*checkout.Service{flow.Test: c.Services[flow.Test]}
	})
	v := w.as(flow.RoleOwner)
	at, _ := url.Parse(w.base)
	v.http.Jar.SetCookies(at, []*http.Cookie{{Name: w.cookie("till-at"), Value: ".live", Path: "/"}})
	w.wants(v.get("/"), http.StatusOK, "No real money moves here")
	w.wants(v.post("/choose", form("env", "live")), http.StatusBadRequest)
	w.wants(v.post("/logout", nil), http.StatusSeeOther)
}

// All numbers are of test, a real one too: where real money moves, nothing that could be
// typed links one.
func TestLiveIsToldToLinkNoNumber(t *testing.T) {
	w := open(t)
	for role, page := range map[flow.Role]string{flow.RoleOwner: "/", flow.RoleOperator: "/ops"} {
		v := w.as(role)
		w.wants(v.get(page), http.StatusOK, "till pair")
		w.wants(v.post("/choose", form("env", "live")), http.StatusSeeOther)
		live := v.get(page)
		w.wants(live, http.StatusOK, "Every number is of the test environment: no chat opens in live yet.")
		if strings.Contains(live.body, "till pair") {
			t.Errorf("%s in live tells to link a number: %s", page, live.main())
		}
	}
}

// One payer speaks of two merchants' payments in one chat: what is shown, sent or
// exported to one of them holds nothing of the other's.
func TestASharedChatTellsNobodyOfTheOther(t *testing.T) {
	w := open(t)
	eve := w.merchant("Eve Shoes")
	p := &payer{w: w, person: "7720", name: "Bola"}
	adas := p.opens(w.ada)
	p.transfers()
	eves := p.opens(eve)
	p.transfers()
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "a person for the shoes"})
	w.wants(w.as(flow.RoleSupport, eve).post("/inbox/"+string(p.chat)+"/claim", form("reason", "the payer asked")), http.StatusSeeOther)
	p.pays(adas)
	adasAccount, evesAccount := w.attempt(string(adas)).Instructions.AccountNumber, w.attempt(string(eves)).Instructions.AccountNumber
	for _, side := range []struct {
		of      []merchant
		session flow.SessionID
		secrets []string
	}{
		{nil, adas, []string{string(eves), "Eve Shoes", evesAccount, "for the shoes", "support of " + eve.email}},
		{[]merchant{eve}, eves, []string{string(adas), "Ada Stores", adasAccount, w.ada.email}},
	} {
		session := "/sessions/" + string(side.session)
		for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport} {
			v := w.as(role, side.of...)
			for _, path := range []string{session, session + "/export", session + "/replay", "/chats/" + string(p.chat) + "/replay", "/inbox/" + string(p.chat), "/sessions", "/exceptions", "/inbox"} {
				got := v.get(path)
				if role == flow.RoleOwner {
					w.wants(got, http.StatusOK)
				}
				for _, secret := range side.secrets {
					if at := strings.Index(got.body, secret); at >= 0 {
						t.Errorf("%s shows %s %q: …%s", path, role, secret, got.body[max(0, at-300):min(len(got.body), at+100)])
					}
				}
			}
		}
	}
}
