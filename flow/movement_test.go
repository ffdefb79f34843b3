package flow_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
)

var statuses = flow.SessionStatuses()

func TestMoneyOnItsWayMovesOnlyASessionThatWaitsForIt(t *testing.T) {
	for _, status := range statuses {
		s := open()
		s.Status = status
		for what, c := range map[string]struct {
			do       func(flow.Session) (flow.Change, error)
			from, to flow.SessionStatus
		}{"coming": {flow.Coming, flow.SessionPending, flow.SessionProcessing}, "gone": {flow.Resume, flow.SessionProcessing, flow.SessionPending}} {
			change, err := c.do(s)
			if err != nil || (change.Session != nil) != (status == c.from) || change.Session != nil && change.Session.Status != c.to || len(change.Facts)+len(change.News) != 0 {
				t.Errorf("%s of %s: %+v, %v", what, status, change, err)
			}
		}
	}
}

func TestMoneyOnItsWayKeepsASessionFromItsEndForADay(t *testing.T) {
	s := open()
	s.Status = flow.SessionProcessing
	attempts := []flow.Attempt{trying("a", flow.BankTransfer)}
	last := s.ExpiresAt.Add(flow.WatchAfter)
	for _, at := range []time.Time{s.ExpiresAt, last.Add(-time.Nanosecond)} {
		if change, err := flow.Expire(s, attempts, nil, at); err != nil || change.Session != nil {
			t.Errorf("at %v: %+v, %v", at, change, err)
		}
	}
	change, err := flow.Expire(s, attempts, nil, last)
	if err != nil || change.Session.Status != flow.SessionExpired || change.Attempts[0].Status != flow.AttemptExpired {
		t.Errorf("a day later: %+v, %v", change, err)
	}
}

func TestABankIsAskedMoreOftenWhileMoneyIsOnItsWay(t *testing.T) {
	lapsed := trying("a", flow.BankTransfer)
	lapsed.Status = flow.AttemptExpired
	late, over := noon.Add(2*time.Hour), lapsed.ExpiresAt.Add(flow.WatchAfter)
	for _, c := range []struct {
		status   flow.SessionStatus
		attempts []flow.Attempt
		now      time.Time
		wait     time.Duration // 0: never
	}{
		{flow.SessionPending, nil, noon, 0},
		{flow.SessionPending, []flow.Attempt{lapsed}, noon, time.Minute},
		{flow.SessionPending, []flow.Attempt{lapsed}, late, 30 * time.Minute},
		{flow.SessionPending, []flow.Attempt{lapsed}, over, 0},
		{flow.SessionProcessing, []flow.Attempt{lapsed}, noon, time.Minute},
		{flow.SessionProcessing, []flow.Attempt{lapsed}, late, 5 * time.Minute},
		{flow.SessionProcessing, []flow.Attempt{lapsed}, over, 5 * time.Minute},
	} {
		s := open()
		s.Status = c.status
		at, ok := flow.NextQuestion(s, c.attempts, c.now)
		if ok != (c.wait > 0) || ok && at.Sub(c.now) != c.wait {
			t.Errorf("%s at %v: in %v, %v", c.status, c.now, at.Sub(c.now), ok)
		}
	}
}

func TestAPartOrLateMoneyEndsTheWaitForIt(t *testing.T) {
	for name, at := range map[string]time.Time{"a part": noon, "late": noon.Add(25 * time.Hour)} {
		m := flow.Money{Notice: credit("rail-1", 100_000, at), Session: open(), Attempt: trying("a", flow.BankTransfer), Payment: "p", Now: at}
		m.Session.Status = flow.SessionProcessing
		if c, err := flow.Settle(m); err != nil || c.Session.Status != flow.SessionPending {
			t.Errorf("%s: %+v, %v", name, c.Session, err)
		}
	}
}

func TestWhatIsSentBackIsOnlyTold(t *testing.T) {
	for _, status := range statuses {
		s := open()
		s.Status = status
		c, err := flow.SentBack(s, trying("a", flow.BankTransfer), flow.Notice{Kind: flow.Returned, Amount: 300_000})
		want := flow.News{Kind: flow.NewsSentBack, Attempt: "a", Amount: 300_000}
		if err != nil || len(c.News) != 1 || c.News[0] != want || len(c.Facts)+len(c.Postings)+len(c.Attempts) != 0 || c.Payment != nil {
			t.Errorf("%s: %+v, %v", status, c, err)
		}
		if moved := c.Session != nil; moved != (status == flow.SessionProcessing) || moved && c.Session.Status != flow.SessionPending {
			t.Errorf("%s became %+v", status, c.Session)
		}
	}
}

