package console_test

import (
	"bufio"
	"crypto/rand"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"till/api"
	"till/flow"
	"till/flow/store"
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
	list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Account: w.ada.account, Limit: 100})
	must(t, err)
	exports := map[string]int{}
	for _, a := range list {
		if strings.HasSuffix(a.Action, ".export") {
			exports[a.Action]++
		}
	}
	if want := map[string]int{"sessions.export": 1, "session.export": 1, "settlements.export": 1, "refunds.export": 1, "settlement.export": 1, "audit.export": 1}; !maps.Equal(exports, want) {
		t.Errorf("each file was taken once, and the audit log has %v", exports)
	}
	if strings.Contains(w.log.String(), "file of rows broke off") {
		t.Error("a file that nobody read is said to have failed")
	}
}

// A file that whoever asked for it gives up is no fault of ours.
func TestAFileThatIsGivenUpIsNoError(t *testing.T) {
	w := open(t)
	ids := flow.IDs{Now: w.now, Rand: rand.Reader}
	must(t, w.people.Update(t.Context(), func(tx *store.Tx) error {
		for range 10_000 { // more than fits between two ends of a connection
			id, err := ids.New(flow.PrefixAudit)
			if err == nil {
				err = tx.AddAudit(t.Context(), flow.Audited{ID: id, At: w.now(), Actor: "obi@example.com", Role: flow.RoleSupport, Account: w.ada.account, Action: "session.note", Reason: strings.Repeat("why ", 200)})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
	v := w.as(flow.RoleOwner)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+"/team/audit.csv", http.NoBody)
	must(t, err)
	got, err := v.http.Do(r)
	must(t, err)
	_, err = io.ReadFull(got.Body, make([]byte, 1000))
	must(t, err)
	must(t, got.Body.Close())
	v.http.CloseIdleConnections()
	line := ""
	w.until("the log tells of the file", func() bool {
		for one := range strings.Lines(w.log.String()) {
			if strings.Contains(one, `"file":"audit.csv"`) {
				line = one
			}
		}
		return line != ""
	})
	if !strings.Contains(line, `"level":"INFO"`) {
		t.Errorf("the log says: %s", line)
	}
}
