package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till/flow"
	"till/flow/await"
	"till/flow/store"
)

// onceField is the token by which a page's forms happen once.
var onceField = regexp.MustCompile(`name="once" value="([^"]+)"`)

// order loads a page and sends a form of it, as a browser does.
func (v *visitor) order(page, path string, pairs ...string) (reply, url.Values) {
	v.w.t.Helper()
	found := onceField.FindStringSubmatch(v.get(page).body)
	if found == nil {
		v.w.t.Fatalf("the page %s has no form", page)
	}
	fields := form(append(pairs, "once", found[1])...)
	return v.post(path, fields), fields
}

// TestWhoMayDevelop opens each page of developers as each role.
func TestWhoMayDevelop(t *testing.T) {
	w := open(t)
	roles := []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator}
	visitors := map[flow.Role]*visitor{}
	for _, r := range roles {
		visitors[r] = w.as(r)
	}
	for path, may := range map[string]string{
		"/developers": "owner developer", "/developers/webhooks": "owner developer", "/developers/requests": "owner developer",
		"/developers/snippets": "owner developer", "/go-live": "owner developer", "/team": "owner",
		"/developers/webhooks/wsp_we_x": "", "/developers/events/wsp_evt_x": "", "/developers/requests/wsp_req_x": "",
	} {
		for _, r := range roles {
			want := http.StatusForbidden
			switch {
			case may == "" && (r == flow.RoleOwner || r == flow.RoleDeveloper):
				want = http.StatusNotFound
			case strings.Contains(may, string(r)):
				want = http.StatusOK
			}
			if got := visitors[r].get(path); got.status != want {
				t.Errorf("%s as %s: %d, not %d", path, r, got.status, want)
			}
		}
		if got := w.visitor().get(path); got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/login") {
			t.Errorf("%s as nobody: %d", path, got.status)
		}
	}
	for path, may := range map[string]string{
		"/developers/keys": "owner developer", "/developers/keys/x/rotate": "owner developer", "/developers/keys/x/revoke": "owner developer",
		"/developers/projects": "owner", "/go-live/kyc": "owner", "/go-live/account": "owner", "/go-live/said": "owner developer", "/team": "owner", "/team/x/end": "owner",
		"/developers/webhooks": "owner developer", "/developers/webhooks/x": "owner developer", "/developers/webhooks/x/status": "owner developer",
		"/developers/webhooks/x/secret": "owner developer", "/developers/webhooks/x/ping": "owner developer", "/developers/webhooks/x/replay": "owner developer",
		"/developers/webhooks/x/delete": "owner developer", "/developers/events/x/resend": "owner developer",
	} {
		for _, r := range roles {
			refused := visitors[r].post(path, nil).status == http.StatusForbidden
			if refused == strings.Contains(may, string(r)) {
				t.Errorf("POST %s as %s: refused %v", path, r, refused)
			}
			if got := visitors[r].post(path, form("csrf", "guessed")); got.status != http.StatusForbidden {
				t.Errorf("POST %s as %s without the token of a form: %d", path, r, got.status)
			}
		}
	}
}

