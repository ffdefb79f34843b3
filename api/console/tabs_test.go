package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till/api/console"
	"till/flow"
	"till/flow/checkout"
)

// A form does what it says on the page that it stands on: whoever looked at another
// project or environment in a second window meanwhile is told so, and nothing is done.
func TestAFormIsOfTheProjectAndEnvironmentThatItsPageShowed(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	_, err := w.accounts.AddProject(t.Context(), w.ada.account, "Ada's second shop", checkout.Call{
		Scope: "test", Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil },
	})
	must(t, err)
	list, _, err := w.accounts.Projects(t.Context(), w.ada.account, "", 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d projects, %v", len(list), err)
	}
	second := list[0].ID
	chosen := func(project flow.ProjectID, env string) string {
		t.Helper()
		w.wants(v.post("/choose", form("project", string(project), "env", env)), http.StatusSeeOther)
		v.get("/go-live")
		return v.csrf
	}
	set := func(project flow.ProjectID) bool {
		t.Helper()
		kept, _, err := w.accounts.SettlementAccount(t.Context(), project, flow.Test)
		must(t, err)
		return !kept.Standard
	}
	payee := func(csrf string) reply {
		return v.post("/go-live/account", form("bank", "999", "number", "0000000001", "csrf", csrf))
	}

	first := chosen(w.ada.project.ID, "test")
	chosen(second, "test")
	w.wants(payee(first), http.StatusForbidden, "Nothing was done", w.ada.project.Name+" (test)", "second shop (test)")
	if set(second) {
		t.Error("the form of one project set where the other is paid out to")
	}
	chosen(w.ada.project.ID, "live")
	w.wants(v.post("/developers/webhooks", url.Values{"url": {"https://example.com/hook"}, "csrf": {first}}), http.StatusForbidden, "(test)", "(live)")
	// Whoever looks there again sends the same form, and one from which to choose
	// or to leave is of no place.
	v.post("/choose", form("project", string(w.ada.project.ID), "env", "test", "csrf", first))
	w.wants(payee(first), http.StatusSeeOther)
	if !set(w.ada.project.ID) {
		t.Error("the form of the page that is looked at set nothing")
	}
	// A project that is made is chosen at once: its form is none of the place before,
	// and loading the answer anew still makes no second one.
	made := form("name", "A third", "once", "a token", "csrf", first)
	w.wants(v.post("/developers/projects", made), http.StatusOK, "sk_test_")
	w.wants(v.post("/developers/projects", made), http.StatusOK, "sk_test_")
	chosen(second, "test")
	w.wants(v.post("/logout", form("csrf", first)), http.StatusSeeOther)
}

