package console_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"till/api"
	"till/api/console"
	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// linked puts a number that is live into test.
func (w *world) linked() {
	w.t.Helper()
	ctx, now := w.t.Context(), time.Now()
	n := flow.Number{Slot: 1, Digits: "2349010000001", State: flow.NumberLive, Since: now.Add(-time.Minute), PhoneSeen: now, Holder: "host/1", Token: 1, HeldUntil: now.Add(time.Hour)}
	err := w.dbs[flow.Test].Update(ctx, func(tx *store.Tx) error {
		if err := tx.AddNumber(ctx, n.Slot, now); err != nil {
			return err
		}
		if _, err := tx.TakeNumber(ctx, n, "", now); err != nil {
			return err
		}
		_, err := tx.ReportNumber(ctx, n)
		return err
	})
	if err == nil {
		err = w.boards[flow.Test].Refresh(ctx)
	}
	must(w.t, err)
}

// lastAudit is the newest row of the audit log.
func (w *world) lastAudit() flow.Audited {
	w.t.Helper()
	list, _, err := w.accounts.Audits(w.t.Context(), store.AuditFilter{Limit: 1})
	if err != nil || len(list) == 0 {
		w.t.Fatalf("the audit log: %v, %v", list, err)
	}
	return list[0]
}

// Only operators get where numbers, merchants and the audit log are handled, and
// no order is taken without the form's own token.
func TestOperationsAreForOperatorsAlone(t *testing.T) {
	w := open(t)
	w.linked()
	pages := []string{"/ops", "/ops/live", "/ops/merchants", "/ops/merchants/" + string(w.ada.project.ID), "/ops/doctor", "/ops/audit", "/ops/people"}
	orders := []string{
		"/ops/numbers/1/switch", "/ops/numbers/1/bounds", "/ops/methods/ussd", "/ops/merchants/" + string(w.ada.project.ID) + "/kyc",
		"/ops/merchants/" + string(w.ada.project.ID) + "/switch", "/ops/people", "/ops/people/wsp_usr_x/end",
	}
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport} {
		v := w.as(role)
		for _, p := range pages {
			w.wants(v.get(p), http.StatusForbidden, "This is not open to the role "+string(role))
		}
		for _, p := range orders {
			w.wants(v.post(p, form("reason", "to see what happens", "to", "kill", "confirm", "yes")), http.StatusForbidden)
		}
	}
	operator := w.as(flow.RoleOperator)
	for _, p := range pages {
		if p != "/ops/live" {
			w.wants(operator.get(p), http.StatusOK, `aria-label="Operations"`)
		}
		w.wants(w.visitor().get(p), http.StatusSeeOther)
	}
	for _, p := range orders {
		w.wants(operator.post(p, form("csrf", "forged", "reason", "to see what happens")), http.StatusForbidden, "not of this visit")
		w.wants(w.visitor().post(p, form("reason", "to see what happens")), http.StatusSeeOther)
	}
	w.wants(operator.get("/ops/merchants/wsp_prj_01m7y6b2svb0wy2rg89w393p3j"), http.StatusNotFound)
	if list, err := w.boards[flow.Test].Moves(t.Context(), 10); err != nil || len(list) > 0 {
		t.Errorf("something was switched: %v, %v", list, err)
	}
}

// A service has more merchants than a menu lists: an operator looks at those too, from
// their page.
func TestAnOperatorLooksAtAProjectThatNoMenuLists(t *testing.T) {
	w := open(t)
	for range 100 {
		w.merchant("Shop")
	}
	last := w.merchant("Zuma Foods").project
	v := w.as(flow.RoleOperator)
	page := "/ops/merchants/" + string(last.ID)
	w.wants(v.get(page), http.StatusOK, `action="/choose"`, `name="project" value="`+string(last.ID)+`"`)
	w.wants(v.post("/choose", form("project", string(last.ID), "env", "test", "next", "/settlements")), http.StatusSeeOther)
	w.wants(v.get("/settlements"), http.StatusOK, "<b>Zuma Foods</b>")
	w.wants(v.post("/choose", form("project", "wsp_prj_none", "env", "test", "next", "/settlements")), http.StatusSeeOther)
	w.wants(v.get("/settlements"), http.StatusOK, "<b>All projects</b>")
}

