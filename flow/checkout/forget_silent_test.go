package checkout_test

import (
	"fmt"
	"testing"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// Nobody takes a chat over whose payer was forgotten, or has them sent anything again:
// no word would ever reach them, and whoever wrote would be told that it is on its way.
func TestNobodyWritesToWhoIsForgotten(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		ctx := t.Context()
		s, chat := w.forgottenAda()
		before, err := w.db.SaysOf(ctx, chat, 99)
		w.must(err)
		if err := w.service.Claim(ctx, chat, "bola", 0); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to take it over says %v", err)
		}
		if err := w.service.Reply(ctx, chat, "bola", "Are you there?", checkout.Call{}); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to answer in it says %v", err)
		}
		if n, err := w.service.SayAgain(ctx, s.Project, s.ID, "bola"); flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("to send again reached %d chats and says %v", n, err)
		}
		if after, err := w.db.SaysOf(ctx, chat, 99); err != nil || len(after) != len(before) {
			t.Errorf("there are %d messages of %d: %v", len(after), len(before), err)
		}
	})
}

// A payer may keep an account number, and a bank take a payment back or tell of a refund,
// for long after that payer was forgotten: who it was is not kept anew then, for no
// command would find it by a number or an address any more. In a session of somebody
// else's that is so of what their own chat chose.
func TestABankNamesNobodyAnewWhoIsForgotten(t *testing.T) {
	t.Parallel()
	for of, opens := range map[string]func(*world) flow.Session{"their own": (*world).adaSession, "somebody else's": (*world).bensSession} {
		each(t, func(w *world) {
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					return flow.Disbursed{Status: flow.DisbursementPending}, nil
				}
			})
			s := opens(w)
			w.adaPays(s)
			w.until("the payment is here", func() bool { return len(w.payments(s.ID)) == 1 })
			as, _ := w.forgotten(w.find())
			p := w.payments(s.ID)[0]
			refund := w.ordered(p, 100_000)
			reference := w.attempts(s.ID)[0].Reference
			for _, n := range []flow.Notice{
				credit("AGAIN", reference, s.Amount, w.clock()),
				{Kind: flow.PaidOut, RailTransactionID: "OUT", Reference: string(refund.ID), Amount: refund.Amount, PaidAt: w.clock()},
				{Kind: flow.Reversal, RailTransactionID: "BACK", Reverses: p.RailTransactionID, Amount: 400_000, PaidAt: w.clock()},
				{Kind: flow.Reversal, RailTransactionID: "EARLY", Reverses: "UNHEARD", Reference: reference, Amount: 1, PaidAt: w.clock()},
			} {
				n.Payer = flow.PaidBy{Name: "ADAEZE OBI-NWOSU", BankName: "GTBank", AccountNumberMasked: "******4321"}
				w.must(w.tell(n))
			}
			w.rest()
			list := w.payments(s.ID)
			if len(list) != 2 || list[1].Payer != (flow.PaidBy{Name: as}) || list[1].Match != flow.Duplicate || list[0].Reversed != 400_000 {
				t.Errorf("%s: the money is %+v", of, list)
			}
			if r, err := w.db.Refund(t.Context(), refund.ID); err != nil || r.Status != flow.RefundProcessed {
				t.Errorf("%s: the refund is %+v (%v)", of, r, err)
			}
			for _, text := range []string{"ADAEZE", "OBI-NWOSU", "******4321"} {
				w.stands(text, false)
			}
		})
	}
}

// Nor does it when it says why it sends them nothing back: told, answered, or as what it
// refuses to do.
func TestWhyABankFailedWhoIsForgottenNamesNobody(t *testing.T) {
	t.Parallel()
	const why = "the account of ADAEZE OBI-NWOSU is closed"
	for name, fails := range map[string]func(*world, flow.Disbursement) (flow.Disbursed, error){
		"refused": func(*world, flow.Disbursement) (flow.Disbursed, error) {
			return flow.Disbursed{}, fmt.Errorf("disburse: %w: closed: %s", rail.ErrRejected, why)
		},
		"answered": func(*world, flow.Disbursement) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, Reason: why}, nil
		},
		"told": func(w *world, d flow.Disbursement) (flow.Disbursed, error) {
			n := flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "N1", Reference: d.Reference, Amount: d.Amount, PaidAt: w.clock(), Reason: why}
			return flow.Disbursed{Status: flow.DisbursementPending}, w.tell(n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := one(t)
			s := w.adaSession()
			w.adaPays(s)
			w.until("the payment is here", func() bool { return len(w.payments(s.ID)) == 1 })
			w.forgotten(w.find())
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(d flow.Disbursement, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					return fails(w, d)
				}
			})
			if r := w.refused(w.payments(s.ID)[0], 100_000); r.Failure == "" {
				t.Errorf("why it failed is not said: %+v", r)
			}
			w.stands("OBI-NWOSU", false)
		})
	}
}
