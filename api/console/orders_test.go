package console_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// audits are the acts that the audit log holds about a thing, newest first.
func (w *world) audits(subject string) []flow.Audited {
	w.t.Helper()
	list, _, err := w.accounts.Audits(context.Background(), store.AuditFilter{Subject: subject, Limit: 50})
	must(w.t, err)
	return list
}

// money is the one payment of a session of ₦5,000 that was paid with so much.
func (w *world) money(m merchant, amount flow.Kobo) (session string, p flow.Payment) {
	w.t.Helper()
	session = w.opened(m, "")
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+session+"/pay/bank-transfer", m.secret, "{}"), http.StatusOK)
	w.pays(w.attempt(session), amount)
	w.until("the money is booked", func() bool {
		list, err := w.dbs[flow.Test].Payments(context.Background(), flow.SessionID(session))
		if err == nil && len(list) == 1 {
			p = list[0]
		}
		return p.ID != ""
	})
	return session, p
}

// returned is a refund of ₦1,000 that was sent and came back.
func (w *world) returned(m merchant) (session string, refund func() flow.Refund) {
	w.t.Helper()
	session, paid := w.money(m, 500_000)
	if _, err := w.bank.SetConditions(w.t.Context(), rail.Conditions{Up: true, Refunds: rail.FateBounce}); err != nil {
		w.t.Fatal(err)
	}
	w.wants(w.ask(http.MethodPost, "/v1/refunds", m.secret, `{"paymentId":"`+string(paid.ID)+`","amount":100000}`), http.StatusCreated)
	refund = func() flow.Refund {
		list, err := w.dbs[flow.Test].Refunds(context.Background(), store.RefundFilter{Project: m.project.ID, Session: flow.SessionID(session), Limit: 1})
		if err != nil || len(list) != 1 {
			w.t.Fatal(list, err)
		}
		return list[0]
	}
	w.until("the refund came back", func() bool { return refund().Status == flow.RefundAttention })
	return session, refund
}

func TestARefundIsSaidToBePaidByHand(t *testing.T) {
	w := open(t)
	id, refund := w.returned(w.ada)
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	w.wants(support.get("/exceptions?queue=refunds"), http.StatusOK, "it came back, or the bank refused it again and again.", `data-label="About">₦1,000.00`)
	w.wants(support.get(page), http.StatusOK, "It was paid by hand", "Send the refund of ₦1,000.00 once more")
	form := url.Values{"refund": {string(refund().ID)}, "reason": {"paid at the counter"}, "transfer": {"FT-77"}, "sent": {"2026-01-05T10:30"}}
	w.wants(support.post(page+"/by-hand", form), http.StatusBadRequest, "Tick the box", `value="FT-77"`, "2026-01-05T10:30")
	form.Set("confirm", "yes")
	w.wants(support.post(page+"/by-hand", form), http.StatusBadRequest, "Not done: The transfer cannot have been sent before the money came, on ")
	sent := w.now().Truncate(time.Minute)
	form.Set("sent", sent.In(flow.Lagos).Format("2006-01-02T15:04"))
	for field, wrong := range map[string]string{"transfer": "F T", "sent": "yesterday", "reason": " "} {
		bad := url.Values{}
		maps.Copy(bad, form)
		bad.Set(field, wrong)
		w.wants(support.post(page+"/by-hand", bad), http.StatusBadRequest, "Not done")
	}
	if list := w.audits(string(refund().ID)); len(list) != 0 {
		t.Errorf("of what was refused is kept: %+v", list)
	}
	w.wants(support.post("/sessions/"+w.opened(w.ada, "")+"/by-hand", form), http.StatusNotFound)
	w.wants(w.as(flow.RoleDeveloper).post(page+"/by-hand", form), http.StatusForbidden)
	w.wants(support.post(page+"/by-hand", form), http.StatusSeeOther)
	if r := refund(); r.Status != flow.RefundProcessed || r.RailTransactionID != "FT-77" || !r.DoneAt.Equal(sent) {
		t.Errorf("it became %+v", r)
	}
	w.wants(support.post(page+"/by-hand", form), http.StatusConflict, "cannot be paid by hand")
	w.wants(support.get(page), http.StatusOK, "said that a refund was paid by hand. Reason: paid at the counter", "because money went back: ₦1,000 left the bank")
	if list := w.audits(string(refund().ID)); len(list) != 1 || list[0].Action != "refund.done_by_hand" || list[0].Reason != "paid at the counter" {
		t.Errorf("kept: %+v", list)
	}
}

