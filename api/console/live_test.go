package console_test

import (
	"bufio"
	"context"
	"html"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/api"
	"till/flow"
	"till/flow/checkout"
)

// stream opens a live part, and gives the status and the lines of it.
func (v *visitor) stream(path string) (status int, lines *bufio.Scanner) {
	v.w.t.Helper()
	ctx, stop := context.WithTimeout(v.w.t.Context(), 20*time.Second)
	v.w.t.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.w.base+path, http.NoBody)
	must(v.w.t, err)
	answer, err := v.http.Do(r)
	must(v.w.t, err)
	v.w.t.Cleanup(func() { _ = answer.Body.Close() })
	lines = bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	return answer.StatusCode, lines
}

// obi is a supporter of Ada's with what a browser carries who is logged in.
func (w *world) obi() (obi flow.Person, text string) {
	w.t.Helper()
	obi, err := w.accounts.AddPerson(w.t.Context(), w.ada.account, "obi@example.com", "a long password", flow.RoleSupport, "")
	must(w.t, err)
	in, err := w.accounts.Enter(w.t.Context(), obi.Email, "a long password", "192.0.2.1")
	must(w.t, err)
	return obi, in.Text
}

// shows reads a live part until it holds a text.
func (w *world) shows(lines *bufio.Scanner, text string) {
	w.t.Helper()
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	w.t.Fatalf("the page never showed %q: %v", text, lines.Err())
}

// Whoever is shut out, or logs out elsewhere, sees nothing more on a page that
// they left open.
func TestALivePartEndsWithTheLoginItBelongsTo(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, "")
	person, text := w.obi()
	obi := w.carrying(text)
	ended := func(v *visitor, path string, end func()) {
		t.Helper()
		_, lines := v.stream(path)
		for lines.Scan() && lines.Text() != "event: part" {
		}
		end()
		for lines.Scan() {
		}
		if lines.Err() != nil { // it would have gone on for longer than this waits
			t.Errorf("%s goes on: %v", path, lines.Err())
		}
	}
	ended(obi, "/sessions/"+session+"/live", func() {
		must(t, w.accounts.EndPerson(t.Context(), w.ada.account, person.ID))
	})
	w.wants(obi.get("/sessions/"+session+"/live"), http.StatusSeeOther)
	operator := w.as(flow.RoleOperator)
	operator.get("/")
	ended(operator, "/ops/live", func() { w.wants(operator.post("/logout", nil), http.StatusSeeOther) })
}

// One account with many tabs open leaves room for the others.
func TestOneAccountDoesNotTakeEveryLivePart(t *testing.T) {
	w := open(t)
	v, path := w.as(flow.RoleSupport), "/sessions/"+w.opened(w.ada, "")+"/live"
	refused := false
	for range 100 {
		status, _ := v.stream(path)
		if refused = status == http.StatusTooManyRequests; refused {
			break
		}
	}
	if !refused {
		t.Error("one account has 100 live parts")
	}
	if status, _ := w.as(flow.RoleOperator).stream("/ops/live"); status != http.StatusOK {
		t.Errorf("an operator has none: %d", status)
	}
}

// A part that crashes while it is made ends its own stream, and nothing else.
func TestALivePartThatCrashesEndsAlone(t *testing.T) {
	var crash atomic.Bool
	w := open(t, func(c *api.Config) {
		c.Ready = func(context.Context) []api.Check {
			if crash.Load() {
				panic("a part that cannot be asked")
			}
			return nil
		}
	})
	crash.Store(true)
	_, lines := w.as(flow.RoleOperator).stream("/ops/live")
	for lines.Scan() {
		if lines.Text() == "event: part" {
			t.Error("it shows something")
		}
	}
	w.wants(w.visitor().get("/login"), http.StatusOK)
	if !strings.Contains(w.log.String(), "a part that cannot be asked") {
		t.Error("nobody is told of the crash")
	}
}

