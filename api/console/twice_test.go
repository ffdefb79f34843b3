package console_test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// once is the token of the forms of a page.
func (v *visitor) once(page string) string {
	v.w.t.Helper()
	found := onceField.FindStringSubmatch(v.get(page).body)
	if found == nil {
		v.w.t.Fatalf("no form of %s happens once", page)
	}
	return found[1]
}

// A form that is sent twice, by a double click or a reload, does what it says
// once.
func TestAFormThatIsSentTwiceActsOnce(t *testing.T) {
	w := open(t)
	own := w.have(w.ada, "7750")
	page, chat := "/sessions/"+own["session"], "/inbox/"+own["chat"]
	support := w.as(flow.RoleSupport)

	w.wants(support.get(page), http.StatusOK, `href="`+chat+`"`)
	sent := len(w.deliveries())
	again := own.fields("event {event} reason the-payer-called once " + support.once(page))
	w.wants(support.post(page+"/resend", again), http.StatusSeeOther)
	w.until("the event is sent again", func() bool { return len(w.deliveries()) > sent })
	sent = len(w.deliveries())
	w.wants(support.post(page+"/resend", again), http.StatusSeeOther)
	w.wants(support.post(page+"/note", form("note", "called", "once", support.once(page))), http.StatusSeeOther)
	note := form("note", "called back", "once", support.once(page))
	w.wants(support.post(page+"/note", note), http.StatusSeeOther)
	w.wants(support.post(page+"/note", note), http.StatusSeeOther)
	notes, err := w.services[flow.Test].Notes(t.Context(), w.ada.project.ID, flow.SessionID(own["session"]))
	if err != nil || len(notes) != 2 || len(w.deliveries()) != sent {
		t.Errorf("%d notes and %d deliveries more, %v", len(notes), len(w.deliveries())-sent, err)
	}
	for subject, want := range map[string]int{own["event"]: 1, own["session"]: 2} { // sent again; two notes
		if list := slices.DeleteFunc(w.audits(subject), func(a flow.Audited) bool { return strings.HasPrefix(a.Action, "look") }); len(list) != want {
			t.Errorf("of %s the audit log holds %d rows, not %d: %v", subject, len(list), want, list)
		}
	}

	w.wants(support.post(chat+"/claim", form("reason", "the payer asked")), http.StatusSeeOther)
	said := func() int { return strings.Count(support.get(chat).body, "Good day to you") }
	reply := form("text", "Good day to you", "once", support.once(chat))
	w.wants(support.post(chat+"/reply", reply), http.StatusSeeOther)
	w.wants(support.post(chat+"/reply", reply), http.StatusSeeOther)
	if n := said(); n != 1 {
		t.Errorf("the payer reads one answer %d times", n)
	}
	w.wants(support.post(chat+"/reply", form("text", "Good day to you", "once", support.once(chat))), http.StatusSeeOther)
	if n := said(); n != 2 {
		t.Errorf("what is said again on purpose stands there %d times", n)
	}
}

// Of keys and projects that one form makes the audit log holds one row too, however often
// it is sent.
func TestAKeyOfAFormThatIsSentTwiceIsAuditedOnce(t *testing.T) {
	w := open(t)
	owner := w.as(flow.RoleOwner)
	const page = "/developers"
	for to, fields := range map[string]url.Values{"/developers/keys": {"kind": {"secret"}}, "/developers/projects": {"name": {"Ada Too"}}} {
		before := len(w.audits(""))
		fields.Set("once", owner.once(page))
		for range 2 {
			w.wants(owner.post(to, fields), http.StatusOK, "on this page alone")
		}
		if n := len(w.audits("")) - before; n != 1 {
			t.Errorf("%s, sent twice, stands %d times in the audit log", to, n)
		}
	}
}