// TestKeys makes, rotates and revokes keys: each is shown once, and a reload makes
// no other.
func TestKeys(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleDeveloper)
	keys := func() int {
		list, _, err := w.accounts.Keys(t.Context(), w.ada.project, "", 100)
		must(t, err)
		return len(list)
	}
	text := regexp.MustCompile(`sk_test_[0-9A-Za-z]+`)
	works := func(key string) int { return w.ask(http.MethodGet, "/v1/balance", key, "").status }

	made, fields := v.order("/developers", "/developers/keys", "kind", "secret")
	w.wants(made, http.StatusOK, "shown on this page alone")
	if got := made.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("a page with a secret may be kept: %q", got)
	}
	first := text.FindString(made.body)
	if works(first) != http.StatusOK {
		t.Fatalf("the key %q does not work", first)
	}
	if again := text.FindString(v.post("/developers/keys", fields).body); again != first || keys() != 3 {
		t.Errorf("a reload made another key: %q, %d keys", again, keys())
	}
	if body := v.get("/developers").body; strings.Contains(body, first) || !strings.Contains(body, flow.HintKey(first)) {
		t.Error("the list shows the key, or not its hint")
	}
	id := regexp.MustCompile(`/developers/keys/(wsp_key_[a-z0-9]+)/revoke[^…]*?Type <code>` + first[len(first)-4:]).FindStringSubmatch(v.get("/developers").body)
	if id == nil {
		t.Fatal("the key cannot be revoked")
	}
	rotated, _ := v.order("/developers", "/developers/keys/"+id[1]+"/rotate", "hours", "1")
	w.wants(rotated, http.StatusOK, "works for 1 more hours")
	if second := text.FindString(rotated.body); works(second) != http.StatusOK || works(first) != http.StatusOK {
		t.Error("both keys must work for an hour")
	}
	w.wants(v.post("/developers/keys/"+id[1]+"/revoke", form("confirm", "nope")), http.StatusBadRequest, "Nothing was revoked")
	if works(first) != http.StatusOK {
		t.Error("it was revoked without being meant")
	}
	w.wants(v.post("/developers/keys/"+id[1]+"/revoke", form("confirm", first[len(first)-4:])), http.StatusSeeOther)
	if works(first) != http.StatusUnauthorized {
		t.Error("a revoked key works")
	}
	other := w.as(flow.RoleOwner, w.merchant("Others"))
	w.wants(other.post("/developers/keys/"+id[1]+"/revoke", form("confirm", first[len(first)-4:])), http.StatusNotFound)
	w.wants(other.post("/developers/keys/"+id[1]+"/rotate", form("hours", "0")), http.StatusNotFound)
}

// TestLiveKeysNeedKYC sees that live is shut, hands KYC in, and makes a live key
// once an operator agreed.
func TestLiveKeysNeedKYC(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	v.get("/")
	w.wants(v.post("/choose", form("env", "live", "project", string(w.ada.project.ID))), http.StatusSeeOther)
	w.wants(v.get("/developers"), http.StatusOK, "LIVE", "Live keys need an approved KYC", "/go-live")
	w.wants(v.get("/developers"), http.StatusOK, `<td data-label="KYC"><span`) // on a narrow screen no head says what is "none"
	for _, page := range []string{"/", "/sessions"} {                          // what a live key is refused without
		w.wants(v.get(page), http.StatusOK, "bin/till sessions create 500000 --live")
	}
	if got := v.get("/developers/webhooks"); strings.Contains(got.body, "till listen") {
		t.Error("a live endpoint is offered a command for test keys")
	}
	at, _ := v.endpoint()
	w.wants(v.post(at+"/ping", nil), http.StatusSeeOther)
	shown := v.get(at).body
	event := regexp.MustCompile(`/developers/events/evt_\w+`).FindString(shown)
	for _, want := range []string{`bin/till webhooks test wsp_we_\w+ --live`, `bin/till events resend evt_\w+ --live`} {
		if shown += v.get(event).body; !regexp.MustCompile(want).MatchString(shown) {
			t.Errorf("no page has %s", want)
		}
	}
	w.wants(v.post("/developers/keys", form("kind", "secret")), http.StatusForbidden)
	w.wants(v.post("/go-live/kyc", form("legalName", "Ada Ltd", "contactPhone", "12")), http.StatusBadRequest, "Their phone must be", "Ada Ltd")
	handed, fields := v.order("/go-live", "/go-live/kyc", "legalName", "Ada <b>Ltd</b>", "contactPhone", "08031234567")
	w.wants(handed, http.StatusSeeOther)
	w.wants(v.post("/go-live/kyc", fields), http.StatusSeeOther) // a reload hands nothing else in
	w.wants(v.get("/go-live"), http.StatusOK, "submitted", "Ada &lt;b&gt;Ltd")
	if _, err := w.accounts.RuleKYC(t.Context(), w.ada.project.ID, flow.Approve, "papers seen"); err != nil {
		t.Fatal(err)
	}
	w.wants(v.get("/go-live"), http.StatusOK, "approved", "papers seen")
	w.wants(v.post("/developers/keys", form("kind", "secret")), http.StatusOK, "sk_live_")
	w.wants(v.post("/go-live/account", form("bank", "058", "number", "0123456789")), http.StatusServiceUnavailable)
}

