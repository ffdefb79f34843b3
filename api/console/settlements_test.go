package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// paidOut is a merchant's settlement of the day that is so many days ahead, once the
// bank has said what became of it.
func (w *world) paidOut(m merchant, days int) (b flow.Settlement) {
	w.t.Helper()
	service := w.services[flow.Test]
	b, made, blocked, err := service.SettleNow(w.t.Context(), m.project.ID, flow.DateOf(service.Now()).Plus(days))
	if err != nil || !made {
		w.t.Fatal(b, made, blocked, err)
	}
	w.until("the bank says what became of the payout", func() bool {
		b, err = service.Settlement(w.t.Context(), m.project.ID, b.ID)
		return err == nil && b.Final()
	})
	return b
}

// payouts sets what becomes of payouts at the bank from now on.
func (w *world) payouts(fate rail.Fate) {
	w.t.Helper()
	if _, err := w.bank.SetConditions(w.t.Context(), rail.Conditions{Up: true, Payouts: fate}); err != nil {
		w.t.Fatal(err)
	}
}

// owns waits until a project has so much of its own.
func (w *world) owns(m merchant, amount flow.Kobo) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d kobo are the merchant's", amount), func() bool {
		got, err := w.dbs[flow.Test].Owned(w.t.Context(), m.project.ID)
		return err == nil && got == amount
	})
}

