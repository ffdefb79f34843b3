package flow_test

import (
	"testing"
	"time"

	"till/flow"
)

// What no merchant ordered is sent again by itself when its time has come, and not
// where anything was decided about its money meanwhile.
func TestWhatIsSentAgainByItself(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(r *flow.Refund, p *flow.Payment)
		sent bool
	}{
		"in time":               {func(*flow.Refund, *flow.Payment) {}, true},
		"a moment early":        {func(_ *flow.Refund, p *flow.Payment) { p.ReturnsAt = noon.Add(time.Millisecond) }, false},
		"never":                 {func(_ *flow.Refund, p *flow.Payment) { p.ReturnsAt = time.Time{} }, false},
		"of a policy":           {func(r *flow.Refund, _ *flow.Payment) { r.Origin = flow.OriginPolicy }, true},
		"of a merchant":         {func(r *flow.Refund, _ *flow.Payment) { r.Origin = flow.OriginMerchant }, false},
		"of a decision":         {func(r *flow.Refund, _ *flow.Payment) { r.Origin = flow.OriginResolve }, false},
		"not put back":          {func(r *flow.Refund, _ *flow.Payment) { r.PutBack = false }, false},
		"given up":              {func(r *flow.Refund, _ *flow.Payment) { r.Status = flow.RefundAttention }, false},
		"left too often":        {func(r *flow.Refund, _ *flow.Payment) { r.Overpaid = 1 }, false},
		"decided about":         {func(_ *flow.Refund, p *flow.Payment) { p.Resolution = flow.ResolvedAccepted }, false},
		"some is not set aside": {func(_ *flow.Refund, p *flow.Payment) { p.Unapplied-- }, false},
		"some is with the bank": {func(_ *flow.Refund, p *flow.Payment) { p.Reversed = 300_001 }, false},
		"just what is left":     {func(_ *flow.Refund, p *flow.Payment) { p.Reversed = 300_000 }, true},
	} {
		r, p := refunded(t), came(flow.Late)
		r.Status, r.Origin, r.Refused, r.PutBack, r.Failures, r.Failure, r.SentAt = flow.RefundFailed, flow.OriginClock, true, true, 1, "No.", noon.Add(-time.Hour)
		p.Unapplied, p.ReturnsAt = 200_000, noon
		c.is(&r, &p)
		got, err := r.Again(open(), p, noon)
		if err != nil || (got.Refund != nil) != c.sent {
			t.Errorf("%s: %+v (%v)", name, got.Refund, err)
			continue
		}
		if !c.sent {
			continue
		}
		now, e := *got.Refund, got.Entries[0]
		if now.Status != flow.RefundPending || now.PutBack || now.Failure != "" || !now.SentAt.IsZero() || now.Aside != 200_000 || e.Kind != flow.EntryRefund || e.Subject != "wsp_rfd_1-2" || flow.Sum(e.Postings) != 0 {
			t.Errorf("%s: %+v, %+v", name, now, e)
		}
		by := map[flow.RefundOrigin]string{flow.OriginClock: flow.ByClock, flow.OriginPolicy: flow.ByPolicy}[r.Origin]
		if len(got.Payments) != 1 || got.Payments[0].Resolution != flow.ResolvedRefunded || got.Payments[0].ResolvedBy != by || !got.Payments[0].ResolvedAt.Equal(noon) {
			t.Errorf("%s: %+v", name, got.Payments)
		}
	}
}

