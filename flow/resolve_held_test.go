package flow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// heldPart is a part of ₦3,000 that waits in a session of ₦5,000 that is over.
func heldPart(id flow.PaymentID) flow.Payment {
	p := came(flow.Partial)
	p.ID, p.Amount, p.Fee, p.Unapplied, p.ReturnsAt = id, 300_000, 0, 300_000, noon.Add(time.Hour)
	return p
}

// What parts hold beyond what their session asks for is as visible as any other
// money that is too much: it goes back by policy, or when its time comes.
func TestWhatPartsHoldBeyondTheirSessionIsNotForgotten(t *testing.T) {
	for policy, back := range map[string]flow.Kobo{"accept": 0, "refund_excess": 100_000} {
		for name, c := range map[string]struct {
			accepted flow.PaymentID
			applied  map[flow.PaymentID]flow.Kobo
		}{
			"what came first is accepted":  {"a", map[flow.PaymentID]flow.Kobo{"b": 300_000}},
			"what came second is accepted": {"b", map[flow.PaymentID]flow.Kobo{"a": 300_000}},
		} {
			s := open()
			s.Status, s.AmountPaid, s.Policy.Overpayment = flow.SessionExpired, s.Amount-1, policy
			m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b")}, Charge: "wsp_chg_1", Now: noon}
			got, err := flow.Resolve(m, heldPart(c.accepted), true, flow.Ruled{By: "wsp_key_1", At: noon})
			if err != nil {
				t.Fatal(err)
			}
			if got.Session.AmountPaid != 500_000 || !slices.Contains(got.Session.Exceptions, flow.Overpaid) || got.News[0].Extra != 100_000 {
				t.Errorf("%s, %s: %+v, the payer reads of %d too much", policy, name, got.Session, got.News[0].Extra)
			}
			var applied, fee, refunded flow.Kobo
			for _, p := range got.Payments {
				applied, fee, refunded = applied+p.Applied, fee+p.Fee, refunded+p.Refunded
				if want := c.applied[p.ID]; want != 0 && p.Applied != want || p.Unapplied != 0 || p.Resolution != flow.ResolvedAccepted {
					t.Errorf("%s, %s: %+v", policy, name, p)
				}
			}
			if applied != 600_000-back || fee != flow.Fee(applied) {
				t.Errorf("%s, %s: %d are the merchant's, with a fee of %d", policy, name, applied, fee)
			}
			if sent := len(got.Returns) == 1 && got.Returns[0].Amount == back; sent != (back > 0) || refunded != back {
				t.Errorf("%s, %s: back goes %+v", policy, name, got.Returns)
			}
		}
		// Of four, what is left of two that nobody decided about still waits.
		s := open()
		s.Status, s.AmountPaid, s.Policy.Overpayment = flow.SessionExpired, s.Amount-1, policy
		m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b"), heldPart("c"), heldPart("d")}, Charge: "wsp_chg_1", Now: noon}
		got, err := flow.Resolve(m, heldPart("d"), true, flow.Ruled{By: "wsp_key_1", At: noon})
		if err != nil {
			t.Fatal(err)
		}
		b := got.Payments[slices.IndexFunc(got.Payments, func(p flow.Payment) bool { return p.ID == "b" })]
		if b.Applied != 200_000 || b.Refunded != back || b.Unapplied != 100_000-back || back > 0 && !b.ReturnsAt.IsZero() || back == 0 && (!b.Waits(*got.Session) || !b.ReturnsAt.Equal(noon.Add(time.Hour))) {
			t.Errorf("%s: what is left waits, no longer than before: %+v", policy, b)
		}
		if by := (map[bool]string{true: flow.ByPolicy})[back > 0]; b.ResolvedBy != by || (b.Resolution == flow.ResolvedRefunded) != (back > 0) {
			t.Errorf("%s: who decided about what is left: %+v", policy, b)
		}
		if a := got.Payments[0]; a.ID != "a" || a.Unapplied != 0 || !a.ReturnsAt.IsZero() {
			t.Errorf("%s: what is the merchant's waits no more: %+v", policy, a)
		}
		for _, e := range got.Entries { // the ledger takes none that moves nothing
			if e.Postings[0].Amount == 0 {
				t.Errorf("%s: nothing is posted as %+v", policy, e)
			}
		}
		if got.News[0].Extra != 700_000 {
			t.Errorf("%s: the payer reads of %d too much", policy, got.News[0].Extra)
		}
	}
}

