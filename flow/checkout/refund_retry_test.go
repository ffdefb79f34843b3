package checkout_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

// retryRefund asks for a refund to be sent again.
func (w *world) retryRefund(r flow.Refund) error {
	w.t.Helper()
	_, err := w.service.RetryRefund(w.t.Context(), r.ID, "wsp_key_1", call("", "", nil))
	return err
}

// The money of a refund that failed is the merchant's again, and is paid out with
// the rest: it cannot be sent after that, until as much has come.
func TestARefundThatFailedIsNotRetriedWithMoneyThatWasPaidOut(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		w.ordered(p, 200_000)
		r := w.refuses(session.ID, 1)
		w.weather(rail.Conditions{})
		w.at("2026-11-23T08:00:01Z")
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded || b.Amount != 482_500 {
			t.Fatalf("what was put back is not paid out: %+v", b)
		}
		if err := w.retryRefund(r); flow.CodeOf(err) != flow.CodeRefundOverBalance {
			t.Errorf("it is sent with what was paid out: %v", err)
		}
		w.rest()
		if now := w.becomes(r.ID, flow.RefundFailed); now.Reference != r.Reference || !now.PutBack || w.left() != 0 {
			t.Errorf("it was refused, and became %+v with %d left", now, w.left())
		}
		w.earns()
		w.must(w.retryRefund(r))
		w.sentBack(session.ID)
		if left := w.left(); left != 282_500 {
			t.Errorf("%d are left", left)
		}
		w.proven()
	})
}

// What waits aside is not the merchant's: it is sent again to who paid it though
// the merchant owes us money.
func TestARefundOfWhatIsSetAsideIsRetriedWithoutABalance(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		paid := w.earns()
		w.at("2026-11-23T08:00:01Z")
		w.ended(project, 1)
		session, p := w.lateMoney(func(*flow.Policy) {})
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		w.ordered(p, 10_000) // which the bank has
		r := w.refuses(session.ID, 1)
		w.weather(rail.Conditions{})
		_, err := w.bank.Reverse(t.Context(), paid.RailTransactionID)
		w.must(err)
		w.until("it is taken back", func() bool { return w.left() == -482_500 })
		w.must(w.retryRefund(r))
		if r = w.sentBack(session.ID); r.Aside != 10_000 {
			t.Errorf("%+v", r)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 490_000, flow.Unapplied: -490_000})
		if left := w.left(); left != -482_500 {
			t.Errorf("%d are left", left)
		}
		w.proven()
	})
}

// A refund that nobody knew of is retried, and the bank says that it sent it and got
// it back: both are booked, and it is not sent again unless somebody says so.
func TestARetriedRefundThatBouncedMeanwhileIsNotSentAgainByItself(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		t := w.t
		session, p := w.paidFor(500_000)
		w.weather(rail.Conditions{Refunds: rail.FatePending})
		r := w.ordered(p, 200_000)
		w.rest()
		w.passes(16, 4*time.Hour)
		if r = w.becomes(r.ID, flow.RefundAttention); r.Tries != 1 || r.Returned || r.PutBack {
			t.Fatalf("%+v", r)
		}
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", Reverses: "B1", At: w.clock()}, nil
		})
		w.must(w.retryRefund(r))
		w.rest()
		if r = w.becomes(r.ID, flow.RefundAttention); !r.Returned || r.Reference != string(r.ID) || w.calls()["disburse"] != 1 {
			t.Errorf("the bank was told %d times: %+v", w.calls()["disburse"], r)
		}
		booked, err := w.db.MovementsNamed(t.Context(), []string{"B1", "B2"})
		if err != nil || len(booked) != 2 {
			t.Errorf("booked %+v (%v)", booked, err)
		}
		w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 500_000, flow.RefundsPayable: -200_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
		if e := w.events(session.ID); e[flow.RefundProcessedKind] != 1 || e[flow.RefundAttentionKind] != 2 {
			t.Errorf("told %v", e)
		}
	})
}

// A refund that nobody knew of is retried, and the bank says that it sent nothing and will
// not: under that name it never would, so that it is sent under another.
func TestARetriedRefundThatTheBankRefusedMeanwhileIsSentUnderAnotherName(t *testing.T) {
	t.Parallel()
	w := one(t)
	session, p := w.paidFor(500_000)
	w.rail.set(func(r *shakyRail) {
		r.onSendOut = func(d flow.Disbursement, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if strings.HasSuffix(d.Reference, "-2") {
				return call()
			}
			return flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()}, nil
		}
	})
	says := func(d flow.Disbursed) {
		w.rail.sentOut(func(name string, call func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			if strings.HasSuffix(name, "-2") {
				return call()
			}
			return d, nil
		})
	}
	says(flow.Disbursed{Status: flow.DisbursementPending, At: w.clock()})
	r := w.ordered(p, 200_000)
	w.rest()
	w.passes(16, 4*time.Hour)
	r = w.becomes(r.ID, flow.RefundAttention)
	says(flow.Disbursed{Status: flow.DisbursementFailed, Reason: "No such account.", At: w.clock()})
	w.must(w.retryRefund(r))
	if r = w.sentBack(session.ID); r.Reference != string(r.ID)+"-2" {
		t.Errorf("it was sent as %s", r.Reference)
	}
	w.lies(session.ID, map[flow.LedgerAccount]flow.Kobo{flow.RailClearing: 300_000, flow.MerchantPending: -282_500, flow.Fees: -17_500})
}

// Another process may begin to send the same while the bank is asked about it, or have it
// sent under another name: what the bank answered is not about that, and it is asked again
// before anything is sent.
func TestNothingIsSentOnAnAnswerAboutWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]string{
		"a refund was begun":        "UPDATE refunds SET tries = tries + 1",
		"a refund was given a name": "UPDATE refunds SET reference = id || '-2'",
		"a payout was begun":        "UPDATE settlements SET tries = tries + 1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.SQLite(t, store.Checkout))
			w.pays("")
			w.start(true)
			var mu sync.Mutex
			var said []string
			says := func(what, name string) (n int) {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, what+" "+name)
				return len(said)
			}
			_, p := w.paidFor(500_000)
			w.rail.set(func(r *shakyRail) {
				r.onSendOut = func(d flow.Disbursement, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					if says("sent", d.Reference) == 1 {
						return flow.Disbursed{}, rail.ErrUnknown
					}
					return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: w.clock()}, nil
				}
				r.onSentOut = func(name string, _ func() (flow.Disbursed, error)) (flow.Disbursed, error) {
					if says("asked", name) == 2 {
						w.change(meanwhile)
					}
					return flow.Disbursed{}, rail.ErrNotFound
				}
			})
			if strings.Contains(meanwhile, "settlements") {
				_, made, _, err := w.service.SettleNow(t.Context(), project, "2026-11-23")
				if err != nil || !made {
					t.Fatalf("there is no payout (%v)", err)
				}
			} else {
				w.ordered(p, 100_000)
			}
			w.rest()
			w.passes(4, 20*time.Second)
			mu.Lock()
			defer mu.Unlock()
			is := said[0][len("sent "):]
			now := is
			if strings.Contains(meanwhile, "-2") {
				now += "-2"
			}
			if want := []string{"sent " + is, "asked " + is, "asked " + now, "sent " + now}; !slices.Equal(said, want) {
				t.Errorf("%q, not %q", said, want)
			}
		})
	}
}
