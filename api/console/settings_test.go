package console_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
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
	set.Set("seen", shownRevision(t, owner.get("/settings")))
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

// shownRevision is that of the settings which a page shows.
func shownRevision(t *testing.T, page reply) string {
	t.Helper()
	found := regexp.MustCompile(`name="seen" value="([0-9a-f]+)"`).FindStringSubmatch(page.body)
	if found == nil {
		t.Fatalf("the page shows no revision: %s", page.main())
	}
	return found[1]
}

// What somebody else kept since the page was opened is not taken back unseen.
func TestSettingsThatWereChangedMeanwhileAreNotOverwritten(t *testing.T) {
	w := open(t)
	mine, theirs := w.as(flow.RoleOwner), w.as(flow.RoleOwner)
	typed := func(minutes, late, seen string) url.Values {
		return form("minutes", minutes, "latePayment", late, "underpayment", "hold", "overpayment", "accept", "lang", "en", "seen", seen)
	}
	before := shownRevision(t, mine.get("/settings"))
	w.wants(theirs.post("/settings", typed("1440", "refund", shownRevision(t, theirs.get("/settings")))), http.StatusSeeOther)
	kept := func() flow.Settings {
		t.Helper()
		p, err := w.accounts.Project(t.Context(), w.ada.account, w.ada.project.ID)
		must(t, err)
		return p.Settings
	}
	for _, stale := range []string{before, "", "of no settings"} {
		got := mine.post("/settings", typed("45", "review", stale))
		w.wants(got, http.StatusConflict, `role="alert"`, "changed after you opened this page", "latePayment: &#34;review&#34;, was &#34;refund&#34;", "minutes: &#34;45&#34;", `value="45"`, `value="review" selected`, `<li class="bubble">`)
		if s := kept(); s.LatePayment != "refund" || s.Minutes() != flow.SessionMinutes {
			t.Fatalf("kept: %+v", s)
		}
		if stale == before { // who keeps it then has read what that changes
			before = shownRevision(t, got)
		}
	}
	// Changed after the page's revision was found to be the last: as what is about to
	// be done is kept, which asks the accounts' clock.
	between := func() {
		must(t, w.accounts.Set(t.Context(), w.ada.account, w.ada.project.ID, before, flow.Settings{Underpayment: "accept"}))
	}
	known := func() { w.entered.Store(&between) } // the login is good
	w.entered.Store(&known)
	got := mine.post("/settings", typed("45", "review", before))
	w.wants(got, http.StatusConflict, "underpayment: &#34;hold&#34;, was &#34;accept&#34;")
	if s := kept(); s != (flow.Settings{Underpayment: "accept"}) {
		t.Errorf("kept: %+v", s)
	}
	w.wants(mine.post("/settings", typed("45", "review", shownRevision(t, got))), http.StatusSeeOther)
	if s := kept(); s.Minutes() != 45 || s.Underpayment != "hold" {
		t.Errorf("kept: %+v", s)
	}
}

// The revision of a page is no card number to whoever looks for one in a form: as one of
// these settings it would be, with four hex digits more, and nobody could change them.
func TestSettingsWhoseRevisionIsAlmostANumberCanBeChanged(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	unlucky := flow.Settings{DisplayName: "Ada 30446"}
	must(t, w.accounts.Set(t.Context(), w.ada.account, w.ada.project.ID, w.ada.project.Settings.Revision(), unlucky))
	next := form("displayName", "Ada", "minutes", "45", "underpayment", "hold", "overpayment", "accept", "latePayment", "review", "lang", "en")
	next.Set("seen", shownRevision(t, v.get("/settings")))
	w.wants(v.post("/settings", next), http.StatusSeeOther)
}

// Who presses the button twice reads that their settings are kept, and not that nothing
// was changed: the browser shows the second answer alone.
func TestSettingsThatAreSentTwiceAreSaidToBeKept(t *testing.T) {
	w := open(t)
	v := w.as(flow.RoleOwner)
	set := form("minutes", "45", "underpayment", "hold", "overpayment", "accept", "latePayment", "review", "lang", "en", "seen", shownRevision(t, v.get("/settings")))
	w.wants(v.post("/settings", set), http.StatusSeeOther)
	w.wants(v.post("/settings", set), http.StatusSeeOther)
	w.wants(v.get("/settings"), http.StatusOK, "The settings are kept already as you typed them.")
	set.Set("seen", shownRevision(t, v.get("/settings")))
	w.wants(v.post("/settings", set), http.StatusSeeOther)
	w.wants(v.get("/settings"), http.StatusOK, "Nothing was changed.")
}
