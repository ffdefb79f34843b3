package flow_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

func TestSettle(t *testing.T) {
	attemptEnds, sessionEnds := noon.Add(30*time.Minute), noon.Add(24*time.Hour)
	expired := func(m *flow.Money) { m.Session.Status, m.Attempt.Status = flow.SessionExpired, flow.AttemptExpired }
	short := func(m *flow.Money) { m.Session.ExpiresAt = attemptEnds } // session and attempt end together
	both := func(fs ...func(*flow.Money)) func(*flow.Money) {
		return func(m *flow.Money) {
			for _, f := range fs {
				f(m)
			}
		}
	}
	held := func(paid flow.Kobo) func(*flow.Money) {
		return func(m *flow.Money) {
			m.Session.AmountPaid, m.Session.Exceptions = paid, []flow.Exception{flow.PartiallyPaid}
		}
	}
	for _, c := range []struct {
		name       string
		money      func(*flow.Money)
		amount     flow.Kobo
		paidAt     time.Time
		match      flow.MatchStatus
		status     flow.SessionStatus
		paid       flow.Kobo
		exceptions []flow.Exception
		fact       flow.EventKind
		news       flow.NewsKind
	}{
		{"all of it pays", nil, 500_000, noon, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"too little is held", nil, 499_999, noon, flow.Partial, flow.SessionPending, 499_999, []flow.Exception{flow.PartiallyPaid}, flow.ChargeUnderpaid, flow.NewsPartial},
		{"the rest completes what is held", held(450_000), 50_000, noon, flow.Matched, flow.SessionPaid, 500_000, []flow.Exception{}, flow.ChargeSuccess, flow.NewsPaid},
		{"a part of the rest is held too", held(450_000), 20_000, noon, flow.Partial, flow.SessionPending, 470_000, []flow.Exception{flow.PartiallyPaid}, flow.ChargeUnderpaid, flow.NewsPartial},
		{"more than the rest pays with an excess", held(450_000), 70_000, noon, flow.Excess, flow.SessionPaid, 500_000, []flow.Exception{flow.Overpaid}, flow.ChargeSuccess, flow.NewsPaid},
		{"too much pays with an excess", nil, 500_001, noon, flow.Excess, flow.SessionPaid, 500_000, []flow.Exception{flow.Overpaid}, flow.ChargeSuccess, flow.NewsPaid},
		{"a second payment is a duplicate", func(m *flow.Money) { m.Session.Status, m.Session.AmountPaid = flow.SessionPaid, 500_000 }, 500_000, noon, flow.Duplicate, flow.SessionPaid, 500_000, []flow.Exception{flow.DuplicatePayment}, flow.ChargeDuplicate, flow.NewsExtra},
		{"so is a small one", func(m *flow.Money) { m.Session.Status, m.Session.AmountPaid = flow.SessionPaid, 500_000 }, 1, noon, flow.Duplicate, flow.SessionPaid, 500_000, []flow.Exception{flow.DuplicatePayment}, flow.ChargeDuplicate, flow.NewsExtra},
		{"money after its attempt but within the session is taken and marked late", func(m *flow.Money) { m.Attempt.Status = flow.AttemptExpired }, 500_000, attemptEnds.Add(5*time.Minute + time.Millisecond), flow.Matched, flow.SessionPaid, 500_000, []flow.Exception{flow.PaidLate}, flow.ChargeSuccess, flow.NewsPaid},
		{"five minutes after the attempt is on time", nil, 500_000, attemptEnds.Add(5 * time.Minute), flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"money that was under way when the session expired is on time", both(short, expired), 500_000, attemptEnds.Add(5 * time.Minute), flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"a moment more is late", both(short, expired), 500_000, attemptEnds.Add(5*time.Minute + time.Millisecond), flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"it is late although nobody noticed that the session is over", short, 500_000, attemptEnds.Add(5*time.Minute + time.Millisecond), flow.Late, flow.SessionPending, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"it is on time although it is heard of a day later", func(m *flow.Money) { m.Now = sessionEnds }, 500_000, attemptEnds, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"too little for an expired session is late", both(short, expired), 499_999, noon, flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"money for a cancelled session is late", func(m *flow.Money) { m.Session.Status = flow.SessionCancelled }, 500_000, noon, flow.Late, flow.SessionCancelled, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"late money is taken where the merchant takes it", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment = "accept" }), 500_000, sessionEnds, flow.Matched, flow.SessionPaid, 500_000, []flow.Exception{flow.PaidLate}, flow.ChargeSuccess, flow.NewsPaid},
		{"too little of it waits for the merchant", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment, m.Session.Policy.Underpayment = "accept", "hold" }), 499_999, sessionEnds, flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"or goes back, where what is too little does", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment, m.Session.Policy.Underpayment = "accept", "refund" }), 499_999, sessionEnds, flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsReturning},
		{"or is taken, where what is too little is", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment, m.Session.Policy.Underpayment = "accept", "accept" }), 499_999, sessionEnds, flow.Partial, flow.SessionPaid, 499_999, []flow.Exception{flow.PaidLate, flow.PartiallyPaid}, flow.ChargeSuccess, flow.NewsPaid},
		{"late, the rest of what is held is taken", both(held(450_000), short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment = "accept" }), 50_000, sessionEnds, flow.Matched, flow.SessionPaid, 500_000, []flow.Exception{flow.PaidLate}, flow.ChargeSuccess, flow.NewsPaid},
		{"on time, too little for an expired session is not taken either", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment, m.Session.Policy.Underpayment = "accept", "hold" }), 499_999, noon, flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
		{"money for a superseded attempt pays", func(m *flow.Money) { m.Attempt.Status = flow.AttemptSuperseded }, 500_000, noon, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"money for an attempt that was said to have failed pays", func(m *flow.Money) { m.Attempt.Status = flow.AttemptFailed }, 500_000, noon, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"money that was on its way pays", func(m *flow.Money) { m.Session.Status = flow.SessionProcessing }, 500_000, noon, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
		{"a bank that gives no value time is taken to have paid now", nil, 500_000, time.Time{}, flow.Matched, flow.SessionPaid, 500_000, nil, flow.ChargeSuccess, flow.NewsPaid},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := flow.Money{Notice: credit("rail-1", c.amount, c.paidAt), Session: open(), Attempt: trying("a", flow.BankTransfer), Payment: "wsp_pay_1", Charge: "wsp_chg_1", Now: noon.Add(time.Minute)}
			if c.money != nil {
				c.money(&m)
			}
			change, err := flow.Settle(m)
			if err != nil {
				t.Fatal(err)
			}
			s, p := change.Session, change.Payment
			if p.Match != c.match || s.Status != c.status || s.AmountPaid != c.paid || len(change.Facts) != 1 || change.Facts[0].Kind != c.fact || len(change.News) != 1 || change.News[0].Kind != c.news {
				t.Fatalf("%s, session %s with %d, told %+v, news %+v", p.Match, s.Status, s.AmountPaid, change.Facts, change.News)
			}
			if !slices.Equal(s.Exceptions, c.exceptions) {
				t.Errorf("exceptions %v", s.Exceptions)
			}
			if flow.Sum(change.Postings) != 0 {
				t.Errorf("the ledger is off by %d", flow.Sum(change.Postings))
			}
			if c.status == flow.SessionPaid && c.match != flow.Duplicate {
				if s.Charge != "wsp_chg_1" || s.PaidAt.IsZero() || p.Fee != flow.Fee(c.paid) || change.Attempts[0].Status != flow.AttemptSucceeded {
					t.Errorf("paid as %+v with %+v", s, p)
				}
				if extra := change.News[0].Extra; extra != max(0, c.amount-(500_000-m.Session.AmountPaid)) {
					t.Errorf("extra %d", extra)
				}
			}
		})
	}
}

