package console_test

import (
	"bufio"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"till/api"
	"till/flow"
	"till/rail"
)

// What nobody offers is no error of ours on a page either: no alert is raised for who
// looks around where no bank is connected, and the log says what they were refused.
func TestAPageThatIsRefusedWhatNobodyOffersIsNoErrorOfOurs(t *testing.T) {
	var mu sync.Mutex
	counted := map[string]bool{} // by route, of those that were answered with a 503
	w := open(t, func(cfg *api.Config) {
		cfg.Answering = func() func(string, string, int, flow.Environment, bool) {
			return func(route, _ string, code int, _ flow.Environment, notServed bool) {
				mu.Lock()
				defer mu.Unlock()
				if code == http.StatusServiceUnavailable {
					counted[route] = notServed
				}
			}
		}
	})
	v := w.as(flow.RoleOwner)
	w.wants(v.post("/choose", form("project", string(w.ada.project.ID), "env", "live")), http.StatusSeeOther)
	w.wants(v.get("/go-live"), http.StatusOK)
	w.wants(v.post("/go-live/account", form("bank", "058", "number", "0000000001")), http.StatusServiceUnavailable, "No bank that verifies")
	mu.Lock()
	defer mu.Unlock()
	if !counted["/go-live/account"] {
		t.Errorf("counted as %v", counted)
	}
	for line := range strings.SplitSeq(w.log.String(), "\n") {
		if strings.Contains(line, `"route":"/go-live/account"`) && (!strings.Contains(line, `"level":"INFO"`) || !strings.Contains(line, `"code":"rail_unavailable"`)) {
			t.Errorf("the log says: %s", line)
		}
	}
}

// A bank that is down is not ours to mend, and what was typed is still there to be sent
// again.
func TestAPayeeCannotBeSetWhileTheBankIsDown(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	_, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: false})
	must(t, err)
	payee := form("bank", "058", "number", "0123456789")
	w.wants(v.post("/go-live/account", payee), http.StatusServiceUnavailable, `role="alert"`, "The bank cannot be asked right now", `value="0123456789"`)
	noted := false
	for line := range strings.SplitSeq(w.log.String(), "\n") {
		if strings.Contains(line, `"route":"/go-live/account"`) {
			noted = strings.Contains(line, `"code":"rail_unavailable"`) && strings.Contains(line, rail.ErrUnavailable.Error())
		}
	}
	if !noted {
		t.Errorf("the log does not say that the bank was down: %s", w.log.String())
	}
}

// The log names why a page was shown again with what was wrong in its form, as it does for
// every other refusal.
func TestTheLogSaysWhyAPageIsShownAgain(t *testing.T) {
	w := open(t)
	anybody, owner, operator := w.visitor(), w.as(flow.RoleOwner), w.as(flow.RoleOperator)
	anybody.get("/login")
	merchant := "/ops/merchants/" + string(w.ada.project.ID)
	for _, c := range []struct {
		who    *visitor
		path   string
		fields url.Values
		status int
		code   string
	}{
		{anybody, "/signup", form("email", "ada"), http.StatusBadRequest, "invalid_field"},
		{anybody, "/login", form("email", "ada@example.com", "password", "a wrong one"), http.StatusUnauthorized, "invalid_credentials"},
		{owner, "/developers/projects", form("name", ""), http.StatusBadRequest, "invalid_field"},
		{owner, "/developers/webhooks", form("url", "nowhere"), http.StatusBadRequest, "invalid_field"},
		{owner, "/go-live/kyc", form("contactPhone", "none"), http.StatusBadRequest, "invalid_field"},
		{owner, "/go-live/account", form("bank", "none"), http.StatusBadRequest, "invalid_field"},
		{owner, "/team", form("email", "nobody"), http.StatusBadRequest, "invalid_field"},
		{owner, "/password", form("old", "x", "new", "y"), http.StatusBadRequest, "invalid_field"},
		{owner, "/settings", form("minutes", "many"), http.StatusUnprocessableEntity, "invalid_field"},
		{owner, "/settings", form("minutes", "45", "seen", "of long ago"), http.StatusConflict, "changed_meanwhile"},
		{operator, "/ops/people", form("email", "nobody"), http.StatusUnprocessableEntity, "invalid_email"},
		{operator, merchant + "/kyc", form("ruling", "approve"), http.StatusUnprocessableEntity, "missing_field"},
	} {
		before := len(w.log.String())
		w.wants(c.who.post(c.path, c.fields), c.status)
		route := strings.Replace(c.path, string(w.ada.project.ID), ":id", 1)
		if line := w.log.String()[before:]; !strings.Contains(line, `"route":"`+route+`"`) || !strings.Contains(line, `"code":"`+c.code+`"`) {
			t.Errorf("of %s %v the log says: %s", c.path, c.fields, line)
		}
	}
}

// Whoever asks what a page would answer is told it without the page: the same as who asks
// for that, and the connection goes on, where a page is a stream too.
func TestAPageIsAskedForWithoutItsBody(t *testing.T) {
	w := open(t)
	own := w.have(w.ada, "7741")
	v := w.as(flow.RoleOwner)
	at, err := url.Parse(w.base)
	must(t, err)
	conn, err := net.Dial("tcp", at.Host)
	must(t, err)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	head := func(path string) reply {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, w.base+path, http.NoBody)
		must(t, err)
		for _, cookie := range v.http.Jar.Cookies(at) {
			r.AddCookie(cookie)
		}
		must(t, r.Write(conn))
		got, err := http.ReadResponse(answers, r)
		must(t, err)
		must(t, got.Body.Close())
		return reply{status: got.StatusCode, header: got.Header}
	}
	pages := 0
	v.looks(flow.RoleOwner, own, func(path string, asked reply) {
		pages++
		got := head(path)
		if got.status != asked.status || got.header.Get("Content-Type") != asked.header.Get("Content-Type") || got.header.Get("Location") != asked.header.Get("Location") {
			t.Errorf("%s: %d %v, and %d %v without its body", path, asked.status, asked.header, got.status, got.header)
		}
	})
	for _, path := range []string{"/sessions/" + own["session"] + "/live", "/inbox/" + own["chat"] + "/live"} {
		if got := head(path); got.status != http.StatusOK || got.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
	if pages < 20 {
		t.Errorf("%d pages were looked at", pages)
	}
	anybody := head("/login?next=/sessions")
	if v = w.visitor(); anybody.status != http.StatusSeeOther || head("/sessions").header.Get("Location") != "/login?next=%2Fsessions" {
		t.Error("whoever is not logged in is not led to where they can")
	}
	if strings.Contains(w.log.String(), "file of rows failed") {
		t.Error("a file that nobody read is said to have failed")
	}
}
