package flow_test

import (
	"fmt"
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
		{"too little of it is not", both(short, expired, func(m *flow.Money) { m.Session.Policy.LatePayment = "accept" }), 499_999, sessionEnds, flow.Late, flow.SessionExpired, 0, []flow.Exception{flow.PaidLate}, flow.ChargeLate, flow.NewsLate},
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
				if s.Charge != "wsp_chg_1" || s.PaidAt.IsZero() || p.Fee != flow.Fee(500_000) || change.Attempts[0].Status != flow.AttemptSucceeded {
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

// till is a model of everything that is kept about one session.
type till struct {
	session  flow.Session
	attempts []flow.Attempt
	payments []flow.Payment
	ledger   map[flow.LedgerAccount]flow.Kobo
	facts    map[flow.EventKind]int
	came     flow.Kobo
	now      time.Time
	n        int
}

// keep takes a change in as the store does, and checks what must always hold.
func (w *till) keep(t *rapid.T, c flow.Change) {
	before := w.session
	if c.Session != nil {
		w.session = *c.Session
	}
	for _, a := range c.Attempts {
		if i := slices.IndexFunc(w.attempts, func(x flow.Attempt) bool { return x.ID == a.ID }); i >= 0 {
			w.attempts[i] = a
		} else {
			w.attempts = append(w.attempts, a)
		}
	}
	for _, p := range c.Postings {
		w.ledger[p.Account] += p.Amount
	}
	for _, f := range c.Facts {
		w.facts[f.Kind]++
	}
	var total flow.Kobo
	for _, amount := range w.ledger {
		total += amount
	}
	live := map[flow.Method]int{}
	for _, a := range w.attempts {
		if a.Status == flow.AttemptActive {
			live[a.Method]++
		}
	}
	var kept flow.Kobo
	if w.session.Status == flow.SessionPaid {
		kept = w.session.Amount
	}
	for what, wrong := range map[string]bool{
		"the ledger does not sum to zero":                     total != 0 || flow.Sum(c.Postings) != 0,
		"the ledger does not know all that came":              w.ledger[flow.RailClearing] != w.came,
		"the merchant is owed what was not paid":              w.ledger[flow.MerchantPending]+w.ledger[flow.Fees] != -kept,
		"money that is held became a debt":                    w.ledger[flow.Unapplied] > 0,
		"more was paid than asked":                            w.session.AmountPaid > w.session.Amount || w.session.AmountPaid < 0,
		"paid was left":                                       before.Status == flow.SessionPaid && w.session.Status != flow.SessionPaid,
		"success is not told exactly once":                    w.facts[flow.ChargeSuccess] != int(kept/w.session.Amount),
		"a method has two live attempts":                      live[flow.BankTransfer] > 1 || live[flow.Card] > 1,
		"a paid session is not paid whole":                    w.session.Status == flow.SessionPaid && w.session.AmountPaid != w.session.Amount,
		"the money of an open session is not what it applied": w.session.Status != flow.SessionPaid && w.session.AmountPaid >= w.session.Amount,
	} {
		if wrong {
			t.Fatalf("%s: %+v, ledger %v, facts %v", what, w.session, w.ledger, w.facts)
		}
	}
}

// credit lets money come for one of the attempts, at any value time.
func (w *till) credit(t *rapid.T) {
	if len(w.attempts) == 0 {
		return
	}
	w.n++
	a := rapid.SampledFrom(w.attempts).Draw(t, "attempt")
	due := int64(max(w.session.Outstanding(), 1))
	amount := flow.Kobo(rapid.OneOf(rapid.Just(due), rapid.Int64Range(1, due), rapid.Int64Range(1, 2*due+10)).Draw(t, "amount"))
	at := w.now.Add(-time.Duration(rapid.IntRange(0, 120).Draw(t, "minutes ago")) * time.Minute)
	n := credit(fmt.Sprint("rail-", w.n), amount, at)
	c, err := flow.Settle(flow.Money{
		Notice: n, Session: w.session, Attempt: a, Others: w.attempts, Payments: w.payments, Payment: flow.PaymentID(fmt.Sprint("wsp_pay_", w.n)), Charge: "wsp_chg_1", Now: w.now,
	})
	if err != nil {
		t.Fatalf("money was refused: %v", err)
	}
	outcomes := []flow.MatchStatus{flow.Matched, flow.Partial, flow.Excess, flow.Late, flow.Duplicate}
	if c.Payment == nil || c.Payment.Amount != amount || !slices.Contains(outcomes, c.Payment.Match) || len(c.Facts) != 1 || len(c.News) != 1 || len(c.Postings) < 2 {
		t.Fatalf("money has no single outcome: %+v", c)
	}
	w.came += amount
	w.payments = append(w.payments, *c.Payment)
	w.keep(t, c)
}

func TestWhateverHappensTheMoneyAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &till{session: open(), ledger: map[flow.LedgerAccount]flow.Kobo{}, facts: map[flow.EventKind]int{}, now: noon}
		w.session.Amount = flow.Kobo(rapid.Int64Range(int64(flow.MinAmount), 1_000_000).Draw(t, "session"))
		w.session.ExpiresAt = noon.Add(2 * time.Hour)
		w.session.Policy.LatePayment = rapid.SampledFrom([]string{"review", "accept"}).Draw(t, "late")
		must := func(c flow.Change, err error) {
			if err != nil {
				t.Fatal(err)
			}
			w.keep(t, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {},
			"time passes": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "minutes")) * time.Minute)
			},
			"money":      w.credit,
			"more money": w.credit,
			"begin": func(t *rapid.T) {
				w.n++
				m := rapid.SampledFrom([]flow.Method{flow.BankTransfer, flow.Card}).Draw(t, "method")
				q := flow.Ask{Method: m, ID: flow.AttemptID(fmt.Sprint("wsp_att_", w.n)), Reference: fmt.Sprint("wsp_ref_", w.n)}
				a, c, err := flow.Begin(w.session, w.attempts, q, flow.Methods(), w.now)
				if (err == nil) != (w.session.Open() && w.now.Before(w.session.ExpiresAt)) {
					t.Fatalf("begin on %s: %v", w.session.Status, err)
				}
				if err == nil && (!a.Live(w.now) || a.Amount != w.session.Outstanding()) {
					t.Fatalf("the payer is asked for %+v, %d is due", a, w.session.Outstanding())
				}
				w.keep(t, c)
			},
			"answer": func(t *rapid.T) {
				if len(w.attempts) > 0 {
					w.keep(t, flow.Started(w.session, rapid.SampledFrom(w.attempts).Draw(t, "attempt"), flow.Instructions{AccountNumber: "1"}))
				}
			},
			"decline": func(t *rapid.T) {
				if len(w.attempts) > 0 {
					must(flow.Decline(w.session, rapid.SampledFrom(w.attempts).Draw(t, "attempt"), flow.Notice{}))
				}
			},
			"lapse": func(t *rapid.T) {
				if len(w.attempts) > 0 {
					must(flow.Lapse(rapid.SampledFrom(w.attempts).Draw(t, "attempt"), w.now))
				}
			},
			"expire": func(*rapid.T) { must(flow.Expire(w.session, w.attempts, w.now)) },
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "of ten") > 0 {
					return
				}
				c, err := flow.Cancel(w.session, w.attempts)
				if (err == nil) != w.session.Open() {
					t.Fatalf("cancel of %s: %v", w.session.Status, err)
				}
				w.keep(t, c)
			},
		})
	})
}

func TestTheOutcomeOfLateMoneyDoesNotDependOnWhenTheEndWasNoticed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := open()
		s.ExpiresAt = noon.Add(30 * time.Minute)
		a := trying("a", flow.BankTransfer)
		at := s.ExpiresAt.Add(time.Duration(rapid.IntRange(-600, 1200).Draw(t, "seconds")) * time.Second)
		amount := flow.Kobo(rapid.Int64Range(500_000, 600_000).Draw(t, "amount"))
		m := flow.Money{Notice: credit("rail-1", amount, at), Session: s, Attempt: a, Payment: "wsp_pay_1", Charge: "wsp_chg_1", Now: at.Add(time.Hour)}
		first, err := flow.Settle(m)
		if err != nil {
			t.Fatal(err)
		}
		swept, err := flow.Expire(s, []flow.Attempt{a}, s.ExpiresAt)
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
