package flow_test

import (
	"testing"
	"time"

	"till/flow"
)

func TestWhoMayAgreeToWhatSomebodyAskedFor(t *testing.T) {
	t.Parallel()
	asked := flow.Proposal{ID: "wsp_prp_1", Act: flow.ActSendBack, Amount: 20_000_000, By: "ada@shop.test", At: noon, Status: flow.ProposalOpen}
	for name, c := range map[string]struct {
		change func(*flow.Proposal)
		by     string
		amount flow.Kobo
		after  time.Duration
		agrees bool
	}{
		"a second person":                  {by: "obi@shop.test", amount: 20_000_000, after: time.Hour, agrees: true},
		"in the last moment":               {by: "obi@shop.test", amount: 20_000_000, after: flow.ProposalLife - time.Millisecond, agrees: true},
		"too late":                         {by: "obi@shop.test", amount: 20_000_000, after: flow.ProposalLife},
		"who asked":                        {by: "ada@shop.test", amount: 20_000_000, after: time.Hour},
		"nobody":                           {amount: 20_000_000, after: time.Hour},
		"to another amount than was there": {by: "obi@shop.test", amount: 20_000_001, after: time.Hour},
		"after it was agreed to":           {change: func(p *flow.Proposal) { p.Status = flow.ProposalAgreed }, by: "obi@shop.test", amount: 20_000_000, after: time.Hour},
		"after it was refused":             {change: func(p *flow.Proposal) { p.Status = flow.ProposalRefused }, by: "obi@shop.test", amount: 20_000_000, after: time.Hour},
		"after it had expired":             {change: func(p *flow.Proposal) { p.Status = flow.ProposalExpired }, by: "obi@shop.test", amount: 20_000_000, after: time.Hour},
	} {
		p := asked
		if c.change != nil {
			c.change(&p)
		}
		got, err := p.Agree(c.by, "looked at it", c.amount, noon.Add(c.after))
		if (err == nil) != c.agrees || err != nil && flow.CodeOf(err) != flow.CodeNotResolvable {
			t.Errorf("%s: %v", name, err)
		}
		if want := noon.Add(c.after); c.agrees && (got.Status != flow.ProposalAgreed || got.EndedBy != c.by || got.EndedWhy != "looked at it" || !got.EndedAt.Equal(want)) {
			t.Errorf("%s: %+v", name, got)
		}
		if !c.agrees && got != p {
			t.Errorf("%s changes it: %+v", name, got)
		}
	}
	if got, err := asked.Refuse("ada@shop.test", "taken back", noon); err != nil || got.Status != flow.ProposalRefused || got.EndedBy != "ada@shop.test" {
		t.Errorf("who asked cannot take it back: %+v, %v", got, err)
	}
	if _, err := asked.Refuse("obi@shop.test", "no", noon.Add(flow.ProposalLife)); flow.CodeOf(err) != flow.CodeNotResolvable {
		t.Errorf("what is over is refused: %v", err)
	}
}

