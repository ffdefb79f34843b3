package console_test

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// Money that no session is of was to go back and came back to us: there is no session's
// page to decide on, so that it is decided where it waits.
func TestARefundOfNoSessionIsDecidedAboutWhereItWaits(t *testing.T) {
	w := open(t)
	for i, byHand := range []bool{false, true} {
		if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateBounce}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "999000111" + strconv.Itoa(i), Amount: 123_400, Collects: w.ada.project.ID}); err != nil {
			t.Fatal(err)
		}
		waiting := func(queue store.Queue) func() bool {
			return func() bool {
				n, _, err := w.dbs[flow.Test].QueueSize(context.Background(), store.QueueFilter{Queue: queue, Now: w.now()})
				return err == nil && n == 1
			}
		}
		w.until("the money is booked", waiting(store.QueueUnmatched))
		list, err := w.dbs[flow.Test].Waits(t.Context(), store.QueueFilter{Queue: store.QueueUnmatched, Now: w.now(), Limit: 1})
		must(t, err)
		support := w.as(flow.RoleSupport)
		back := url.Values{"payment": {list[0].Subject}, "decision": {"refund"}, "reason": {"not ours"}}
		w.wants(support.post("/exceptions/resolve", back), http.StatusBadRequest, "Tick the box", "<details open>", `value="not ours"`)
		back.Set("confirm", "yes")
		w.wants(support.post("/exceptions/resolve", back), http.StatusSeeOther)
		w.until("the refund came back", waiting(store.QueueRefunds))
		list, err = w.dbs[flow.Test].Waits(t.Context(), store.QueueFilter{Queue: store.QueueRefunds, Now: w.now(), Limit: 1})
		must(t, err)
		if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
			t.Fatal(err)
		}
		page, act := "/exceptions?queue=refunds", "/exceptions/retry"
		form := url.Values{"refund": {list[0].Subject}, "reason": {"called the bank"}, "confirm": {"yes"}}
		if byHand {
			act = "/exceptions/by-hand"
			form.Set("transfer", "FT-77")
		}
		w.wants(support.get(page), http.StatusOK, `action="/exceptions/retry"`, `action="/exceptions/by-hand"`, "₦1,234.00")
		w.wants(w.as(flow.RoleOwner, w.merchant("Bola Stores")).post(act, form), http.StatusNotFound)
		session, other := w.returned(w.ada)
		w.wants(support.post(act, url.Values{"refund": {string(other().ID)}, "reason": {"called the bank"}, "confirm": {"yes"}, "transfer": {"FT-78"}}), http.StatusNotFound)
		w.wants(support.post("/sessions/"+session+"/by-hand", url.Values{"refund": {string(other().ID)}, "reason": {"paid"}, "confirm": {"yes"}, "transfer": {"FT-9" + strconv.Itoa(i)}}), http.StatusSeeOther)
		unsure := url.Values{"refund": {list[0].Subject}, "reason": {"called the bank"}, "transfer": form["transfer"], "sent": {"2026-01-05T10:30"}}
		kept := []string{"Tick the box", "<details open>", `value="called the bank"`}
		if byHand {
			kept = append(kept, `value="FT-77"`, `value="2026-01-05T10:30"`)
		}
		w.wants(support.post(act, unsure), http.StatusBadRequest, kept...)
		if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true}); err != nil {
			t.Fatal(err)
		}
		w.wants(support.post(act, form), http.StatusSeeOther)
		w.until("it went back", func() bool {
			r, err := w.dbs[flow.Test].Refund(context.Background(), flow.RefundID(list[0].Subject))
			return err == nil && r.Status == flow.RefundProcessed && (r.RailTransactionID == "FT-77") == byHand
		})
		w.wants(support.post(act, form), http.StatusConflict, "Not done")
	}
}