// Whoever keeps a merchant's books reads what was paid out and what each payout is made
// of, so that it adds up by eye, on the page and in its file.
func TestASettlementIsReadAndAddsUp(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	w.wants(support.get("/settlements"), http.StatusOK, "Nothing was paid out yet", "/v1/test/settlements/run", "The next payout is made")
	w.wants(support.get("/settlements?status=FAILED"), http.StatusOK, "None is failed.")

	whole, _ := w.money(w.ada, 500_000)
	parts := w.opened(w.ada, `,"customerName":`+fmt.Sprintf("%q", evil)+`,"reference":"=order-7"`)
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+parts+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	w.pays(w.attempt(parts), 200_000)
	w.until("a part is here", func() bool {
		s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(parts))
		return err == nil && s.AmountPaid == 200_000
	})
	w.pays(w.attempt(parts), 300_000)
	w.owns(w.ada, 965_000)
	paid, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(whole))
	must(t, err)
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid[0].ID)+`","amount":100000}`), http.StatusCreated)
	w.owns(w.ada, 865_000)

	day := regexp.MustCompile(`settlements/run .*(\d{4}-\d\d-\d\d)`).FindStringSubmatch(html.UnescapeString(support.get("/settlements").body))
	if day == nil || w.services[flow.Test].SettlesOn() != flow.Date(day[1]) { // on a Friday tomorrow has nothing of today
		t.Errorf("it is told to try it out for %v", day)
	}
	w.payouts(rail.FateReject)
	failed := w.paidOut(w.ada, 7)
	list := support.get("/settlements")
	w.wants(list, http.StatusOK, `href="/settlements/`+string(failed.ID)+`"`, ">failed<", "₦8,650.00", "₦10,000.00", "₦1,000.00", "₦350.00", `Waits to be paid out</dt><dd class="money">₦8,650.00`)
	for _, at := range []string{"/", "/settlements"} { // whose account it is that takes nothing reads what to do
		w.wants(support.get(at), http.StatusOK, "was not sent to Till Test Bank ******0001: "+failed.Failure, "If that account is not right, an owner sets another under Go live.")
	}
	page := support.get("/settlements/" + string(failed.ID))
	w.wants(page, http.StatusOK, "It was not sent: "+failed.Failure, "goes with the payout after it", "₦8,650.00", "Money that was set aside at first", ">Refund<", "−₦1,000.00", "=order-7",
		`href="/sessions/`+whole+`"`, `href="/sessions/`+parts+`"`, "&lt;script&gt;", "******0001", "/v1/settlements/"+string(failed.ID)+"/transactions")

	w.payouts(rail.FateOK)
	again := w.paidOut(w.ada, 8)
	for _, at := range []string{"/", "/settlements"} {
		if got := support.get(at); strings.Contains(got.body, "was not sent to") {
			t.Errorf("%s tells still of the payout that failed: %s", at, got.body)
		}
	}
	page = support.get("/settlements/" + string(again.ID))
	w.wants(page, http.StatusOK, ">succeeded<", "Left by earlier payouts", "₦8,650.00", again.RailTransactionID, "it is what earlier payouts left")
	w.wants(support.get("/settlements?status=SUCCEEDED"), http.StatusOK, string(again.ID), `<option value="SUCCEEDED" selected>`)
	if got := support.get("/settlements?status=SUCCEEDED"); strings.Contains(got.body, string(failed.ID)) {
		t.Error("one that failed stands among those that were paid out")
	}

	// Who asks where the money of one payment is finds it from there.
	w.wants(support.get("/sessions/"+whole), http.StatusOK, "Settlements it is in", `href="/settlements/`+string(failed.ID)+`"`, "₦3,825.00",
		"₦3,825 of this payment is in the merchant’s settlement of "+failed.SettlesOn.Start().In(flow.Lagos).Format("2 January 2006"), ", which was not sent: "+failed.Failure+" The money goes with the payout after it.")

	rows := w.table(support.get("/settlements.csv"))
	if len(rows) != 2 || rows[0]["settlement"] != string(again.ID) {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	for column, want := range map[string]string{
		"status": "FAILED", "settles_on": string(failed.SettlesOn), "project": "Ada Stores", "came_kobo": "1000000", "came_naira": "10000.00", "gone_back_kobo": "100000", "fees_kobo": "35000", "carried_kobo": "0",
		"amount_kobo": "865000", "transactions": "4", "bank": "Till Test Bank", "account": "******0001", "account_name": "ADA TEST PAYER", "failure": failed.Failure, "paid_at": "", "currency": "NGN",
	} {
		if rows[1][column] != want {
			t.Errorf("%s is %q, not %q", column, rows[1][column], want)
		}
	}
	if r := rows[0]; r["carried_kobo"] != "865000" || r["came_kobo"] != "0" || r["amount_naira"] != "8650.00" || r["paid_at"] == "" || r["bank_reference"] != again.RailTransactionID {
		t.Errorf("the one that was paid out: %v", r)
	}
	lines := w.table(support.get("/settlements/" + string(failed.ID) + "/transactions.csv"))
	var net int
	types := map[string]int{}
	for _, l := range lines {
		var one int
		if _, err := fmt.Sscan(l["net_kobo"], &one); err != nil {
			t.Error(err)
		}
		net += one
		types[l["type"]]++
		if l["type"] == "refund" && (l["session"] != whole || l["refund"] == "" || l["amount_naira"] != "-1000.00") || l["session"] == parts && l["reference"] != "'=order-7" {
			t.Errorf("%v", l)
		}
	}
	if net != 865_000 || types["payment"] != 2 || types["accept"] != 1 || types["refund"] != 1 {
		t.Errorf("the lines come to %d, and are %v", net, types)
	}

	// Another merchant's project, and the other environment, have none of it.
	eve := w.as(flow.RoleOwner, w.merchant("Eve Shoes"))
	w.wants(eve.get("/settlements"), http.StatusOK, "Nothing was paid out yet")
	if rows := w.table(eve.get("/settlements.csv")); len(rows) != 0 {
		t.Errorf("another merchant's file has %v", rows)
	}
	w.wants(eve.get("/settlements/"+string(failed.ID)), http.StatusNotFound)
	// An operator looks at one of whichever project, and chooses one to see them all.
	operator := w.as(flow.RoleOperator)
	w.wants(operator.get("/settlements"), http.StatusOK, "Choose a project")
	w.wants(operator.get("/settlements.csv"), http.StatusBadRequest, "Choose a project above to have a file of its settlements.")
	w.wants(operator.get("/settlements/"+string(failed.ID)), http.StatusOK, "Ada Stores", "It was not sent")
	w.wants(support.post("/choose", form("env", "live")), http.StatusSeeOther)
	live := support.get("/settlements")
	w.wants(live, http.StatusOK, "Nothing was paid out yet")
	if strings.Contains(live.body, "settlements/run") {
		t.Error("in live it is told to run settlements")
	}
	// Nor is anybody promised a payout before it is said to which account.
	if w.wants(live, http.StatusOK, "Nothing is paid out: it is not said yet to which account."); strings.Contains(live.body, "The next payout is made") {
		t.Error("without an account it is told when the next payout is made")
	}
}

// A settlement of many lines is read a page at a time, and so is a list of many.
func TestManySettlementsAndLinesAreReadInPages(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	for range 101 {
		w.money(w.ada, 500_000)
	}
	w.owns(w.ada, 101*482_500)
	b := w.paidOut(w.ada, 7)
	address, seen := "/settlements/"+string(b.ID), 0
	for pages := 1; ; pages++ {
		page := support.get(address)
		w.wants(page, http.StatusOK, "₦505,000.00", "₦17,675.00", "₦487,325.00")
		seen += strings.Count(page.body, "<td>Payment</td><td><a")
		_, rest, more := strings.Cut(page.body, `<a href="`+"/settlements/"+string(b.ID)+`?after=`)
		if !more {
			if seen != 101 || pages != 2 || !strings.Contains(page.body, "From the first") {
				t.Errorf("%d lines on %d pages", seen, pages)
			}
			break
		}
		next, _, _ := strings.Cut(rest, `"`)
		address = "/settlements/" + string(b.ID) + "?after=" + next
	}
	if rows := w.table(support.get("/settlements/" + string(b.ID) + "/transactions.csv")); len(rows) != 101 {
		t.Errorf("%d lines in the file", len(rows))
	}
	w.wants(support.get("/settlements/"+string(b.ID)+"?after=nonsense"), http.StatusOK, "₦487,325.00")
}