// A number about which somebody has to do something stands out, whatever state it is in.
func TestANumberThatNeedsSomebodyStandsOut(t *testing.T) {
	w := open(t)
	css := w.visitor().get("/console/console.css").body
	for _, state := range []flow.NumberState{
		flow.NumberOffline, flow.NumberConnecting, flow.NumberPairing, flow.NumberDeaf, flow.NumberMute, flow.NumberPhoneAway, flow.NumberTimelocked,
		flow.NumberBanned, flow.NumberReplaced, flow.NumberLoggedOut, flow.NumberOutdated, flow.NumberPasskey, flow.NumberDraining, flow.NumberKilled,
	} {
		if !regexp.MustCompile(`\.s-` + string(state) + `[, ]`).MatchString(css) {
			t.Errorf("a number that is %s looks like one of which nothing is to be said", state)
		}
	}
}

// What an operator does about a number wants a reason, and one that hurts a
// tick; it stands in the audit log and holds at once.
func TestAnOperatorHandlesANumber(t *testing.T) {
	w := open(t)
	w.linked()
	v := w.as(flow.RoleOperator)
	board := w.boards[flow.Test]
	state := func() flow.NumberState { return board.Numbers()[0].At(time.Now()) }

	w.wants(v.get("/ops"), http.StatusOK, "+2349010000001", "s-live", "till numbers drain 2349010000001")
	w.wants(v.post("/ops/numbers/1/switch", form("to", "drain", "reason", "no")), http.StatusUnprocessableEntity, "Say why", `value="no"`)
	w.wants(v.post("/ops/numbers/1/switch", form("to", "sell", "reason", "for the money")), http.StatusBadRequest)
	w.wants(v.post("/ops/numbers/7/switch", form("to", "drain", "reason", "there is none")), http.StatusNotFound)
	if state() != flow.NumberLive {
		t.Fatalf("the number is %s", state())
	}
	w.wants(v.post("/ops/numbers/1/switch", form("to", "drain", "reason", "a new phone "+nasty)), http.StatusSeeOther)
	if got := w.lastAudit(); state() != flow.NumberDraining || got.Action != "number.drain" || got.Subject != "2349010000001" || got.Role != flow.RoleOperator || got.Reason != "a new phone "+nasty {
		t.Errorf("the number is %s, kept is %+v", state(), got)
	}
	w.wants(v.get("/ops"), http.StatusOK, "s-draining", "gets no new chats", "a new phone &lt;script&gt;")
	w.wants(v.post("/ops/numbers/1/switch", form("to", "kill", "reason", "the phone was stolen")), http.StatusUnprocessableEntity, "tick that you mean it", "the phone was stolen")
	w.wants(v.post("/ops/numbers/1/switch", form("to", "kill", "reason", "the phone was stolen", "confirm", "yes")), http.StatusSeeOther)
	n := board.Numbers()[0]
	killed := n.Began(time.Now())
	if state() != flow.NumberKilled || !killed.After(n.Since) {
		t.Errorf("the number, which says that it is live since %s, is %s since %s", n.Since, state(), killed)
	}
	for _, page := range []string{"/ops", "/"} {
		w.wants(v.get(page), http.StatusOK, "s-killed", `since <time datetime="`+flow.Stamp(killed))
	}
	w.wants(v.post("/ops/numbers/1/switch", form("to", "resume", "reason", "it was found again")), http.StatusSeeOther)
	w.wants(v.post("/ops/numbers/1/bounds", form("weight", "1001", "dailyChats", "250", "reason", "a young number")), http.StatusUnprocessableEntity, "0 to 1000")
	w.wants(v.post("/ops/numbers/1/bounds", form("weight", "3", "dailyChats", "250", "reason", "a young number")), http.StatusSeeOther)
	if n = board.Numbers()[0]; n.Weight != 3 || n.DailyChats != 250 || state() != flow.NumberLive {
		t.Errorf("the number is %+v", n)
	}
}

