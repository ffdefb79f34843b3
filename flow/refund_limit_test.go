package flow_test

import (
	"errors"
	"testing"

	"till/flow"
)

// What a refusal says is covered is the most that is: of what a refund took beyond its
// payment, that which goes beyond the fee comes off first, and after that the fee as a
// whole.
func TestWhatARefusalSaysIsCoveredIsTheMostThatIs(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	const taken, fee, beyond = 200_000, 17_500, 100_000
	p := came(flow.Matched)
	// afford asks for a refund that takes so much less, of a merchant who has lacking too
	// little for the whole of it.
	afford := func(less, lacking flow.Kobo) error {
		over := max(fee+beyond-less, 0)
		own := min(over, fee)
		return flow.Afford(p, taken-less, less-lacking-fee, flow.Overdraft{Fees: own, Own: own, Beyond: over - own})
	}
	for _, lacking := range []flow.Kobo{1, 60_000, beyond, beyond + 1, 150_000, taken - fee, taken} {
		refusal, ok := errors.AsType[*flow.Error](afford(0, lacking))
		if !ok || refusal.Code != flow.CodeRefundOverBalance {
			t.Fatalf("%d too little: %v", lacking, refusal)
		}
		most := flow.Kobo(0)
		for refunds := flow.Kobo(taken); refunds > 0 && most == 0; refunds-- {
			if afford(taken-refunds, lacking) == nil {
				most = refunds
			}
		}
		if got := refusal.Details["coveredMinor"]; got != most.Minor() {
			t.Errorf("%d too little: %s is said to be covered, and %s is", lacking, got, most.Minor())
		}
	}
}

// What a receipt says went back, and was taken by the bank, is of the money that the
// session is paid with: no second payment, nothing beyond it and nothing before it.
func TestWhatIsGoneIsOfWhatTheSessionIsPaidWith(t *testing.T) {
	s := open()
	s.Status, s.AmountPaid = flow.SessionPaid, s.Amount
	whole := flow.Payment{Match: flow.Matched, Amount: 500_000, Applied: 500_000}
	refunded, extra := whole, flow.Payment{Match: flow.Excess, Amount: 600_000, Applied: 500_000, Refunded: 100_000}
	refunded.Refunded = 200_000
	bounced, kept, second := refunded, extra, whole
	bounced.Bounced = 200_000
	kept.Applied, kept.Refunded = 600_000, 150_000          // its merchant accepted what was too much
	second.Match, second.Refunded = flow.Duplicate, 300_000 // accepted first
	taken := whole
	taken.Reversed, taken.Lost, taken.FeeBack = 500_000, 482_500, 17_500
	takenBeyond := kept
	takenBeyond.Refunded, takenBeyond.Reversed, takenBeyond.Lost = 0, 150_000, 150_000
	for name, c := range map[string]struct {
		payments    []flow.Payment
		back, taken flow.Kobo
	}{
		"nothing":                              {[]flow.Payment{whole}, 0, 0},
		"a refund":                             {[]flow.Payment{refunded}, 200_000, 0},
		"beside a refund of a second payment":  {[]flow.Payment{refunded, second}, 200_000, 0},
		"one that came back to us":             {[]flow.Payment{bounced}, 0, 0},
		"too much, which went back by itself":  {[]flow.Payment{extra}, 0, 0},
		"more than was too much, and accepted": {[]flow.Payment{kept}, 50_000, 0},
		"the bank has all of it":               {[]flow.Payment{taken}, 0, 500_000},
		"the bank has more than was too much":  {[]flow.Payment{takenBeyond}, 0, 50_000},
	} {
		if back, taken := flow.Gone(s, c.payments); back != c.back || taken != c.taken {
			t.Errorf("%s: %d went back and %d were taken, not %d and %d", name, back, taken, c.back, c.taken)
		}
	}
}

// Who asks for more than is left of a payment reads how much that is, and where the rest went.
func TestWhatIsLeftOfAPaymentIsSaidWithWhereTheRestWent(t *testing.T) {
	for want, p := range map[string]flow.Payment{
		"₦5,000 can be refunded (500000 kobo), not ₦5,000.01 (500001 kobo).":                                                                    {},
		"₦3,000 can be refunded (300000 kobo), not ₦5,000.01 (500001 kobo): ₦2,000 of it is in refunds already.":                                {Refunded: 200_000},
		"₦4,000 can be refunded (400000 kobo), not ₦5,000.01 (500001 kobo): the bank took ₦1,000 back.":                                         {Reversed: 100_000},
		"₦2,000 can be refunded (200000 kobo), not ₦5,000.01 (500001 kobo): ₦2,000 of it is in refunds already, and the bank took ₦1,000 back.": {Refunded: 200_000, Reversed: 100_000},
	} {
		p.ID, p.Amount = "wsp_pay_1", 500_000
		_, err := flow.NewRefund(open(), p, flow.RefundAsk{ID: "wsp_rfd_1", Amount: 500_001, Origin: flow.OriginMerchant}, noon)
		refusal, ok := errors.AsType[*flow.Error](err)
		if !ok || refusal.Code != flow.CodeRefundExceeds || refusal.Message != "Of payment wsp_pay_1, "+want || refusal.Details["refundableMinor"] != p.Refundable().Minor() || refusal.Details["paymentId"] != "wsp_pay_1" {
			t.Errorf("%+v, not %s", refusal, want)
		}
	}
}
