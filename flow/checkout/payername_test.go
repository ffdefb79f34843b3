package checkout_test

import (
	"context"
	"testing"
	"time"

	"till/flow"
	"till/rail"
)

// What payers call themselves comes from the bank as it is: a number of a card or a
// person in it, and a key, is kept in no row, whichever way the bank tells of it.
func TestWhatAPayerIsCalledIsNotKeptWhereItIsASecret(t *testing.T) {
	t.Parallel()
	const card, bvn, key = "4111 1111 1111 1111", "22212345678", "sk_test_abcdefghijklmnopqrst0123"
	each(t, func(w *world) {
		t := w.t
		session, a := w.paying()
		n := credit("T1", a.Reference, 100_000, w.clock())
		n.Payer = flow.PaidBy{Name: "BOLA " + card, BankName: "BVN " + bvn, AccountNumberMasked: card}
		declined := n
		declined.Kind, declined.RailTransactionID, declined.Reason = flow.Declined, "T2", "no money on "+card
		w.must(w.tell(n, declined))

		n.RailTransactionID, n.Payer = "T3", flow.PaidBy{Name: key}
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) { return []flow.Notice{n}, nil })
		w.must(w.service.AskBank(context.WithoutCancel(t.Context()), project, session.ID))
		w.until("the bank is asked", func() bool { return len(w.payments(session.ID)) == 2 })
		w.rail.checking(nil)

		n.RailTransactionID, n.Payer = "T4", flow.PaidBy{Name: "NIN: " + bvn}
		w.rail.set(func(r *shakyRail) { r.lines = []flow.Notice{n} })
		w.until("the statement is read", func() bool {
			w.pass(time.Hour)
			return len(w.payments(session.ID)) == 3
		})
		w.rest()
		for _, secret := range []string{card, bvn, key} {
			found, err := w.db.Mentions(t.Context(), secret)
			w.must(err)
			if len(found) > 0 {
				t.Errorf("%q stands in %v", secret, found)
			}
		}
	})
}

// A name that is none of that stays as the bank tells it.
func TestWhatAPayerIsCalledIsKept(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, a := w.paying()
	_, err := w.bank.Transfer(t.Context(), rail.Transfer{AccountNumber: a.Instructions.AccountNumber, Amount: 500_000, SenderName: "BOLA ADE 08039990001", ValueTime: w.clock()})
	w.must(err)
	w.until("the money is here", func() bool { return len(w.payments(session.ID)) == 1 })
	if got := w.payments(session.ID)[0].Payer; got.Name != "BOLA ADE 08039990001" {
		t.Errorf("kept is %+v", got)
	}
}
