package checkout_test

import (
	"cmp"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/rail"
)

// A bank says that it sent nothing, sends it after all, and then says once more what
// it said first, or cannot be asked just then: the merchant was paid, once.
func TestAPayoutThatWasSentAfterAllIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	for name, saysFirst := range map[string]func(w *world, refusal, sent flow.Notice) error{
		"told again": func(w *world, refusal, sent flow.Notice) error {
			w.must(w.tell(refusal))
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: sent.RailTransactionID, At: sent.PaidAt}, nil
			})
			w.must(w.tell(sent))
			w.rest()
			return w.tell(refusal)
		},
		"told in the wrong order": func(w *world, refusal, sent flow.Notice) error {
			w.must(w.tell(sent))
			w.rest()
			return w.tell(refusal)
		},
		"told while it cannot be asked": func(w *world, refusal, sent flow.Notice) error {
			w.must(w.tell(refusal))
			asked := 0
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				if asked++; asked == 1 {
					return flow.Disbursed{}, rail.ErrUnavailable
				}
				return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: sent.RailTransactionID, At: sent.PaidAt}, nil
			})
			err := w.tell(sent)
			w.rest()
			w.passes(3, time.Minute)
			return err
		},
		"told while the bank does not know of it": func(w *world, _, sent flow.Notice) error {
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{}, cmp.Or(w.tell(sent), rail.ErrNotFound)
			})
			w.later(time.Minute)
			return nil
		},
		"answered late": func(w *world, _, sent flow.Notice) error {
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "No such account."}, w.tell(sent)
			})
			w.later(time.Minute)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "", func(w *world) {
				t := w.t
				w.earns()
				w.weather(rail.Conditions{Payouts: rail.FatePending})
				w.at("2026-11-23T08:00:01Z")
				b := w.settlements(project)[0]
				refusal := flow.Notice{Kind: flow.PayoutFailed, Reference: string(b.ID), RailTransactionID: "N1", Amount: b.Amount, PaidAt: w.clock()}
				sent := flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), RailTransactionID: "B1", Amount: b.Amount, PaidAt: w.clock()}
				w.must(saysFirst(w, refusal, sent))
				w.rest()
				w.rail.sentOut(nil)
				if b = w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded || b.RailTransactionID != "B1" {
					t.Errorf("%+v", b)
				}
				w.at("2026-11-24T08:00:01Z")
				if list := w.settlements(project); len(list) != 1 {
					t.Errorf("it is paid again: %+v", list)
				}
				if n := w.calls()["disburse"]; n != 1 {
					t.Errorf("the bank was told %d times", n)
				}
			})
		})
	}
}

// A bank that says of a payout which failed that it sent it is asked, and what it answers
// stands: else the merchant's money could be taken for paid out, and stay where it is.
func TestAPayoutThatFailedIsAskedAboutBeforeItIsTakenForSent(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		w.earns()
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementPending}, nil
			}
		})
		w.at("2026-11-23T08:00:01Z")
		b := w.settlements(project)[0]
		w.must(w.tell(flow.Notice{Kind: flow.PayoutFailed, Reference: string(b.ID), RailTransactionID: "N1", Amount: b.Amount, PaidAt: w.clock()}))
		w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
			return flow.Disbursed{Status: flow.DisbursementFailed, Reason: "No such account."}, nil
		})
		w.must(w.tell(flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), RailTransactionID: "B1", Amount: b.Amount, PaidAt: w.clock()}))
		if b = w.ended(project, 1)[0]; b.Status != flow.SettlementFailed || b.RailTransactionID != "" {
			t.Errorf("%+v", b)
		}
		w.unreached(false)
		w.at("2026-11-24T08:00:01Z")
		if again := w.ended(project, 2)[1]; again.Status != flow.SettlementSucceeded || again.Amount != b.Amount || again.Carried != b.Amount {
			t.Errorf("%+v", again)
		}
		w.until("the merchant is told", func() bool { return w.told(flow.SettlementSuccessKind) == 1 && w.told(flow.SettlementFailedKind) == 1 })
	})
}

// What was sent before midnight and came back after it is booked on two days, as the
// bank books it, also where only the second was heard of.
func TestAPayoutThatCameBackAfterMidnightIsOfTwoDays(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t, ctx := w.t, w.t.Context()
		w.earns()
		w.weather(rail.Conditions{Payouts: rail.FatePending})
		w.at("2026-11-23T08:00:01Z")
		b := w.settlements(project)[0]
		w.at("2026-11-24T01:00:00Z")
		sent := flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), RailTransactionID: "B1", Amount: b.Amount, PaidAt: w.clock().Add(-4 * time.Hour)}
		back := flow.Notice{
			Kind: flow.PayoutFailed, Reference: string(b.ID), RailTransactionID: "B2", Amount: b.Amount, PaidAt: w.clock(),
			Reason: "The receiving bank sent the money back.", Reverses: "B1", SentAt: sent.PaidAt,
		}
		w.must(w.tell(back))
		if b = w.ended(project, 1)[0]; b.Status != flow.SettlementFailed {
			t.Errorf("%+v", b)
		}
		for day, line := range map[flow.Date]flow.Notice{"2026-11-23": sent, "2026-11-24": back} {
			got, err := checkout.ReconcileDay(ctx, w.db.Reader, []flow.Notice{line}, "", day, w.clock())
			w.must(err)
			for _, d := range got.Differences {
				t.Errorf("on %s: %+v", day, d)
			}
		}
	})
}

