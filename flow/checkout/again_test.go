package checkout_test

import (
	"testing"

	"till/flow"
)

func TestAMethodThatIsChosenAgainHasTheSameInstructions(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, a := w.paying()
		for range 5 {
			w.hear("ada", flow.Intent{Kind: flow.MeansOther})
			w.hear("ada", method(flow.BankTransfer))
		}
		if list := w.attempts(session.ID); len(list) != 1 || list[0].ID != a.ID || list[0].Status != flow.AttemptActive {
			w.t.Errorf("switching back and forth leaves %+v", list)
		}
		w.must(w.tell(credit("T1", a.Reference, 500_000, w.clock())))
		w.rest()
		if got := w.texts("ada"); got[len(got)-1] != "receipt" {
			w.t.Errorf("the payer read %q", got)
		}
		w.balanced(session.ID, 500_000)
	})
}

func TestAnAccountThatAMerchantAskedForIsTheChatsThatIsShownIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		made, _, err := w.charge(w.t.Context(), "key", "hash")
		w.must(err)
		session := w.read(made.Session.ID)
		for _, person := range []string{"ada", "bola"} {
			w.hear(person, code(session))
		}
		w.hear("ada", method(flow.BankTransfer))
		w.must(w.tell(credit("T1", w.attempts(session.ID)[0].Reference, session.Amount, w.clock())))
		w.rest()
		if got := w.texts("ada"); got[len(got)-1] != "receipt" {
			w.t.Errorf("who was shown the account read %q", got)
		}
		if got := w.texts("bola"); got[len(got)-1] != "paid_elsewhere" {
			w.t.Errorf("who was not read %q", got)
		}
	})
}