// TestSigningUp signs up, sees the keys once, and is logged in.
func TestSigningUp(t *testing.T) {
	w := open(t)
	v := w.visitor()
	w.wants(v.get("/signup"), http.StatusOK, "new-password")
	w.wants(v.post("/signup", form("email", "nobody", "password", "short", "business", "<b>")), http.StatusBadRequest, "e-mail address must", "The password must", "&lt;b&gt;")
	w.wants(v.post("/signup", form("email", "bola@example.com", "password", "          ", "business", "Bola's")), http.StatusBadRequest, "The password must hold something that can be seen")
	got, _ := v.order("/signup", "/signup", "email", "Bola@Example.com", "password", "correct horse battery", "business", "Bola's")
	w.wants(got, http.StatusOK, "sk_test_", "pk_test_", "alone: copy it now")
	key := regexp.MustCompile(`sk_test_[0-9A-Za-z]+`).FindString(got.body)
	if status := w.ask(http.MethodGet, "/v1/balance", key, "").status; status != http.StatusOK {
		t.Errorf("the key does not work: %d", status)
	}
	home := v.get("/developers")
	w.wants(home, http.StatusOK, "Bola&#39;s", "bola@example.com")
	if strings.Contains(home.body, key) {
		t.Error("the key is shown again")
	}
	reloaded := v.post("/signup", form("email", "Bola@Example.com", "password", "correct horse battery", "business", "Bola's", "csrf", "of before"))
	w.wants(reloaded, http.StatusSeeOther)
	w.wants(v.get(reloaded.header.Get("Location")), http.StatusOK, "You are signed up", "shown once")
	again := w.visitor()
	w.wants(again.post("/signup", form("email", "bola@example.com", "password", "another password", "business", "B")), http.StatusBadRequest, "Log in instead")
	w.wants(again.post("/login", form("email", "bola@example.com", "password", "correct horse battery")), http.StatusSeeOther)
}

// TestTeam adds somebody, who logs in with the password that was shown, and shuts
// them out.
func TestTeam(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	password := regexp.MustCompile(`<dt>Password</dt><dd><span class="copy"><code>([^<]+)`)
	got, fields := v.order("/team", "/team", "email", "dev@example.com", "role", "developer")
	w.wants(got, http.StatusOK, "alone: hand it over")
	word := password.FindStringSubmatch(got.body)[1]
	w.wants(v.post("/team", fields), http.StatusBadRequest, "logs in with this e-mail address already")
	w.wants(v.post("/team", form("email", "boss@example.com", "role", "operator")), http.StatusBadRequest)

	dev := w.visitor()
	w.wants(dev.post("/login", form("email", "dev@example.com", "password", html.UnescapeString(word))), http.StatusSeeOther)
	w.wants(dev.get("/developers"), http.StatusOK, "Role: developer", w.ada.project.Name)
	id := regexp.MustCompile(`/team/(wsp_usr_[a-z0-9]+)/end`).FindStringSubmatch(v.get("/team").body)[1]
	w.wants(w.as(flow.RoleOwner, w.merchant("Others")).post("/team/"+id+"/end", form("confirm", "yes")), http.StatusNotFound)
	w.wants(v.post("/team/"+id+"/end", nil), http.StatusBadRequest)
	w.wants(dev.get("/developers"), http.StatusOK)
	w.wants(v.post("/team/"+id+"/end", form("confirm", "yes")), http.StatusSeeOther)
	w.wants(v.get("/team"), http.StatusOK, "Keys that they copied still work")
	w.wants(dev.get("/developers"), http.StatusSeeOther)

	w.wants(v.post("/team", form("email", "dev@example.com", "role", "support")), http.StatusOK, "as support")
	w.wants(w.visitor().post("/login", form("email", "dev@example.com", "password", word)), http.StatusUnauthorized)
}