// A method is switched off where one means it, in the environment that is looked
// at, and shows as off until it is on again.
func TestAnOperatorSwitchesAMethod(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOperator)
	served := func(env flow.Environment) bool {
		return slices.Contains(w.boards[env].Served(flow.Methods(), ""), flow.USSD)
	}
	w.wants(v.post("/ops/methods/cash", form("to", "off", "reason", "the bank is away", "confirm", "yes")), http.StatusNotFound)
	w.wants(v.post("/ops/methods/ussd", form("to", "off", "reason", "the bank is away")), http.StatusUnprocessableEntity, "tick that you mean it")
	w.wants(v.post("/ops/methods/ussd", form("to", "off", "reason", "the bank is away", "confirm", "yes")), http.StatusSeeOther)
	if served(flow.Test) || !served(flow.Live) {
		t.Errorf("USSD is served: %t in test, %t in live", served(flow.Test), served(flow.Live))
	}
	w.wants(v.get("/ops"), http.StatusOK, "s-off", "till methods on ussd", "the bank is away")
	w.wants(v.post("/ops/methods/ussd", form("to", "on", "reason", "it is back")), http.StatusSeeOther)
	if !served(flow.Test) {
		t.Error("USSD is still off")
	}
}

// Merchants that wait are ruled on, with a reason that they read; what the rules
// do not allow is said. One is stopped and goes on.
func TestAnOperatorRulesOnMerchants(t *testing.T) {
	w := open(t)
	obi := w.merchant("Obi " + nasty)
	_, err := w.accounts.SubmitKYC(t.Context(), obi.project.ID, flow.KYCDetails{LegalName: nasty, RegistrationNumber: "RC 12345"}, checkout.Call{
		Render: func(checkout.Made) (int, []byte, error) { return http.StatusOK, nil, nil },
	})
	must(t, err)
	v := w.as(flow.RoleOperator)
	page := "/ops/merchants/" + string(obi.project.ID)
	queue := v.get("/ops/merchants")
	w.wants(queue, http.StatusOK, page, "&lt;script&gt;")
	if strings.Contains(queue.body, string(w.ada.project.ID)+`">`) && strings.Contains(queue.body, "/ops/merchants/"+string(w.ada.project.ID)) {
		t.Error("who handed in nothing stands among those that wait")
	}
	w.wants(v.get("/ops/merchants?status=all"), http.StatusOK, page, "/ops/merchants/"+string(w.ada.project.ID))
	w.wants(v.get(page), http.StatusOK, "RC 12345", "&lt;script&gt;", `value="approve"`, `value="reject"`)
	kyc := func() flow.KYCStatus {
		m, err := w.accounts.Merchant(t.Context(), obi.project.ID)
		must(t, err)
		return m.Project.KYC
	}
	w.wants(v.post(page+"/kyc", form("ruling", "approve")), http.StatusUnprocessableEntity, "Say why")
	w.wants(v.post(page+"/kyc", form("ruling", "bless", "reason", "why not")), http.StatusBadRequest)
	w.wants(v.post(page+"/kyc", form("ruling", "reject", "reason", "RC 12345 is another company's")), http.StatusSeeOther)
	w.wants(v.get(page), http.StatusOK, "RC 12345 is another company", "kyc.reject")
	w.wants(v.post(page+"/kyc", form("ruling", "approve", "reason", "it is known after all")), http.StatusUnprocessableEntity, "its KYC is REJECTED by now")
	if kyc() != flow.KYCRejected {
		t.Errorf("its KYC is %s", kyc())
	}
	w.admit(obi)
	w.wants(v.post(page+"/kyc", form("ruling", "suspend", "reason", "reports of fraud")), http.StatusUnprocessableEntity, "tick that you mean it")
	w.wants(v.post(page+"/kyc", form("ruling", "suspend", "reason", "reports of fraud", "confirm", "yes")), http.StatusSeeOther)
	if kyc() != flow.KYCSuspended {
		t.Errorf("its KYC is %s", kyc())
	}

	session := "/sessions/" + w.opened(obi, "")
	w.wants(v.post(page+"/switch", form("to", "stop", "reason", "under attack", "confirm", "yes")), http.StatusSeeOther)
	if !w.boards[flow.Test].Stopped(obi.project.ID) || w.boards[flow.Live].Stopped(obi.project.ID) {
		t.Error("it is not stopped in test alone")
	}
	w.wants(v.get("/ops"), http.StatusOK, page+`">Obi &lt;script`)
	w.wants(v.get("/ops/merchants?status=all"), http.StatusOK, ">stopped<")
	w.stops(obi, flow.MerchantStopped) // as from a terminal, which is not kept in the audit log of the page
	w.wants(v.get(page), http.StatusOK, "by an operator: told by a terminal")
	w.wants(w.as(flow.RoleSupport, obi).get(session), http.StatusOK, "This project is stopped or suspended")
	w.wants(v.post(page+"/switch", form("to", "go", "reason", "it is over")), http.StatusSeeOther)
	if w.boards[flow.Test].Stopped(obi.project.ID) {
		t.Error("it is still stopped")
	}
	if got := w.as(flow.RoleSupport, obi).get(session); strings.Contains(got.body, "stopped or suspended") {
		t.Error("its people still read that it is stopped")
	}
	if got := v.get("/ops/merchants?status=all"); strings.Contains(got.body, ">stopped<") {
		t.Error("the list still says that it is stopped")
	}
}

