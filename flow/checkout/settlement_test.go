package checkout_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
	"till/rail"
)

var ownAccount = flow.BankAccount{BankCode: "999", Number: "0000000001", Name: "ADA TEST PAYER"}

// eachPaying runs a test on each database, in a world that pays merchants out.
// changes are the operator's to the holidays.
func eachPaying(t *testing.T, changes string, test func(w *world)) {
	t.Helper()
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		t.Parallel()
		w := newWorld(t, c)
		w.pays(changes)
		w.start(true)
		test(w)
	})
}

func (w *world) pays(changes string) {
	w.t.Helper()
	w.payee = func(context.Context, flow.ProjectID) (flow.BankAccount, bool, error) { return ownAccount, true, nil }
	var err error
	w.calendar, err = flow.NewCalendar(changes)
	w.must(err)
}

// at lets time pass until a moment, and all that falls due by then be done.
func (w *world) at(moment string) {
	w.t.Helper()
	to, err := time.Parse(time.RFC3339, moment)
	w.must(err)
	w.later(to.Sub(w.clock()))
	w.later(3 * time.Second) // what the bank took on is sent, and comes back where it does
}

// earns is a payment that leaves the merchant 482 500 kobo.
func (w *world) earns() flow.Payment {
	w.t.Helper()
	_, p := w.paidFor(500_000)
	return p
}

// settlements are a project's, oldest first.
func (w *world) settlements(of flow.ProjectID) []flow.Settlement {
	w.t.Helper()
	list, more, err := w.service.Settlements(w.t.Context(), of, checkout.SettlementFilter{Limit: 100})
	w.must(err)
	if more {
		w.t.Fatal("there are more than a hundred settlements")
	}
	slices.Reverse(list)
	return list
}

// ended waits until a project has so many settlements, and the bank has said the
// last word about each.
func (w *world) ended(of flow.ProjectID, n int) []flow.Settlement {
	w.t.Helper()
	var list []flow.Settlement
	w.until("the payouts to end", func() bool {
		list = w.settlements(of)
		return len(list) == n && !slices.ContainsFunc(list, func(b flow.Settlement) bool { return !b.Final() })
	})
	w.rest()
	return list
}

// told are the events of a kind that were posted, each counted once.
func (w *world) told(kind flow.EventKind) int {
	seen := map[flow.EventID]bool{}
	for _, d := range w.deliveries(kind) {
		seen[d.Event] = true
	}
	return len(seen)
}

// whole fails unless a settlement is what is in it: the lines and what was carried.
func (w *world) whole(b flow.Settlement) {
	w.t.Helper()
	var net flow.Kobo
	var after store.LinePlace
	n := int64(0)
	for more := true; more; {
		var lines []flow.SettlementLine
		var err error
		lines, more, err = w.service.SettlementLines(w.t.Context(), b.Project, b.ID, after, 2)
		w.must(err)
		for _, l := range lines {
			net += l.Net
			n++
			after = store.LinePlace{At: l.At, Kind: l.Kind, Subject: l.Subject}
		}
	}
	sums, err := w.service.Reader().SettlementSums(w.t.Context(), []flow.Settlement{b})
	w.must(err)
	for _, s := range sums[b.ID] {
		net -= s.Net
		n -= s.Lines
	}
	if net != 0 || n != 0 {
		w.t.Errorf("by kind settlement %s lacks %d of its lines and %d kobo: %+v", b.ID, n, net, sums)
	}
	for _, s := range sums[b.ID] {
		net += s.Net
		n += s.Lines
	}
	if net+b.Carried != b.Amount || n != b.Lines {
		w.t.Errorf("%d lines of settlement %s come to %d, and with %d carried to %d: %+v", n, b.ID, net, b.Carried, net+b.Carried, b)
	}
}

func TestPaymentsOverAWeekendAndAHolidayAreOneSettlement(t *testing.T) {
	t.Parallel()
	eachPaying(t, "2026-11-23,Declared", func(w *world) {
		t := w.t
		w.endpoint("https://shop.test/hook")
		w.earns() // Saturday
		w.at("2026-11-22T18:00:00Z")
		w.earns()
		w.at("2026-11-23T12:00:00Z") // Monday, a holiday
		w.earns()
		w.at("2026-11-24T07:59:00Z")
		w.earns() // before nine, but of this day
		if list := w.settlements(project); len(list) != 0 {
			t.Fatalf("paid out before its time: %+v", list)
		}
		w.at("2026-11-24T08:00:01Z")
		b := w.ended(project, 1)[0]
		if b.SettlesOn != "2026-11-24" || b.Amount != 3*482_500 || b.Lines != 3 || b.Carried != 0 || b.Status != flow.SettlementSucceeded || b.To != ownAccount ||
			b.BankName != "Till Test Bank" || b.RailTransactionID == "" || b.DoneAt.IsZero() {
			t.Errorf("%+v", b)
		}
		w.whole(b)
		w.until("the merchant is told", func() bool { return w.told(flow.SettlementSuccessKind) == 1 })
		w.at("2026-11-24T20:00:00Z")
		if n := len(w.settlements(project)); n != 1 {
			t.Errorf("one day was paid out %d times", n)
		}
		w.at("2026-11-25T08:00:01Z")
		list := w.ended(project, 2)
		if list[1].SettlesOn != "2026-11-25" || list[1].Amount != 482_500 || list[1].Status != flow.SettlementSucceeded {
			t.Errorf("%+v", list)
		}
		if n := w.calls()["disburse"]; n != 2 {
			t.Errorf("the bank was told of %d payouts", n)
		}
	})
}

