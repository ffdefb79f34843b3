package checkout_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"till/flow"
	"till/rail"
)

// noise is a text that no store makes shorter.
func noise(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var b strings.Builder
	for range n {
		b.WriteByte(letters[r.IntN(len(letters))])
	}
	return b.String()
}

// Money is kept whatever the bank says around it: fields that are filled up with
// NUL, that break lines or are no text, and that are longer than any store's index
// takes. Both stores keep the same of it.
func TestMoneyIsKeptHoweverOddTheWordsAroundIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		for name, change := range map[string]func(*flow.Notice){
			"long names": func(n *flow.Notice) {
				n.Payer = flow.PaidBy{Name: noise(60_000), BankName: noise(9_000), AccountNumberMasked: noise(9_000)}
			},
			"a long NIP id":   func(n *flow.Notice) { n.NIPSessionID = noise(9_000) },
			"NUL":             func(n *flow.Notice) { n.Payer.Name, n.NIPSessionID = "ADA\x00\x00", "090267\x00\x00" },
			"no text":         func(n *flow.Notice) { n.Payer.Name, n.NIPSessionID = "AD\xffA", "09\xff" },
			"lines and marks": func(n *flow.Notice) { n.Payer.Name = "ADA\nPaid: ₦1,000,000\u202e" },
		} {
			session, a := w.paying()
			n := credit("T "+name, a.Reference, 500_000, w.clock())
			change(&n)
			w.must(w.tell(n, n))
			kept := w.payments(session.ID)
			if len(kept) != 1 {
				t.Fatalf("%s: kept as %d payments", name, len(kept))
			}
			p := kept[0]
			for _, text := range []string{p.Payer.Name, p.Payer.BankName, p.Payer.AccountNumberMasked, p.NIPSessionID} {
				if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n\u202e") || utf8.RuneCountInString(text) > 200 {
					t.Errorf("%s: kept is %q", name, text)
				}
			}
		}
	})
}

// So does a refund that the bank refuses, or that comes to nothing, in whatever
// words: it ends, and is not asked about for ever.
func TestARefundEndsInWhateverWordsTheBankRefusesIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		answers := map[string]func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error){
			"refused": func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, fmt.Errorf("disburse: %w: closed\x00\xff", rail.ErrRejected)
			},
			"failed": func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "F1", At: w.clock(), Reason: "closed\x00" + noise(60_000)}, nil
			},
		}
		for name, answer := range answers {
			session, p := w.paidFor(500_000)
			w.rail.set(func(r *shakyRail) { r.onSendOut = answer })
			w.ordered(p, 200_000)
			r := w.refuses(session.ID, 1)
			w.rail.set(func(r *shakyRail) { r.onSendOut = nil })
			if !utf8.ValidString(r.Failure) || strings.Contains(r.Failure, "\x00") || !strings.Contains(r.Failure, "closed") || len(r.Failure) > 300 {
				t.Errorf("%s: the refund says %q", name, r.Failure)
			}
		}
	})
}

// A name of what was sent that cannot be kept says nothing: the bank is asked again.
func TestWhatWasSentUnderNoNameIsAskedAboutAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		_, p := w.paidFor(500_000)
		var asked atomic.Int64
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(_ flow.Disbursement, send func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				done, err := send()
				if asked.Add(1) == 1 {
					done = flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "S\x001", At: w.clock()}
				}
				return done, err
			}
		})
		r := w.ordered(p, 200_000)
		var sent flow.Refund
		w.until("it is sent", func() bool {
			w.later(time.Minute)
			var err error
			sent, err = w.db.Refund(w.t.Context(), r.ID)
			return err == nil && sent.Status == flow.RefundProcessed
		})
		if !flow.RailName(sent.RailTransactionID) {
			w.t.Errorf("it was sent as %q", sent.RailTransactionID)
		}
	})
}

// What tells one movement from another is cut nowhere: two would become one. What
// is no name is refused, by both stores alike, so that the bank is heard to say so.
func TestAMovementWhoseNameCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, a := w.paying()
		for _, id := range []string{noise(256), noise(3_000), "T\x001", "T\xff", "T\n1"} {
			if err := w.tell(credit(id, a.Reference, 500_000, w.clock())); err == nil {
				w.t.Errorf("a movement with a name of %d bytes, %.10q, is taken", len(id), id)
			}
			r := credit("T2", a.Reference, 500_000, w.clock())
			r.Kind, r.Reverses = flow.Reversal, id
			if err := w.tell(r); err == nil {
				w.t.Errorf("a reversal of %.10q is taken", id)
			}
		}
		if got := w.payments(session.ID); len(got) != 0 {
			w.t.Errorf("kept are %+v", got)
		}
		w.must(w.tell(credit(noise(255), a.Reference, 500_000, w.clock())))
		if got := w.payments(session.ID); len(got) != 1 {
			w.t.Errorf("a name of 255 bytes is kept as %d payments", len(got))
		}
	})
}

// What is no money of anybody's is refused, and nothing of it is kept: what no ledger adds
// up would hide every balance and every proof for good.
func TestAMovementOfWhatIsNoMoneyIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		session, a := w.paying()
		const most = 10_000_000_000_000
		for _, kind := range []flow.NoticeKind{flow.Credit, flow.Reversal, flow.Returned} {
			for _, amount := range []flow.Kobo{-1, 0, most + 1, math.MaxInt64} {
				if err := w.tell(said(kind, "T1", a, amount, w.clock())); err == nil {
					w.t.Errorf("a %s of %d kobo is taken", kind, amount)
				}
			}
			if err := w.tell(said(kind, "", a, 500_000, w.clock())); err == nil {
				w.t.Errorf("a %s without a name is taken", kind)
			}
		}
		if err := w.tell(said("gift", "T1", a, 500_000, w.clock())); err == nil {
			w.t.Error("what nobody knows the kind of is taken")
		}
		if _, known, err := w.db.TakenBack(w.t.Context(), "T1"); err != nil || known || len(w.payments(session.ID)) != 0 {
			w.t.Errorf("kept are %+v, and a reversal %v (%v)", w.payments(session.ID), known, err)
		}
		w.must(w.tell(said(flow.Credit, "T1", a, most, w.clock())))
		if got := w.payments(session.ID); len(got) != 1 || got[0].Amount != most {
			w.t.Errorf("the most that is money is kept as %+v", got)
		}
	})
}
