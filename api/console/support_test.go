package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/await"
	"till/flow/checkout"
	"till/flow/store"
	"till/rail"
)

// evil is a name that no page may show as it is.
const evil = `<script>alert(1)</script>"'>`

// opened opens a session over REST and returns its id.
func (w *world) opened(m merchant, more string) string {
	w.t.Helper()
	r := w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions", m.secret, `{"amount":500000,"customerEmail":"ada@example.com"`+more+`}`)
	w.wants(r, http.StatusCreated)
	_, rest, _ := strings.Cut(r.body, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// pays has somebody send money to the account of an attempt, of which the bank
// then tells.
func (w *world) pays(a flow.Attempt, amount flow.Kobo) {
	w.t.Helper()
	if _, err := w.bank.Transfer(w.t.Context(), rail.Transfer{AccountNumber: a.Instructions.AccountNumber, Amount: amount, SenderName: evil}); err != nil {
		w.t.Fatal(err)
	}
}

// attempt is the newest attempt of a session.
func (w *world) attempt(id string) flow.Attempt {
	w.t.Helper()
	list, err := w.dbs[flow.Test].Attempts(w.t.Context(), flow.SessionID(id))
	if err != nil || len(list) == 0 {
		w.t.Fatalf("%s has no attempt: %v", id, err)
	}
	return list[len(list)-1]
}

// inChat has a payer open a session in WhatsApp and choose bank transfer.
func (w *world) inChat(id, name string) {
	w.t.Helper()
	s, err := w.dbs[flow.Test].Session(w.t.Context(), flow.SessionID(id))
	must(w.t, err)
	for i, in := range []flow.Intent{
		{Kind: flow.MeansCode, Code: s.EntryCode, Text: "Pay " + s.EntryCode}, {Kind: flow.MeansMethod, Method: flow.BankTransfer, Text: "1"},
	} {
		must(w.t, w.services[flow.Test].Hear(w.t.Context(), checkout.Inbound{
			Number: "2348000000001", Person: "77@lid", Phone: "2348031234567", Name: name, Message: fmt.Sprint(id, i), Intent: in,
		}))
	}
	w.until("the account is shown", func() bool { a := w.attempt(id); return a.Instructions != nil })
}

func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	await.Until(w.t, what, done)
}

func TestASupporterFindsASessionByWhatAPayerSays(t *testing.T) {
	w := open(t)
	other := w.merchant("Bola Stores")
	mine := w.opened(w.ada, `,"customerName":"Ada Obi","customerPhone":"08031234567","reference":"order-1182"`)
	theirs := w.opened(other, `,"customerName":"Ada Obi","reference":"order-1182"`)
	support, operator := w.as(flow.RoleSupport), w.as(flow.RoleOperator)
	for _, q := range []string{"ada", "0803 123 4567", "5000", "order-1182", "Order-1182", "ORDER-1182", mine, "today", "5000 today", "ada@example.com", ""} {
		got := support.get("/sessions?" + url.Values{"q": {q}}.Encode())
		w.wants(got, http.StatusOK, `href="/sessions/`+mine+`"`)
		if strings.Contains(got.body, theirs) || strings.Contains(got.body, "8031234567") && q != "0803 123 4567" {
			t.Errorf("%q shows another merchant's, or a whole phone: %s", q, got.body)
		}
	}
	w.wants(operator.get("/sessions?q=ada"), http.StatusOK, mine, theirs, "Bola Stores")
	w.wants(support.get("/sessions?q=nobody"), http.StatusOK, "Nothing is found")
	w.wants(support.get("/sessions?q=5000+yesterday"), http.StatusOK, "Nothing is found", "amount ₦5,000.00")
	w.wants(support.get("/sessions?q=order+9"), http.StatusOK, "Looked for: name with the amount ₦9.00, or reference.")
	w.wants(support.get("/sessions?q=paid+3000"), http.StatusOK, "Looked for: amount ₦3,000.00, or reference, status paid.") // a part of a session that waits is not found so
	w.wants(support.get("/sessions?status=PAID"), http.StatusOK, "Nothing is found among the newest thousand that the words lead to: with a status, add a day to look further back. Try less")
	w.wants(support.get("/sessions?q=yesterday&status=PAID"), http.StatusOK, "Nothing is found among the newest thousand that the words lead to. Try less")
	w.wants(support.get("/sessions?q=pending+this+week"), http.StatusOK, `href="/sessions/`+mine+`"`, `<option value="PENDING" selected>`)
	w.wants(support.get("/sessions?q=paid+today"), http.StatusOK, "Nothing is found", `<option value="PAID" selected>`)
	if file := support.get("/sessions.csv?q=paid+today"); strings.Contains(file.body, mine) {
		t.Errorf("a file of what is paid holds %s", file.body)
	}
	w.wants(support.get("/sessions?"+url.Values{"q": {evil}}.Encode()), http.StatusOK, "&lt;script&gt;")
	for range 26 {
		w.opened(w.ada, "")
	}
	first := support.get("/sessions")
	_, rest, found := strings.Cut(first.body, `<a href="/sessions?before=`)
	if !found {
		t.Fatalf("27 sessions stand on one page: %s", first.body)
	}
	next, _, _ := strings.Cut(rest, `"`)
	w.wants(support.get("/sessions?before="+strings.ReplaceAll(next, "&amp;", "&")), http.StatusOK, mine)
}

func TestASessionsPageTellsEverything(t *testing.T) {
	w := open(t)
	w.wants(w.ask(http.MethodPost, "/v1/webhook-endpoints", w.ada.secret, `{"url":"https://shop.example/hook"}`), http.StatusCreated)
	id := w.opened(w.ada, `,"mode":"chat","customerName":`+fmt.Sprintf("%q", evil))
	w.inChat(id, evil)
	a := w.attempt(id)
	w.pays(a, 300_000)
	w.until("the part is booked", func() bool {
		list, err := w.dbs[flow.Test].Payments(context.Background(), flow.SessionID(id))
		return err == nil && len(list) == 1
	})
	page := "/sessions/" + id
	for _, role := range []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator} {
		got := w.as(role).get(page)
		w.wants(got, http.StatusOK, "&lt;script&gt;alert(1)&lt;/script&gt;", a.Instructions.AccountNumber, "rail.answer", "took", "unapplied",
			"partial", "₦3,000.00", "part_paid", "the session expires", "234•••••4567", "shop.example", "understood as", "Raw", "/replay",
			"the payer opens a payment with its code.", "Bank transfer chosen; account number "+a.Instructions.AccountNumber, "In the books, for money that came: ₦3,000 is set aside")
		if strings.Contains(got.body, "2348031234567") {
			t.Errorf("%s sees the payer's whole phone", role)
		}
	}
	w.wants(w.as(flow.RoleOwner, w.merchant("Bola Stores")).get(page), http.StatusNotFound)
	w.wants(w.as(flow.RoleOwner).get("/sessions/wsp_sess_none"), http.StatusNotFound)
	w.wants(w.visitor().get(page), http.StatusSeeOther)

	export := w.as(flow.RoleSupport).get(page + "/export")
	w.wants(export, http.StatusOK, "till/conversation/1", `"redacted":true`)
	for _, private := range []string{"8031234567", "<script", `\u003cscript`} {
		if at := strings.Index(export.body, private); at >= 0 {
			t.Errorf("the export holds %s: …%s", private, export.body[max(0, at-200):at+50])
		}
	}
	if !strings.Contains(export.header.Get("Content-Disposition"), ".jsonl") {
		t.Errorf("the export is no file: %v", export.header)
	}
	w.wants(w.as(flow.RoleSupport).get("/sessions/"+w.opened(w.ada, "")+"/export"), http.StatusNotFound)
}