func TestMoneyOfNobodyIsKept(t *testing.T) {
	change, err := flow.Settle(flow.Money{Notice: credit("rail-1", 700, noon), Payment: "wsp_pay_1", Now: noon})
	if err != nil || change.Session != nil || change.Payment.Match != flow.Unmatched || flow.Sum(change.Postings) != 0 || len(change.Postings) != 2 ||
		len(change.Facts) != 1 || change.Facts[0].Kind != flow.PaymentUnmatched || len(change.News) != 0 {
		t.Errorf("%+v %v", change, err)
	}
}

func TestWhatIsNoMoneyIsNotBooked(t *testing.T) {
	for _, amount := range []flow.Kobo{0, -1} {
		m := flow.Money{Notice: credit("rail-1", amount, noon), Session: open(), Attempt: trying("a", flow.BankTransfer), Now: noon}
		if change, err := flow.Settle(m); err == nil {
			t.Errorf("%d kobo: %+v", amount, change)
		}
	}
}

func TestATransferThatGotAPartAsksForTheRestFromThenOn(t *testing.T) {
	m := flow.Money{Notice: credit("rail-1", 450_000, noon), Session: open(), Attempt: leftIn("chat_1", flow.AttemptActive), Payment: "wsp_pay_1", Now: noon}
	change, err := flow.Settle(m)
	if err != nil || len(change.Attempts) != 1 || change.Attempts[0].Amount != 50_000 {
		t.Fatalf("%+v %v", change.Attempts, err)
	}
	again, next, err := flow.Begin(*change.Session, change.Attempts, ask(flow.BankTransfer), flow.Methods(), noon)
	if err != nil || again.ID != "a" || len(next.Attempts) != 0 || flow.RecordVirtualAccount(again).Amount != "500" {
		t.Errorf("asked again, the payer is told %+v %v", again, err)
	}
}

