package flow_test

import (
	"cmp"
	"testing"
	"time"

	"till/flow"
)

func TestAnAnswerTellsWhatBecameOfMoneyThatDidNotFit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	s := flow.Session{ID: "wsp_sess_1", Merchant: "Ada Stores", Amount: 500_000, AmountPaid: 200_000, Status: flow.SessionPending, Reference: "order-1182"}
	over := s
	over.Status = flow.SessionExpired
	back := s
	back.Policy.Underpayment = "refund"
	paid := s
	paid.Status, paid.AmountPaid = flow.SessionPaid, 500_000
	lost := paid.With(flow.Reversed)
	for name, c := range map[string]struct {
		session flow.Session
		payment flow.Payment
		key     string
		args    map[string]string
	}{
		"a part that waits for the rest":           {s, flow.Payment{Match: flow.Partial, Amount: 200_000, Unapplied: 200_000}, "part_paid", map[string]string{"paid": "₦2,000", "left": "₦3,000"}},
		"a part that goes back by itself":          {back, flow.Payment{Match: flow.Partial, Amount: 200_000, Unapplied: 200_000, ReturnsAt: now}, "returning", map[string]string{"extra": "₦2,000"}},
		"a part that the bank would not send back": {back, flow.Payment{Match: flow.Partial, Amount: 200_000, Unapplied: 200_000}, "not_sent", map[string]string{"extra": "₦2,000"}},
		"a part that came to nothing": {over, flow.Payment{Match: flow.Partial, Amount: 200_000, Unapplied: 200_000, ReturnsAt: now}, "part_waits", map[string]string{
			"paid": "₦2,000", "by": flow.Stamp(now), "reference": "order-1182",
		}},
		"too much":     {paid, flow.Payment{Match: flow.Excess, Amount: 700_000, Unapplied: 200_000}, "paid_over", map[string]string{"extra": "₦2,000"}},
		"too late":     {over, flow.Payment{Match: flow.Late, Amount: 500_000, Unapplied: 500_000}, "paid_late", map[string]string{"extra": "₦5,000"}},
		"twice":        {paid, flow.Payment{Match: flow.Duplicate, Amount: 500_000, Unapplied: 500_000}, "paid_twice", map[string]string{"extra": "₦5,000"}},
		"it goes back": {over, flow.Payment{Match: flow.Late, Amount: 500_000, Refunded: 500_000, Resolution: flow.ResolvedRefunded}, "went_back", map[string]string{"extra": "₦5,000"}},
		"it comes back to us": {
			paid,
			flow.Payment{Match: flow.Duplicate, Amount: 500_000, Refunded: 500_000, Bounced: 500_000, BouncedAside: 500_000, Resolution: flow.ResolvedRefunded},
			"came_back",
			map[string]string{"extra": "₦5,000", "paid": "₦5,000"},
		},
		"a second payment that was accepted, and sent back since, comes back to us": {
			paid, flow.Payment{Match: flow.Duplicate, Amount: 500_000, Applied: 500_000, Refunded: 500_000, Bounced: 500_000, Resolution: flow.ResolvedAccepted}, "came_back", map[string]string{"extra": "₦5,000", "paid": "₦5,000"},
		},
		"what was paid comes back to us": {
			paid, flow.Payment{Match: flow.Matched, Amount: 500_000, Applied: 500_000, Refunded: 500_000, Bounced: 500_000}, "came_back", map[string]string{"extra": "₦5,000", "paid": ""},
		},
		"it is accepted": {paid, flow.Payment{Match: flow.Duplicate, Amount: 500_000, Applied: 500_000, Resolution: flow.ResolvedAccepted}, "kept", map[string]string{"extra": "₦5,000"}},
		"what the bank left of it is accepted": {
			paid, flow.Payment{Match: flow.Late, Amount: 500_000, Reversed: 200_000, Applied: 300_000, Resolution: flow.ResolvedAccepted}, "kept", map[string]string{"extra": "₦3,000"},
		},
		"taken back": {s, flow.Payment{Match: flow.Matched, Amount: 500_000, Reversed: 500_000}, "taken_back", map[string]string{"extra": "₦5,000", "paid": ""}}, // who sends that is the one to answer
		"taken back before all was paid otherwise": {
			paid, flow.Payment{Match: flow.Partial, Amount: 200_000, Reversed: 200_000}, "taken_back", map[string]string{"extra": "₦2,000"},
		},
		"taken back from what goes back": {
			over, flow.Payment{Match: flow.Late, Amount: 500_000, Reversed: 100_000, Refunded: 400_000, Resolution: flow.ResolvedRefunded}, "taken_back", map[string]string{"extra": "₦1,000"},
		},
		"some of it taken back": {
			paid, flow.Payment{Match: flow.Matched, Amount: 500_000, Applied: 500_000, Reversed: 100_000}, "taken_back", map[string]string{"extra": "₦1,000"},
		},
		"late, and taken back from what was paid": {
			lost, flow.Payment{Match: flow.Late, Amount: 500_000, Applied: 500_000, Reversed: 500_000, Resolution: flow.ResolvedAccepted}, "taken_back", map[string]string{"extra": "₦5,000", "paid": ""},
		},
		"what fits": {paid, flow.Payment{Match: flow.Matched, Amount: 500_000, Applied: 500_000}, "", nil},
		"nobody's":  {flow.Session{}, flow.Payment{Match: flow.Unmatched, Amount: 1, Unapplied: 1}, "", nil},
	} {
		co := flow.Checkout{Session: c.session, Payments: []flow.Payment{c.payment}}
		say, told := flow.Answer(co, c.payment, true, flow.Pidgin, now)
		if told != (c.key != "") || told && (say.Key != c.key || say.Lang != flow.Pidgin) {
			t.Errorf("%s: %v %+v", name, told, say)
		}
		for arg, want := range c.args {
			if say.Args[arg] != want {
				t.Errorf("%s: %s is %q, not %q", name, arg, say.Args[arg], want)
			}
		}
		// Who is in no chat has no menu to reply to, and nobody who tells the rest there.
		want := map[string]string{"part_paid": "part_left", "returning": "went_back"}[c.key]
		if apart, _ := flow.Answer(co, c.payment, false, flow.Pidgin, now); apart.Key != cmp.Or(want, c.key) {
			t.Errorf("%s, in no chat: %+v", name, apart)
		}
	}
}
