package checkout_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// Why a merchant sends money back is written about who paid it, and goes with them:
// out of the refund, and out of what the merchant was told of it.
func TestWhyMoneyWentBackIsForgottenWithItsPayer(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		w.endpoint("https://shop.test/hook")
		const why = "the one from Banana Island sent it back"
		s := w.adaSession()
		w.adaPays(s)
		var made checkout.Made
		_, err := w.service.Refund(ctx, checkout.NewRefund{Payment: w.payments(s.ID)[0].ID, Reason: why}, call("", "", &made))
		w.must(err)
		w.rest()
		w.stands(why, true)

		_, err = w.forgets(w.find())
		w.must(err)
		w.stands(why, false)
		kept, err := w.db.Refund(ctx, made.Refund.ID)
		w.must(err)
		if kept.Reason != "" || kept.Amount != s.Amount {
			t.Errorf("of the refund is left %+v", kept)
		}
	})
}

// So is why money of theirs was decided about and went back that they paid for somebody
// else, whose own is left as it was.
func TestWhyMoneyWentBackIsForgottenInAnothersSessionToo(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.twoAbove(100_000)
		w.endpoint("https://shop.test/hook")
		n := newSession(flow.InChat)
		n.CustomerPhone, n.CustomerName = "2348030000009", "Benedict Stays"
		w.writtenOf("Sis", n, w.adaSays)
		bens := w.writtenOf("Ben", n, func(in flow.Intent) { w.hear("ben", in) })
		says, his := saysOf("Sis"), saysOf("Ben")
		_, err := w.forgets(w.find())
		w.must(err)
		for _, i := range []int{0, 1, 2, 3, 5} { // asked for, refused, decided, sent back, and answered to webhooks about that
			w.stands(says[i], false)
			w.stands(his[i], true)
		}
		if p := w.payments(bens.ID)[0]; p.ResolvedWhy != his[2] {
			t.Errorf("why another's was decided about became %q", p.ResolvedWhy)
		}
	})
}

// What a bank said when it opened no account for somebody is about them too, although
// there are no instructions then: they are told of it, and it goes with them.
func TestWhyABankRefusedAPayerIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
			return flow.Instructions{}, fmt.Errorf("%w: %s is on a list of ours", rail.ErrRejected, adaName)
		})
		s := w.adaSession()
		w.adaSays(code(s))
		w.adaSays(method(flow.BankTransfer))
		if a := w.attempts(s.ID); len(a) != 1 || a[0].Status != flow.AttemptFailed || a[0].Instructions != nil {
			t.Fatalf("the attempts are %+v", a)
		}
		w.later(25 * time.Hour)
		w.is(s.ID, flow.SessionExpired)
		w.stands(adaName, true)
		record, err := w.find().Record(t.Context(), w.db.Reader, flow.Surroundings{})
		w.must(err)
		if told := record.Sessions[0].Declined; len(told) != 1 || !strings.HasSuffix(told[0], adaName+" is on a list of ours") {
			t.Errorf("she is told that the bank said %q", told)
		}
		_, err = w.forgets(w.find())
		w.must(err)
		w.nowhere()
	})
}

// So is what a bank said when it sent somebody nothing back, of what they paid for
// somebody else too.
func TestWhyMoneyDidNotGoBackIsForgotten(t *testing.T) {
	t.Parallel()
	bens := newSession(flow.InChat)
	bens.CustomerEmail, bens.CustomerPhone, bens.CustomerName = "ben@stays.example", "2348030000009", "Benedict Stays"
	for name, opened := range map[string]func(w *world) flow.Session{
		"her own":       func(w *world) flow.Session { return w.adaSession() },
		"somebody else": func(w *world) flow.Session { return w.opened(bens) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) { w.refusedAndForgotten(opened(w)) })
		})
	}
}

// refusedAndForgotten has Ada pay for a session, the bank send her nothing back, and her
// be forgotten.
func (w *world) refusedAndForgotten(s flow.Session) {
	w.t.Helper()
	w.endpoint("https://shop.test/hook")
	w.adaPays(s)
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "the account of ADAEZE OBI-NWOSU is closed"}, nil
		}
	})
	r := w.ordered(w.payments(s.ID)[0], 10_000)
	w.rest()
	w.becomes(r.ID, flow.RefundFailed)
	w.stands("ADAEZE OBI-NWOSU is closed", true)
	_, err := w.forgets(w.find())
	w.must(err)
	w.nowhere()
	if kept := w.becomes(r.ID, flow.RefundFailed); !strings.HasPrefix(kept.Failure, "the account of payer_") {
		w.t.Errorf("of why it failed is left %q", kept.Failure)
	}
}
