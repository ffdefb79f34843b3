package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// Who pays late there is late: the money waits for a decision.
func TestWhoPaysLateOnThePageIsLate(t *testing.T) {
	w, v := tries(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(id, "Ada")
	v.get("/try?session=" + id)
	w.wants(v.post("/try/bank", form("session", id, "how", "late")), http.StatusSeeOther)
	w.until("the money is booked", func() bool {
		list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
		return err == nil && len(list) == 1
	})
	list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
	must(t, err)
	s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(id))
	must(t, err)
	if list[0].Match != flow.Late || s.Status == flow.SessionPaid || !list[0].Waits(s) {
		t.Errorf("the money is %s, its session %s; it waits for a decision: %v", list[0].Match, s.Status, list[0].Waits(s))
	}
}

// What is said of a session whose time was ended is what then happens: clocks differ,
// and money that is sent right afterwards pays it.
func TestItIsSaidWhatStillPaysASessionThatWasEnded(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(id, "Ada")
	owner, page := w.as(flow.RoleOwner), "/sessions/"+id
	owner.order(page, page+"/expire", "reason", "the goods are gone", "confirm", "yes")
	w.wants(owner.get(page), http.StatusOK, "is sent within five minutes still pays it", "expired")
	w.pays(w.attempt(id), 500_000)
	w.until("the session is paid", func() bool {
		s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(id))
		return err == nil && s.Status == flow.SessionPaid
	})
	closed := w.opened(w.ada, "") // which nobody opened in a chat
	page = "/sessions/" + closed
	owner.order(page, page+"/cancel", "reason", "the order was withdrawn", "confirm", "yes")
	if got := owner.get(page).body; !strings.Contains(got, "The session is cancelled.") || strings.Contains(got, "The payer hears") {
		t.Error("it is said that a payer hears of it who is not there")
	}
}

// Who accepts money that pays its session is told all that moves with that: what is held
// beside it is given too, and what is too much goes back where the policy says so.
func TestItIsSaidWhatIsGivenWithMoneyThatIsAccepted(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"overpayment":"refund_excess"`)
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	comes := func(amount flow.Kobo, payments int) (list []flow.Payment) {
		t.Helper()
		w.pays(w.attempt(id), amount)
		w.until("the money is booked", func() (booked bool) {
			var err error
			list, err = w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
			return err == nil && len(list) == payments
		})
		return list
	}
	comes(300_000, 1)
	w.pass(24*time.Hour + 10*time.Minute)
	late := comes(400_000, 2)[1]
	if late.Match != flow.Late {
		t.Fatalf("it is %s", late.Match)
	}
	owner, page := w.as(flow.RoleOwner), "/sessions/"+id
	w.wants(owner.get(page), http.StatusOK, "Decide about ₦4,000.00 (late)", "Give ₦5,000.00 to the merchant, and send ₦2,000.00 back?",
		"Accepted, it pays the session with what is held beside it: ₦5,000.00 is given to the merchant, and ₦2,000.00 goes back as too much.")
	owner.order(page, page+"/resolve", "payment", string(late.ID), "decision", "accept", "reason", "the goods are there", "confirm", "yes")
	balance, err := w.dbs[flow.Test].Balance(t.Context(), w.ada.project.ID)
	if err != nil || balance.Pending+balance.Fees != 500_000 || balance.Unapplied != 0 {
		t.Errorf("given was %+v (%v)", balance, err)
	}
}

// Who wants the instructions sent again in a chat is told of a link where there is one: a
// session that its merchant shows has neither.
func TestItIsSaidWhereThePayerFindsTheInstructions(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	for more, told := range map[string]string{`,"mode":"chat"`: "Give the payer its link.", "": "This session has no chat and no link: its merchant shows the payer how to pay."} {
		page := "/sessions/" + w.opened(w.ada, more)
		got, _ := support.order(page, page+"/instructions", "reason", "the payer lost them")
		w.wants(got, http.StatusBadRequest, told)
	}
}