func TestActsOnASessionAskWhyAndAreKept(t *testing.T) {
	w := open(t)
	w.wants(w.ask(http.MethodPost, "/v1/webhook-endpoints", w.ada.secret, `{"url":"https://shop.example/hook"}`), http.StatusCreated)
	id := w.opened(w.ada, `,"mode":"chat"`)
	w.inChat(id, "Ada")
	a := w.attempt(id)
	w.pays(a, 700_000)
	var paid flow.Payment
	w.until("the money is booked and told", func() bool {
		list, err := w.dbs[flow.Test].Payments(context.Background(), flow.SessionID(id))
		if err == nil && len(list) == 1 {
			paid = list[0]
		}
		return paid.ID != "" && len(w.deliveries()) > 0
	})
	support := w.as(flow.RoleSupport)
	page := "/sessions/" + id
	w.wants(support.get(page), http.StatusOK, "Decide about ₦2,000.00", "paid_over")
	why := "the payer called"

	// Nothing is done without a reason, and what was typed is not lost.
	for _, act := range []string{"/reveal", "/check", "/instructions"} {
		w.wants(support.post(page+act, url.Values{"reason": {""}}), http.StatusBadRequest, "Say why")
	}
	w.wants(support.post(page+"/note", url.Values{"note": {" "}}), http.StatusBadRequest, "Write something")
	w.wants(support.post(page+"/resolve", url.Values{"payment": {string(paid.ID)}, "decision": {"refund"}, "reason": {why}}), http.StatusBadRequest, "Tick the box", why)
	w.wants(support.post(page+"/resolve", url.Values{"payment": {string(paid.ID)}, "decision": {"keep"}, "confirm": {"yes"}, "reason": {why}}), http.StatusBadRequest, "Decide")
	w.wants(support.post(page+"/reveal", url.Values{"csrf": {"x"}, "reason": {why}}), http.StatusForbidden)

	w.wants(support.post(page+"/reveal", url.Values{"reason": {why}}), http.StatusOK, "+2348031234567")
	w.wants(support.post(page+"/note", url.Values{"note": {"Call back <b>at noon</b>"}}), http.StatusSeeOther)
	w.wants(support.post(page+"/check", url.Values{"reason": {why}}), http.StatusSeeOther)
	w.wants(support.post(page+"/check", url.Values{"reason": {why}}), http.StatusTooManyRequests, "less than")
	w.mu.Lock()
	said := len(w.said)
	w.mu.Unlock()
	w.wants(support.post(page+"/instructions", url.Values{"reason": {why}}), http.StatusSeeOther)
	w.until("the payer reads it again", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.said) > said })
	w.wants(support.post(page+"/instructions", url.Values{"reason": {why}}), http.StatusTooManyRequests, "Wait a minute")
	w.pass(61 * time.Second)
	w.wants(support.post(page+"/instructions", url.Values{"reason": {why}}), http.StatusSeeOther)

	events, err := w.dbs[flow.Test].EventsOf(t.Context(), flow.SessionID(id), 9)
	if err != nil || len(events) == 0 {
		t.Fatal(events, err)
	}
	sent := len(w.deliveries())
	w.wants(support.post(page+"/resend", url.Values{"event": {string(events[0].ID)}, "reason": {why}}), http.StatusSeeOther)
	w.until("the event is sent again", func() bool { return len(w.deliveries()) > sent })
	w.wants(support.post(page+"/resend", url.Values{"event": {"evt_none"}, "reason": {why}}), http.StatusNotFound)
	w.wants(support.post("/sessions/"+w.opened(w.ada, "")+"/resend", url.Values{"event": {string(events[0].ID)}, "reason": {why}}), http.StatusNotFound)

	decide := url.Values{"payment": {string(paid.ID)}, "decision": {"refund"}, "confirm": {"yes"}, "reason": {why}}
	w.wants(w.as(flow.RoleDeveloper).post(page+"/resolve", decide), http.StatusForbidden)
	w.wants(support.post("/sessions/"+w.opened(w.ada, "")+"/resolve", decide), http.StatusNotFound)
	w.wants(support.post(page+"/resolve", decide), http.StatusSeeOther)
	w.wants(support.get(page), http.StatusOK, "By somebody in the console: "+why, "as somebody in the console decided: "+why)
	w.wants(support.post(page+"/resolve", decide), http.StatusConflict, "decided about before")

	w.wants(support.get(page), http.StatusOK, "Call back &lt;b&gt;at noon", "phone.reveal", "instructions.resend", "bank.ask", "event.resend", "payment.send_back", why, "returning")
	rows, err := w.people.Audit(t.Context(), store.AuditFilter{Account: w.ada.account, Limit: 100})
	must(t, err)
	kept := map[string]int{}
	for _, r := range rows {
		if r.Role == flow.RoleKey { // the merchant's own program
			continue
		}
		kept[r.Action]++
		if r.Actor == "" || r.Role != flow.RoleSupport || r.Project != w.ada.project.ID || r.Environment != flow.Test {
			t.Errorf("kept of %s: %+v", r.Action, r)
		}
	}
	for _, action := range []string{"phone.reveal", "session.note", "bank.ask", "instructions.resend", "event.resend", "payment.send_back"} {
		if kept[action] == 0 {
			t.Errorf("nothing is kept of %s: %v", action, kept)
		}
	}
}