// Whoever changes their password stays, and is logged out everywhere else.
func TestANewPasswordEndsEveryOtherLogin(t *testing.T) {
	w := open(t)
	person, err := w.accounts.AddPerson(t.Context(), w.ada.account, "dev@example.com", "the first password", flow.RoleDeveloper, "")
	must(t, err)
	got, _ := w.visitor().order("/signup", "/signup", "email", "chi@example.com", "password", "the first password", "business", "Chi's")
	w.wants(got, http.StatusOK, "alone: copy it now")
	for _, email := range []string{person.Email, "chi@example.com"} {
		login := func(password string, want int) *visitor {
			v := w.visitor()
			w.wants(v.post("/login", form("email", email, "password", password)), want)
			v.get("/password")
			return v
		}
		here, there := login("the first password", http.StatusSeeOther), login("the first password", http.StatusSeeOther)
		change := func(old, to, again string) reply {
			return here.post("/password", form("old", old, "new", to, "again", again))
		}
		w.wants(change("a wrong password", "the second password", "the second password"), http.StatusUnauthorized, "The old password is not right")
		w.wants(change("the first password", "the second password", "the third password"), http.StatusBadRequest, "not typed the same twice")
		w.wants(change("the first password", "short", "short"), http.StatusBadRequest, "The new password")
		w.wants(change("the first password", "the first password", "the first password"), http.StatusBadRequest, "is the old one")
		w.wants(there.get("/password"), http.StatusOK, email)
		w.wants(change("the first password", "the second password", "the second password"), http.StatusSeeOther)
		w.wants(here.get("/password"), http.StatusOK, "Every other login of yours has ended")
		w.wants(there.get("/"), http.StatusSeeOther)
		login("the first password", http.StatusUnauthorized)
		login("the second password", http.StatusSeeOther)
	}
}

// TestGoingLive ticks the checklist by traffic alone, but for what nobody sees.
func TestGoingLive(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	done := func() int { return strings.Count(v.get("/go-live").body, "✓ done") }
	if n := done(); n != 0 {
		t.Fatalf("%d are ticked before anything was done", n)
	}
	w.wants(v.post("/go-live/said", form("milestone", "webhook")), http.StatusBadRequest, "sees this by itself")
	w.wants(v.post("/go-live/said", form("milestone", "forged")), http.StatusSeeOther)
	w.wants(v.get("/go-live"), http.StatusOK, "said by owner of")

	got, _ := v.order("/developers/webhooks", "/developers/webhooks", "url", "http://127.0.0.1:9/hook")
	w.wants(got, http.StatusOK, "whsec_")
	opened := w.call("/v1/whatsapp/checkout/sessions", `{"amount":500000,"customerEmail":"a@example.com"}`, "one of ours")
	w.wants(opened, http.StatusCreated)
	await.Until(t, "the key and the Idempotency-Key are seen", func() bool { return done() == 3 })
	w.payFor(opened)
	await.Until(t, "a webhook is seen", func() bool { return done() == 4 })
	unpaid := w.call("/v1/charges", `{"amount":500000,"customerEmail":"a@example.com"}`, "another")
	w.wants(unpaid, http.StatusCreated)
	w.wants(w.call("/v1/whatsapp/checkout/sessions/"+unpaid.value("sessionId")+"/cancel", "", ""), http.StatusOK)
	await.Until(t, "the end of a charge is seen", func() bool { return done() == 5 })
	w.wants(v.get("/go-live"), http.StatusOK, "5 of 5")

	w.wants(v.post("/go-live/account", form("bank", "058", "number", "12")), http.StatusBadRequest, "ten digits")
	w.wants(v.post("/go-live/account", form("bank", "999", "number", "0000000001")), http.StatusSeeOther)
	w.wants(v.get("/go-live"), http.StatusOK, "Payouts go to", "0000000001, Till Test Bank</dd>")
}