// What was written in a form whose login ended meanwhile is shown to who wrote it,
// with the way back to its page; words of another site are shown to nobody.
func TestWhatWasWrittenOutlivesALogin(t *testing.T) {
	w := open(t)
	page := "/sessions/" + w.opened(w.ada, "")
	send := func(site, from string) reply {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+page+"/note", strings.NewReader(form("note", "Call <b>0800</b>", "csrf", "of a login that ended").Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		r.Header.Set("Referer", from)
		return w.do(w.visitor().http, r)
	}
	w.wants(send("same-origin", w.base+page), http.StatusUnauthorized, "Call &lt;b&gt;0800&lt;/b&gt;", `name="next" value="`+page+`"`)
	w.wants(send("same-origin", w.base+"//evil.example"), http.StatusUnauthorized, `name="next" value="/"`)
	for _, site := range []string{"cross-site", "same-site", "none", ""} {
		got := send(site, "https://evil.example/sessions")
		w.wants(got, http.StatusSeeOther)
		if strings.Contains(got.body, "0800") || got.header.Get("Location") != "/login" {
			t.Errorf("a form from %q leads to %q: %s", site, got.header.Get("Location"), got.body)
		}
	}
	forged := w.as(flow.RoleSupport).post(page+"/note", form("note", "Call 0800", "csrf", "forged"))
	if w.wants(forged, http.StatusForbidden); strings.Contains(forged.body, "0800") {
		t.Errorf("a forged form is shown: %s", forged.main())
	}
	long := page + "?q=" + strings.Repeat("%D8%A3", 100)
	w.wants(w.visitor().get("/login?next="+url.QueryEscape(long)), http.StatusOK, `name="next" value="`+long+`"`)
	// Nobody stays at the login while a file is saved: they come to the page that leads to it.
	for file, page := range map[string]string{
		"/settlements.csv?status=FAILED": "/settlements?status=FAILED", "/team/audit.csv?from=2026-01-01": "/team/audit?from=2026-01-01",
		"/settlements/wsp_stl_1/transactions.csv": "/settlements/wsp_stl_1", "/sessions/wsp_sess_1/export?chat=chat_1": "/sessions/wsp_sess_1",
	} {
		w.wants(w.visitor().get("/login?next="+url.QueryEscape(file)), http.StatusOK, `name="next" value="`+page+`"`)
	}
}

// A form to come in works for as long as the browser runs. One that outlived its cookie,
// of a tab in which somebody logged out meanwhile, is shown again as it was filled in, but
// for the password; what another site filled in is not.
func TestAFormToComeInOutlivesItsCookie(t *testing.T) {
	w := open(t)
	for _, path := range []string{"/login", "/signup"} {
		for _, c := range (&http.Response{Header: w.visitor().get(path).header}).Cookies() {
			if c.MaxAge != 0 || !c.Expires.IsZero() {
				t.Errorf("the form at %s ends with %q", path, c.Raw)
			}
		}
	}
	send := func(site, path string, fields url.Values) reply {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+path, strings.NewReader(fields.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", site)
		v := w.visitor()
		got := w.do(v.http, r)
		if strings.Contains(got.body, "a long password") {
			t.Errorf("%s shows the password: %s", path, got.main())
		}
		return got
	}
	in := form("email", "obi@example.com", "password", "a long password", "next", "/sessions?q=1182", "csrf", "of a cookie that ended")
	w.wants(send("same-origin", "/login", in), http.StatusForbidden, `value="obi@example.com"`, `name="next" value="/sessions?q=1182"`, "This page had stood open for too long. Log in once more.")
	up := form("email", "obi@example.com", "business", "Obi Stores", "password", "a long password", "csrf", "of a cookie that ended")
	w.wants(send("same-origin", "/signup", up), http.StatusForbidden, `value="obi@example.com"`, `value="Obi Stores"`, "This page had stood open for too long. Nothing was done yet: sign up once more.")
	w.wants(send("same-origin", "/enter", form("role", "owner", "csrf", "of a cookie that ended")), http.StatusForbidden, "This page had stood open for too long.")
	for _, site := range []string{"cross-site", "same-site", ""} {
		if got := send(site, "/login", in); got.status != http.StatusForbidden || strings.Contains(got.body, "obi@example.com") {
			t.Errorf("a form from %q: %d %s", site, got.status, got.main())
		}
	}
}

// The answer of a form is a page too, at an address that nobody can ask for: whoever
// chooses there what to look at, or logs in again, goes on to the page of the form.
func TestWhoGoesOnFromAFormsAnswerComesToAPage(t *testing.T) {
	w := open(t)
	v, session := w.as(flow.RoleOwner), w.opened(w.ada, "")
	shown := v.post("/developers/projects", form("name", ""))
	w.wants(shown, http.StatusBadRequest, `name="next" value="/developers/projects"`)
	leads := map[string]string{"/developers/projects": "/developers", "/sessions/" + session + "/note": "/sessions/" + session, "/filters/drop": "/"}
	for _, p := range console.Pages() {
		if p.Method != http.MethodPost {
			continue
		}
		next := regexp.MustCompile(`:\w+`).ReplaceAllString(p.Path, "one")
		if leads[next] == "" {
			leads[next] = ""
		}
	}
	for next, want := range leads {
		chosen := v.post("/choose", form("env", "test", "next", next))
		w.wants(chosen, http.StatusSeeOther)
		to := chosen.header.Get("Location")
		if want != "" && to != want {
			t.Errorf("from %s it goes on to %s", next, to)
		}
		if got := v.get(to); got.status == http.StatusMethodNotAllowed {
			t.Errorf("from %s it goes on to %s, which is no page", next, to)
		}
	}
}

// So it is of a settlement, an endpoint and an event.
func TestWhatIsOfAnotherProjectIsSaidToBeThere(t *testing.T) {
	w := open(t)
	made := w.ask(http.MethodPost, "/v1/webhook-endpoints", w.ada.secret, `{"url":"http://127.0.0.1:9009/hook"}`)
	w.wants(made, http.StatusCreated)
	endpoint := regexp.MustCompile(`wsp_we_[0-9a-z]+`).FindString(made.body)
	w.money(w.ada, 500_000)
	w.owns(w.ada, 482_500)
	pages := []string{"/settlements/" + string(w.paidOut(w.ada, 7).ID), "/developers/webhooks/" + endpoint}
	pages = append(pages, "/developers/events/"+regexp.MustCompile(`evt_[0-9a-z]+`).FindString(w.ask(http.MethodGet, "/v1/events", w.ada.secret, "").body))
	_, err := w.accounts.AddProject(t.Context(), w.ada.account, "Ada's second shop", checkout.Call{
		Scope: "test", Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil },
	})
	must(t, err)
	v, stranger := w.as(flow.RoleOwner), w.as(flow.RoleOwner, w.merchant("Obi Stores"))
	for _, page := range pages {
		w.wants(v.get(page), http.StatusNotFound, "It is of "+w.ada.project.Name+" (test), and you look at Ada&#39;s second shop (test)")
		if got := stranger.get(page); got.status != http.StatusNotFound || strings.Contains(got.body, "It is of") {
			t.Errorf("%s: a stranger is told %d", page, got.status)
		}
	}
}

// A page that a colleague sent is of a project and an environment, and whoever looks at
// another of theirs is told which: that there is no such session is not true. Of a
// stranger's it is.
func TestASessionOfAnotherProjectIsSaidToBeThere(t *testing.T) {
	w := open(t)
	page := "/sessions/" + w.opened(w.ada, "")
	_, err := w.accounts.AddProject(t.Context(), w.ada.account, "Ada's second shop", checkout.Call{
		Scope: "test", Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil },
	})
	must(t, err)
	v := w.as(flow.RoleSupport) // who looks at the newest, having chosen none
	for _, path := range []string{page, page + "/replay"} {
		w.wants(v.get(path), http.StatusNotFound, "It is of "+w.ada.project.Name+" (test), and you look at Ada&#39;s second shop (test)", "Open the menu with that name at the top of this page, choose the other, and press Look there.")
	}
	w.wants(v.post("/choose", form("project", string(w.ada.project.ID), "env", "live")), http.StatusSeeOther)
	w.wants(v.get(page), http.StatusNotFound, "It is of "+w.ada.project.Name+" (test), and you look at "+w.ada.project.Name+" (live)", "Look there")
	stranger := "/sessions/" + w.opened(w.merchant("Obi Stores"), "")
	if got := v.get(stranger); got.status != http.StatusNotFound || strings.Contains(got.body, "It is of") {
		t.Errorf("%d: more is told of a stranger's session than that it is not there", got.status)
	}
}

// Tabs of two sessions, two chats and two replays are told apart by their titles.
func TestATabSaysWhatItIsAbout(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7711", name: "Bola"}
	id := p.opens(w.ada)
	support := w.as(flow.RoleSupport)
	for page, title := range map[string]string{
		"/sessions/" + string(id):              "Session " + string(id),
		"/sessions/" + string(id) + "/replay":  "Replay of " + string(id),
		"/chats/" + string(p.chat) + "/replay": "Replay of " + string(p.chat),
		"/inbox/" + string(p.chat):             "Chat with Bola",
	} {
		w.wants(support.get(page), http.StatusOK, "<title>TEST · "+title+" · Till</title>")
	}
}