// So it is where the last kobo comes, and fits.
func TestASessionThatItsPartsHeldTooMuchForIsOverpaid(t *testing.T) {
	s := open()
	s.AmountPaid = s.Amount - 1
	m := flow.Money{
		Notice: credit("rail-1", 1, noon), Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b")},
		Payment: "wsp_pay_9", Charge: "wsp_chg_1", Now: noon,
	}
	got, err := flow.Settle(m)
	if err != nil || got.Payment.Match != flow.Matched || !slices.Contains(got.Session.Exceptions, flow.Overpaid) || got.News[0].Extra != 100_001 {
		t.Errorf("%+v, told %+v, %v", got.Session, got.News, err)
	}
}

// A part that stays after all beside the rest of it is too much: what is left of it
// waits for a decision, and not for ever.
func TestAPartThatStaysBesideTheRestOfItWaitsForItsTime(t *testing.T) {
	s := open()
	s.AmountPaid = s.Amount - 1
	part, rest := heldPart("a"), heldPart("b")
	part.ReturnsAt, rest.ReturnsAt = time.Time{}, time.Time{}
	m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{part, rest}, Charge: "wsp_chg_1", Now: noon}
	c, err := flow.Complete(m, part)
	if err != nil || c.Session == nil {
		t.Fatalf("%+v (%v)", c, err)
	}
	p := c.Payments[len(c.Payments)-1]
	if p.ID != "a" || p.Applied != 200_000 || p.Unapplied != 100_000 || !p.ReturnsAt.Equal(noon.Add(flow.ReturnAfter)) || !p.Waits(*c.Session) {
		t.Errorf("%+v", p)
	}
	if over := flow.Overdue(*c.Session, p, p.ReturnsAt); len(over.Returns) != 1 || over.Returns[0].Amount != 100_000 {
		t.Errorf("when its time comes: %+v", over)
	}
}

// What a policy sends back and the bank refused is none of what pays its session: it
// is sent again when its time comes, which is still to come.
func TestWhatCouldNotGoBackByPolicyDoesNotPayItsSession(t *testing.T) {
	for _, waits := range []time.Duration{-time.Minute, 0, time.Minute} {
		part := heldPart("a")
		part.ReturnsAt = noon.Add(waits)
		s := open()
		s.Policy.Underpayment = "refund"
		got, err := flow.Settle(flow.Money{
			Notice: credit("rail-9", s.Amount, noon), Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{part},
			Payment: "wsp_pay_9", Charge: "wsp_chg_1", Now: noon,
		})
		if err != nil || got.Session.Status != flow.SessionPaid || len(got.Session.Exceptions) != 0 || got.News[0].Extra != 0 || got.Payment.Applied != s.Amount || len(got.Entries) != 0 {
			t.Errorf("it waits for %s: %+v (%v)", waits, got, err)
		}
		if waits > 0 && len(got.Payments) == 0 {
			continue
		}
		if len(got.Payments) != 1 || waits > 0 || got.Payments[0].Unapplied != 300_000 || got.Payments[0].Resolution != flow.Unresolved || !got.Payments[0].ReturnsAt.Equal(noon.Add(flow.ReturnAfter)) {
			t.Errorf("it waits for %s: %+v", waits, got.Payments)
		}
	}
}