// TestSnippets shows programs with this server's address and the hint of their key.
func TestSnippets(t *testing.T) {
	w := open(t)
	got := w.as(flow.RoleDeveloper).get("/developers/snippets")
	w.wants(got, http.StatusOK, flow.HintKey(w.ada.secret), flow.HintKey(w.ada.public), w.base+"/v1/charges", "PHP", "Python", "Node", "Go", "cURL")
	if strings.Contains(got.body, "TILL_URL</code>") || strings.Contains(got.body, "env.TILL_URL") {
		t.Error("an address is left out")
	}
	if strings.Contains(got.body, w.ada.secret) {
		t.Error("the secret key is shown")
	}
}

// TestProjects makes a second project, looks at it, and finds nothing of the first.
func TestProjects(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	w.wants(v.post("/developers/projects", nil), http.StatusBadRequest, "The name must")
	got, fields := v.order("/developers", "/developers/projects", "name", `<script>alert(1)</script>"'>`)
	w.wants(got, http.StatusOK, "sk_test_", "pk_test_", "&lt;script&gt;alert(1)")
	key := regexp.MustCompile(`sk_test_[0-9A-Za-z]{49}`)
	if first, again := key.FindString(got.body), key.FindString(v.post("/developers/projects", fields).body); first == "" || again != first {
		t.Errorf("the form shows the key %q, and sent twice %q", first, again)
	}
	page := v.get("/developers")
	w.wants(page, http.StatusOK, "&lt;script&gt;alert(1)", "sk_test_…")
	if n := strings.Count(page.body, "Look there</button></form></td>"); n != 1 {
		t.Errorf("there are %d projects beside the one that is looked at", n)
	}
	if body := v.get("/developers/snippets").body; strings.Contains(body, "There is no test secret key that works") {
		t.Error("the new project has no key that works")
	}
}

// TestWhatDevelopersDoIsKept reads in the audit log what was ordered, tried or
// done, and by whom.
func TestWhatDevelopersDoIsKept(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	at, _ := v.endpoint()
	w.wants(v.post(at, form("url", "https://other.example/hook?secret=1", "events", "charge.success")), http.StatusSeeOther)
	v.order("/developers", "/developers/keys", "kind", "public")
	v.order("/developers", "/developers/projects", "name", "Second")
	v.order("/team", "/team", "email", "dev@example.com", "role", "support")
	list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Account: w.ada.account, Limit: 10})
	must(t, err)
	var did []string
	for _, a := range list {
		if a.Role != flow.RoleOwner || a.Account != w.ada.account || a.Environment != flow.Test {
			t.Errorf("%s was done by %+v", a.Action, a)
		}
		did = append(did, a.Action)
		if a.Action == "endpoint.change" && a.Reason != "from example.com to other.example, events" {
			t.Errorf("the endpoint was changed %s", a.Reason)
		}
	}
	if want := "person.add project.add key.make endpoint.change endpoint.add"; strings.Join(did, " ") != want {
		t.Errorf("the log holds %s, not %s", strings.Join(did, " "), want)
	}
}

// Whoever mends the one thing that an operator missed finds the rest as it was handed in:
// what they left out would be missing next.
func TestARejectedMerchantHandsInAgainWithoutWritingItAllOnceMore(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	handed, _ := v.order("/go-live", "/go-live/kyc", "legalName", "Ada Ltd", "registrationNumber", "RC 12", "address", "1 Broad Street", "contactName", "Ada Obi", "contactPhone", "08031234567")
	w.wants(handed, http.StatusSeeOther)
	_, err := w.accounts.RuleKYC(t.Context(), w.ada.project.ID, flow.Reject, "say which website")
	must(t, err)
	w.wants(v.get("/go-live"), http.StatusOK, "say which website", `value="Ada Ltd"`, `value="RC 12"`, ">1 Broad Street</textarea>", `value="Ada Obi"`, "2348031234567")
	w.wants(v.post("/go-live/kyc", form("legalName", "", "contactPhone", "12")), http.StatusBadRequest, `name="legalName" maxlength="255" autocomplete="organization" value=""`)
}