// A project that is stopped after its settlement was gathered is not paid out while
// it is, where the bank knows of no payout yet.
func TestAPayoutWaitsWhileItsProjectIsStopped(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		w.unreached(true)
		w.at("2026-11-23T08:00:01Z")
		w.until("the bank was to be told", func() bool { list := w.settlements(project); return len(list) == 1 && list[0].Tries > 0 })
		w.must2(w.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), To: flow.MerchantStopped, By: "ops"}))
		w.unreached(false)
		w.passes(12, 10*time.Minute)
		if n := w.calls()["disburse"]; n != 0 {
			t.Errorf("the bank was told of %d payouts of a stopped project", n)
		}
		w.must2(w.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), By: "ops"}))
		w.passes(6, 10*time.Minute)
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded {
			t.Errorf("once it may go on: %+v", b)
		}
	})
}

func TestAPayoutThatDoesNotArriveIsMadeAgainOnTheNextDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fate  rail.Fate
		first flow.SettlementStatus // on the day, and in the end
		end   flow.SettlementStatus
		told  [2]int // settlement.success and settlement.failed, in the end
	}{
		{rail.FateFail, flow.SettlementFailed, flow.SettlementFailed, [2]int{1, 1}},
		{rail.FateReject, flow.SettlementFailed, flow.SettlementFailed, [2]int{1, 1}},
		{rail.FateBounce, flow.SettlementFailed, flow.SettlementFailed, [2]int{2, 1}},
		{rail.FatePending, flow.SettlementProcessing, flow.SettlementSucceeded, [2]int{1, 0}},
	} {
		t.Run(string(c.fate), func(t *testing.T) {
			t.Parallel()
			eachPaying(t, "", func(w *world) {
				t := w.t
				w.endpoint("https://shop.test/hook")
				w.earns()
				w.weather(rail.Conditions{Payouts: c.fate})
				w.at("2026-11-23T08:00:01Z")
				w.until("the first payout stands", func() bool {
					list := w.settlements(project)
					return len(list) == 1 && list[0].Status == c.first
				})
				w.weather(rail.Conditions{})
				w.at("2026-11-24T08:00:01Z")
				w.at("2026-11-24T08:10:00Z")
				list := w.ended(project, 1+c.told[1])
				if list[0].Status != c.end || list[0].Status == flow.SettlementFailed && list[0].Failure == "" {
					t.Errorf("the first is %+v", list[0])
				}
				if len(list) == 2 {
					b := list[1]
					if b.Status != flow.SettlementSucceeded || b.Amount != 482_500 || b.Carried != 482_500 || b.Lines != 0 || b.SettlesOn != "2026-11-24" {
						t.Errorf("the second is %+v", b)
					}
					w.whole(b)
				}
				w.whole(list[0])
				w.until("the merchant is told", func() bool {
					return w.told(flow.SettlementSuccessKind) == c.told[0] && w.told(flow.SettlementFailedKind) == c.told[1]
				})
				if left, err := w.db.Available(t.Context(), project); err != nil || left != 0 {
					t.Errorf("%d kobo are still available (%v)", left, err)
				}
			})
		})
	}
}

func TestARefundAfterThePayoutIsTakenOffTheNext(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		first := w.earns()
		w.paidFor(2_000_000) // what is too much of it stays at the bank, and pays for refunds meanwhile
		w.at("2026-11-23T08:00:01Z")
		if _, err := w.refund(first, 200_000); flow.CodeOf(err) != flow.CodeRefundOverBalance {
			t.Errorf("what was paid out is refunded: %v", err)
		}
		w.earns()
		w.ordered(first, 200_000)
		w.at("2026-11-24T08:00:01Z")
		if _, err := w.refund(first, 1); flow.CodeOf(err) != flow.CodeRefundOverBalance { // not out of our fee either
			t.Errorf("a kobo of what was paid out is refunded: %v", err)
		}
		w.at("2026-11-25T08:00:01Z") // there is nothing
		w.ended(project, 2)
		w.earns()
		w.at("2026-11-26T08:00:01Z")
		var amounts []flow.Kobo
		for _, b := range w.ended(project, 3) {
			w.whole(b)
			amounts = append(amounts, b.Amount)
		}
		if !slices.Equal(amounts, []flow.Kobo{965_000, 282_500, 482_500}) {
			t.Errorf("paid out %v", amounts)
		}
	})
}

