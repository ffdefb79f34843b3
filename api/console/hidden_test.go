package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// hidden are characters that nobody sees: they turn what stands behind them round,
// or hide it.
const hidden = "\u202e\u2066\u2069\u200b\u0007\u0085"

// What a stranger chose is shown without what nobody sees, wherever it comes from.
func TestNoPageHoldsWhatNobodySees(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(id, "Bola"+hidden)
	if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: w.attempt(id).Instructions.AccountNumber, Amount: 700_000, SenderName: "Obina"}); err != nil {
		t.Fatal(err)
	}
	support := w.as(flow.RoleSupport)
	w.wants(support.post("/sessions/"+id+"/note", form("note", "one\ntwo"+hidden)), http.StatusSeeOther)
	w.until("the money is shown", func() bool { return strings.Contains(support.get("/sessions/"+id).body, "Obina") })
	for _, path := range []string{"/sessions/" + id, "/sessions/" + id + "/replay", "/sessions?q=x" + "%E2%80%AE", "/exceptions"} {
		got := support.get(path)
		w.wants(got, http.StatusOK)
		if at := strings.IndexAny(got.body, hidden); at >= 0 {
			t.Errorf("%s holds %q", path, got.body[max(0, at-60):at+10])
		}
	}
	_, lines := support.stream("/sessions/" + id + "/live")
	for n := 0; lines.Scan() && n < 50; n++ {
		if strings.ContainsAny(lines.Text(), hidden) {
			t.Errorf("the live part holds %q", lines.Text())
		}
	}
}

// A form that no browser makes is refused before anything is looked up or kept.
func TestAFormIsText(t *testing.T) {
	w := open(t)
	support, id := w.as(flow.RoleSupport), w.opened(w.ada, "")
	for _, odd := range []string{"a nul \x00 byte", "no UTF-8 \xff\xfe"} {
		w.wants(support.post("/sessions/"+id+"/note", form("note", odd)), http.StatusBadRequest, "cannot be read")
		w.wants(w.visitor().post("/login", form("email", odd+"@example.com", "password", "x")), http.StatusBadRequest, "cannot be read")
	}
}

// A reason is read by somebody, later: it is one line, and says something.
func TestAReasonIsOneLineThatSaysSomething(t *testing.T) {
	w := open(t)
	support, page := w.as(flow.RoleSupport), "/sessions/"+w.opened(w.ada, "")
	for _, nothing := range []string{"\u200b\u200b\u200b\u200b\u200b", "a\u202e\u202e\u202e", "  \t  ", "a  b"} {
		w.wants(support.post(page+"/reveal", form("reason", nothing)), http.StatusBadRequest, "Say why")
	}
	w.wants(support.post(page+"/reveal", form("reason", "to call back\r\n2026-11-22 owner@example.com payment.accept"+hidden)), http.StatusOK)
	list, _, err := w.accounts.Audits(t.Context(), store.AuditFilter{Action: "phone.reveal", Limit: 9})
	if err != nil || len(list) != 1 || list[0].Reason != "to call back 2026-11-22 owner@example.com payment.accept" {
		t.Errorf("kept is %+v, %v", list, err)
	}
	// So it is wherever else it is kept, and told from: an operator's, on the command line too.
	operator := w.as(flow.RoleOperator)
	operator.get("/ops")
	w.wants(operator.post("/ops/methods/ussd", form("to", "off", "confirm", "yes", "reason", "the bank\x1b[2J\r\nis\u202e down"+hidden)), http.StatusSeeOther)
	moves, err := w.boards[flow.Test].Moves(t.Context(), 1)
	if err != nil || len(moves) != 1 || moves[0].Reason != "the bank[2J is down" {
		t.Errorf("kept is %+v, %v", moves, err)
	}
}

// Nobody fills the memory of the server with names that they never log in with.
func TestALoginNamesAnAddressThatCanBeOne(t *testing.T) {
	w := open(t)
	v := w.visitor()
	got := v.post("/login", form("email", strings.Repeat("a", 60_000)+"@example.com", "password", "a long password"))
	w.wants(got, http.StatusUnauthorized, "nobody with this e-mail address")
	if strings.Contains(got.body, "aaaaaaaaaa") {
		t.Error("it is even shown again")
	}
}

// Who logs in again ends the login that the browser had: nobody is left in with a
// cookie that the browser does not hold any more.
func TestLoggingInAgainEndsTheLoginBefore(t *testing.T) {
	w := open(t)
	person, text := w.obi()
	before, again := w.carrying(text), w.carrying(text)
	w.wants(again.post("/login", form("email", person.Email, "password", "a long password")), http.StatusSeeOther)
	w.wants(again.get("/sessions"), http.StatusOK)
	w.wants(before.get("/sessions"), http.StatusSeeOther)
}

// A file for a spreadsheet holds no formula, wherever that program cuts the cells:
// half of the world's spreadsheets cut at semicolons.
func TestAFileRunsNothingInASpreadsheet(t *testing.T) {
	w := open(t)
	for i, formula := range []string{"=1+1", "＝1+1", "a;=1+1", "a; -1+1", "a;b;@SUM(1)", "\u00a0+1", "'=1"} {
		w.opened(w.ada, fmt.Sprintf(`,"customerName":%q,"reference":"order-%d"`, formula, i))
	}
	got := w.as(flow.RoleSupport).get("/sessions.csv")
	w.wants(got, http.StatusOK, "order-6")
	for line := range strings.SplitSeq(got.body, "\r\n") {
		for _, cell := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ';' || r == '\t' || r == '"' }) {
			if cell = strings.TrimSpace(cell); cell != "" && strings.ContainsAny(cell[:1], "=+-@") || strings.HasPrefix(cell, "＝") {
				t.Errorf("a cell begins with a formula: %s", line)
			}
		}
	}
}