func TestWhoMayDoWhatToASession(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"mode":"chat"`)
	stranger := w.merchant("Bola Stores")
	roles := []flow.Role{flow.RoleOwner, flow.RoleDeveloper, flow.RoleSupport, flow.RoleOperator}
	for act, right := range map[string]flow.Right{
		"/reveal": flow.MayReveal, "/note": flow.MayAnswer, "/instructions": flow.MayResend, "/check": flow.MayResend, "/resend": flow.MayResend, "/resolve": flow.MayMoveMoney,
		"/retry": flow.MayMoveMoney,
	} {
		form := url.Values{"reason": {"to see who may"}, "note": {"x"}}
		for _, role := range roles {
			got := w.as(role).post("/sessions/"+id+act, form)
			if refused := got.status == http.StatusForbidden; refused == role.May(right) {
				t.Errorf("%s %s: %d", role, act, got.status)
			}
		}
		w.wants(w.visitor().post("/sessions/"+id+act, form), http.StatusSeeOther)
		w.wants(w.as(flow.RoleOwner).post("/sessions/"+id+act, url.Values{"csrf": {"x"}, "reason": {"a good one"}}), http.StatusForbidden)
		if got := w.as(flow.RoleOwner, stranger).post("/sessions/"+id+act, url.Values{"reason": {"a good one"}, "note": {"x"}, "decision": {"refund"}, "confirm": {"yes"}}); got.status != http.StatusNotFound {
			t.Errorf("another merchant's %s: %d", act, got.status)
		}
	}
	for _, page := range []string{"/sessions", "/exceptions", "/sessions/" + id} {
		for _, role := range roles {
			w.wants(w.as(role).get(page), http.StatusOK)
		}
		w.wants(w.visitor().get(page), http.StatusSeeOther)
	}
}

func TestWhatWaitsStandsInItsQueue(t *testing.T) {
	w := open(t)
	w.answers(flow.Verdict{Status: http.StatusInternalServerError, Reason: "broken"})
	w.wants(w.ask(http.MethodPost, "/v1/webhook-endpoints", w.ada.secret, `{"url":"https://shop.example/hook"}`), http.StatusCreated)
	other := w.merchant("Bola Stores")
	amounts := map[string]flow.Kobo{"underpaid": 300_000, "overpaid": 700_000}
	ids := map[string]string{}
	for queue, amount := range amounts {
		ids[queue] = w.opened(w.ada, `,"customerName":"Chidi Okeke","reference":"order-`+queue+`"`)
		w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+ids[queue]+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
		w.pays(w.attempt(ids[queue]), amount)
	}
	w.until("the money is booked and the webhooks given up", func() bool {
		dead, _, err := w.dbs[flow.Test].QueueSize(context.Background(), store.QueueFilter{Queue: store.QueueWebhooks, Now: w.now()})
		part, _, err2 := w.dbs[flow.Test].QueueSize(context.Background(), store.QueueFilter{Queue: store.QueueUnderpaid, Now: w.now()})
		over, _, err3 := w.dbs[flow.Test].QueueSize(context.Background(), store.QueueFilter{Queue: store.QueueOverpaid, Now: w.now()})
		return err == nil && err2 == nil && err3 == nil && dead > 0 && part > 0 && over > 0
	})
	support := w.as(flow.RoleSupport)
	for queue, id := range ids {
		w.wants(support.get("/exceptions?queue="+queue), http.StatusOK, `href="/sessions/`+id, "Chidi Okeke, order-"+queue)
		got := w.as(flow.RoleOwner, other).get("/exceptions?queue=" + queue)
		if w.wants(got, http.StatusOK); strings.Contains(got.body, id) {
			t.Errorf("%s shows another merchant's", queue)
		}
		w.wants(w.as(flow.RoleOperator).get("/exceptions?queue="+queue), http.StatusOK, id, "Ada Stores")
	}
	w.wants(support.get("/exceptions?queue=overpaid"), http.StatusOK, "&lt;script&gt;")
	w.wants(support.get("/exceptions?queue=webhooks"), http.StatusOK, "shop.example", "Send it again")
	w.wants(support.get("/exceptions?queue=nonsense"), http.StatusOK, "Underpaid")
	if got := support.get("/exceptions"); strings.Contains(got.body, "too long") {
		t.Errorf("what has just come waits too long: %s", got.body)
	}
	w.pass(25 * time.Hour)
	support = w.as(flow.RoleSupport) // the login before is over too
	w.wants(support.get("/exceptions?queue=overpaid"), http.StatusOK, "too long", `class="old"`)
	for _, queue := range store.Queues() {
		w.wants(support.get("/exceptions?queue="+string(queue)), http.StatusOK)
	}
	w.until("the part of a session that is over is shown as what is set aside", func() bool {
		return strings.Contains(support.get("/exceptions?queue=underpaid").body, "₦3,000.00 set aside")
	})
	// Money that no session is of is decided about where it stands, by its own merchant.
	if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001112", Amount: 123_400, Collects: w.ada.project.ID, SenderName: evil}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001113", Amount: 567_800}); err != nil {
		t.Fatal(err)
	}
	queue := store.QueueFilter{Queue: store.QueueUnmatched, Now: w.now(), Limit: 9}
	var orphans []store.Waiting
	w.until("the money is booked", func() bool {
		var err error
		orphans, err = w.dbs[flow.Test].Waits(context.Background(), queue)
		return err == nil && len(orphans) == 2
	})
	mine, nobodys := orphans[0], orphans[1]
	if mine.Project == "" {
		mine, nobodys = nobodys, mine
	}
	decide := func(w store.Waiting, decision string) url.Values {
		return url.Values{"payment": {w.Subject}, "decision": {decision}, "confirm": {"yes"}, "reason": {"found out whose it is"}}
	}
	w.wants(support.get("/exceptions?queue=unmatched"), http.StatusOK, "₦1,234.00", "&lt;script&gt;", "Decide")
	w.wants(w.as(flow.RoleOwner, other).post("/exceptions/resolve", decide(mine, "accept")), http.StatusNotFound)
	w.wants(support.post("/exceptions/resolve", decide(nobodys, "accept")), http.StatusNotFound)
	w.wants(w.as(flow.RoleOperator).get("/exceptions?queue=unmatched"), http.StatusOK, "₦5,678.00", "It came to no project")
	w.wants(w.as(flow.RoleOperator).post("/exceptions/resolve", decide(nobodys, "accept")), http.StatusConflict, "Not done: This money came to no project")
	w.wants(w.as(flow.RoleDeveloper).post("/exceptions/resolve", decide(mine, "accept")), http.StatusForbidden)
	unsaid := decide(mine, "accept")
	unsaid.Set("reason", "")
	w.wants(support.post("/exceptions/resolve", unsaid), http.StatusBadRequest, "Say why")
	w.wants(support.post("/exceptions/resolve", decide(mine, "accept")), http.StatusSeeOther)
	if p, err := w.dbs[flow.Test].Payment(t.Context(), flow.PaymentID(mine.Subject)); err != nil || p.Resolution != flow.ResolvedAccepted || p.ResolvedBy != w.ada.account {
		t.Errorf("it became %+v, %v", p, err)
	}
	w.wants(support.post("/exceptions/resolve", url.Values{"payment": {"wsp_pay_none"}, "decision": {"refund"}, "confirm": {"yes"}, "reason": {"not mine"}}), http.StatusNotFound)
}