// A refund that was refused too often needs somebody who looks where it would else be sent
// again by itself: not one that a merchant ordered, nor one whose money the bank has.
func TestWhoLooksAtWhatIsRefusedTooOften(t *testing.T) {
	for name, c := range map[string]struct {
		origin   flow.RefundOrigin
		failures int
		reversed flow.Kobo
		to       flow.RefundStatus
		aside    flow.Kobo // set aside again
		others   bool      // other refunds have the rest of its payment
	}{
		"of the clock":                              {flow.OriginClock, 3, 0, flow.RefundAttention, 200_000, false},
		"of a policy, and the bank has the rest":    {flow.OriginPolicy, 3, 300_000, flow.RefundAttention, 200_000, false},
		"of the clock, and it is to be sent again":  {flow.OriginClock, 2, 0, flow.RefundFailed, 200_000, false},
		"of a merchant":                             {flow.OriginMerchant, 3, 0, flow.RefundFailed, 200_000, false},
		"of a decision":                             {flow.OriginResolve, 3, 0, flow.RefundFailed, 200_000, false},
		"the bank has some of it":                   {flow.OriginClock, 3, 300_001, flow.RefundFailed, 199_999, false},
		"the bank has all of it":                    {flow.OriginClock, 3, 500_000, flow.RefundFailed, 0, false},
		"others have the rest, and the bank a kobo": {flow.OriginClock, 3, 1, flow.RefundFailed, 199_999, true},
	} {
		r, p := refunded(t), came(flow.Late)
		r.Status, r.Origin, r.Aside, r.Failures = flow.RefundProcessing, c.origin, 200_000, c.failures
		if p.Refunded, p.Reversed = 200_000, c.reversed; c.others {
			p.Refunded = 500_000
		}
		got, err := r.Heard(open(), p, flow.Disbursed{Status: flow.DisbursementFailed, Reason: "No."}, false, noon)
		if err != nil || got.Refund.Status != c.to || !got.Refund.PutBack || flow.Sum(got.Entries[0].Postings) != 0 {
			t.Errorf("%s: %+v (%v)", name, got.Refund, err)
			continue
		}
		var aside flow.Kobo
		for _, line := range got.Entries[0].Postings {
			if line.Account == flow.Unapplied {
				aside -= line.Amount
			}
		}
		if aside != c.aside {
			t.Errorf("%s: %d are set aside again, not %d", name, aside, c.aside)
		}
	}
}

// Money of a refund that the bank refused waits for a time where it would wait for
// nobody else: what no merchant ordered is sent again, and the rest goes back by itself.
func TestWhenRefusedMoneyGoesBackByItself(t *testing.T) {
	over, sends := open(), open()
	over.Status = flow.SessionExpired
	sends.Policy.Underpayment, sends.Policy.Overpayment = "refund", "refund_excess"
	merchants := func(*flow.Refund) {}
	for name, c := range map[string]struct {
		session flow.Session
		match   flow.MatchStatus
		is      func(*flow.Refund)
		wait    time.Duration // 0 for never
	}{
		"late":                               {over, flow.Late, merchants, flow.ReturnAfter},
		"late, and decided to go back":       {over, flow.Late, func(r *flow.Refund) { r.Origin = flow.OriginResolve }, flow.ReturnAfter},
		"a second payment":                   {open(), flow.Duplicate, merchants, flow.ReturnAfter},
		"a part that waits for the rest":     {open(), flow.Partial, merchants, 0},
		"a part that nothing follows":        {over, flow.Partial, merchants, flow.ReturnAfter},
		"a part that goes back by policy":    {sends, flow.Partial, merchants, flow.ReturnAfter},
		"too much":                           {open(), flow.Excess, merchants, 0},
		"too much, which goes back":          {sends, flow.Excess, merchants, flow.ReturnAfter},
		"what was asked":                     {sends, flow.Matched, merchants, 0},
		"what is not put back":               {over, flow.Late, func(r *flow.Refund) { r.PutBack = false }, 0},
		"what somebody must look at":         {over, flow.Late, func(r *flow.Refund) { r.Status = flow.RefundAttention }, 0},
		"of a policy":                        {sends, flow.Excess, func(r *flow.Refund) { r.Origin = flow.OriginPolicy }, time.Hour},
		"of the clock":                       {over, flow.Late, func(r *flow.Refund) { r.Origin = flow.OriginClock }, time.Hour},
		"of the clock, refused once more":    {over, flow.Late, func(r *flow.Refund) { r.Origin, r.Failures = flow.OriginClock, 2 }, 6 * time.Hour},
		"of the clock, refused a third time": {over, flow.Late, func(r *flow.Refund) { r.Origin, r.Failures = flow.OriginClock, 3 }, 24 * time.Hour},
	} {
		r := refunded(t)
		r.Status, r.Refused, r.PutBack, r.Failures = flow.RefundFailed, true, true, 1
		c.is(&r)
		want := time.Time{}
		if c.wait > 0 {
			want = noon.Add(c.wait)
		}
		if got := r.ReturnsAt(c.session, came(c.match), noon); !got.Equal(want) {
			t.Errorf("%s goes back at %s, not %s", name, got, want)
		}
	}
}