func TestARefundThatNeedsAttentionIsPaidByHand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*flow.Refund)
		posts  []flow.Posting
	}{
		"nobody knows of it": {func(*flow.Refund) {}, []flow.Posting{{Account: flow.RefundsPayable, Amount: 200_000}, {Account: flow.RailClearing, Amount: -200_000}}},
		"it came back": {func(r *flow.Refund) { r.Returned, r.RailTransactionID = true, "B1" }, []flow.Posting{
			{Account: flow.RefundsPayable, Amount: 200_000}, {Account: flow.RailClearing, Amount: -200_000},
		}},
		"it was refused, and its money put back": {func(r *flow.Refund) { r.Refused, r.PutBack, r.Failures = true, true, 4 }, []flow.Posting{
			{Account: flow.MerchantPending, Amount: 100_000}, {Account: flow.Unapplied, Amount: 100_000}, {Account: flow.RailClearing, Amount: -200_000},
		}},
	} {
		r := refunded(t)
		r.Status, r.Failure = flow.RefundAttention, "somebody must look"
		c.change(&r)
		p := came(flow.Excess)
		if p.Refunded = 400_000; r.PutBack { // what is out of a refund is not to be found once more beside it
			p.Refunded, p.Unapplied = 0, 100_000
		}
		got, err := r.DoneByHand(open(), p, "HAND-7", noon.Add(-time.Hour), noon)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is, entry := got.Refund, got.Entries[0]
		if is.Status != flow.RefundProcessed || is.Reference != "wsp_rfd_1-2" || is.RailTransactionID != "HAND-7" || is.Failure != "" || is.PutBack || is.Returned || is.Refused || !is.DoneAt.Equal(noon.Add(-time.Hour)) {
			t.Errorf("%s: %+v", name, is)
		}
		if len(got.Entries) != 1 || entry.Kind != flow.EntryRefundPaid || entry.Subject != is.Reference || entry.RailID != "HAND-7" || !entry.At.Equal(noon) || flow.Sum(entry.Postings) != 0 {
			t.Errorf("%s posts %+v", name, got.Entries)
		}
		if len(entry.Postings) != len(c.posts) {
			t.Fatalf("%s posts %+v", name, entry.Postings)
		}
		for i, want := range c.posts {
			if entry.Postings[i] != want {
				t.Errorf("%s posts %+v, not %+v", name, entry.Postings[i], want)
			}
		}
		if len(got.Facts) != 1 || got.Facts[0].Kind != flow.RefundProcessedKind {
			t.Errorf("%s tells %+v", name, got.Facts)
		}
		if n := got.News; len(n) != 1 || n[0].Kind != flow.NewsByHand || n[0].Attempt != p.Attempt || n[0].Amount != 200_000 {
			t.Errorf("%s tells its payer %+v", name, n)
		}
		// A second time, and whatever the bank says of the order that it was given.
		if again, err := is.DoneByHand(open(), p, "HAND-8", noon, noon); flow.CodeOf(err) != flow.CodeRefundNotRetryable || again.Refund != nil {
			t.Errorf("%s is paid twice: %+v, %v", name, again.Refund, err)
		}
	}
	for _, status := range flow.RefundStatuses() {
		r := refunded(t)
		r.Status = status
		if _, err := r.DoneByHand(open(), came(flow.Excess), "HAND-7", noon, noon); (err == nil) != (status == flow.RefundAttention) {
			t.Errorf("%s: %v", status, err)
		}
	}
	early, paid := refunded(t), came(flow.Excess)
	early.Status, paid.PaidAt, paid.ReceivedAt = flow.RefundAttention, noon.Add(30*time.Second), noon.Add(time.Hour)
	for at, ok := range map[time.Time]bool{noon: true, noon.Add(-time.Minute): false} { // people write minutes
		if _, err := early.DoneByHand(open(), paid, "HAND-7", at, noon.Add(2*time.Hour)); (err == nil) != ok || !ok && flow.CodeOf(err) != flow.CodeInvalidField {
			t.Errorf("sent at %s of money that came at %s: %v", at, paid.PaidAt, err)
		}
	}
	r := refunded(t)
	r.Status, r.PutBack = flow.RefundAttention, true
	p := came(flow.Excess)
	p.Refunded = 400_000 // it went back otherwise meanwhile
	if _, err := r.DoneByHand(open(), p, "HAND-7", noon, noon); flow.CodeOf(err) != flow.CodeRefundExceeds {
		t.Errorf("more than came goes back: %v", err)
	}
}

func TestTheTimeOfASessionIsEndedByHand(t *testing.T) {
	t.Parallel()
	s := open()
	live := flow.Attempt{ID: "wsp_att_2", Session: s.ID, Method: flow.BankTransfer, Status: flow.AttemptActive, ExpiresAt: noon.Add(20 * time.Minute)}
	left := flow.Attempt{ID: "wsp_att_1", Session: s.ID, Method: flow.USSD, Status: flow.AttemptSuperseded, ExpiresAt: noon.Add(10 * time.Minute)}
	over := flow.Attempt{ID: "wsp_att_0", Session: s.ID, Method: flow.USSD, Status: flow.AttemptExpired, ExpiresAt: noon.Add(-time.Minute)}
	c, err := flow.EndNow(s, []flow.Attempt{over, left, live}, nil, noon)
	if err != nil {
		t.Fatal(err)
	}
	if c.Session.Status != flow.SessionExpired || !c.Session.ExpiresAt.Equal(noon) || len(c.Facts) == 0 || c.Facts[0].Kind != flow.SessionExpiredKind || len(c.News) != 1 {
		t.Errorf("%+v", c)
	}
	if len(c.Attempts) != 2 || c.Attempts[0].Status != flow.AttemptSuperseded || c.Attempts[1].Status != flow.AttemptExpired {
		t.Errorf("its attempts: %+v", c.Attempts)
	}
	for _, a := range c.Attempts {
		if !a.ExpiresAt.Equal(noon) {
			t.Errorf("%s can be paid in time until %s", a.ID, a.ExpiresAt)
		}
		m := flow.Money{
			Session: *c.Session, Attempt: a, Payment: "wsp_pay_1", Now: noon.Add(10 * time.Minute),
			Notice: flow.Notice{Kind: flow.Credit, RailTransactionID: "T1", Amount: s.Amount, Channel: a.Method, PaidAt: noon.Add(10 * time.Minute)},
		}
		if settled, err := flow.Settle(m); err != nil || settled.Payment.Match != flow.Late {
			t.Errorf("money that comes 10 minutes after is %+v, %v", settled.Payment, err)
		}
	}
	for _, status := range []flow.SessionStatus{flow.SessionProcessing, flow.SessionPaid, flow.SessionExpired, flow.SessionCancelled} {
		s.Status = status
		if _, err := flow.EndNow(s, nil, nil, noon); flow.CodeOf(err) != flow.CodeNotCancellable {
			t.Errorf("%s: %v", status, err)
		}
	}
}