func TestMuchMoneyIsDecidedAboutByTwoPeople(t *testing.T) {
	w := open(t)
	id, paid := w.money(w.ada, 500_000+60_000_000)
	support, owner, page := w.as(flow.RoleSupport), w.as(flow.RoleOwner), "/sessions/"+id
	w.wants(support.get(page), http.StatusOK, "About more than ₦500,000.00 a second person has to agree")
	order := url.Values{"payment": {string(paid.ID)}, "decision": {"accept"}, "confirm": {"yes"}, "reason": {"the customer agreed"}}
	asked := support.post(page+"/resolve", order)
	w.wants(asked, http.StatusSeeOther)
	is := func() flow.Payment {
		p, err := w.dbs[flow.Test].Payment(context.Background(), paid.ID)
		must(t, err)
		return p
	}
	if is().Resolution != flow.Unresolved {
		t.Fatal("one person decided")
	}
	w.wants(support.post(page+"/resolve", order), http.StatusConflict, "waits for a second person")
	list, err := w.dbs[flow.Test].Proposals(t.Context(), flow.SessionID(id), 9)
	if err != nil || len(list) != 1 || list[0].Reason != "the customer agreed" {
		t.Fatal(list, err)
	}
	second := url.Values{"proposal": {string(list[0].ID)}, "decision": {"agree"}, "confirm": {"yes"}, "reason": {"looked at the order"}}

	w.wants(support.get("/exceptions?queue=second"), http.StatusOK, "You asked for it", "Take it back", "₦600,000.00")
	w.wants(owner.get("/exceptions?queue=second"), http.StatusOK, "support of "+w.ada.email, "asked to give set-aside money to the merchant", "the customer agreed", ">Agree<")
	w.wants(owner.get(page), http.StatusOK, "Waits for a second person", ">Agree<")
	// A merchant who is stopped is given nothing: the pages say so before somebody tries.
	w.stops(w.ada, flow.MerchantStopped)
	for _, at := range []string{"/exceptions?queue=second", page} {
		if got := owner.get(at); !strings.Contains(got.body, "nobody can agree") || strings.Contains(got.body, ">Agree<") || !strings.Contains(got.body, ">Refuse<") {
			t.Errorf("%s of a stopped project: %s", at, got.body)
		}
	}
	w.wants(owner.post("/exceptions/second", second), http.StatusForbidden, "This project is stopped")
	w.stops(w.ada, "")
	other := w.merchant("Bola Stores")
	if got := w.as(flow.RoleOwner, other).get("/exceptions?queue=second"); strings.Contains(got.body, w.ada.email) {
		t.Errorf("another merchant reads it: %s", got.body)
	}
	w.wants(w.as(flow.RoleOwner, other).post("/exceptions/second", second), http.StatusNotFound)
	w.wants(w.as(flow.RoleDeveloper).post("/exceptions/second", second), http.StatusForbidden)
	w.wants(support.post("/exceptions/second", second), http.StatusConflict, "somebody else has to agree")
	for field, wrong := range map[string]string{"reason": "", "confirm": "", "decision": "perhaps"} {
		bad := url.Values{}
		maps.Copy(bad, second)
		bad.Set(field, wrong)
		w.wants(owner.post("/exceptions/second", bad), http.StatusBadRequest, "Not done", `minlength="4" required value="`+bad.Get("reason")+`"`)
	}
	if is().Resolution != flow.Unresolved {
		t.Fatal("it was decided about")
	}
	for _, a := range w.audits(string(paid.ID)) {
		if a.Action != "ask.payment.accept" {
			t.Errorf("of what was refused is kept: %+v", a)
		}
	}
	// An owner and an operator agree at the same moment.
	var wait sync.WaitGroup
	var codes [2]int
	for i, v := range []*visitor{owner, w.as(flow.RoleOperator)} {
		wait.Go(func() { codes[i] = v.post("/exceptions/second", second).status })
	}
	wait.Wait()
	if codes != [2]int{http.StatusSeeOther, http.StatusConflict} && codes != [2]int{http.StatusConflict, http.StatusSeeOther} {
		t.Errorf("both agreed: %v", codes)
	}
	if is().Resolution != flow.ResolvedAccepted {
		t.Errorf("it became %+v", is())
	}
	kept := map[string]string{}
	for _, a := range w.audits(string(paid.ID)) {
		kept[a.Action] += a.Actor + ": " + a.Reason + "\n"
	}
	if kept["ask.payment.accept"] != "support of "+w.ada.email+": the customer agreed\n" || !strings.Contains(kept["agree.payment.accept"], "looked at the order (asked for by support of "+w.ada.email+")") {
		t.Errorf("kept: %v", kept)
	}
	w.wants(owner.get("/exceptions?queue=second"), http.StatusOK, "Nothing waits for a second person")
	w.wants(support.get(page), http.StatusOK, "asked to give set-aside money to the merchant. Reason: the customer agreed")
}

