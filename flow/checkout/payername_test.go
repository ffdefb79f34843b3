package checkout_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// What payers call themselves comes from the bank as it is: a number of a card or a
// person in it, and a key, is kept in no row, whichever way the bank tells of it.
func TestWhatAPayerIsCalledIsNotKeptWhereItIsASecret(t *testing.T) {
	t.Parallel()
	const card, bvn, key = "4111 1111 1111 1111", "22212345678", "sk_test_" + "abcdefghijklmnopqrst0123"
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

// So is what a bank says of an order that it refuses, or that comes to nothing: it
// stands in the timeline, in what merchants are told and in the log.
func TestWhatABankSaysOfWhatFailedIsNotKeptWhereItIsASecret(t *testing.T) {
	t.Parallel()
	const card, bvn, key = "4111 1111 1111 1111", "22212345678", "sk_test_" + "abcdefghijklmnopqrst0123"
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.endpoint("https://shop.test", flow.RefundFailedKind, flow.SettlementFailedKind)
		asking, _ := w.paying()
		w.rail.checking(func(context.Context, string) ([]flow.Notice, error) {
			return nil, fmt.Errorf("ask the bank: %w: of %s", rail.ErrUnknown, key)
		})
		if err := w.service.AskBank(context.WithoutCancel(t.Context()), project, asking.ID); flow.CodeOf(err) != flow.CodeRailUnavailable {
			t.Errorf("whoever asks is told %v", err)
		}
		w.rail.checking(nil)
		session, p := w.paidFor(500_000)

		w.rail.starting(func(context.Context, flow.Order, func() (flow.Instructions, error)) (flow.Instructions, error) {
			return flow.Instructions{}, fmt.Errorf("order: %w: a name like %s is not taken", rail.ErrRejected, key)
		})
		other := w.session(flow.Headless)
		_, _, err := w.service.Instruct(t.Context(), project, other.ID, checkout.Ask{Method: flow.BankTransfer})
		refused, _ := errors.AsType[*flow.Error](err)
		if refused == nil || refused.Code != flow.CodeRailRejected || strings.Contains(refused.Err.Error(), key) {
			t.Errorf("a method that the bank refuses is answered with %v", err)
		}
		w.rail.starting(nil)

		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, fmt.Errorf("disburse: %w: closed: %s is closed", rail.ErrRejected, card)
			}
		})
		w.ordered(p, 200_000)
		if r := w.refuses(session.ID, 1); !strings.HasPrefix(r.Failure, "The bank refused it") {
			t.Errorf("the refund that it refused says %q", r.Failure)
		}
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "F1", At: w.clock(), Reason: "BVN " + bvn + " is watched"}, nil
			}
		})
		w.at("2026-11-23T08:00:01Z")
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementFailed || b.Failure == "" {
			t.Errorf("the payout that it refused is %+v", b)
		}
		w.rest()
		for _, secret := range []string{card, bvn, key} {
			found, err := w.db.Mentions(t.Context(), secret)
			w.must(err)
			if len(found) > 0 || w.logged(secret) > 0 {
				t.Errorf("%q stands in %v, and %d times in the log", secret, found, w.logged(secret))
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
