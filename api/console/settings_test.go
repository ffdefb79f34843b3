package console_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// asked opens a session over REST, and reads it as it is kept.
func (w *world) asked(m merchant, more string) flow.Session {
	w.t.Helper()
	s, err := w.dbs[flow.Test].Session(w.t.Context(), flow.SessionID(w.opened(m, more)))
	must(w.t, err)
	return s
}

func TestSettingsHoldForSessionsThatDoNotSayOtherwise(t *testing.T) {
	w := open(t)
	w.rewords(func(key string) string { return "the words of " + key })
	owner := w.as(flow.RoleOwner)
	before := w.asked(w.ada, "")
	set := url.Values{
		"displayName": {"Ada <b>of Lagos</b>"}, "brand": {"since 1999"}, "lang": {"ha"}, "underpayment": {"accept"}, "overpayment": {"refund_excess"}, "latePayment": {"refund"}, "minutes": {"45"},
	}
	w.wants(owner.get("/settings"), http.StatusOK, "Settings of Ada Stores", "the words of summary", `value="1440"`, `value="hold" selected`)

	// Only shown.
	show := url.Values{"do": {"preview"}}
	maps.Copy(show, set)
	w.wants(owner.post("/settings", show), http.StatusOK, "it is not kept yet", "Ada &lt;b&gt;of Lagos", `value="refund_excess" selected`, "the words of summary")
	if s := w.asked(w.ada, ""); s.Merchant != "Ada Stores" || s.Policy != flow.DefaultPolicy() {
		t.Fatalf("what was only shown holds: %+v", s)
	}
	// Wrong.
	for field, wrong := range map[string]string{"brand": "www.evil.example", "minutes": "four", "lang": "xx", "underpayment": "burn"} {
		bad := url.Values{}
		maps.Copy(bad, set)
		bad.Set(field, wrong)
		w.wants(owner.post("/settings", bad), http.StatusUnprocessableEntity, `role="alert"`, "Ada &lt;b&gt;of Lagos")
	}
	// Kept.
	w.wants(owner.post("/settings", set), http.StatusSeeOther)
	w.wants(owner.get("/settings"), http.StatusOK, `value="Ada &lt;b&gt;of Lagos&lt;/b&gt;"`, `value="since 1999"`, `value="ha" selected`, `value="45"`)
	s := w.asked(w.ada, "")
	want := flow.Policy{Underpayment: "accept", Overpayment: "refund_excess", LatePayment: "refund", Lang: flow.Hausa, Brand: "since 1999"}
	if s.Merchant != "Ada <b>of Lagos</b>" || s.Policy != want || s.ExpiresAt.Sub(s.CreatedAt) != 45*time.Minute {
		t.Errorf("a session is opened as %q with %+v until %s", s.Merchant, s.Policy, s.ExpiresAt)
	}
	s = w.asked(w.ada, `,"underpayment":"hold","latePayment":"review","expiresInMinutes":60`)
	want.Underpayment, want.LatePayment = "hold", "review"
	if s.Policy != want || s.ExpiresAt.Sub(s.CreatedAt) != time.Hour {
		t.Errorf("what a request says does not win: %+v until %s", s.Policy, s.ExpiresAt)
	}
	r := w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", w.ada.secret, `{"amount":500000,"customerEmail":"ada@example.com","underpayment":"burn"}`)
	w.wants(r, http.StatusBadRequest, "underpayment must be one of: accept, hold, refund")
	r = w.ask(http.MethodPost, "/v1/charges", w.ada.secret, `{"amount":500000,"customerEmail":"ada@example.com"}`)
	w.wants(r, http.StatusCreated)
	var charge struct {
		Data struct{ SessionID flow.SessionID }
	}
	must(t, json.Unmarshal([]byte(r.body), &charge))
	if s, err := w.dbs[flow.Test].Session(t.Context(), charge.Data.SessionID); err != nil || s.Policy.LatePayment != "refund" {
		t.Errorf("a charge has %+v, %v", s.Policy, err)
	}
	// What was opened before, and another merchant's, keep what they had.
	old, err := w.dbs[flow.Test].Session(t.Context(), before.ID)
	if err != nil || old.Policy != flow.DefaultPolicy() || old.Merchant != "Ada Stores" {
		t.Errorf("the one before has %+v, %v", old, err)
	}
	if s := w.asked(w.merchant("Bola Stores"), ""); s.Policy != flow.DefaultPolicy() || s.Merchant != "Bola Stores" {
		t.Errorf("another merchant's has %+v", s)
	}
	list := w.audits(string(w.ada.project.ID))
	if len(list) != 1 || list[0].Action != "settings.change" || !strings.Contains(list[0].Reason, `underpayment: "accept", was "hold"`) || !strings.Contains(list[0].Reason, `minutes: "45", was "1440"`) {
		t.Errorf("kept: %+v", list)
	}
	w.wants(owner.post("/settings", set), http.StatusSeeOther) // nothing is changed, and nothing kept
	if list := w.audits(string(w.ada.project.ID)); len(list) != 1 {
		t.Errorf("kept: %+v", list)
	}
}