// What can be done only once is not said to be undone to who sends its form twice.
func TestAnEndThatIsSentTwiceIsDone(t *testing.T) {
	w := open(t)
	support, owner := w.as(flow.RoleSupport), w.as(flow.RoleOwner)
	twice := func(v *visitor, subject, at, to string, fields url.Values) {
		t.Helper()
		kept := len(w.audits(subject))
		for range 2 {
			w.wants(v.post(to, fields), http.StatusSeeOther)
		}
		if n := len(w.audits(subject)) - kept; n != 1 {
			t.Errorf("%s, sent twice, stands %d times in the audit log", to, n)
		}
		fields.Set("once", v.once(at)) // on purpose, of a page that was loaded anew
		w.wants(v.post(to, fields), http.StatusConflict)
	}
	for _, act := range []string{"cancel", "expire"} {
		id := w.opened(w.ada, "")
		page := "/sessions/" + id
		twice(support, id, page, page+"/"+act, url.Values{"reason": {"the goods are gone"}, "confirm": {"yes"}, "once": {support.once(page)}})
	}
	id, paid := w.money(w.ada, 500_000+60_000_000)
	page := "/sessions/" + id
	for _, decision := range []string{"refuse", "agree"} {
		w.wants(support.post(page+"/resolve", url.Values{"payment": {string(paid.ID)}, "decision": {"accept"}, "confirm": {"yes"}, "reason": {"the customer agreed"}}), http.StatusSeeOther)
		list, err := w.dbs[flow.Test].Proposals(t.Context(), flow.SessionID(id), 1)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		twice(owner, string(paid.ID), page, "/exceptions/second", url.Values{"proposal": {string(list[0].ID)}, "decision": {decision}, "confirm": {"yes"}, "reason": {"looked at it"}, "once": {owner.once(page)}})
	}
}

// Two tabs, two people and two ways to decide about the same money at the same
// moment: one of them has it.
func TestMoneyIsDecidedAboutOnceFromManyTabsTogether(t *testing.T) {
	w := open(t)
	own := w.have(w.ada, "7751")
	page := "/sessions/" + own["session"] + "/resolve"
	var tabs []*visitor
	for range 4 {
		for _, role := range []flow.Role{flow.RoleSupport, flow.RoleOwner} {
			v := w.as(role)
			v.get("/")
			tabs = append(tabs, v)
		}
	}
	var mu sync.Mutex
	done := map[int]int{}
	var all sync.WaitGroup
	for i, v := range tabs {
		decision := map[bool]string{true: "accept", false: "refund"}[i%2 == 0]
		all.Go(func() {
			got := v.post(page, own.fields("payment {payment} confirm yes reason the-payer-called decision "+decision))
			mu.Lock()
			defer mu.Unlock()
			done[got.status]++
		})
	}
	all.Wait()
	if done[http.StatusSeeOther] != 1 || done[http.StatusConflict] != len(tabs)-1 {
		t.Errorf("of %d decisions: %v", len(tabs), done)
	}
	p, err := w.dbs[flow.Test].Payment(t.Context(), flow.PaymentID(own["payment"]))
	refunds, worse := w.dbs[flow.Test].Refunds(t.Context(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(own["session"]), Limit: 9})
	if err != nil || worse != nil || p.Resolution == flow.Unresolved || (p.Resolution == flow.ResolvedRefunded) != (len(refunds) == 1) {
		t.Errorf("it was %s, and %d refunds were made: %v, %v", p.Resolution, len(refunds), err, worse)
	}
}

// A refund that the bank refuses at once is tried once for one form, although it
// could be tried again by the time that the form comes a second time.
func TestARefundIsRetriedOnceByOneForm(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateReject}); err != nil {
		t.Fatal(err)
	}
	own := w.have(w.ada, "7752")
	page, db := "/sessions/"+own["session"], w.dbs[flow.Test]
	support := w.as(flow.RoleSupport)
	w.wants(support.post(page+"/resolve", own.fields("payment {payment} confirm yes decision refund reason the-payer-called")), http.StatusSeeOther)
	refused := func() (r flow.Refund) {
		w.until("the bank refuses the refund", func() bool {
			list, err := db.Refunds(context.Background(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(own["session"]), Limit: 9})
			if err == nil && len(list) == 1 {
				r = list[0]
			}
			return r.Status == flow.RefundFailed || r.Status == flow.RefundAttention
		})
		return r
	}
	first := refused()
	retry := url.Values{"refund": {string(first.ID)}, "confirm": {"yes"}, "reason": {"the payer called"}, "once": {support.once(page)}}
	w.wants(support.post(page+"/retry", retry), http.StatusSeeOther)
	w.until("it was tried again", func() bool {
		list, err := db.Refunds(context.Background(), store.RefundFilter{Project: w.ada.project.ID, Session: flow.SessionID(own["session"]), Limit: 9})
		return err == nil && list[0].Reference != first.Reference
	})
	second := refused()
	w.wants(support.post(page+"/retry", retry), http.StatusSeeOther)
	if third := refused(); third.Reference != second.Reference {
		t.Errorf("one form tried it as %s and as %s", second.Reference, third.Reference)
	}
}
