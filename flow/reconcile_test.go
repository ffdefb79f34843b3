package flow_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"till/flow"
)

// Whatever one of the three says otherwise is a difference of its kind, once, and
// nothing else is.
func TestEveryDifferenceIsFoundAndNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rail, ledger, events []flow.Movement
		var want []string
		differs := func(id string, kinds ...flow.DifferenceKind) {
			for _, kind := range kinds {
				want = append(want, id+" "+string(kind))
			}
		}
		for i := range rapid.IntRange(0, 30).Draw(t, "movements") {
			m := flow.Movement{
				RailTransactionID: fmt.Sprintf("T%02d", i), Kind: rapid.SampledFrom(flow.MovementKinds()).Draw(t, "kind"),
				Amount: flow.Kobo(rapid.Int64Range(-1e12, 1e12).Draw(t, "amount")), ValueAt: noon,
			}
			other := m
			other.Amount++
			id := m.RailTransactionID
			r, l, e := []flow.Movement{m}, []flow.Movement{m}, []flow.Movement{m}
			switch rapid.SampledFrom([]string{"same", "same", "not booked", "not at rail", "rail differs", "rail twice", "booked twice", "not told", "silent", "told other", "told twice alike", "told only"}).Draw(t, "what") {
			case "same":
			case "not booked":
				l, e = nil, nil
				differs(id, flow.MissingInLedger)
			case "not at rail":
				r = nil
				differs(id, flow.MissingAtRail)
			case "rail differs":
				r = []flow.Movement{other}
				differs(id, flow.AmountDiffers)
			case "rail twice":
				r = append(r, m)
				differs(id, flow.TwiceAtRail)
			case "booked twice":
				l = append(l, m)
				differs(id, flow.TwiceInLedger)
			case "not told":
				e = nil
				differs(id, flow.MissingEvent)
			case "silent":
				l[0].Silent, e = true, nil
			case "told other":
				e = []flow.Movement{other}
				differs(id, flow.EventDiffers)
			case "told twice alike":
				e = append(e, m)
			case "told only":
				r, l = nil, nil
				differs(id, flow.EventWithoutBooking)
			}
			rail, ledger, events = append(rail, r...), append(ledger, l...), append(events, e...)
		}
		for _, list := range [][]flow.Movement{rail, ledger, events} {
			shuffled := rapid.Permutation(list).Draw(t, "order")
			copy(list, shuffled)
		}
		found := flow.Reconcile(rail, ledger, events)
		got := make([]string, len(found))
		for i, d := range found {
			got[i] = d.RailTransactionID + " " + string(d.Kind)
		}
		slices.Sort(want)
		if !slices.IsSortedFunc(found, func(a, b flow.Difference) int { return cmp.Compare(a.RailTransactionID, b.RailTransactionID) }) {
			t.Fatalf("out of order: %v", got)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("found %v, want %v", got, want)
		}
	})
}

func TestADifferenceSaysWhatEachOfThemSays(t *testing.T) {
	rail := flow.Movement{RailTransactionID: "T1", Kind: flow.MovePayment, Amount: 500, ValueAt: noon, Subject: "wsp_ref_1"}
	booked := flow.Movement{RailTransactionID: "T1", Kind: flow.MovePayment, Amount: 400, ValueAt: noon, Subject: "wsp_pay_1", Payment: "wsp_pay_1", Project: "wsp_prj_1"}
	found := flow.Reconcile([]flow.Movement{rail}, []flow.Movement{booked}, nil)
	if len(found) != 2 || found[0].Kind != flow.AmountDiffers || found[1].Kind != flow.MissingEvent {
		t.Fatalf("%+v", found)
	}
	d := found[0]
	if *d.Rail != 500 || *d.Ledger != 400 || d.Event != nil || d.Payment != "wsp_pay_1" || d.Project != "wsp_prj_1" || d.Subject != "wsp_pay_1" || !d.ValueAt.Equal(noon) {
		t.Errorf("%+v", d)
	}
	told, other := booked, booked // by two events, of which one says it otherwise
	other.Amount = 300
	if found = flow.Reconcile([]flow.Movement{booked}, []flow.Movement{booked}, []flow.Movement{told, other}); len(found) != 1 || found[0].Kind != flow.EventDiffers || *found[0].Event != 300 {
		t.Errorf("%+v", found)
	}
	if got := flow.Totals([]flow.Movement{rail, booked})[flow.MovePayment]; got != (flow.Total{Count: 2, Amount: 900}) {
		t.Errorf("%+v", got)
	}
}

func TestWhatALineOfAStatementMoved(t *testing.T) {
	for _, c := range []struct {
		notice flow.Notice
		kind   flow.MovementKind
		amount flow.Kobo
	}{
		{flow.Notice{Kind: flow.Credit, RailTransactionID: "T", Amount: 5}, flow.MovePayment, 5},
		{flow.Notice{Kind: flow.Reversal, RailTransactionID: "T", Amount: 5}, flow.MoveReversal, -5},
		{flow.Notice{Kind: flow.PaidOut, RailTransactionID: "T", Amount: 5, Reference: "wsp_rfd_1"}, flow.MoveRefund, -5},
		{flow.Notice{Kind: flow.PaidOut, RailTransactionID: "T", Amount: 5, Reference: "wsp_stl_1"}, flow.MovePayout, -5},
		{flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "T", Amount: 5, Reference: "wsp_rfd_1", Reverses: "S"}, flow.MoveRefundReturned, 5},
		{flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "T", Amount: 5, Reference: "wsp_stl_1", Reverses: "S"}, flow.MovePayoutReturned, 5},
		{flow.Notice{Kind: flow.PayoutFailed, RailTransactionID: "T", Amount: 5}, "", 0},
		{flow.Notice{Kind: flow.Declined, RailTransactionID: "T"}, "", 0},
		{flow.Notice{Kind: flow.Pending, RailTransactionID: "T", Amount: 5}, "", 0},
		{flow.Notice{Kind: flow.Returned, RailTransactionID: "T", Amount: 5}, "", 0},
	} {
		c.notice.PaidAt, c.notice.Collects = noon, "wsp_prj_1"
		m, ok := flow.MovementSaid(c.notice)
		if ok != (c.kind != "") || m.Kind != c.kind || m.Amount != c.amount {
			t.Errorf("%+v is %+v, %v", c.notice, m, ok)
		}
		if ok && (!m.ValueAt.Equal(noon) || m.Subject != c.notice.Reference || m.Project != "wsp_prj_1") {
			t.Errorf("of %+v it is not said when it was, under which name and whose: %+v", c.notice, m)
		}
	}
}