// A payout that the bank is silent about is asked about once a day after a while, and on
// each payday: then its merchant hears of it before more is paid out.
func TestAPayoutThatTheBankIsSilentAboutIsAskedAboutOnThePayday(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		w.earns()
		var sent atomic.Bool
		w.rail.set(func(r *shakyRail) {
			r.onSendOut = func(flow.Disbursement, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				return flow.Disbursed{Status: flow.DisbursementPending}, nil
			}
			r.onSentOut = func(string, func() (flow.Disbursed, error)) (flow.Disbursed, error) {
				if sent.Load() {
					return flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "out-1", At: w.clock()}, nil
				}
				return flow.Disbursed{Status: flow.DisbursementPending}, nil
			}
		})
		w.at("2026-11-23T08:00:01Z")
		w.passes(20, 4*time.Hour)
		w.at("2026-11-29T20:00:00Z") // it was asked about at noon
		sent.Store(true)
		w.later(11 * time.Hour)
		if list := w.settlements(project); len(list) != 1 || list[0].Status != flow.SettlementProcessing {
			t.Fatalf("before the payday: %+v", list)
		}
		w.at("2026-11-30T08:00:01Z")
		if b := w.ended(project, 1)[0]; b.Status != flow.SettlementSucceeded || b.Tries != 1 {
			t.Errorf("on the payday: %+v", b)
		}
	})
}

// A refund that the bank refused is a line of its settlement, and so is that its money was
// put back, under the same name: each is listed once.
func TestARefundThatFailedIsInASettlementOnce(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		p := w.earns()
		w.weather(rail.Conditions{Refunds: rail.FateFail})
		r := w.ordered(p, 100_000)
		w.rest()
		w.pass(time.Second)
		w.becomes(r.ID, flow.RefundFailed)
		w.at("2026-11-23T08:00:01Z")
		b := w.ended(project, 1)[0]
		if w.whole(b); b.Lines != 3 || b.Amount != netOf {
			w.t.Errorf("%+v", b)
		}
	})
}

func TestEachProjectIsPaidOutItsOwn(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		t := w.t
		const other = flow.ProjectID("wsp_prj_2")
		w.earns()
		var made checkout.Made
		asked := call("", "", &made)
		asked.Project = other
		_, err := w.service.Open(t.Context(), newSession(flow.Headless), asked)
		w.must(err)
		_, _, err = w.service.Instruct(t.Context(), other, made.Session.ID, checkout.Ask{Method: flow.BankTransfer})
		w.must(err)
		w.pay(made.Session.ID, 500_000, false)
		w.until("the money is here", func() bool { return w.read(made.Session.ID).Status == flow.SessionPaid })
		w.rest()
		w.at("2026-11-23T08:00:01Z")
		mine, others := w.ended(project, 1), w.ended(other, 1)
		if mine[0].ID == others[0].ID || mine[0].Amount != 482_500 || others[0].Amount != 482_500 {
			t.Fatalf("%+v and %+v", mine, others)
		}
		if _, err := w.service.Settlement(t.Context(), other, mine[0].ID); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another's is read: %v", err)
		}
		if _, _, err := w.service.SettlementLines(t.Context(), other, mine[0].ID, store.LinePlace{}, 10); flow.CodeOf(err) != flow.CodeNotFound {
			t.Errorf("another's lines are read: %v", err)
		}
	})
}

func TestWhoHasNotSaidWhereToIsNotPaidOutAndLosesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachConfig(t, store.Checkout, func(t *testing.T, c store.Config) {
		t.Parallel()
		w := newWorld(t, c)
		w.pays("")
		var said atomic.Bool
		w.payee = func(context.Context, flow.ProjectID) (flow.BankAccount, bool, error) {
			return ownAccount, said.Load(), nil
		}
		w.start(true)
		w.earns()
		w.at("2026-11-23T08:00:01Z")
		if blocked, err := w.service.Blocked(t.Context(), project); err != nil || blocked != flow.BlockedNoAccount || w.logged("a project is not paid out") == 0 {
			t.Errorf("blocked by %q (%v)", blocked, err)
		}
		if list := w.settlements(project); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		if b, err := w.service.Balance(t.Context(), project); err != nil || b.BlockedReason == nil || *b.BlockedReason != flow.BlockedNoAccount || b.PendingMinor != "482500" {
			t.Errorf("the balance is %+v (%v)", b, err)
		}
		said.Store(true)
		w.must2(w.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), To: flow.MerchantStopped, By: "ops"}))
		w.at("2026-11-24T08:00:01Z")
		if blocked, err := w.service.Blocked(t.Context(), project); err != nil || blocked != flow.BlockedStopped || len(w.settlements(project)) != 0 {
			t.Errorf("a stopped project is blocked by %q (%v)", blocked, err)
		}
		w.must2(w.board.Move(t.Context(), flow.SwitchMove{Kind: flow.SwitchMerchant, Name: string(project), By: "ops"}))
		w.at("2026-11-25T08:00:01Z")
		if list := w.ended(project, 1); list[0].Amount != 482_500 || list[0].Status != flow.SettlementSucceeded {
			t.Errorf("%+v", list)
		}
	})
}

func (w *world) must2(_ any, err error) {
	w.t.Helper()
	w.must(err)
}