// A part that stays after all pays its session where all that is held is enough, and
// is held for it: since the last of it came.
func TestAPartThatStaysPaysItsSessionOnceThatIsEnough(t *testing.T) {
	for name, c := range map[string]struct {
		is    func(s *flow.Session, stays, rest *flow.Payment)
		since time.Time // zero where nothing happens
	}{
		"the rest came later":   {func(_ *flow.Session, _, rest *flow.Payment) { rest.PaidAt = noon.Add(2 * time.Minute) }, noon.Add(2 * time.Minute)},
		"the rest came earlier": {func(_ *flow.Session, _, rest *flow.Payment) { rest.PaidAt = noon.Add(-time.Minute) }, noon},
		"just enough":           {func(s *flow.Session, _, _ *flow.Payment) { s.Amount = 600_000 }, noon},
		"a kobo short":          {func(s *flow.Session, _, _ *flow.Payment) { s.Amount = 600_001 }, time.Time{}},
		"it is over":            {func(s *flow.Session, _, _ *flow.Payment) { s.Status = flow.SessionExpired }, time.Time{}},
		"parts go back":         {func(s *flow.Session, _, _ *flow.Payment) { s.Policy.Underpayment = "refund" }, time.Time{}},
		"it was decided about":  {func(_ *flow.Session, stays, _ *flow.Payment) { stays.Resolution = flow.ResolvedRefunded }, time.Time{}},
		"nothing of it is left": {func(s *flow.Session, stays, _ *flow.Payment) { stays.Unapplied, s.Amount = 0, 300_000 }, time.Time{}},
	} {
		s, stays, rest, gone := open(), heldPart("a"), heldPart("b"), heldPart("c")
		stays.PaidAt, rest.PaidAt, gone.PaidAt, gone.Resolution = noon, noon, noon.Add(time.Hour), flow.ResolvedRefunded
		s.AmountPaid = 300_000
		c.is(&s, &stays, &rest)
		m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{rest, gone, stays}, Charge: "wsp_chg_1", Now: noon.Add(time.Hour)}
		got, err := flow.Complete(m, stays)
		if err != nil || (got.Session != nil) == c.since.IsZero() {
			t.Errorf("%s: %+v (%v)", name, got.Session, err)
			continue
		}
		if got.Session == nil {
			continue
		}
		p := got.Payments[len(got.Payments)-1]
		if got.Session.Status != flow.SessionPaid || !got.Session.PaidAt.Equal(c.since) || got.Facts[0].Payment.Applied != p.Applied || got.News[0].Payment.Applied != p.Applied || p.Applied != got.Session.Amount-300_000 || len(got.Entries) != 2 {
			t.Errorf("%s: %+v of %+v, told %+v", name, p, got.Session, got.Facts[0].Payment)
		}
	}
}

// What was decided about is not decided about again, also where parts go back by policy
// and could not at once; and it is said why not.
func TestWhatWasDecidedAboutIsNotDecidedAgain(t *testing.T) {
	for _, policy := range []string{"hold", "refund"} {
		s := open()
		s.Policy.Underpayment = policy
		part := "its session is open and waits for the rest"
		if policy == "refund" {
			part = ""
		}
		for name, c := range map[string]struct {
			is  func(*flow.Payment)
			not string // why, "" where it is decided about
		}{
			"a part":                {func(*flow.Payment) {}, part},
			"a part, decided about": {func(p *flow.Payment) { p.Resolution = flow.ResolvedRefunded }, "it was decided about before"},
			"a part that is gone":   {func(p *flow.Payment) { p.Unapplied = 0 }, "nothing of it is set aside"},
			"a part, taken back":    {func(p *flow.Payment) { p.Unapplied, p.Reversed = 0, p.Amount }, "the bank took it back"},
			"late":                  {func(p *flow.Payment) { p.Match = flow.Late }, ""},
			"late, decided about":   {func(p *flow.Payment) { p.Match, p.Resolution = flow.Late, flow.ResolvedAccepted }, "it was decided about before"},
			"what was asked":        {func(p *flow.Payment) { p.Match, p.Unapplied = flow.Matched, 0 }, "nothing of it is set aside"},
		} {
			p := heldPart("a")
			c.is(&p)
			_, err := flow.Resolve(flow.Money{Session: s, Payments: []flow.Payment{p}, Now: noon}, p, false, flow.Ruled{By: "wsp_key_1", At: noon})
			if (err == nil) != (c.not == "") || err != nil && (flow.CodeOf(err) != flow.CodeNotResolvable || !strings.Contains(err.Error(), c.not)) {
				t.Errorf("%s, %s: %v", policy, name, err)
			}
			if due := flow.Overdue(s, p, p.ReturnsAt); (len(due.Returns) > 0) != (c.not == "") {
				t.Errorf("%s, %s, when its time comes: %+v", policy, name, due.Returns)
			}
		}
	}
}

