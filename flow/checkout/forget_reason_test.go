package checkout_test

import (
	"testing"

	"till/flow"
	"till/flow/checkout"
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
