package console_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// Whoever keeps a merchant's books finds what went back to payers, whichever session it
// was of, on a page and in its file.
func TestRefundsAreListedWithWhatBecameOfThem(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	w.wants(support.get("/refunds"), http.StatusOK, "Nothing was refunded yet")
	id, paid := w.money(w.ada, 500_000)
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":100000,"reason":"one shoe came back"}`), http.StatusCreated)
	var page reply
	w.until("the refund is processed", func() bool {
		page = support.get("/refunds")
		return strings.Contains(page.body, `s-processed">processed<`)
	})
	w.wants(page, http.StatusOK, "₦1,000.00", "one shoe came back", "asked for", `href="/sessions/`+id+`">`)
	w.wants(support.get("/refunds?status=FAILED"), http.StatusOK, "None is failed", `<option value="FAILED" selected>`)
	rows := w.table(support.get("/refunds.csv?status=PROCESSED"))
	if len(rows) != 1 || rows[0]["amount_kobo"] != "100000" || rows[0]["session"] != id || rows[0]["origin"] != "MERCHANT" || rows[0]["processed_at"] == "" {
		t.Errorf("the file has %v", rows)
	}
	if rows := w.table(support.get("/refunds.csv?status=FAILED")); len(rows) != 0 {
		t.Errorf("of those that failed the file has %v", rows)
	}
	eve := w.as(flow.RoleSupport, w.merchant("Eve Stores"))
	w.wants(eve.get("/refunds"), http.StatusOK, "Nothing was refunded yet")
	if rows := w.table(eve.get("/refunds.csv")); len(rows) != 0 {
		t.Errorf("another merchant's file has %v", rows)
	}
	w.wants(w.as(flow.RoleOperator).get("/refunds.csv"), http.StatusBadRequest, "Choose a project above to have a file of its refunds.")
}

// A list of many refunds is read in pages, each refund once.
func TestManyRefundsAreReadInPages(t *testing.T) {
	w := open(t)
	_, paid := w.money(w.ada, 500_000)
	for range 26 {
		w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":10000}`), http.StatusCreated)
	}
	support := w.as(flow.RoleSupport)
	first := support.get("/refunds")
	older := regexp.MustCompile(`href="(/refunds\?before=[^"]+)"`).FindStringSubmatch(first.body)
	if older == nil || strings.Count(first.body, "₦100.00") != 25 {
		t.Fatalf("the first page: %s", first.main())
	}
	if last := support.get(older[1]); strings.Count(last.body, "₦100.00") != 1 || strings.Contains(last.body, "Older refunds") {
		t.Errorf("the last page: %s", last.main())
	}
}

// A day is compared with the bank on a page: what nobody was told of is named, until it
// is found.
func TestADayIsComparedWithTheBankOnAPage(t *testing.T) {
	w := open(t)
	day := w.tomorrow()
	support, address := w.as(flow.RoleSupport), "/reconciliation?date="+string(day)
	offered := support.get("/reconciliation")
	w.wants(offered, http.StatusOK, `value="`+string(day.Plus(-1))+`"`)
	if strings.Contains(offered.body, "All three agree") {
		t.Error("it is compared before somebody asks for it")
	}
	session := w.opened(w.ada, "")
	shown := w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer", w.ada.secret, "{}")
	account := regexp.MustCompile(`"accountNumber":"(\d+)"`).FindStringSubmatch(shown.body)
	if account == nil {
		t.Fatal(shown.body)
	}
	w.wants(w.ask(http.MethodPost, "/v1/test/bank/transfers", w.ada.secret, `{"accountNumber":"`+account[1]+`","drop":true}`), http.StatusOK)
	w.wants(support.get(address), http.StatusOK, "They differ about", "The bank was asked at <time", "The day was not over", "The bank moved it, and it is not booked.", `data-label="At the bank">₦5,000.00</td><td class="num money" data-label="Booked">–</td>`, `href="/sessions/`+session+`">`)
	w.until("the bank was asked, and all agree", func() bool {
		w.pass(time.Minute)
		page := support.get(address)
		return page.status == http.StatusOK && strings.Contains(page.body, "All three agree about")
	})
	w.wants(w.as(flow.RoleSupport, w.merchant("Eve Stores")).get(address), http.StatusOK, "All three agree about", `<td>payment</td><td class="num money" data-label="At the bank">₦0.00 <span class="dim">in 0</span>`)
	for _, bad := range []string{"yesterday", "1999-12-31", string(day.Plus(2))} {
		if page := support.get("/reconciliation?date=" + bad); page.status != http.StatusBadRequest && page.status != http.StatusUnprocessableEntity || !strings.Contains(page.body, `role="alert"`) {
			t.Errorf("of %s: %d: %s", bad, page.status, page.main())
		}
	}
}