// A bank may send a payout once more that came back, and that may come back too: each
// time is booked and told as what it is, once, whenever it is told again.
func TestAPayoutThatIsSentOnceMoreAfterItCameBackIsBooked(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		w.earns()
		w.weather(rail.Conditions{Payouts: rail.FatePending})
		w.at("2026-11-23T08:00:01Z")
		b := w.settlements(project)[0]
		var lines []flow.Notice
		says := func(id, back string) {
			w.later(time.Minute)
			n := flow.Notice{Kind: flow.PaidOut, Reference: string(b.ID), RailTransactionID: id, Amount: b.Amount, PaidAt: w.clock()}
			d := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: id, At: n.PaidAt}
			if back != "" {
				n.Kind, n.Reverses = flow.PayoutFailed, back
				d.Status, d.Reverses = flow.DisbursementFailed, back
			}
			w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return d, nil })
			lines = append(lines, n)
			w.must(w.tell(lines...)) // all that it said before too
			w.rest()
		}
		for _, c := range []struct {
			id, back string
			status   flow.SettlementStatus
			has      flow.Kobo // the merchant
			told     int
		}{
			{"B1", "", flow.SettlementSucceeded, 0, 1},
			{"B2", "B1", flow.SettlementFailed, b.Amount, 2},
			{"B3", "", flow.SettlementSucceeded, 0, 3},
			{"B4", "B3", flow.SettlementFailed, b.Amount, 4},
		} {
			says(c.id, c.back)
			w.until("it is "+string(c.status), func() bool {
				list := w.settlements(project)
				return len(list) == 1 && list[0].Status == c.status && list[0].Returned == (c.back != "")
			})
			w.rest()
			left, err := w.service.Balance(t.Context(), project)
			if w.must(err); left.AvailableMinor != c.has.Minor() || w.told(flow.SettlementSuccessKind)+w.told(flow.SettlementFailedKind) != c.told {
				t.Errorf("after %s the merchant has %+v", c.id, left)
			}
			w.rail.set(func(r *shakyRail) { r.lines = lines })
			got, err := w.service.Reconcile(t.Context(), project, flow.DateOf(w.clock()))
			if w.must(err); !got.Balanced() || got.Events[flow.MovePayout].Count+got.Events[flow.MovePayoutReturned].Count != c.told {
				t.Errorf("after %s: %+v", c.id, got)
			}
		}
	})
}

// A bank that sends a payout twice has sent its merchant the next one's money: that is
// booked, once, and what comes back of the two is paid out once.
func TestAPayoutThatIsSentTwiceIsTakenFromTheNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		back []string // what comes back, in order
		is   flow.SettlementStatus
		has  int // how often the amount of the payout lies with us for its merchant
	}{
		"nothing comes back":    {nil, flow.SettlementSucceeded, -1},
		"the second comes back": {[]string{"B2"}, flow.SettlementSucceeded, 0},
		"the first comes back":  {[]string{"B1"}, flow.SettlementFailed, 0},
		"both come back":        {[]string{"B1", "B2"}, flow.SettlementFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "", func(w *world) {
				w.earns()
				w.weather(rail.Conditions{Payouts: rail.FatePending})
				w.at("2026-11-23T08:00:01Z")
				b := w.settlements(project)[0]
				says := func(n flow.Notice) {
					n.Reference, n.Amount, n.PaidAt = string(b.ID), b.Amount, w.clock()
					d := n.Outcomes()
					w.rail.sentOut(func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) { return d[len(d)-1], nil })
					for range 2 { // told again, it is the same
						w.must(w.tell(n))
						w.rest()
					}
				}
				says(flow.Notice{Kind: flow.PaidOut, RailTransactionID: "B1"})
				says(flow.Notice{Kind: flow.PaidOut, RailTransactionID: "B2"})
				for _, name := range c.back {
					says(flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "back-" + name, Reverses: name})
				}
				if b = w.ended(project, 1)[0]; b.Status != c.is || b.RailTransactionID != "B1" {
					w.t.Errorf("it is %+v", b)
				}
				left, err := w.service.Balance(w.t.Context(), project)
				if w.must(err); left.AvailableMinor != (flow.Kobo(c.has) * b.Amount).Minor() {
					w.t.Errorf("the merchant has %+v", left)
				}
				booked, err := w.db.MovementsNamed(w.t.Context(), []string{"B1", "B2", "back-B1", "back-B2"})
				if w.must(err); len(booked) != 2+len(c.back) {
					w.t.Errorf("booked are %+v", booked)
				}
				w.sound()
			})
		})
	}
}
