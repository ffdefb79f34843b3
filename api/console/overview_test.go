package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
	support, waits := w.as(flow.RoleSupport), `Waits to be paid out</dt><dd class="money">₦4,825.00<`
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

// That a project is stopped is told to its people also while no money of it waits, and
// no page promises it a payout; who answers its payers reads on a session that nothing
// can be paid for that. An operator does not read in live that one that is suspended works.
func TestPeopleOfAStoppedProjectReadThatItIs(t *testing.T) {
	w := open(t)
	session := w.opened(w.ada, "")
	owner, operator, page := w.as(flow.RoleOwner), w.as(flow.RoleOperator), "/ops/merchants/"+string(w.ada.project.ID)
	w.wants(operator.post(page+"/switch", form("to", "stop", "reason", "under attack", "confirm", "yes")), http.StatusSeeOther)
	for _, path := range []string{"/", "/settlements"} {
		told := owner.get(path)
		w.wants(told, http.StatusOK, "this project is stopped. No sessions open in it either.")
		if strings.Contains(told.body, "The next payout is made") {
			t.Errorf("%s promises a payout", path)
		}
	}

	w.wants(w.as(flow.RoleSupport).get("/sessions/"+session), http.StatusOK, "bank transfer: unavailable, project suspended<")

	handed, _ := owner.order("/go-live", "/go-live/kyc")
	w.wants(handed, http.StatusSeeOther)
	for _, to := range []flow.Ruling{flow.Approve, flow.Suspend} {
		w.wants(operator.post(page+"/kyc", form("ruling", string(to), "reason", "looked into", "confirm", "yes")), http.StatusSeeOther)
	}
	w.wants(operator.post("/choose", form("env", "live")), http.StatusSeeOther)
	w.wants(operator.get(page), http.StatusOK, "Nothing works in live: it is suspended.")
}

// What waits for somebody stands on the first page, and nothing of queues in which nothing
// does; so does what came in the last day, by hour.
func TestTheFirstPageTellsWhatWaitsAndWhatCame(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	page := support.get("/")
	w.wants(page, http.StatusOK, "Money that came", "None since ")
	if strings.Contains(page.body, "Waits for somebody") {
		t.Error("something waits where nothing came")
	}

	now := w.clock(flow.Test)
	w.moved.Add(int64(now.Truncate(time.Hour).Add(90 * time.Minute).Sub(now))) // half past: no hour ends meanwhile
	w.money(w.ada, 500_000)
	w.money(w.ada, 200_000)
	w.moved.Add(int64(2 * time.Hour))
	w.money(w.ada, 600_000)
	page = support.get("/")
	w.wants(page, http.StatusOK, "Waits for somebody", `<a href="/exceptions?queue=underpaid">Underpaid <b>1</b></a>`, `<a href="/exceptions?queue=overpaid">Overpaid <b>1</b></a>`,
		"₦13,000.00</b> in 3 payments since ", `<rect x="210" y="0" width="9" height="40">`, `: ₦7,000.00</title>`, `<rect x="230" y="6" width="9" height="34">`, `: ₦6,000.00</title>`)
	if strings.Contains(page.body, "queue=late") {
		t.Error("a queue is shown in which nothing waits")
	}
	if got := w.as(flow.RoleOwner, w.merchant("Obi")).get("/"); strings.Contains(got.body, "Waits for somebody") || !strings.Contains(got.body, "None since ") {
		t.Errorf("another merchant is told of it: %s", got.body)
	}

	w.moved.Add(int64(24 * time.Hour))
	w.wants(support.get("/"), http.StatusOK, "None since ")
}

// A session that is paid and whose money went back says so wherever it is listed: beside
// it, that it is paid is half of it.
func TestAPaidSessionSaysThatItsMoneyWentBack(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	session, paid := w.money(w.ada, 500_000)
	pages := []string{"/", "/sessions", "/sessions/" + session}
	for _, page := range pages {
		if strings.Contains(support.get(page).body, "refunded</span>") {
			t.Errorf("%s: refunded before anything was", page)
		}
	}
	for _, step := range []struct{ amount, badge string }{
		{"100000", `s-partly_refunded">partly refunded<`}, {"400000", `s-refunded">refunded<`},
	} {
		w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":`+step.amount+`}`), http.StatusCreated)
		for _, page := range pages {
			w.wants(support.get(page), http.StatusOK, `s-paid">paid<`, step.badge)
		}
	}
}

// What stands in a picture's words is read as it is: a time in them has no marks of a page.
func TestTheHoursOfTheFirstPageAreTold(t *testing.T) {
	w := open(t)
	w.money(w.ada, 500_000)
	got := w.as(flow.RoleSupport).get("/")
	w.wants(got, http.StatusOK, "<title>From ", " on: ₦5,000.00</title>")
	if strings.Contains(got.body, "&lt;time") {
		t.Errorf("the picture of the last day: %s", got.main())
	}
}