func TestARefundThatDidNotWorkIsSentOnceMore(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, "")
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	w.pays(w.attempt(id), 500_000)
	var paid flow.Payment
	w.until("the money is booked", func() bool {
		list, err := w.dbs[flow.Test].Payments(context.Background(), flow.SessionID(id))
		if err == nil && len(list) == 1 {
			paid = list[0]
		}
		return paid.ID != ""
	})
	weather := func(refunds rail.Fate) {
		if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: refunds}); err != nil {
			t.Fatal(err)
		}
	}
	weather(rail.FateFail)
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":100000}`), http.StatusCreated)
	refund := func() flow.Refund {
		list, err := w.dbs[flow.Test].Refunds(context.Background(), store.RefundFilter{Project: w.ada.project.ID, Limit: 1})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	w.until("the refund failed", func() bool { return refund().Status == flow.RefundFailed })
	weather(rail.FateOK)
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	w.wants(support.get(page), http.StatusOK, "Send the refund of ₦1,000.00 once more")
	form := url.Values{"refund": {string(refund().ID)}, "reason": {"the bank is well again"}}
	w.wants(support.post(page+"/retry", form), http.StatusBadRequest, "Tick the box")
	form.Set("confirm", "yes")
	w.wants(support.post("/sessions/"+w.opened(w.ada, "")+"/retry", form), http.StatusNotFound)
	w.wants(support.post(page+"/retry", form), http.StatusSeeOther)
	w.until("the refund is sent", func() bool { return refund().Status == flow.RefundProcessed })
	w.wants(support.post(page+"/retry", form), http.StatusConflict, "cannot be retried")
}