// Where the bank took back what was paid out already, a balance below zero says what
// becomes of it.
func TestABalanceBelowZeroSaysWhatMakesUpForIt(t *testing.T) {
	w := open(t)
	_, paid := w.money(w.ada, 500_000)
	w.owns(w.ada, 482_500)
	w.paidOut(w.ada, 7)
	owner, short := w.as(flow.RoleOwner), "Nothing is paid out: more went back, or was taken back, than came since the last payout. What comes makes up for it first."
	if got := owner.get("/settlements"); strings.Contains(got.body, short) {
		t.Error("nothing went back, and it is said that it did")
	}
	w.wants(w.ask(http.MethodPost, "/v1/test/bank/reversals", w.ada.secret, `{"railTransactionId":"`+paid.RailTransactionID+`"}`), http.StatusOK)
	w.owns(w.ada, -482_500)
	for _, page := range []string{"/", "/settlements"} {
		w.wants(owner.get(page), http.StatusOK, "−₦4,825.00", short)
	}
}

// Who is led from what is stuck to a payout that the bank says nothing of reads which one
// it is.
func TestAPayoutThatIsStuckLeadsToItsSettlement(t *testing.T) {
	w := open(t)
	w.money(w.ada, 500_000)
	w.owns(w.ada, 482_500)
	w.payouts(rail.FatePending)
	service := w.services[flow.Test]
	b, made, _, err := service.SettleNow(t.Context(), w.ada.project.ID, flow.DateOf(service.Now()).Plus(7))
	if err != nil || !made {
		t.Fatal(b, made, err)
	}
	w.until("the bank was told", func() bool {
		b, err = service.Settlement(t.Context(), w.ada.project.ID, b.ID)
		return err == nil && b.Status == flow.SettlementProcessing
	})
	w.pass(25 * time.Hour)
	support, page := w.as(flow.RoleSupport), "/settlements/"+string(b.ID)
	w.wants(support.get("/exceptions?queue=stuck"), http.StatusOK, `<a href="`+page+`">Look at the settlement</a>`)
	w.wants(support.get(page), http.StatusOK, ">processing<", "₦4,825.00")
	w.wants(support.get("/settlements"), http.StatusOK, `Being paid out</dt><dd class="money">₦4,825.00`)
}

// A day that was tried out ahead of itself has had its payout: the next one is another's.
func TestTheNextPayoutIsOfADayThatHasNone(t *testing.T) {
	w := open(t)
	w.money(w.ada, 500_000)
	w.owns(w.ada, 482_500)
	service, owner := w.services[flow.Test], w.as(flow.RoleOwner)
	next := func() flow.Date {
		at := regexp.MustCompile(`The next payout is made <time datetime="([^"]+)"`).FindStringSubmatch(owner.get("/settlements").body)
		if at == nil {
			t.Fatal("it is not said when the next payout is made")
		}
		made, err := time.Parse(time.RFC3339, at[1])
		must(t, err)
		return flow.DateOf(made)
	}
	day := service.SettlesOn()
	if _, made, _, err := service.SettleNow(t.Context(), w.ada.project.ID, day); err != nil || !made || next() == day {
		t.Errorf("the next one is made on %s again: %v, %v", day, made, err)
	}
}

// A refund that its merchant's balance does not cover is not sent once more, and nothing
// says that somebody had it sent.
func TestARefundBeyondTheBalanceIsNotSaidToBeSentOnceMore(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	id, paid := w.money(w.ada, 500_000)
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`"}`), http.StatusCreated)
	var refund flow.Refund
	w.until("the bank refused it", func() bool {
		list, err := w.dbs[flow.Test].Refunds(t.Context(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(id), Limit: 1})
		if err == nil && len(list) == 1 {
			refund = list[0]
		}
		return refund.Status == flow.RefundFailed
	})
	w.payouts(rail.FateOK)
	w.paidOut(w.ada, 7)
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	w.wants(support.post(page+"/retry", form("refund", string(refund.ID), "reason", "the payer called", "confirm", "yes")), http.StatusConflict, "out of your balance")
	if list := w.audits(string(refund.ID)); len(list) != 0 {
		t.Errorf("of what was refused is kept: %+v", list)
	}
}