// What somebody asked for about such money stands where the money waits too: whoever
// comes next would pay by hand what the second person has sent.
func TestWhatWaitsForASecondPersonIsToldWhereItsMoneyWaits(t *testing.T) {
	w := open(t)
	if _, err := w.bank.SetConditions(t.Context(), rail.Conditions{Up: true, Refunds: rail.FateBounce}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001111", Amount: 60_000_000, Collects: w.ada.project.ID}); err != nil {
		t.Fatal(err)
	}
	support, owner, other := w.as(flow.RoleSupport), w.as(flow.RoleOwner), w.as(flow.RoleOwner, w.merchant("Bola Stores"))
	for _, c := range []struct {
		queue store.Queue
		act   string
		asked url.Values
		tells string
	}{
		{store.QueueUnmatched, "/exceptions/resolve", url.Values{"decision": {"refund"}}, ""},
		{store.QueueRefunds, "/exceptions/retry", url.Values{}, ""},
		{
			store.QueueRefunds, "/exceptions/by-hand",
			url.Values{"transfer": {"FT-5"}, "sent": {w.now().In(flow.Lagos).Format("2006-01-02T15:04")}},
			`transfer <code>FT-5</code>, sent <time datetime="` + w.now().UTC().Format("2006-01-02T15:04"),
		},
	} {
		filter := store.QueueFilter{Queue: c.queue, Limit: 1}
		var list []store.Waiting
		w.until("it waits", func() (is bool) {
			var err error
			list, err = w.dbs[flow.Test].Waits(context.Background(), filter)
			return err == nil && len(list) == 1
		})
		page := "/exceptions?queue=" + string(c.queue)
		w.wants(owner.get(page), http.StatusOK, `action="`+c.act+`"`)
		c.asked.Set("reason", "asked first")
		c.asked.Set("confirm", "yes")
		c.asked.Set(map[store.Queue]string{store.QueueUnmatched: "payment", store.QueueRefunds: "refund"}[c.queue], list[0].Subject)
		w.strange(other, c.act, c.asked)
		w.wants(support.post(c.act, c.asked), http.StatusSeeOther)
		got := owner.get(page)
		w.wants(got, http.StatusOK, "support of "+w.ada.email, "asked first", ">Agree<", c.tells)
		if strings.Contains(got.body, `action="`+c.act+`"`) || strings.Contains(got.body, `action="/exceptions/by-hand"`) {
			t.Errorf("%s: it can be decided about beside that", c.queue)
		}
		w.wants(w.as(flow.RoleDeveloper).get(page), http.StatusOK, "asked first")
		// Who had the page open before that is told why their form is refused, and what they wrote in it.
		late := url.Values{"payment": c.asked["payment"], "refund": c.asked["refund"], "decision": {"accept"}, "transfer": {"FT-6"}, "reason": {"called them"}, "csrf": {owner.csrf}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.base+c.act, strings.NewReader(late.Encode()))
		must(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		got = w.do(owner.http, r)
		w.wants(got, http.StatusBadRequest, "Tick the box", "asked first", "What you wrote", `data-copy="FT-6"`, `data-copy="called them"`)
		if strings.Contains(got.body, `value="called them"`) {
			t.Errorf("%s: it stands in the form of who agrees", c.queue)
		}
		waits, err := w.dbs[flow.Test].Waits(t.Context(), store.QueueFilter{Queue: store.QueueSecond, Now: w.now(), Limit: 1})
		must(t, err)
		agree := url.Values{"proposal": {waits[0].Subject}, "decision": {"agree"}, "confirm": {"yes"}, "reason": {"looked at it"}}
		w.strange(other, "/exceptions/second", agree)
		w.wants(owner.post("/exceptions/second", agree), http.StatusSeeOther)
	}
}

// strange sends a form about another merchant's thing, and one about a thing that never
// was: nobody tells them apart.
func (w *world) strange(v *visitor, path string, fields url.Values) {
	w.t.Helper()
	told := func(fields url.Values, id string) string {
		got := v.post(path, fields)
		w.wants(got, http.StatusNotFound)
		return regexp.MustCompile(`req_\w+`).ReplaceAllString(strings.ReplaceAll(got.main(), id, "ID"), "")
	}
	for name, id := range map[string]string{"payment": fields.Get("payment"), "refund": fields.Get("refund"), "proposal": fields.Get("proposal")} {
		if id == "" {
			continue
		}
		never, none := maps.Clone(fields), id[:len(id)-4]+"0000"
		never.Set(name, none)
		if theirs, nobodys := told(fields, id), told(never, none); theirs != nobodys {
			w.t.Errorf("%s of another merchant's %s:\n%s\nof one that never was:\n%s", path, name, theirs, nobodys)
		}
	}
}