func TestASessionsPageIsLive(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, "")
	support := w.as(flow.RoleSupport)
	w.wants(w.as(flow.RoleOwner, w.merchant("Bola Stores")).get("/sessions/"+id+"/live"), http.StatusNotFound)
	_, lines := support.stream("/sessions/" + id + "/live")
	w.shows(lines, "opened")
	w.wants(support.post("/sessions/"+id+"/note", url.Values{"note": {"said & done"}}), http.StatusSeeOther)
	w.shows(lines, "said &amp; done")
}

// Money goes back because somebody wanted that: the story says who and why, also where the
// bank refused, after which nothing is decided about it any more. How a session stands is
// the end of its story, whatever people did there since.
func TestAStoryTellsWhoWantedMoneySentBack(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	id, paid := w.money(w.ada, 600_000)
	for i, asks := range []struct{ path, body string }{
		{"/v1/payments/" + string(paid.ID) + "/resolve", `{"action":"refund","reason":"nobody wants it"}`},
		{"/v1/refunds", `{"paymentId":"` + string(paid.ID) + `","amount":70000,"reason":"one shirt was sold out."}`},
	} {
		if got := w.ask(http.MethodPost, asks.path, w.ada.secret, asks.body); got.status >= 300 {
			t.Fatal(got.status, got.body)
		}
		w.until("it is refused", func() bool {
			list, err := w.dbs[flow.Test].Refunds(t.Context(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(id), Status: flow.RefundFailed, Limit: 9})
			return err == nil && len(list) == i+1
		})
	}
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	w.wants(support.post(page+"/note", url.Values{"note": {"She was called."}}), http.StatusSeeOther)
	got := support.get(page)
	w.wants(got, http.StatusOK, "₦700 is to go back to who paid it, because the merchant’s own program asked for that: one shirt was sold out.<", "₦1,000 is to go back to who paid it, because that was decided: nobody wants it.")
	if strings.Index(got.body, "As it stands") < strings.Index(got.body, "She was called.") {
		t.Error("the story goes on after its end")
	}
}
