package checkout_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/flow/replay"
)

// What a merchant keeps about a payer may look like anything that the program
// writes: an amount, a currency, a state, a year, an order's number. The payer is
// forgotten all the same, and nothing but them.
func TestWhatMerchantsKeepTakesNothingElseAlong(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		var sessions []flow.Session
		var lines []flow.Notice // of the bank's statement
		paid := ""
		for _, one := range []struct{ order, description string }{
			{"A-1001", "Bank fees for Allen Avenue"},
			{"A-1002", "Card"},
			{"A-1003", "For  GARRI,  " + strings.Repeat("more and more of it, ", 8) + "to Allen Avenue"}, // shown in one line, and cut off
		} {
			n := newSession(flow.InChat)
			n.CustomerEmail, n.CustomerPhone, n.CustomerName = adaEmail, adaPhone, adaName
			n.Reference, n.Description = "shop-"+one.order, one.description
			n.Metadata = map[string]string{
				"order": one.order, "total": "500000", "currency": "NGN", "status": "PAID", "year": "2026", "method": "Bank transfer", "merchant": "Ada Stores",
				"session": "wsp_sess_01jd0000000000000000000000", "level": "100",
				"replaces": paid, // the bank's name of what was paid before
			}
			session := w.opened(n)
			w.adaPays(session)
			p := w.payments(session.ID)[0]
			paid = p.RailTransactionID
			lines = append(lines, flow.Notice{Kind: flow.Credit, RailTransactionID: paid, Amount: p.Amount, PaidAt: p.PaidAt})
			sessions = append(sessions, session)
		}
		bodies := map[flow.EventID]map[string]any{}
		for _, s := range sessions {
			events, err := w.db.Events(ctx, s.ID)
			w.must(err)
			for _, e := range events {
				bodies[e.ID] = withoutPayer(t, e.Body)
			}
		}

		_, err := w.forgets(w.find())
		w.must(err)
		w.nowhere()
		w.rail.set(func(r *shakyRail) { r.lines = lines })
		if day, err := w.service.Reconcile(ctx, project, flow.DateOf(w.clock())); err != nil || !day.Balanced() || day.Events[flow.MovePayment].Count != len(sessions) {
			t.Errorf("the bank, the ledger and what was told: %+v (%v)", day, err)
		}
		for _, s := range sessions {
			kept, err := w.db.Session(ctx, s.ID)
			w.must(err)
			if kept.Reference != s.Reference {
				t.Errorf("the merchant's reference %s became %s", s.Reference, kept.Reference)
			}
			events, err := w.db.Events(ctx, s.ID)
			w.must(err)
			for _, e := range events {
				was, is := bodies[e.ID], withoutPayer(t, e.Body)
				if a, b := marshalled(t, was), marshalled(t, is); a != b {
					t.Errorf("of the event\n%s\nis left\n%s", a, b)
				}
			}
			list, err := checkout.Recordings(ctx, w.db.Reader, s.ID, "")
			w.must(err)
			report, err := replay.Verify(list[0], words)
			w.must(err)
			if report.Worst() != replay.Same {
				t.Errorf("decided again: %+v", report)
			}
		}
	})
}

// Two references that differ in nothing but how they spell a payer stay two.
func TestReferencesThatNameAPayerStayApart(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		var sessions []flow.Session
		for _, reference := range []string{"for 08039990001", "for 2348039990001", "for Adaeze"} {
			n := newSession(flow.InChat)
			n.CustomerPhone, n.CustomerName, n.Reference = adaPhone, adaName, reference
			session := w.opened(n)
			sessions = append(sessions, session)
		}
		w.over(sessions...)
		as, _ := w.forgotten(w.find())
		w.nowhere()
		var left []string
		for _, s := range sessions {
			kept, err := w.db.Session(t.Context(), s.ID)
			w.must(err)
			left = append(left, kept.Reference)
		}
		if slices.Sort(left); len(slices.Compact(left)) != len(sessions) || !strings.HasPrefix(left[0], "for "+as) {
			t.Errorf("left are the references %v", left)
		}
	})
}

// withoutPayer is an event's body without what is about the payer.
func withoutPayer(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var event map[string]any
	must(t, json.Unmarshal(body, &event))
	data, is := event["data"].(map[string]any)
	if !is {
		t.Fatalf("an event without data: %s", body)
	}
	for _, of := range []any{data, data["payment"]} {
		if members, is := of.(map[string]any); is {
			for _, name := range []string{"customer", "payer", "metadata", "description"} {
				delete(members, name)
			}
		}
	}
	return event
}

func marshalled(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}
