package checkout_test

import (
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

func TestMoneyOfNoSessionIsToldToWhomItWasCollectedFor(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook", flow.PaymentUnmatched, flow.RefundPendingKind)
		var lines []flow.Notice
		for id, collects := range map[string]flow.ProjectID{"T1": project, "T2": "wsp_prj_nobody", "T3": ""} {
			n := credit(id, "", 250_000, w.clock())
			n.Collects = collects
			w.must(w.tell(n, n))
			lines = append(lines, n)
		}
		w.rest()
		// Of what is nobody's there is nobody to tell: whoever runs Till looks for no event of it.
		day, err := checkout.ReconcileDay(t.Context(), w.db.Reader, lines, "", flow.DateOf(w.clock()), w.clock())
		if err != nil || !day.Balanced() || day.Ledger[flow.MovePayment].Count != 3 || day.Events[flow.MovePayment].Count != 1 {
			t.Errorf("%+v, %v", day, err)
		}
		told := w.deliveries(flow.PaymentUnmatched)
		if len(told) != 1 || !strings.Contains(string(told[0].Body), `"reference":null`) || !strings.Contains(string(told[0].Body), `"sequence":0`) || !strings.Contains(string(told[0].Body), `"railTransactionId":"T1"`) {
			t.Fatalf("told %d times: %+v", len(told), told)
		}
		list, more, err := w.service.Payments(t.Context(), project, checkout.PaymentFilter{Match: flow.Unmatched, Limit: 10})
		if err != nil || more || len(list) != 1 || list[0].Unapplied != 250_000 || !list[0].ReturnsAt.IsZero() {
			t.Fatalf("listed %+v, %v", list, err)
		}
		for _, id := range []string{"T2", "T3"} {
			if p, found, err := w.db.PaymentByTransaction(t.Context(), id); err != nil || !found || p.Project != "" {
				t.Errorf("money of nobody became %+v, %v", p, err)
			}
		}
		w.later(72 * time.Hour)
		p, err := w.resolve(list[0].ID, true)
		if err != nil || p.Applied != 250_000 || p.Fee != flow.Fee(250_000) || p.Resolution != flow.ResolvedAccepted {
			t.Errorf("accepted as %+v, %v", p, err)
		}
		b, err := w.service.Balance(t.Context(), project)
		if want := (250_000 - flow.Fee(250_000)).Minor(); err != nil || b.PendingMinor != want || b.UnappliedMinor != "0" || b.FeesMinor != flow.Fee(250_000).Minor() {
			t.Errorf("the balance is %+v, %v", b, err)
		}
	})
}

// What becomes of a refund of such money is told like that of any other, though no
// session counts it.
func TestARefundOfMoneyOfNoSessionIsToldToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: "9990001112", Amount: 250_000, Collects: project, SenderName: "BOLA ADE"})
		w.must(err)
		var p flow.Payment
		w.until("the money is here", func() bool {
			list, _, err := w.service.Payments(t.Context(), project, checkout.PaymentFilter{Match: flow.Unmatched, Limit: 10})
			for _, p = range list {
				return err == nil
			}
			return false
		})
		w.until("the log to say where the money was sent to", func() bool { return w.logged("account=9990001112") == 1 }) // by which whose it was is found
		r := w.goesBack(p, 100_000)
		for _, kind := range []flow.EventKind{flow.RefundPendingKind, flow.RefundProcessedKind} {
			told := w.deliveries(kind)
			if len(told) != 1 || !strings.Contains(string(told[0].Body), `"sequence":0`) || !strings.Contains(string(told[0].Body), string(r.ID)) {
				t.Errorf("%s was told %d times: %+v", kind, len(told), told)
			}
		}
	})
}
