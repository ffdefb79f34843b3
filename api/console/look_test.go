package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// Who looked at a payer's session or chat is kept, and apart from what people did.
func TestItIsKeptWhoLookedAtWhatIsKeptOfAPayer(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(id, "Ada")
	support, owner := w.as(flow.RoleSupport), w.as(flow.RoleOwner)
	looks := func(subject string) int {
		t.Helper()
		page := owner.get("/team/audit?action=look&subject=" + subject)
		w.wants(page, http.StatusOK)
		return strings.Count(page.body, "<br><a href=\"/team/audit?actor=")
	}
	for range 3 {
		w.wants(support.get("/sessions/"+id), http.StatusOK)
		w.wants(support.get("/sessions/"+id+"/replay"), http.StatusOK)
	}
	if n := looks(id); n != 1 {
		t.Errorf("one person looked at a session three times in an hour: %d rows", n)
	}
	w.wants(owner.get("/team/audit?action=look.chat"), http.StatusOK, "look.chat", "chat_")
	w.wants(owner.get("/sessions/"+id), http.StatusOK)
	if n := looks(id); n != 2 {
		t.Errorf("two people looked at it: %d rows", n)
	}
	w.pass(time.Hour + time.Second)
	w.wants(support.get("/sessions/"+id), http.StatusOK)
	if n := looks(id); n != 3 {
		t.Errorf("and one of them an hour later: %d rows", n)
	}
	w.pass(-3 * time.Hour) // the clock is set back
	w.wants(support.get("/sessions/"+id), http.StatusOK)
	if n := looks(id); n != 4 {
		t.Errorf("and after the clock was set back: %d rows", n)
	}
	w.pass(time.Hour + time.Second)
	if status, _ := support.stream("/sessions/" + id + "/live"); status != http.StatusOK {
		t.Errorf("the live part is answered with %d", status)
	}
	if n := looks(id); n != 5 {
		t.Errorf("and on a page that stayed open for an hour: %d rows", n)
	}
	for _, path := range []string{"/team/audit", "/sessions/" + id} { // which tell what people did
		if page := owner.get(path); strings.Contains(page.body, "look.session") {
			t.Errorf("%s is full of who looked", path)
		}
	}
	w.wants(owner.get("/sessions/wsp_sess_00000000000000000000000000"), http.StatusNotFound)
	if n := looks("wsp_sess_00000000000000000000000000"); n != 0 {
		t.Errorf("what is not there was looked at %d times", n)
	}
}

// WhatsApp does not always say a payer's telephone number, and one who was forgotten has
// none any more: that is said, in place of half a number.
func TestAPhoneThatNobodyKnowsIsNotShown(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(id))
	must(t, err)
	must(t, w.services[flow.Test].Hear(t.Context(), checkout.Inbound{
		Number: "2348000000001", Person: "78@lid", Message: "M1", Intent: flow.Intent{Kind: flow.MeansCode, Code: s.EntryCode, Text: "Pay " + s.EntryCode},
	}))
	shown := w.as(flow.RoleSupport).post("/sessions/"+id+"/reveal", form("reason", "to call back"))
	w.wants(shown, http.StatusOK, "Phone: none is known.")
	if strings.Contains(shown.body, "(WhatsApp") {
		t.Error("a number without digits is shown")
	}
}

// What a merchant is told and a receipt say who paid, as the session's own page does.
func TestItIsKeptWhoLooksAtWhatIsSaidOfAPayerElsewhere(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat","customerName":"Ada Obi"`)
	w.inChat(id, "Ada")
	w.pays(w.attempt(id), 500_000)
	var told flow.Event
	w.until("the merchant is told", func() bool {
		list, err := w.dbs[flow.Test].EventsOf(t.Context(), flow.SessionID(id), 10)
		for _, e := range list {
			if e.Kind == flow.ChargeSuccess {
				told = e
			}
		}
		return err == nil && told.ID != ""
	})
	for page, role := range map[string]flow.Role{"/developers/events/" + string(told.ID): flow.RoleDeveloper, "/sessions/" + id + "/receipt.png": flow.RoleSupport} {
		w.wants(w.as(role).get(page), http.StatusOK)
		seen, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Account: w.ada.account, Action: "look", Subject: id, Limit: 10})
		must(t, err)
		kept := 0
		for _, a := range seen {
			if a.Role == role {
				kept++
			}
		}
		if kept != 1 {
			t.Errorf("who looked at %s is kept %d times", page, kept)
		}
	}
}