// How much a decision moves is what is asked about before one person alone may make it.
func TestADecisionMovesWhatIsHeldBesideItToo(t *testing.T) {
	for name, c := range map[string]struct {
		is     func(s *flow.Session)
		accept bool
		moves  flow.Kobo
		back   flow.Kobo // of that, where it is accepted
	}{
		"it goes back":                {func(*flow.Session) {}, false, 300_000, 0},
		"of no session":               {func(s *flow.Session) { *s = flow.Session{} }, true, 300_000, 0},
		"its session is paid":         {func(s *flow.Session) { s.Status = flow.SessionPaid }, true, 300_000, 0},
		"its session is paid with it": {func(*flow.Session) {}, true, 800_000, 0},
		"and what is too much goes":   {func(s *flow.Session) { s.Policy.Overpayment = "refund_excess" }, true, 900_000, 400_000},
	} {
		s := open()
		s.Status, s.AmountPaid = flow.SessionExpired, s.Amount-1
		c.is(&s)
		m := flow.Money{Session: s, Payments: []flow.Payment{heldPart("a"), heldPart("b"), heldPart("c")}}
		if got := flow.Moves(m, heldPart("b"), c.accept); got != c.moves {
			t.Errorf("%s: it moves %d, not %d", name, got, c.moves)
		}
		if given, back := flow.Accepting(m, heldPart("b")); c.accept && (back != c.back || given != c.moves-c.back) {
			t.Errorf("%s: %d is given and %d goes back", name, given, back)
		}
	}
}

// A payment of its own that is given to its merchant in two, because a refund of some
// of it was refused meanwhile, bears the fee of one payment.
func TestAPaymentThatIsAcceptedInTwoBearsOneFee(t *testing.T) {
	for _, match := range []flow.MatchStatus{flow.Duplicate, flow.Unmatched} {
		p, m := came(match), flow.Money{Session: open(), Now: noon}
		p.Fee, p.Refunded, p.Unapplied = 0, 250_000, 250_000
		if m.Session.Status = flow.SessionPaid; match == flow.Unmatched {
			m.Session = flow.Session{}
		}
		for part, fee := range []flow.Kobo{13_750, 17_500} {
			m.Payments = []flow.Payment{p}
			c, err := flow.Resolve(m, p, true, flow.Ruled{By: "wsp_key_1", At: noon})
			if err != nil || len(c.Payments) != 1 || c.Payments[0].Fee != fee || flow.Sum(c.Entries[0].Postings) != 0 {
				t.Fatalf("%s, part %d: %+v (%v)", match, part+1, c.Payments, err)
			}
			p = c.Payments[0]
			p.Resolution, p.Refunded, p.Unapplied = flow.Unresolved, 0, 250_000
		}
	}
}

// A second payment that was accepted bears a fee of its own: what is too much of the
// first one bears what the fee of that one rises by, and not what is left below the most
// that Till takes of both.
func TestWhatIsTooMuchBearsNoFeeOfASecondPayment(t *testing.T) {
	p, second := came(flow.Excess), came(flow.Duplicate)
	p.Amount, p.Applied, p.Unapplied = 700_000, 500_000, 200_000
	second.ID, second.Amount, second.Applied, second.Fee, second.Resolution = "wsp_pay_2", 20_000_000, 20_000_000, flow.Fee(20_000_000), flow.ResolvedAccepted
	s := open()
	s.Status, s.AmountPaid = flow.SessionPaid, s.Amount
	c, err := flow.Resolve(flow.Money{Session: s, Payments: []flow.Payment{p, second}, Now: noon}, p, true, flow.Ruled{By: "wsp_key_1", At: noon})
	if err != nil || len(c.Payments) != 1 || c.Payments[0].Fee != flow.Fee(700_000) || c.Payments[0].Applied != 700_000 {
		t.Errorf("%+v (%v)", c.Payments, err)
	}
	part := came(flow.Partial) // what came first of two that paid it
	part.ID, part.Fee, part.Applied = "wsp_pay_3", 0, 300_000
	p.Amount, p.Applied = 400_000, 200_000
	c, err = flow.Resolve(flow.Money{Session: s, Payments: []flow.Payment{part, p}, Now: noon}, p, true, flow.Ruled{By: "wsp_key_1", At: noon})
	if err != nil || c.Payments[0].Fee != flow.Fee(700_000) || c.Payments[0].Applied != 400_000 {
		t.Errorf("beside a part: %+v (%v)", c.Payments, err)
	}
}