// Who agrees reads what of the money goes back as too much, as who asked did.
func TestASecondPersonReadsWhatGoesBackAsTooMuch(t *testing.T) {
	w := open(t)
	id := w.opened(w.ada, `,"overpayment":"refund_excess"`)
	at := "/v1/whatsapp/checkout/sessions/" + id
	w.wants(w.ask(http.MethodPost, at+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	a := w.attempt(id)
	w.wants(w.ask(http.MethodPost, at+"/cancel", w.ada.secret, "{}"), http.StatusOK)
	w.pays(a, 60_500_000)
	var paid flow.Payment
	w.until("the money is booked", func() bool {
		list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
		if err == nil && len(list) == 1 {
			paid = list[0]
		}
		return paid.ID != ""
	})
	order := url.Values{"payment": {string(paid.ID)}, "decision": {"accept"}, "confirm": {"yes"}, "reason": {"the customer agreed"}}
	w.wants(w.as(flow.RoleSupport).post("/sessions/"+id+"/resolve", order), http.StatusSeeOther)
	for _, page := range []string{"/exceptions?queue=second", "/sessions/" + id} {
		w.wants(w.as(flow.RoleOwner).get(page), http.StatusOK, "merchant, ₦605,000.00, of which ₦600,000.00 goes back as too much", ">Agree<")
	}
}

// A part that goes back by policy, and that the bank would not send, can be decided about
// while its session is open: nobody is told to wait for the rest.
func TestAPartThatCouldNotGoBackIsDecidedAbout(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	id := w.opened(w.ada, `,"underpayment":"refund"`)
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	w.pays(w.attempt(id), 200_000)
	w.until("the bank refused to send it back", func() bool {
		list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
		return err == nil && len(list) == 1 && list[0].Unapplied == 200_000
	})
	support := w.as(flow.RoleSupport)
	w.wants(support.get("/exceptions?queue=underpaid"), http.StatusOK, id, "or where its policy sends too little back, decide on its page")
	w.wants(support.get("/sessions/"+id), http.StatusOK, "Decide about ₦2,000.00")
}

func TestNothingIsAcceptedOfAStoppedProject(t *testing.T) {
	w := open(t)
	id, paid := w.money(w.ada, 600_000)
	support, resolve := w.as(flow.RoleSupport), "/v1/payments/"+string(paid.ID)+"/resolve"
	w.wants(support.get("/sessions/"+id), http.StatusOK, ">Accept it<", ">Send it back<", resolve+" -H", "&#34;action&#34;:&#34;accept&#34;")
	w.stops(w.ada, flow.MerchantStopped)
	w.wants(w.ask(http.MethodPost, resolve, w.ada.secret, `{"action":"refund"}`), http.StatusForbidden, "project_suspended")
	if got := support.get("/sessions/" + id); strings.Contains(got.body, ">Accept it<") || !strings.Contains(got.body, ">Send it back<") || !strings.Contains(got.body, "can be sent back, and not accepted") || strings.Contains(got.body, resolve) { // by a key it can be neither
		t.Errorf("a stopped project: %s", got.body)
	}
}

func TestWhatWaitsForASecondPersonIsRefusedOrForgotten(t *testing.T) {
	w := open(t)
	id, paid := w.money(w.ada, 500_000+60_000_000)
	support, owner, page := w.as(flow.RoleSupport), w.as(flow.RoleOwner), "/sessions/"+id
	order := url.Values{"payment": {string(paid.ID)}, "decision": {"refund"}, "confirm": {"yes"}, "reason": {"the payer called"}}
	asks := func() url.Values {
		w.wants(support.post(page+"/resolve", order), http.StatusSeeOther)
		list, err := w.dbs[flow.Test].Proposals(t.Context(), flow.SessionID(id), 1)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return url.Values{"proposal": {string(list[0].ID)}, "reason": {"not our customer"}, "confirm": {"yes"}, "decision": {"refuse"}}
	}
	first := asks()
	w.wants(owner.post("/exceptions/second", first), http.StatusSeeOther)
	first.Set("decision", "agree")
	w.wants(owner.post("/exceptions/second", first), http.StatusConflict, "refused it")
	mine := asks()
	w.wants(support.post("/exceptions/second", mine), http.StatusSeeOther) // taken back by who asked
	late := asks()
	late.Set("decision", "agree")
	w.pass(flow.ProposalLife)
	owner = w.as(flow.RoleOwner) // the login before is over too
	w.wants(owner.get("/exceptions?queue=second"), http.StatusOK, "Nothing waits for a second person")
	w.wants(owner.post("/exceptions/second", late), http.StatusConflict, "within 24 hours")
	p, err := w.dbs[flow.Test].Payment(t.Context(), paid.ID)
	if err != nil || p.Resolution != flow.Unresolved {
		t.Errorf("it became %+v, %v", p, err)
	}
}

func TestASessionIsCancelledOrEnded(t *testing.T) {
	w := open(t)
	support := w.as(flow.RoleSupport)
	for act, want := range map[string]flow.SessionStatus{"cancel": flow.SessionCancelled, "expire": flow.SessionExpired} {
		id := w.opened(w.ada, "")
		page := "/sessions/" + id
		w.wants(support.get(page), http.StatusOK, "End this session", "/cancel -H")
		w.wants(support.post(page+"/"+act, url.Values{"reason": {"the goods are gone"}}), http.StatusBadRequest, "Tick the box", "the goods are gone")
		w.wants(support.post(page+"/"+act, url.Values{"confirm": {"yes"}}), http.StatusBadRequest, "Say why")
		sure := url.Values{"reason": {"the goods are gone"}, "confirm": {"yes"}}
		w.wants(support.post(page+"/"+act, sure), http.StatusSeeOther)
		s, err := w.dbs[flow.Test].Session(t.Context(), flow.SessionID(id))
		if err != nil || s.Status != want {
			t.Errorf("%s: %+v, %v", act, s, err)
		}
		w.wants(support.post(page+"/"+act, sure), http.StatusConflict, "Not done")
		got := support.get(page)
		w.wants(got, http.StatusOK, "Reason: the goods are gone", "wanted was refused, and not done: ")
		if strings.Contains(got.body, "End this session") {
			t.Errorf("what is over can be ended: %s", got.main())
		}
		kept := map[string]int{}
		for _, a := range w.audits(id) {
			kept[a.Action]++
		}
		if !maps.Equal(kept, map[string]int{"session." + act: 2, "session." + act + ".refused": 1}) {
			t.Errorf("kept: %v", kept)
		}
	}
}

// What is said to happen next does: what was owed for a case that did not come is not told.
func TestWhatHappensNextIsWhatWill(t *testing.T) {
	w := open(t)
	v, id := w.as(flow.RoleOwner), w.opened(w.ada, "")
	const start, lapse, back = "the bank is asked for instructions", "the instructions run out", "money that nobody decided about goes back"
	next := func(when string, want ...string) {
		t.Helper()
		page := v.get("/sessions/" + id)
		w.wants(page, http.StatusOK, append(want, "the bank is asked what came")...)
		for _, what := range []string{start, lapse, back} {
			if !slices.Contains(want, what) && strings.Contains(page.body, what) {
				t.Errorf("%s it is said that %s", when, what)
			}
		}
	}
	w.wants(w.ask(http.MethodPost, "/v1/whatsapp/checkout/sessions/"+id+"/pay/bank-transfer", w.ada.secret, "{}"), http.StatusOK)
	next("once the instructions are there", lapse)
	a, booked := w.attempt(id), 0
	for range 2 {
		w.pays(a, 500_000)
		booked++
		w.until("the money is booked", func() bool {
			list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
			return err == nil && len(list) == booked
		})
	}
	next("once it was paid twice", back)
	list, err := w.dbs[flow.Test].Payments(t.Context(), flow.SessionID(id))
	must(t, err)
	twice := list[slices.IndexFunc(list, func(p flow.Payment) bool { return p.Match == flow.Duplicate })]
	w.wants(v.post("/sessions/"+id+"/resolve", form("payment", string(twice.ID), "decision", "accept", "reason", "the shop owes her change", "confirm", "yes")), http.StatusSeeOther)
	next("once it was decided")
}

// Nobody is offered to send a refund once more whose money went back another way: the
// order would be refused.
func TestARefundIsOfferedOnceMoreOnlyWhileItsMoneyIsThere(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	id, paid := w.money(w.ada, 500_000)
	refund := func(amount, status string) {
		t.Helper()
		w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":`+amount+`}`), http.StatusCreated)
		w.until("the refund is "+status, func() bool {
			list, err := w.dbs[flow.Test].Refunds(t.Context(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(id), Limit: 1})
			return err == nil && len(list) == 1 && string(list[0].Status) == status
		})
	}
	refund("100000", "FAILED")
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	w.wants(support.get(page), http.StatusOK, "Send the refund of ₦1,000.00 once more")
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
		t.Fatal(err)
	}
	refund("450000", "PROCESSED")
	if got := support.get(page).body; strings.Contains(got, "once more</h3>") || !strings.Contains(got, "₦4,500.00") {
		t.Error("it is offered to send more than is left of the payment")
	}
}

// The list of the money that came says of each payment what of it is gone since.
func TestTheMoneyThatCameIsListedWithWhatOfItIsGone(t *testing.T) {
	w := open(t)
	id, paid := w.money(w.ada, 600_000)
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	if got := support.get(page).body; strings.Contains(got, "Gone back") || strings.Contains(got, "Taken back by the bank") {
		t.Error("it is said that something is gone")
	}
	w.wants(w.ask(http.MethodPost, "/v1/refunds", w.ada.secret, `{"paymentId":"`+string(paid.ID)+`","amount":70000}`), http.StatusCreated)
	w.wants(support.get(page), http.StatusOK, "Gone back, or on its way: ₦700.00")
	w.wants(w.ask(http.MethodPost, "/v1/test/bank/reversals", w.ada.secret, `{"railTransactionId":"`+paid.RailTransactionID+`"}`), http.StatusOK)
	w.until("the money is taken back", func() bool {
		p, err := w.dbs[flow.Test].Payment(t.Context(), paid.ID)
		return err == nil && p.Reversed > 0
	})
	w.wants(support.get(page), http.StatusOK, "Taken back by the bank: ₦6,000.00")
}

// Money that was sent and came back to us is neither with who paid it nor on its way there,
// and whoever is asked about it reads so, until it is sent anew or was paid by hand.
func TestWhatCameBackIsNotSaidToBeOnItsWay(t *testing.T) {
	w := open(t)
	id, refund := w.returned(w.ada)
	support, page := w.as(flow.RoleSupport), "/sessions/"+id
	shows := func(wants, not string) {
		t.Helper()
		got := support.get(page)
		w.wants(got, http.StatusOK, wants)
		if strings.Contains(got.body, not) {
			t.Errorf("the page says %q", not)
		}
	}
	shows("Sent, and came back to us: ₦1,000.00", "Gone back, or on its way")
	shows("₦1,000 that was sent back did not arrive, and is with us again.", "Gone back, or on its way")
	w.wants(support.post(page+"/by-hand", url.Values{"refund": {string(refund().ID)}, "reason": {"paid at the counter"}, "transfer": {"FT-77"}, "confirm": {"yes"}}), http.StatusSeeOther)
	shows("Gone back, or on its way: ₦1,000.00", "came back to us:")
	shows("₦1,000 of it went back to who paid it, or is on its way.", "with us again")
}

// Who decided about money is told in words, whoever it was: each of an account's people
// has an id of their own, and an operator is called that, as the reference has it.
func TestWhoDecidedIsToldInWords(t *testing.T) {
	w := open(t)
	in := func(account, email string, role flow.Role) *visitor {
		_, err := w.accounts.AddPerson(t.Context(), account, email, "a long password", role, "")
		must(t, err)
		v := w.visitor()
		w.wants(v.post("/login", form("email", email, "password", "a long password")), http.StatusSeeOther)
		v.get("/")
		return v
	}
	for email, c := range map[string]struct {
		v          *visitor
		by, record string
	}{
		"sup@example.com": {in(w.ada.account, "sup@example.com", flow.RoleSupport), "somebody in the console", `"resolvedBy":"wsp_usr_`},
		"ops@example.com": {in("", "ops@example.com", flow.RoleOperator), "the operator of this service", `"resolvedBy":"operator"`},
	} {
		id, p := w.money(w.ada, 620_000)
		page := "/sessions/" + id
		w.wants(c.v.post(page+"/resolve", form("payment", string(p.ID), "decision", "refund", "confirm", "yes", "reason", "As agreed")), http.StatusSeeOther)
		w.wants(c.v.get(page), http.StatusOK, "By "+c.by+": As agreed", ", as "+c.by+" decided: As agreed.")
		if got := w.ask(http.MethodGet, "/v1/payments/"+string(p.ID), w.ada.secret, ""); !strings.Contains(got.body, c.record) {
			t.Errorf("of %s the record says %s", email, got.body)
		}
		id = w.opened(w.ada, "")
		w.wants(c.v.post("/sessions/"+id+"/expire", form("confirm", "yes", "reason", "As agreed")), http.StatusSeeOther)
		w.wants(c.v.get("/sessions/"+id), http.StatusOK, "Somebody in the console ended the session’s time.")
	}
}