// The page shows what is to be scanned while a number waits for a phone, and how
// each part of the server is; both stay young by themselves.
func TestOperationsAreLive(t *testing.T) {
	var later atomic.Bool // the phone was linked, and the store went away
	w := open(t, func(c *api.Config) {
		c.Pairing = func() (string, bool) { return "2@abc,def,ghi", !later.Load() }
		c.Ready = func(context.Context) []api.Check {
			if later.Load() {
				return []api.Check{{Name: "store", Needed: true, Reason: "It does not answer."}}
			}
			return []api.Check{{Name: "store", OK: true, Needed: true}}
		}
	})
	v := w.as(flow.RoleOperator)
	w.wants(v.get("/ops"), http.StatusOK, `<svg class="qr"`, "Linked devices", "s-ok")
	// What operators scan is not handed to whoever has a test key.
	w.wants(w.ask(http.MethodGet, "/v1/test/whatsapp/pairing", w.ada.secret, ""), http.StatusOK, `"pairing":null,"waiting":false`)
	later.Store(true)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+"/ops/live", http.NoBody)
	must(t, err)
	answer, err := v.http.Do(r)
	must(t, err)
	defer answer.Body.Close()
	if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("the live part is %q", kind)
	}
	var part strings.Builder
	for lines := bufio.NewScanner(answer.Body); lines.Scan() && (part.Len() == 0 || lines.Text() != ""); {
		part.WriteString(lines.Text() + "\n")
	}
	for want, is := range map[string]bool{"event: part": true, "It does not answer.": true, "Nothing is served without it.": true, `<svg class="qr"`: false} {
		if strings.Contains(part.String(), want) != is {
			t.Errorf("the live part holds %q: %t\n%s", want, !is, &part)
		}
	}
}

// The doctor's page names what is wrong and what mends it, and looks no oftener
// than it is good for.
func TestTheDoctorsPage(t *testing.T) {
	var looks atomic.Int64
	w := open(t, func(c *api.Config) {
		c.Doctor = func(context.Context) []console.Diagnosis {
			looks.Add(1)
			return []console.Diagnosis{{Check: "disk", State: "ok", What: "There is room."}, {Check: "redis", State: "fail", What: "Redis " + nasty, Fix: "sudo systemctl start redis-server"}}
		}
	})
	v := w.as(flow.RoleOperator)
	w.wants(v.get("/ops/doctor"), http.StatusOK, "1 of 2 findings", "s-fail", "Redis &lt;script&gt;", "sudo systemctl start redis-server")
	w.wants(v.get("/ops/doctor"), http.StatusOK, "1 of 2 findings")
	if n := looks.Load(); n != 1 {
		t.Errorf("the doctor looked %d times", n)
	}
}