// What the bank refused under a name and took back of its payment since fails under
// another: under that one nothing is sent.
func TestWhatTheBankRefusedAndTookBackFailsUnderAnotherName(t *testing.T) {
	r, p := refunded(t), came(flow.Matched)
	r.Refused, r.Failures = true, 1
	p.Refunded, p.Reversed = 200_000, 300_001
	c, err := r.Send(open(), p, noon)
	if err != nil || c.Refund.Reference != "wsp_rfd_1-2" || c.Refund.Failure != "The bank took the payment back before the refund was sent." || c.Entries[0].Subject != "wsp_rfd_1-2" {
		t.Errorf("%+v (%v)", c, err)
	}
}

// The bank that is asked says that what it had refused was sent and came back: where
// its money went otherwise meanwhile that is booked, once, and changes nothing else.
func TestWhatWasSentAndCameBackUnheardIsBookedOnce(t *testing.T) {
	d := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", Reverses: "B1", At: noon, SentAt: noon.Add(-time.Hour)}
	for name, c := range map[string]struct {
		gone, over flow.Kobo
		booked     bool
		entries    int
		changed    bool
	}{
		"its money went otherwise":            {300_001, 0, false, 2, false},
		"it went, and that is booked":         {300_001, 0, true, 0, false},
		"its money is there":                  {300_000, 0, false, 2, true},
		"it left besides, and that is booked": {300_001, 200_000, true, 1, true},
	} {
		r, p := refunded(t), came(flow.Excess)
		r.Status, r.Refused, r.PutBack, r.Failure, r.Overpaid = flow.RefundFailed, true, true, "No.", c.over
		p.Refunded = c.gone
		got, err := r.HeardAnswer(open(), p, d, c.booked, noon)
		if err != nil || len(got.Entries) != c.entries || (got.Refund == nil) != (c.entries == 0) {
			t.Errorf("%s: %+v (%v)", name, got, err)
			continue
		}
		if c.entries > 0 && (*got.Refund != r) != c.changed {
			t.Errorf("%s: it became %+v", name, got.Refund)
		}
		for i, e := range got.Entries[max(0, len(got.Entries)-2):] {
			at := map[flow.EntryKind]time.Time{flow.EntryRefundPaid: noon.Add(-time.Hour), flow.EntryRefundReturned: noon}[e.Kind]
			rail := map[flow.EntryKind]string{flow.EntryRefundPaid: "B1", flow.EntryRefundReturned: "B2"}[e.Kind]
			if e.RailID != rail || !e.ValueAt.Equal(at) || flow.Sum(e.Postings) != 0 || i == 1 && e.Kind != flow.EntryRefundReturned {
				t.Errorf("%s: booked is %+v", name, e)
			}
		}
	}
}

// A refund keeps whose money it is, and settles what waited of its payment once all of
// that goes.
func TestWhatARefundIsMadeOf(t *testing.T) {
	s := rich()
	ask := flow.RefundAsk{ID: "wsp_rfd_1", Amount: 200_000, Aside: 100_000, Origin: flow.OriginMerchant, Reason: "Asked for it", By: "wsp_key_1"}
	for name, c := range map[string]struct {
		is      func(p *flow.Payment, ask *flow.RefundAsk)
		settles bool
	}{
		"all that waits":           {func(p *flow.Payment, _ *flow.RefundAsk) { p.Unapplied = 100_000 }, true},
		"some of it":               {func(p *flow.Payment, _ *flow.RefundAsk) { p.Unapplied = 100_001 }, false},
		"nothing waits":            {func(_ *flow.Payment, ask *flow.RefundAsk) { ask.Aside = 0 }, false},
		"it was decided about":     {func(p *flow.Payment, _ *flow.RefundAsk) { p.Unapplied, p.Resolution = 100_000, flow.ResolvedAccepted }, false},
		"more is with another one": {func(p *flow.Payment, _ *flow.RefundAsk) { p.Unapplied, p.Refunded = 100_000, 50_000 }, true},
	} {
		p, ask := came(flow.Excess), ask
		c.is(&p, &ask)
		got, err := flow.NewRefund(s, p, ask, noon)
		want := flow.Refund{
			ID: "wsp_rfd_1", Project: "wsp_prj_1", Payment: "wsp_pay_1", Session: "wsp_sess_1", Charge: "wsp_chg_1", Credit: "T1", Amount: 200_000, Aside: ask.Aside,
			Status: flow.RefundPending, Origin: flow.OriginMerchant, Reason: "Asked for it", Reference: "wsp_rfd_1", CreatedAt: noon,
		}
		if err != nil || *got.Refund != want {
			t.Errorf("%s: %+v (%v)", name, got.Refund, err)
		}
		if !c.settles {
			if len(got.Payments) != 0 {
				t.Errorf("%s: %+v", name, got.Payments)
			}
			continue
		}
		settled := p
		settled.Resolution, settled.ResolvedBy, settled.ResolvedAt, settled.ResolvedWhy = flow.ResolvedRefunded, "wsp_key_1", noon, "Asked for it"
		settled.Unapplied, settled.Refunded = 0, p.Refunded+200_000
		if len(got.Payments) != 1 || got.Payments[0] != settled {
			t.Errorf("%s: %+v", name, got.Payments)
		}
	}
}

