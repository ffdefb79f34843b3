package checkout_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// saysOf are what was written about a payer of the name who, once everything was.
func saysOf(who string) []string {
	return []string{
		who + " asked for it back", who + " must not have it", who + " agreed to it", who + " is not content",
		who + " called twice", who + " was told of at our server",
	}
}

// writtenOf has a session of somebody be paid with too much and everything be written
// about it that can be: what was asked for and refused, decided, sent back, noted and
// answered to webhooks.
func (w *world) writtenOf(who string, n checkout.NewSession, hears func(flow.Intent)) flow.Session {
	w.t.Helper()
	ctx := w.t.Context()
	says := saysOf(who)
	w.posting(func(context.Context, flow.Delivery) flow.Verdict {
		return flow.Verdict{OK: true, Status: http.StatusOK, Body: []byte(says[5])}
	})
	s := w.opened(n)
	var made checkout.Made
	hears(code(s))
	hears(method(flow.BankTransfer))
	p := w.comes(s.ID, 700_000)
	waits, err := w.service.Order(ctx, project, checkout.MoneyOrder{Act: flow.ActSendBack, Subject: string(p.ID), Reason: says[0], Key: "wsp_usr_1", By: "ada@shop.test"})
	w.must(err)
	_, err = w.service.Disagree(ctx, project, waits.ID, "obi@shop.test", says[1])
	w.must(err)
	_, err = w.service.Resolve(ctx, p.ID, checkout.NewResolution{Accept: true, Key: "wsp_key_1", Reason: says[2]}, call("", "", nil))
	w.must(err)
	_, err = w.service.Refund(ctx, checkout.NewRefund{Payment: p.ID, Amount: 10_000, Reason: says[3]}, call("", "", &made))
	w.must(err)
	w.must(w.service.Note(ctx, s.ID, "ngozi@shop.test", says[4], call("", "", nil)))
	w.rest()
	w.pass(time.Second)
	w.becomes(made.Refund.ID, flow.RefundProcessed)
	return s
}

// Whoever is forgotten goes with all that was written about them, and takes nothing of
// it along that was written about somebody else: not a row of theirs is another.
func TestWhoIsForgottenTakesNothingOfAnotherAlong(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t, ctx := w.t, w.t.Context()
		w.twoAbove(100_000)
		w.endpoint("https://shop.test/hook")
		of := func(email string, phone flow.Phone, name string) checkout.NewSession {
			n := newSession(flow.InChat)
			n.CustomerEmail, n.CustomerPhone, n.CustomerName, n.CallbackURL = email, phone, name, "https://shop.test/back?from=a+walk"
			return n
		}
		bens := w.writtenOf("Ben", of("ben@stays.example", "2348030000009", "Benedict Stays"), func(in flow.Intent) { w.hear("ben", in) })
		adas := w.writtenOf("Ada", of(adaEmail, adaPhone, adaName), w.adaSays)
		session := w.opened(of("ben@stays.example", "2348030000009", "Benedict Stays"))
		w.hear("ben", code(session))
		w.hear("ben", method(flow.BankTransfer)) // and his time runs
		kept := map[string]map[string]int{}
		for _, text := range append(saysOf("Ben"), "Benedict Stays", "ben@stays.example") {
			found, err := w.db.Mentions(ctx, text)
			w.must(err)
			if kept[text] = found; len(found) == 0 {
				t.Fatalf("%q stands nowhere", text)
			}
		}
		for _, text := range saysOf("Ada") {
			w.stands(text, true)
		}
		before, read := w.payments(bens.ID), len(w.texts("ben"))

		_, err := w.forgets(w.find())
		w.must(err)
		for _, text := range saysOf("Ada") {
			w.stands(text, false)
		}
		for text, stood := range kept {
			if stands, err := w.db.Mentions(ctx, text); err != nil || !maps.Equal(stands, stood) {
				t.Errorf("%q stood in %v, and stands in %v (%v)", text, stood, stands, err)
			}
		}
		if after := w.payments(bens.ID); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("another's payments were %+v, and are %+v", before, after)
		}
		if s := w.read(adas.ID); s.CallbackURL != "" || w.read(bens.ID).CallbackURL == "" {
			t.Errorf("she is sent back to %q, and he to %q", s.CallbackURL, w.read(bens.ID).CallbackURL)
		}
		for session, forgotten := range map[flow.SessionID]bool{adas.ID: true, bens.ID: false} {
			chats, err := w.db.Watchers(ctx, session)
			w.must(err)
			said, err := w.db.SaysOf(ctx, chats[0].ID, 99)
			w.must(err)
			if len(said) < 3 || slices.ContainsFunc(said, func(say store.Said) bool { return (say.Text == "") != forgotten }) {
				t.Errorf("forgotten is %v, and what was said is %+v", forgotten, said)
			}
		}
		if p := w.payments(adas.ID)[0]; p.ResolvedWhy != "" || p.Resolution != flow.ResolvedAccepted {
			t.Errorf("of the forgotten payment is left %+v", p)
		}
		found, _, err := w.db.Search(ctx, store.SearchFilter{Search: flow.ReadSearch("benedict stays", w.clock()), Project: project, Limit: 9})
		if err != nil || len(found) != 2 {
			t.Errorf("by the other's name %d are found (%v)", len(found), err)
		}
		w.passes(4, 15*time.Minute)
		if texts := w.texts("ben"); len(texts) == read {
			t.Errorf("the other's time is over, and he read only %q", texts)
		}
	})
}