// The audit log is filtered and paged, newest first.
func TestTheAuditLogIsReadByPages(t *testing.T) {
	w := open(t)
	for i := range 120 {
		w.pass(time.Second) // ids of one moment have no order
		err := w.accounts.Audit(t.Context(), flow.Audited{Actor: fmt.Sprintf("%s%d", nasty, i%2), Role: flow.RoleSupport, Action: "payment.resolve", Subject: fmt.Sprintf("sub-%03d.", i), Reason: nasty}, true)
		must(t, err)
	}
	v := w.as(flow.RoleOperator)
	first := v.get("/ops/audit")
	w.wants(first, http.StatusOK, "sub-119.", "sub-020.", "&lt;script&gt;")
	next := regexp.MustCompile(`href="(/ops/audit\?before=[^"]+)"`).FindStringSubmatch(first.body)
	if strings.Contains(first.body, "sub-019.") || next == nil {
		t.Fatal("the first page is not the newest hundred")
	}
	second := v.get(next[1])
	w.wants(second, http.StatusOK, "sub-019.", "sub-000.")
	if strings.Contains(second.body, "sub-020.") || strings.Contains(second.body, ">Older<") {
		t.Error("the second page is not the rest")
	}
	one := v.get("/ops/audit?subject=sub-007.&action=payment.resolve")
	w.wants(one, http.StatusOK, "sub-007.")
	if strings.Contains(one.body, "sub-008.") {
		t.Error("a subject's rows hold another's")
	}
	w.wants(v.get("/ops/audit?actor=nobody"), http.StatusOK, "Nothing fits.")
}

// An operator is added with a password that is shown once and works, and shut
// out by another, at once.
func TestOperatorsComeAndGo(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOperator)
	w.wants(v.post("/ops/people", form("email", "not an address", "reason", "the night shift")), http.StatusUnprocessableEntity, "not an e-mail address", "the night shift")
	made := v.post("/ops/people", form("email", "Ngozi@Example.com", "reason", "the night shift"))
	w.wants(made, http.StatusOK, "Shown once", "ngozi@example.com")
	password := regexp.MustCompile(`<dt>Password</dt><dd><span class="copy"><code>([^<]+)</code>`).FindStringSubmatch(made.body)
	if password == nil {
		t.Fatal("no password is shown")
	}
	w.wants(v.post("/ops/people", form("email", "ngozi@example.com", "reason", "the night shift")), http.StatusUnprocessableEntity, "already")
	if again := v.get("/ops/people"); strings.Contains(again.body, password[1]) {
		t.Error("the password is shown again")
	}

	ngozi := w.visitor()
	w.wants(ngozi.post("/login", form("email", "ngozi@example.com", "password", password[1], "next", "/ops")), http.StatusSeeOther)
	w.wants(ngozi.get("/ops/people"), http.StatusOK, "this is you")
	people, err := w.accounts.People(t.Context(), "")
	if err != nil || len(people) != 1 {
		t.Fatalf("the operators: %v, %v", people, err)
	}
	end := "/ops/people/" + people[0].ID + "/end"
	w.wants(ngozi.post(end, form("reason", "I am leaving", "confirm", "yes")), http.StatusForbidden, "Nobody shuts themselves out")
	w.wants(v.post(end, form("reason", "she left us")), http.StatusUnprocessableEntity, "tick that you mean it")
	w.wants(ngozi.get("/ops"), http.StatusOK)
	w.wants(v.post(end, form("reason", "she left us", "confirm", "yes")), http.StatusSeeOther)
	w.wants(ngozi.get("/ops"), http.StatusSeeOther)
	w.wants(v.post("/ops/people/wsp_usr_none/end", form("reason", "she left us", "confirm", "yes")), http.StatusNotFound)
}