// Where nobody is asked for money any more, a part changes nothing of what was asked for.
func TestAPartToWhatIsOverAsksForNothing(t *testing.T) {
	for name, a := range map[string]flow.Attempt{"switched away from": leftIn("chat_1", flow.AttemptSuperseded), "a card": trying("a", flow.Card)} {
		m := flow.Money{Notice: credit("rail-1", 450_000, noon), Session: open(), Attempt: a, Payment: "wsp_pay_1", Now: noon}
		change, err := flow.Settle(m)
		if err != nil || change.Session.AmountPaid != 450_000 || len(change.Attempts) != 0 {
			t.Errorf("%s: %+v %v", name, change.Attempts, err)
		}
	}
}

// A session is paid since the bank's value time, however late that is heard of.
func TestASessionIsPaidSinceTheBankHadTheMoney(t *testing.T) {
	m := flow.Money{Notice: credit("rail-1", 500_000, noon), Session: open(), Attempt: trying("a", flow.BankTransfer), Payment: "wsp_pay_1", Charge: "wsp_chg_1", Now: noon.Add(time.Hour)}
	change, err := flow.Settle(m)
	if err != nil || !change.Session.PaidAt.Equal(noon) || !change.Payment.PaidAt.Equal(noon) || !change.Payment.ReceivedAt.Equal(m.Now) {
		t.Errorf("%+v, paid with %+v (%v)", change.Session, change.Payment, err)
	}
}

func TestOncePaidNoOtherInstructionsAreLive(t *testing.T) {
	m := flow.Money{
		Notice: credit("rail-1", 500_000, noon), Session: open(), Attempt: trying("a", flow.BankTransfer), Payment: "wsp_pay_1", Charge: "wsp_chg_1", Now: noon,
		Others: []flow.Attempt{trying("a", flow.BankTransfer), trying("b", flow.Card), {ID: "c", Status: flow.AttemptExpired}},
	}
	change, err := flow.Settle(m)
	if err != nil || len(change.Attempts) != 2 || change.Attempts[0].Status != flow.AttemptSucceeded || change.Attempts[1].ID != "b" || change.Attempts[1].Status != flow.AttemptSuperseded {
		t.Errorf("%+v %v", change.Attempts, err)
	}
}

func TestTheOutcomeOfLateMoneyDoesNotDependOnWhenTheEndWasNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := open()
		s.ExpiresAt, s.Policy = noon.Add(time.Duration(rapid.IntRange(30, 120).Draw(t, "minutes"))*time.Minute), anyPolicy(t)
		a := trying("a", flow.BankTransfer) // half an hour: the session may last longer
		ends := rapid.SampledFrom([]time.Time{a.ExpiresAt, s.ExpiresAt}).Draw(t, "ends")
		at := ends.Add(time.Duration(rapid.IntRange(-600, 1200).Draw(t, "seconds")) * time.Second)
		least := int64(1)
		if s.Policy.Underpayment == "hold" { // what is held for an open session is not for one that is over
			least = 500_000
		}
		amount := flow.Kobo(rapid.Int64Range(least, 600_000).Draw(t, "amount"))
		m := flow.Money{Notice: credit("rail-1", amount, at), Session: s, Attempt: a, Payment: "wsp_pay_1", Charge: "wsp_chg_1", Now: at.Add(time.Hour)}
		first, err := flow.Settle(m)
		if err != nil {
			t.Fatal(err)
		}
		swept, err := flow.Expire(s, []flow.Attempt{a}, nil, s.ExpiresAt)
		if err != nil {
			t.Fatal(err)
		}
		m.Session, m.Attempt = *swept.Session, swept.Attempts[0]
		second, err := flow.Settle(m)
		if err != nil || first.Payment.Match != second.Payment.Match || !slices.Equal(first.Session.Exceptions, second.Session.Exceptions) {
			t.Fatalf("%s %v before the sweep, %s %v after it (%v)", first.Payment.Match, first.Session.Exceptions, second.Payment.Match, second.Session.Exceptions, err)
		}
	})
}