// A part that brought nothing more, because others were enough, bears the fee all the
// same: its charge says so also once all of it went back.
func TestAChargeSaysTheFeeThatAPartBearsWhichWentBack(t *testing.T) {
	for _, match := range []flow.MatchStatus{flow.Partial, flow.Late} {
		for _, policy := range []string{"hold", "refund"} {
			s, last := open(), heldPart("c")
			s.Status, s.AmountPaid, s.Policy.Overpayment, s.Policy.Underpayment, last.Match = flow.SessionExpired, s.Amount-1, "refund_excess", policy, match
			m := flow.Money{Session: s, Attempt: trying("wsp_att_1", flow.BankTransfer), Payments: []flow.Payment{heldPart("a"), heldPart("b"), last}, Charge: "wsp_chg_1", Now: noon}
			got, err := flow.Resolve(m, last, true, flow.Ruled{By: "wsp_key_1", At: noon})
			if err != nil {
				t.Fatal(err)
			}
			all := slices.Clone(got.Payments)
			for range 2 {
				if r := flow.RecordCharge(*got.Session, nil, all, around); r.FeeMinor != "17500" || r.NetMinor != "482500" || r.ExcessMinor != "400000" {
					t.Errorf("%s, %s: the fee is %s, the net %s, the excess %s", match, policy, r.FeeMinor, r.NetMinor, r.ExcessMinor)
				}
				c := &all[len(all)-1] // it could not go back at once, and went when its time came
				c.Resolution = flow.ResolvedRefunded
			}
		}
	}
}

// Of what came late, or in parts, only what was taken paid its session: a receipt shows
// that, and a refund of the charge takes from that alone.
func TestWhichMoneyPaidItsSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		match flow.MatchStatus
		is    func(*flow.Payment)
		paid  bool
	}{
		"what was asked":                      {flow.Matched, func(*flow.Payment) {}, true},
		"too much":                            {flow.Excess, func(*flow.Payment) {}, true},
		"a second payment":                    {flow.Duplicate, func(p *flow.Payment) { p.Applied, p.Resolution = 500_000, flow.ResolvedAccepted }, false},
		"nobody's":                            {flow.Unmatched, func(p *flow.Payment) { p.Applied = 500_000 }, false},
		"late":                                {flow.Late, func(p *flow.Payment) { p.Fee = 0 }, false},
		"late, and accepted":                  {flow.Late, func(p *flow.Payment) { p.Fee, p.Resolution = 0, flow.ResolvedAccepted }, true},
		"late, and some of it taken":          {flow.Late, func(p *flow.Payment) { p.Fee, p.Applied = 0, 1 }, true},
		"late, and bears a fee":               {flow.Late, func(*flow.Payment) {}, true},
		"late, and sent back":                 {flow.Late, func(p *flow.Payment) { p.Fee, p.Resolution = 0, flow.ResolvedRefunded }, false},
		"a part":                              {flow.Partial, func(p *flow.Payment) { p.Fee = 0 }, true},
		"a part that went back":               {flow.Partial, func(p *flow.Payment) { p.Fee, p.Resolution = 0, flow.ResolvedRefunded }, false},
		"a part of which some went back":      {flow.Partial, func(p *flow.Payment) { p.Fee, p.Applied, p.Resolution = 0, 1, flow.ResolvedRefunded }, true},
		"a part that went back, with its fee": {flow.Partial, func(p *flow.Payment) { p.Resolution = flow.ResolvedRefunded }, true},
	} {
		p := came(c.match)
		c.is(&p)
		if p.Counts() != c.paid {
			t.Errorf("%s paid its session: %v", name, p.Counts())
		}
	}
}
