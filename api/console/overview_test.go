package console_test

import (
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/rail"
)

// What a payout that failed left goes with the next one, and is among what waits for it;
// where there will be none, that is said.
func TestTheFirstPageTellsWhatTheNextPayoutHas(t *testing.T) {
	w := open(t)
	session, _ := w.money(w.ada, 500_000)
	w.until("the session is paid", func() bool {
		s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(session))
		return err == nil && s.Status == flow.SessionPaid
	})
	support, waits := w.as(flow.RoleSupport), `Waits for the next payout</dt><dd class="money">₦4,825.00<`
	w.wants(support.get("/"), http.StatusOK, waits)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Payouts: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	service, project := w.services[flow.Test], w.ada.project.ID
	b, made, _, err := service.SettleNow(t.Context(), project, flow.DateOf(service.Now()).Plus(7))
	if err != nil || !made {
		t.Fatal(b, made, err)
	}
	w.until("the payout failed", func() bool {
		b, err = service.Settlement(t.Context(), project, b.ID)
		return err == nil && b.Status == flow.SettlementFailed
	})
	w.wants(support.get("/"), http.StatusOK, waits)
	if strings.Contains(support.get("/").body, "Nothing is paid out") {
		t.Error("it is said that nothing is paid out")
	}

	w.wants(w.as(flow.RoleOperator).post("/ops/merchants/"+string(project)+"/switch", form("to", "stop", "reason", "under attack", "confirm", "yes")), http.StatusSeeOther)
	w.wants(support.get("/"), http.StatusOK, waits, "Nothing is paid out: this project is stopped.")
}