func TestTakeBack(t *testing.T) {
	held := []flow.Posting{{Account: flow.RailClearing, Amount: 450_000}, {Account: flow.Unapplied, Amount: -450_000}}
	whole := []flow.Posting{{Account: flow.RailClearing, Amount: 600_000}, {Account: flow.Unapplied, Amount: -100_000}, {Account: flow.MerchantPending, Amount: -482_500}, {Account: flow.Fees, Amount: -17_500}}
	half := append(slices.Clone(whole), flow.Posting{Account: flow.RailClearing, Amount: -200_000}, flow.Posting{Account: flow.Unapplied, Amount: 100_000}, flow.Posting{Account: flow.MerchantPending, Amount: 100_000})
	for _, c := range []struct {
		name       string
		status     flow.SessionStatus
		match      flow.MatchStatus
		paid       flow.Kobo // of the session, before
		booked     []flow.Posting
		amount     flow.Kobo
		left       flow.Kobo // paid of the session, after
		exceptions []flow.Exception
		want       []flow.Posting
	}{
		{
			"all of what paid it undoes everything, the fee too", flow.SessionPaid, flow.Excess, 500_000, whole, 600_000, 500_000,
			[]flow.Exception{flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -600_000}, {Account: flow.Unapplied, Amount: 100_000}, {Account: flow.MerchantPending, Amount: 482_500}, {Account: flow.Fees, Amount: 17_500}},
		},
		{
			"of a part what was set aside goes first", flow.SessionPaid, flow.Excess, 500_000, whole, 200_000, 500_000,
			[]flow.Exception{flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -200_000}, {Account: flow.Unapplied, Amount: 100_000}, {Account: flow.MerchantPending, Amount: 100_000}},
		},
		{
			"what came beyond leaves no doubt about what it paid", flow.SessionPaid, flow.Excess, 500_000, whole, 100_000, 500_000, nil,
			[]flow.Posting{{Account: flow.RailClearing, Amount: -100_000}, {Account: flow.Unapplied, Amount: 100_000}},
		},
		{
			"the rest of it undoes what is left", flow.SessionPaid, flow.Excess, 500_000, half, 400_000, 500_000,
			[]flow.Exception{flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -400_000}, {Account: flow.MerchantPending, Amount: 382_500}, {Account: flow.Fees, Amount: 17_500}},
		},
		{
			"a part that is held is not held any more", flow.SessionPending, flow.Partial, 450_000, held, 450_000, 0,
			[]flow.Exception{flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -450_000}, {Account: flow.Unapplied, Amount: 450_000}},
		},
		{
			"some of what is held", flow.SessionPending, flow.Partial, 450_000, held, 50_000, 400_000,
			[]flow.Exception{flow.PartiallyPaid, flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -50_000}, {Account: flow.Unapplied, Amount: 50_000}},
		},
		{
			"a part of which nothing counts for what is paid by others", flow.SessionPaid, flow.Partial, 500_000, held, 450_000, 500_000, nil,
			[]flow.Posting{{Account: flow.RailClearing, Amount: -450_000}, {Account: flow.Unapplied, Amount: 450_000}},
		},
		{
			"late money", flow.SessionExpired, flow.Late, 0, held, 450_000, 0,
			[]flow.Exception{flow.Reversed},
			[]flow.Posting{{Account: flow.RailClearing, Amount: -450_000}, {Account: flow.Unapplied, Amount: 450_000}},
		},
		{
			"the second payment leaves no doubt about the first", flow.SessionPaid, flow.Duplicate, 500_000, held, 450_000, 500_000, nil,
			[]flow.Posting{{Account: flow.RailClearing, Amount: -450_000}, {Account: flow.Unapplied, Amount: 450_000}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, a := open(), trying("a", flow.BankTransfer)
			s.Status, s.AmountPaid = c.status, c.paid
			if c.match == flow.Partial && s.Open() {
				s, a.Amount = s.With(flow.PartiallyPaid), s.Outstanding()
			}
			p := flow.Payment{ID: "p", Project: s.Project, Session: s.ID, Attempt: "a", Amount: c.booked[0].Amount, Match: c.match}
			for _, line := range c.booked {
				switch {
				case line.Account == flow.Unapplied:
					p.Unapplied -= line.Amount
				case line.Account == flow.RailClearing && line.Amount < 0:
					p.Reversed -= line.Amount
				}
			}
			gone := p.Reversed + c.amount
			change := flow.TakeBack(s, a, p, c.booked, flow.TakenBack{RailTransactionID: "r", Amount: c.amount})
			b := change.TakenBack
			if b.Payment != "p" || b.Session != s.ID || b.Project != s.Project || !slices.Equal(b.Postings, c.want) || flow.Sum(b.Postings) != 0 {
				t.Errorf("taken back %+v", b)
			}
			var lost, fee flow.Kobo // what its merchant reads of the payment
			for _, line := range c.want {
				if line.Account == flow.MerchantPending {
					lost += line.Amount
				}
				if line.Account == flow.Fees {
					fee += line.Amount
				}
			}
			if told := change.Facts[0].Payment; told.Lost != lost || told.FeeBack != fee {
				t.Errorf("its merchant lost %d and gets back a fee of %d: told %+v", lost, fee, told)
			}
			if got := change.Session; got.Status != c.status || got.AmountPaid != c.left || !slices.Equal(got.Exceptions, c.exceptions) {
				t.Errorf("%s with %d, %v", got.Status, got.AmountPaid, got.Exceptions)
			}
			if len(change.Facts) != 1 || change.Facts[0].Kind != flow.ChargeReversed || change.Facts[0].Payment.Reversed != gone || len(change.News) != 1 || change.News[0].Amount != c.amount {
				t.Errorf("told %+v, news %+v", change.Facts, change.News)
			}
			if asked := len(change.Attempts) == 1; asked != (c.match == flow.Partial && s.Open()) || asked && change.Attempts[0].Amount != change.Session.Outstanding() {
				t.Errorf("asked for %+v", change.Attempts)
			}
		})
	}
	t.Run("a part of which some went back leaves what others brought", func(t *testing.T) {
		s, a := open(), trying("a", flow.BankTransfer)
		s.AmountPaid = 150_000
		s = s.With(flow.PartiallyPaid)
		p := flow.Payment{ID: "p", Project: s.Project, Session: s.ID, Attempt: "a", Amount: 200_000, Refunded: 150_000, Unapplied: 50_000, Match: flow.Partial}
		booked := []flow.Posting{{Account: flow.RailClearing, Amount: 50_000}, {Account: flow.Unapplied, Amount: -50_000}}
		c := flow.TakeBack(s, a, p, booked, flow.TakenBack{RailTransactionID: "r", Amount: 200_000})
		if c.Session.AmountPaid != 100_000 || !slices.Contains(c.Session.Exceptions, flow.PartiallyPaid) || len(c.Attempts) != 1 || c.Attempts[0].Amount != 400_000 {
			t.Errorf("%+v, asked for %+v", c.Session, c.Attempts)
		}
	})
	t.Run("what is asked for stays where nobody is asked any more", func(t *testing.T) {
		for name, a := range map[string]flow.Attempt{"switched away from": leftIn("chat_1", flow.AttemptSuperseded), "a card": trying("a", flow.Card)} {
			s := open().With(flow.PartiallyPaid)
			s.AmountPaid = 450_000
			p := flow.Payment{ID: "p", Project: s.Project, Session: s.ID, Attempt: "a", Amount: 450_000, Unapplied: 450_000, Match: flow.Partial}
			c := flow.TakeBack(s, a, p, held, flow.TakenBack{RailTransactionID: "r", Amount: 450_000})
			if c.Session.AmountPaid != 0 || len(c.Attempts) != 0 {
				t.Errorf("%s: %+v, asked for %+v", name, c.Session, c.Attempts)
			}
		}
	})
	t.Run("what is sent back leaves its session alone, and what was taken of it does not", func(t *testing.T) {
		for applied, marked := range map[flow.Kobo]bool{0: false, 350_000: true} {
			p := flow.Payment{ID: "p", Project: "wsp_prj_1", Session: "wsp_sess_1", Attempt: "a", Amount: 450_000, Match: flow.Late, Resolution: flow.ResolvedRefunded, Applied: applied, Refunded: 450_000 - applied}
			c := flow.TakeBack(open(), trying("a", flow.BankTransfer), p, held, flow.TakenBack{RailTransactionID: "r", Amount: 450_000})
			if slices.Contains(c.Session.Exceptions, flow.Reversed) != marked {
				t.Errorf("%d of it were taken: %v", applied, c.Session.Exceptions)
			}
		}
	})
	t.Run("so does a part that is to go back by policy, and could not yet", func(t *testing.T) {
		s := open()
		s.Policy.Underpayment = "refund"
		p := flow.Payment{ID: "p", Project: s.Project, Session: s.ID, Attempt: "a", Amount: 450_000, Unapplied: 450_000, Match: flow.Partial}
		c := flow.TakeBack(s, trying("a", flow.BankTransfer), p, held, flow.TakenBack{RailTransactionID: "r", Amount: 450_000})
		if len(c.Session.Exceptions) != 0 || c.Session.AmountPaid != 0 || len(c.Attempts) != 0 || len(c.News) != 1 {
			t.Errorf("%+v, asked for %+v, told %+v", c.Session, c.Attempts, c.News)
		}
	})
	t.Run("of nobody", func(t *testing.T) {
		p := flow.Payment{ID: "p", Amount: 450_000, Unapplied: 450_000, Match: flow.Unmatched}
		c := flow.TakeBack(flow.Session{}, flow.Attempt{}, p, held, flow.TakenBack{Amount: 450_000})
		if c.Session != nil || len(c.Facts)+len(c.News) != 0 || flow.Sum(c.TakenBack.Postings) != 0 || len(c.TakenBack.Postings) != 2 {
			t.Errorf("%+v", c)
		}
		p.Project, p.ReturnsAt = "wsp_prj_1", noon
		c = flow.TakeBack(flow.Session{}, flow.Attempt{}, p, held, flow.TakenBack{Amount: 450_000})
		if len(c.Facts) != 1 || c.Facts[0].Kind != flow.PaymentReversed || c.Facts[0].Payment.Reversed != 450_000 || len(c.Payments) != 1 || !c.Payments[0].ReturnsAt.IsZero() {
			t.Errorf("a merchant's, which is to go back: %+v", c)
		}
		c = flow.TakeBack(flow.Session{}, flow.Attempt{}, p, held, flow.TakenBack{Amount: 449_999})
		if len(c.Payments) != 0 {
			t.Errorf("a kobo of it still goes back: %+v", c.Payments)
		}
	})
}

