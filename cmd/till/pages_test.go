package main

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
)

// visitor is a browser in the console of a pretend world.
type visitor struct {
	t    *testing.T
	url  string
	http *http.Client
}

// enter opens the console as a role.
func enter(t *testing.T, address, role string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	v := &visitor{t: t, url: address, http: &http.Client{Jar: jar}}
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(v.page("/login"))
	if csrf == nil {
		t.Fatal("the login page has no form")
	}
	answer, err := v.http.PostForm(address+"/enter", url.Values{"csrf": csrf[1:], "role": {role}})
	must(t, err)
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("enter as %s: %s, %v", role, answer.Status, err)
	}
	return v
}

// page is what a page says.
func (v *visitor) page(where string) string {
	v.t.Helper()
	answer, err := v.http.Get(v.url + where)
	must(v.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s, %v", where, answer.Status, err)
	}
	return string(text)
}

// sends sends a form of a page to an address, with names and values in turn.
func (v *visitor) sends(page, to string, fields ...string) {
	v.t.Helper()
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(v.page(page))
	if csrf == nil {
		v.t.Fatalf("%s has no form", page)
	}
	values := url.Values{"csrf": csrf[1:]}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	answer, err := v.http.PostForm(v.url+to, values)
	must(v.t, err)
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s, %v", to, answer.Status, err)
	}
}

// Every call of till that a page of the console shows is one that the program
// understands, where nothing is yet and where something is.
func TestTheConsolesCommandsAreUnderstood(t *testing.T) {
	m, _, _ := devServer(t)
	shown := regexp.MustCompile(`<code>(?:bin/)?till ([a-z][^<]*)</code>`)
	seen := map[string]bool{}
	look := func(v *visitor, pages ...string) {
		for _, where := range pages {
			for _, found := range shown.FindAllStringSubmatch(v.page(where), -1) {
				call := regexp.MustCompile(`'[^']*'`).ReplaceAllString(html.UnescapeString(found[1]), "x")
				seen[call] = true
				if _, err := parser().Parse(strings.Fields(call)); err != nil {
					t.Errorf("%s shows till %s: %v", where, call, err)
				}
			}
		}
	}
	owner, operator := enter(t, m.base, "owner"), enter(t, m.base, "operator")
	look(owner, "/", "/sessions", "/settlements", "/exceptions", "/inbox", "/developers", "/developers/webhooks", "/developers/requests", "/go-live", "/team")
	look(operator, "/", "/sessions", "/ops", "/ops/merchants", "/ops/merchants?status=all", "/ops/doctor", "/ops/audit", "/ops/people")
	id, _ := m.openChat(500_000, "shown")
	hook, _ := m.call(http.MethodPost, "/v1/webhook-endpoints", object{"url": "http://127.0.0.1:9009/hook"})["id"].(string)
	look(owner, "/sessions/"+id, "/sessions/"+id+"/replay", "/developers/webhooks/"+hook)
	if len(seen) < 12 {
		t.Errorf("only %d calls were found: %v", len(seen), seen)
	}
}

// makes runs a command beside a server, and returns the key or project that it names first.
func makes(t *testing.T, p *tilltest.Process, args ...string) string {
	t.Helper()
	out, err := p.Beside(args...)
	if err != nil {
		t.Fatalf("till %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return regexp.MustCompile(`wsp_(key|prj)_\w+`).FindString(out)
}

// What the command line does to a merchant's keys and projects their owner finds in
// the audit log, as what the console and the API do.
func TestTheOwnerReadsWhatTheCommandLineDidToTheirKeys(t *testing.T) {
	m, p, _ := devServer(t)
	does := func(args ...string) string { return makes(t, p, args...) }
	first := does("keys", "create", "--kind", "secret")
	second := does("keys", "rotate", first, "--overlap", "1h")
	does("keys", "revoke", second, "--yes")
	does("projects", "create", "Yaba Stores")
	log := enter(t, m.base, "owner").page("/team/audit")
	for _, want := range []string{"key.make", "key.rotate", "key.revoke", "project.add", first, second, "Yaba Stores", "operator"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s", want)
		}
	}
}

// Whoever runs this Till can log in as anybody to whom they give another password, and
// decides who takes real money: the one stands in the owner's audit log, the other in
// that of operators, whichever way it was done.
func TestTheAuditLogHasWhatTheCommandLineDidToPeopleAndMerchants(t *testing.T) {
	m, p, _ := devServer(t)
	does := func(args ...string) string { return makes(t, p, args...) }
	does("people", "add", "obi@example.com", "--role", "support", "--account", demoEmail)
	does("people", "password", "obi@example.com")
	does("people", "password", demoEmail)
	project := does("projects", "create", "Yaba Stores")
	owner := enter(t, m.base, "owner")
	owner.sends("/go-live", "/go-live/kyc", "legalName", "Yaba Stores Ltd", "registrationNumber", "RC 1", "address", "1 Allen Avenue, Ikeja", "contactName", "Obi", "contactPhone", "08031234567")
	does("merchants", "kyc", "reject", project, "--reason", "no papers")
	for _, of := range []string{"obi@example.com", demoEmail} {
		if log := owner.page("/team/audit?action=person.password&subject=" + url.QueryEscape(of)); !strings.Contains(log, ">person.password") {
			t.Errorf("the owner is not told that %s was given another password", of)
		}
	}
	if log := enter(t, m.base, "operator").page("/ops/audit?subject=" + project); !strings.Contains(log, ">kyc.reject") || !strings.Contains(log, "no papers") {
		t.Error("operators are not told who rejected a project")
	}
}