// A bank that answers is asked more and more seldom for a day; one that is away each hour
// at least, for a week.
func TestWhenABankIsAskedNextAboutMoneyThatIsToBeSent(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		age          time.Duration
		first, heard bool
		want         time.Duration // from then on, 0 for never
	}{
		{0, true, true, flow.FirstAsk},
		{flow.FirstAsk, false, true, 50 * time.Second},
		{flow.FirstAsk, false, false, 50 * time.Second},
		{8 * time.Hour, false, true, 8 * time.Hour},
		{8 * time.Hour, false, false, time.Hour},
		{day - time.Hour, false, true, time.Hour},
		{day - time.Minute, false, false, time.Minute},
		{day, false, true, 0},
		{day, false, false, time.Hour},
		{day, true, true, flow.FirstAsk},
		{day, true, false, flow.FirstAsk},
		{7*day - time.Millisecond, false, false, time.Hour},
		{7 * day, false, false, 0},
		{7 * day, true, false, flow.FirstAsk},
	} {
		now := noon.Add(c.age)
		at, ok := flow.Refund{SentAt: noon}.NextAsk(now, c.first, c.heard)
		b, same := flow.Settlement{SentAt: noon}.NextAsk(now, c.first, c.heard)
		if ok != (c.want > 0) || ok && at.Sub(now) != c.want || ok != same || !at.Equal(b) {
			t.Errorf("at %v, first %v, heard %v: in %v (%v); of a payout in %v (%v)", c.age, c.first, c.heard, at.Sub(now), ok, b.Sub(now), same)
		}
	}
}

// A payer is told that the bank does not send back what they were told goes back: at each
// refusal of what a merchant decided, and once what nobody ordered is not tried again by
// itself, or was by hand. What a merchant asked for was told to nobody.
func TestAPayerIsToldThatTheBankSendsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		origin   flow.RefundOrigin
		status   flow.RefundStatus
		failures int
		taking   flow.Kobo
		want     flow.Kobo
	}{
		{flow.OriginResolve, flow.RefundFailed, 1, 0, 300},
		{flow.OriginResolve, flow.RefundFailed, 1, 100, 200},
		{flow.OriginResolve, flow.RefundFailed, 2, 0, 300}, // sent again by hand, in vain
		{flow.OriginClock, flow.RefundFailed, 1, 0, 0},
		{flow.OriginPolicy, flow.RefundAttention, 3, 0, 0},
		{flow.OriginPolicy, flow.RefundAttention, 4, 0, 300},
		{flow.OriginPolicy, flow.RefundFailed, 4, 0, 0},
		{flow.OriginPolicy, flow.RefundAttention, 5, 0, 300},
		{flow.OriginMerchant, flow.RefundFailed, 1, 0, 0},
	} {
		change := flow.Change{
			Refund: &flow.Refund{Origin: c.origin, Status: c.status, Failures: c.failures}, Taking: c.taking,
			Entries: []flow.Entry{
				{Kind: flow.EntryRefundFailed, Postings: []flow.Posting{{Account: flow.RefundsPayable, Amount: 500}, {Account: flow.Unapplied, Amount: -300}, {Account: flow.MerchantPending, Amount: -200}}},
				{Kind: flow.EntryAccept, Postings: []flow.Posting{{Account: flow.Unapplied, Amount: -50}}},
			},
		}
		if got := change.NotSent(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := (flow.Change{}).NotSent(); got != 0 {
		t.Errorf("of no refund: %d", got)
	}
}