func TestWhatAReversalIsOf(t *testing.T) {
	p := flow.Payment{Session: "wsp_sess_1", Amount: 500, RailTransactionID: "T1"}
	gone := p
	gone.Reversed = 500
	for _, c := range []struct {
		b    flow.TakenBack
		p    flow.Payment
		want bool
	}{
		{flow.TakenBack{Reverses: "T1", Amount: 100}, p, true},
		{flow.TakenBack{Reverses: "T2", Session: "wsp_sess_1", Amount: 500}, p, false},
		{flow.TakenBack{Session: "wsp_sess_1", Amount: 500}, p, true},
		{flow.TakenBack{Session: "wsp_sess_1", Amount: 500}, gone, false},
		{flow.TakenBack{Session: "wsp_sess_1", Amount: 400}, p, false},
		{flow.TakenBack{Session: "wsp_sess_2", Amount: 500}, p, false},
		{flow.TakenBack{Amount: 500}, flow.Payment{Amount: 500}, false}, // two of nobody
	} {
		if got := c.b.Of(c.p); got != c.want {
			t.Errorf("%+v of %+v: %v", c.b, c.p, got)
		}
	}
}

func TestAChatOfASessionThatMoneyIsOnItsWayTo(t *testing.T) {
	processing := func(state flow.TalkState, now time.Time) flow.Turn {
		turn := standing(state)
		co := turn.Checkouts["wsp_sess_1"]
		co.Session.Status = flow.SessionProcessing
		turn.Checkouts["wsp_sess_1"], turn.Now = co, now
		return turn
	}
	over := open().ExpiresAt
	d := flow.Decide(heard(processing(flow.AwaitTransfer, over), flow.Intent{Kind: flow.MeansPaid}))
	if len(d.Says) != 1 || d.Says[0].Key != "on_the_way" || talkOf(d).State != flow.AwaitTransfer {
		t.Errorf("after its end: %+v", d)
	}
	for kind, want := range map[flow.IntentKind]string{
		flow.MeansMenu: "on_the_way transfer_how alone wait_menu", flow.MeansWait: "on_the_way", flow.MeansTerms: "on_the_way",
		flow.MeansAgain: "transfer_how alone wait_menu",
	} {
		if d := flow.Decide(heard(processing(flow.AwaitTransfer, noon), flow.Intent{Kind: kind})); keys(d) != want {
			t.Errorf("who means %s hears %q, want %q", kind, keys(d), want)
		}
	}
	due := processing(flow.AwaitTransfer, noon.Add(20*time.Minute))
	due.Chat.Talks[0].Timers.Remind = noon.UnixMilli()
	due.News = &flow.News{Kind: flow.NewsTimer}
	if d := flow.Decide(due); len(d.Says) != 0 {
		t.Errorf("it is reminded of what it paid: %+v", d.Says)
	}
}
