package checkout_test

import (
	"testing"

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
