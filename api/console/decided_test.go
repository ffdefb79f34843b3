package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"till/flow"
	"till/rail"
)

// Whoever is asked to agree to what somebody else decided about meanwhile reads that, and
// is offered nothing that would be refused.
func TestNobodyIsAskedToAgreeToWhatWasDecidedMeanwhile(t *testing.T) {
	w := open(t)
	id, paid := w.money(w.ada, 500_000+60_000_000)
	support, owner, page := w.as(flow.RoleSupport), w.as(flow.RoleOwner), "/sessions/"+id
	w.wants(support.post(page+"/resolve", url.Values{"payment": {string(paid.ID)}, "decision": {"accept"}, "confirm": {"yes"}, "reason": {"the customer agreed"}}), http.StatusSeeOther)
	w.wants(owner.get("/exceptions?queue=second"), http.StatusOK, ">Agree<")
	w.wants(w.ask(http.MethodPost, "/v1/payments/"+string(paid.ID)+"/resolve", w.ada.secret, `{"action":"refund"}`), http.StatusOK)
	got := owner.get("/exceptions?queue=second")
	w.wants(got, http.StatusOK, "It was decided about otherwise meanwhile, went back by itself, or was taken back by the bank", ">Refuse<")
	if strings.Contains(got.body, ">Agree<") {
		t.Errorf("it can be agreed to: %s", got.body)
	}
	list, err := w.dbs[flow.Test].Proposals(t.Context(), flow.SessionID(id), 9)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	second := url.Values{"proposal": {string(list[0].ID)}, "decision": {"agree"}, "confirm": {"yes"}, "reason": {"looked at the order"}}
	w.wants(owner.post("/exceptions/second", second), http.StatusConflict, "decided about otherwise meanwhile, went back by itself, or was taken back by the bank")
	second.Set("decision", "refuse")
	w.wants(owner.post("/exceptions/second", second), http.StatusSeeOther)
}

// Of a part whose rest is waited for nothing can be decided yet: nobody is led there to
// decide, before its session is over.
func TestNobodyIsSentToDecideAboutAPartWhoseRestIsWaitedFor(t *testing.T) {
	w := open(t)
	id, _ := w.money(w.ada, 200_000)
	support := w.as(flow.RoleSupport)
	got := support.get("/exceptions?queue=underpaid")
	w.wants(got, http.StatusOK, id, "Look at the session")
	if strings.Contains(got.body, "Decide on the session") {
		t.Errorf("somebody is to decide: %s", got.body)
	}
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/cancel", w.ada.secret, ""), http.StatusOK)
	w.wants(support.get("/exceptions?queue=underpaid"), http.StatusOK, id, "Decide on the session")
}

// A browser says that a reason is too short before it is sent: under Exceptions what was
// written is lost with what is refused.
func TestAReasonThatIsTooShortIsNotSent(t *testing.T) {
	w := open(t)
	id, _ := w.money(w.ada, 600_000)
	returned, _ := w.returned(w.ada)
	_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001111", Amount: 123_400, Collects: w.ada.project.ID})
	must(t, err)
	w.until("the money is booked", func() bool {
		return strings.Contains(w.as(flow.RoleSupport).get("/exceptions?queue=unmatched").body, "₦1,234.00")
	})
	support, owner := w.as(flow.RoleSupport), w.as(flow.RoleOwner)
	reason := regexp.MustCompile(`<input [^>]*name="reason"[^>]*>`)
	for _, page := range []string{"/sessions/" + w.opened(w.ada, ""), "/sessions/" + id, "/sessions/" + returned, "/exceptions?queue=unmatched"} {
		got := support.get(page)
		w.wants(got, http.StatusOK)
		fields := reason.FindAllString(got.body+owner.get(page).body, -1)
		for _, field := range fields {
			if !strings.Contains(field, `minlength="4"`) {
				t.Errorf("%s has %s", page, field)
			}
		}
		if len(fields) < 2 {
			t.Errorf("%s asks for %d reasons", page, len(fields))
		}
	}
}
