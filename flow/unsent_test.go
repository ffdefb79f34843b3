package flow_test

import (
	"testing"

	"till/flow"
)

// What the bank has taken back of new money keeps nothing of earlier parts from
// going back, and none of it is set aside twice.
func TestWhatWasTakenBackHoldsUpNoOthersReturn(t *testing.T) {
	t.Parallel()
	p := flow.Payment{ID: "late", Amount: 300_000, Applied: 1, Refunded: 299_999, Resolution: flow.ResolvedRefunded}
	c := flow.Change{Payment: &p, Returns: []flow.Return{{Payment: "part", Amount: 200_001}, {Payment: "late", Amount: 299_999}}}
	c = c.Unsent(300_000)
	if len(c.Returns) != 1 || c.Returns[0].Payment != "part" || c.Returns[0].Amount != 200_001 {
		t.Errorf("what goes back is %+v", c.Returns)
	}
	if p.Refunded != 0 || p.Unapplied != 299_999 || p.Resolution != flow.Unresolved {
		t.Errorf("the payment is %+v", p)
	}
}

// Of a session that is open who sent too little is asked for all of it at once, also
// where the bank has it again already. Of one that is over nothing is left to be told.
func TestTooLittleThatWasTakenBackIsAskedForAnew(t *testing.T) {
	t.Parallel()
	for status, told := range map[flow.SessionStatus]int{flow.SessionPending: 1, flow.SessionExpired: 0} {
		m := flow.Money{Notice: credit("rail-1", 300_000, noon), Session: open(), Attempt: trying("a", flow.BankTransfer), Payment: "wsp_pay_1", Now: noon}
		m.Session.Status, m.Session.Policy.Underpayment = status, "refund"
		c, err := flow.Settle(m)
		if err != nil {
			t.Fatal(err)
		}
		c = c.Unsent(300_000)
		if len(c.News) != told || told == 1 && (c.News[0].Kind != flow.NewsTooLittle || c.News[0].Amount != 300_000) || len(c.Returns) != 0 {
			t.Errorf("%s: told %+v, and %+v goes back", status, c.News, c.Returns)
		}
	}
}