// Whoever leaves the inbox open learns of who asks for a person, without loading it again.
func TestTheInboxIsLive(t *testing.T) {
	w := open(t)
	p := &payer{w: w, person: "7711", name: "Bola"}
	p.opens(w.ada)
	_, lines := w.as(flow.RoleSupport).stream("/inbox/live")
	w.shows(lines, "Nobody waits for an answer.")
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	w.shows(lines, "1 payer waits for an answer: Bola.")
}

// Others look at the same inbox and had it read a moment before: the live part of a page that
// is loaded now is no older than the page.
func TestAnInboxThatIsOpenedIsNotOlderThanItsPage(t *testing.T) {
	w := open(t)
	_, others := w.as(flow.RoleSupport).stream("/inbox/live")
	w.shows(others, "Nobody waits for an answer.")
	p := &payer{w: w, person: "7711", name: "Bola"}
	p.opens(w.ada)
	p.says(flow.Intent{Kind: flow.MeansHuman, Text: "9"})
	support := w.as(flow.RoleSupport)
	w.until("the page shows the payer", func() bool { return strings.Contains(support.get("/inbox").body, "Bola") })
	_, lines := support.stream("/inbox/live")
	for lines.Scan() && !strings.Contains(lines.Text(), "data-tell=") {
	}
	if !strings.Contains(lines.Text(), "1 payer waits for an answer: Bola.") {
		t.Errorf("the live part takes the payer off the page again: %s %v", lines.Text(), lines.Err())
	}
}

// What a browser chooses on one page holds for all of them: an inbox that stands open shows
// nobody of the project or environment that was chosen on another one since, and the
// operators' page no number of another environment than it names.
func TestALivePartShowsNothingOfWhatWasChosenSince(t *testing.T) {
	w := open(t)
	for page, role := range map[string]flow.Role{"/inbox": flow.RoleSupport, "/ops": flow.RoleOperator} {
		who := w.as(role)
		shown := who.get(page)
		w.wants(shown, http.StatusOK)
		part := regexp.MustCompile(`data-live="([^"]+)"`).FindStringSubmatch(shown.body)
		if len(part) != 2 {
			t.Fatalf("%s is not live", page)
		}
		if page == "/ops" { // of no project
			w.wants(who.post("/choose", form("project", string(w.ada.project.ID), "env", "test")), http.StatusSeeOther)
		}
		if status, _ := who.stream(part[1]); status != http.StatusOK {
			t.Errorf("%s of what is chosen: %d", page, status)
		}
		w.wants(who.post("/choose", form("project", string(w.ada.project.ID), "env", "live")), http.StatusSeeOther)
		if status, _ := who.stream(part[1]); status != http.StatusForbidden {
			t.Errorf("%s of test shows what is of live: %d", page, status)
		}
	}
	// The sandbox has no live: there it is another project's webhooks that would show.
	who := w.as(flow.RoleOwner)
	_, err := w.accounts.AddProject(t.Context(), w.ada.account, "Ada's second shop", checkout.Call{
		Scope: "test", Render: func(checkout.Made) (int, []byte, error) { return http.StatusCreated, nil, nil },
	})
	must(t, err)
	list, _, err := w.accounts.Projects(t.Context(), w.ada.account, "", 1) // the newest
	must(t, err)
	w.wants(who.post("/choose", form("project", string(w.ada.project.ID), "env", "test")), http.StatusSeeOther)
	part := regexp.MustCompile(`data-live="([^"]+)"`).FindStringSubmatch(who.get("/try").body)
	if status, _ := who.stream(html.UnescapeString(part[1])); status != http.StatusOK {
		t.Errorf("/try of what is chosen: %d", status)
	}
	w.wants(who.post("/choose", form("project", string(list[0].ID), "env", "test")), http.StatusSeeOther)
	if status, _ := who.stream(html.UnescapeString(part[1])); status != http.StatusForbidden {
		t.Errorf("/try of one project shows what another one was told: %d", status)
	}
}
