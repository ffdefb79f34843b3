package flow_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"till/flow"
)

// came is a payment of ₦5,000 for the session of open.
func came(match flow.MatchStatus) flow.Payment {
	return flow.Payment{
		ID: "wsp_pay_1", Project: "wsp_prj_1", Session: "wsp_sess_1", Attempt: "wsp_att_1", Amount: 500_000, Fee: 17_500, Channel: flow.BankTransfer,
		RailTransactionID: "T1", Match: match,
	}
}

// refunded is a refund of ₦2,000, half of it from what was unapplied.
func refunded(t *testing.T) flow.Refund {
	t.Helper()
	c, err := flow.NewRefund(open(), came(flow.Excess), flow.RefundAsk{ID: "wsp_rfd_1", Amount: 200_000, Aside: 100_000, Origin: flow.OriginMerchant}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return *c.Refund
}

func TestARefundIsNeverOfMoreThanIsLeft(t *testing.T) {
	p := came(flow.Matched)
	p.Reversed, p.Refunded = 100_000, 150_000
	for amount, fits := range map[flow.Kobo]bool{1: true, 250_000: true, 250_001: false, 500_000: false, flow.MaxAmount: false} {
		c, err := flow.NewRefund(open(), p, flow.RefundAsk{ID: "wsp_rfd_1", Amount: amount}, noon)
		if (err == nil) != fits {
			t.Errorf("%d: %v", amount, err)
		}
		if fits {
			continue
		}
		var refusal *flow.Error
		if !errors.As(err, &refusal) || refusal.Code != flow.CodeRefundExceeds || refusal.Details["refundableMinor"] != "250000" || c.Refund != nil {
			t.Errorf("%d is refused with %+v", amount, err)
		}
	}
	for why, of := range map[string]flow.Payment{ // whoever is refused has not to look for it
		"(500001 kobo).": {Amount: 500_000},
		"kobo): ₦1,500 of it is in refunds already.":                                {Amount: 500_000, Refunded: 150_000},
		"kobo): the bank took ₦5,000 back.":                                         {Amount: 500_000, Reversed: 500_000},
		"kobo): ₦1,500 of it is in refunds already, and the bank took ₦1,000 back.": p,
	} {
		if _, err := flow.NewRefund(open(), of, flow.RefundAsk{ID: "wsp_rfd_1", Amount: 500_001}, noon); err == nil || !strings.HasSuffix(err.Error(), why) {
			t.Errorf("it is refused with %v, and not with why: %s", err, why)
		}
	}
	for _, ask := range []flow.RefundAsk{{Amount: 0}, {Amount: -1}, {Amount: 5, Aside: 6}, {Amount: 5, Aside: -1}} {
		if _, err := flow.NewRefund(open(), p, ask, noon); flow.CodeOf(err) != flow.CodeInternal {
			t.Errorf("%+v is a refund (%v)", ask, err)
		}
	}
	p.Reversed, p.Refunded = 400_000, 300_000 // the bank took back what was on its way out already
	if p.Refundable() != 0 {
		t.Errorf("%d can be refunded", p.Refundable())
	}
}

func TestWhatABankSaysOfARefund(t *testing.T) {
	done := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1", At: noon.Add(time.Minute)}
	failed := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", At: noon.Add(time.Minute), Reason: "no such account"}
	back := failed
	back.Reverses = "B1"
	pending := flow.Disbursed{Status: flow.DisbursementPending}
	for name, c := range map[string]struct {
		from     flow.RefundStatus
		returned bool
		says     flow.Disbursed
		to       flow.RefundStatus // "" where nothing changes
		kind     flow.EventKind
		posts    string
	}{
		"sent":                         {flow.RefundProcessing, false, done, flow.RefundProcessed, flow.RefundProcessedKind, "refund_paid"},
		"sent, as we looked away":      {flow.RefundPending, false, done, flow.RefundProcessed, flow.RefundProcessedKind, "refund_paid"},
		"sent after all":               {flow.RefundAttention, false, done, flow.RefundProcessed, flow.RefundProcessedKind, "refund_paid"},
		"sent though it had failed":    {flow.RefundFailed, false, done, flow.RefundProcessed, flow.RefundProcessedKind, "refund_paid"},
		"sent, told twice":             {flow.RefundProcessed, false, done, "", "", ""},
		"sent, told after it bounced":  {flow.RefundAttention, true, done, "", "", ""},
		"not sent":                     {flow.RefundProcessing, false, failed, flow.RefundFailed, flow.RefundFailedKind, "refund_failed"},
		"not sent, after a long doubt": {flow.RefundAttention, false, failed, flow.RefundFailed, flow.RefundFailedKind, "refund_failed"},
		"not sent, told twice":         {flow.RefundFailed, false, failed, "", "", ""},
		"not sent, told late":          {flow.RefundProcessed, false, failed, "", "", ""},
		"bounced":                      {flow.RefundProcessed, false, back, flow.RefundAttention, flow.RefundAttentionKind, "refund_returned"},
		"bounced, told twice":          {flow.RefundAttention, true, back, "", "", ""},
		"taken on":                     {flow.RefundProcessing, false, pending, "", "", ""},
	} {
		r := refunded(t)
		r.Status, r.Returned = c.from, c.returned
		r.Refused, r.PutBack = c.from == flow.RefundFailed, c.from == flow.RefundFailed
		got, err := r.Heard(open(), came(flow.Excess), c.says, false, noon.Add(time.Hour))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.to == "" {
			if got.Refund != nil || len(got.Entries)+len(got.Facts) != 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if got.Refund.Status != c.to || len(got.Facts) != 1 || got.Facts[0].Kind != c.kind || len(got.Entries) != 1 || string(got.Entries[0].Kind) != c.posts {
			t.Errorf("%s: %+v", name, got)
		}
		if flow.Sum(got.Entries[0].Postings) != 0 {
			t.Errorf("%s: the entry does not sum to zero: %+v", name, got.Entries[0])
		}
		if well := c.to == flow.RefundProcessed; well != got.Refund.DoneAt.Equal(done.At) || well == (got.Refund.Failure != "") {
			t.Errorf("%s: done at %s, %q", name, got.Refund.DoneAt, got.Refund.Failure)
		}
		if got.Bounced() != (c.posts == "refund_returned") {
			t.Errorf("%s: the payer hears that it came back: %v", name, got.Bounced())
		}
	}
}

// A bank may send a refund and give no time of that: then it is done as it is heard of.
func TestARefundIsDoneWhenItIsHeardOfWhereTheBankGivesNoTime(t *testing.T) {
	r := refunded(t)
	r.Status = flow.RefundProcessing
	got, err := r.Heard(open(), came(flow.Excess), flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B1"}, false, noon)
	if err != nil || !got.Refund.DoneAt.Equal(noon) || !got.Entries[0].ValueAt.Equal(noon) {
		t.Errorf("%+v (%v)", got, err)
	}
}

// Nobody is told that money came back of which nobody knows whether it left, and who
// reads of that is told what to do before it leaves twice.
func TestARefundInDoubtIsNotSaidToHaveComeBack(t *testing.T) {
	r := refunded(t)
	r.Status = flow.RefundProcessing
	got, err := r.Doubt(open())
	if err != nil || got.Refund.Status != flow.RefundAttention || got.Bounced() || !strings.HasSuffix(got.Refund.Failure, "Ask the bank before you retry.") {
		t.Errorf("%+v (%v), came back: %v", got.Refund, err, got.Bounced())
	}
	r.Status, r.Overpaid = flow.RefundProcessed, r.Amount // what left besides comes back, and the payer keeps theirs
	got, err = r.BackUnder(open(), flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", Reverses: "B1", At: noon}, noon)
	if err != nil || got.Refund.Overpaid != 0 || got.Bounced() {
		t.Errorf("%+v (%v), came back: %v", got.Refund, err, got.Bounced())
	}
}

// What the bank refused and is to be sent again is not refused once more by the same
// word, told again before it is sent.
func TestARefusalToldAgainDoesNotEndWhatIsSentAnew(t *testing.T) {
	r, p := refunded(t), came(flow.Excess)
	r.Status, r.Tries, r.Refused, r.PutBack, r.Failures = flow.RefundFailed, 1, true, true, 1
	p.Unapplied = 100_000
	again, err := r.Retry(open(), p, flow.Ruled{By: "wsp_key_1", At: noon})
	if err != nil || again.Refund.Status != flow.RefundPending {
		t.Fatalf("%+v (%v)", again.Refund, err)
	}
	n := flow.Notice{Kind: flow.PayoutFailed, Reference: again.Refund.Reference, RailTransactionID: "B2", Amount: r.Amount, PaidAt: noon}
	if got, err := again.Refund.HeardNotice(open(), p, n, false, noon); err != nil || got.Refund != nil || len(got.Entries) != 0 {
		t.Errorf("%+v (%v)", got, err)
	}
}

func TestARefundThatBouncedIsSentUnderAnotherName(t *testing.T) {
	r := refunded(t)
	for _, want := range []string{"wsp_rfd_1-2", "wsp_rfd_1-3", "wsp_rfd_1-4"} {
		r.Status, r.Returned, r.Tries, r.RailTransactionID = flow.RefundAttention, true, 3, "B1"
		c, err := r.Retry(open(), came(flow.Excess), flow.Ruled{By: "wsp_key_1", At: noon})
		if err != nil || c.Refund.Reference != want || c.Refund.Tries != 0 || c.Refund.Returned || c.Refund.Status != flow.RefundPending || c.Refund.RailTransactionID != "" {
			t.Fatalf("%+v (%v), not %s", c.Refund, err, want)
		}
		if r = *c.Refund; flow.RefundOf(r.Reference) != "wsp_rfd_1" {
			t.Errorf("%s is of %s", r.Reference, flow.RefundOf(r.Reference))
		}
	}
	r = refunded(t)
	r.Status, r.Tries = flow.RefundAttention, 2 // nobody knows
	c, err := r.Retry(open(), came(flow.Excess), flow.Ruled{By: "wsp_key_1", At: noon})
	if err != nil || c.Refund.Reference != "wsp_rfd_1" || c.Refund.Tries != 2 {
		t.Errorf("%+v (%v)", c.Refund, err)
	}
	for _, status := range flow.RefundStatuses() {
		r.Status = status
		if _, err := r.Retry(open(), came(flow.Excess), flow.Ruled{By: "wsp_key_1", At: noon}); (status == flow.RefundAttention || status == flow.RefundFailed) != (err == nil) || err != nil && flow.CodeOf(err) != flow.CodeRefundNotRetryable {
			t.Errorf("retry of %s: %v", status, err)
		}
	}
}

func TestWhatTheBankTookBackIsNotRefundedToo(t *testing.T) {
	r, p := refunded(t), came(flow.Matched)
	p.Refunded, p.Reversed = 200_000, 300_001
	c, err := r.Send(open(), p, noon)
	if err != nil || c.Refund.Status != flow.RefundFailed || len(c.Entries) != 1 || c.Entries[0].Kind != flow.EntryRefundFailed || c.Refund.Tries != 0 {
		t.Errorf("%+v (%v)", c, err)
	}
	p.Reversed = 300_000
	if c, err = r.Send(open(), p, noon); err != nil || c.Refund.Status != flow.RefundProcessing || c.Refund.Tries != 1 || len(c.Facts) != 0 {
		t.Errorf("%+v (%v)", c, err)
	}
	if c, err = c.Refund.Send(open(), p, noon); err != nil || c.Refund.Status != flow.RefundProcessing || c.Refund.Tries != 2 {
		t.Errorf("%+v (%v)", c, err)
	}
	p.Reversed = 500_000 // it is sent again only where the bank knows nothing of it
	if c, err = c.Refund.Send(open(), p, noon); err != nil || c.Refund.Status != flow.RefundFailed || !c.Refund.PutBack || c.Refund.Reference != "wsp_rfd_1" {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestTheBankIsAskedLessAndLessAboutARefund(t *testing.T) {
	r := refunded(t)
	r.SentAt = noon
	var ages []time.Duration
	for now := noon; len(ages) < 100; {
		next, more := r.NextAsk(now, false, true)
		if !more {
			break
		}
		if !next.After(now) {
			t.Fatalf("at %s it is asked at %s", now, next)
		}
		ages, now = append(ages, next.Sub(noon)), next
	}
	if len(ages) < 5 || ages[0] > time.Minute || !slices.Contains(ages, 5*time.Minute) || !slices.Contains(ages, 15*time.Minute) || ages[len(ages)-1] != 24*time.Hour {
		t.Errorf("asked at %v", ages)
	}
}

func TestAHeldPartThatGoesBackIsDueAgain(t *testing.T) {
	s, p := open(), came(flow.Partial)
	p.Amount, p.Fee = 300_000, 0
	s.AmountPaid, s.Exceptions = 300_000, []flow.Exception{flow.PartiallyPaid}
	c, err := flow.NewRefund(s, p, flow.RefundAsk{ID: "wsp_rfd_1", Amount: 100_000, Aside: 100_000}, noon)
	if err != nil || c.Session.AmountPaid != 200_000 || !c.Refund.Held {
		t.Fatalf("%+v (%v)", c.Session, err)
	}
	failed, err := c.Refund.Heard(*c.Session, p, flow.Disbursed{Status: flow.DisbursementFailed}, false, noon)
	if err != nil || failed.Session.AmountPaid != 300_000 || !slices.Contains(failed.Session.Exceptions, flow.PartiallyPaid) {
		t.Errorf("it stays after all: %+v (%v)", failed.Session, err)
	}
	others := *c.Session // paid by others since
	others.Status, others.AmountPaid, others.Exceptions = flow.SessionPaid, others.Amount, nil
	failed, err = c.Refund.Heard(others, p, flow.Disbursed{Status: flow.DisbursementFailed}, false, noon)
	if err != nil || failed.Session.AmountPaid != others.Amount || len(failed.Session.Exceptions) != 0 {
		t.Errorf("what is paid by others is not paid less: %+v (%v)", failed.Session, err)
	}
	all, err := flow.NewRefund(s, p, flow.RefundAsk{ID: "wsp_rfd_1", Amount: 300_000, Aside: 300_000}, noon)
	if err != nil || all.Session.AmountPaid != 0 || len(all.Session.Exceptions) != 0 {
		t.Errorf("%+v (%v)", all.Session, err)
	}
	a := trying("a", flow.BankTransfer)
	a.Amount = 200_000
	if asks, other := all.Session.AskForRest(a); !other || asks.Amount != 500_000 {
		t.Errorf("its account asks for %d", asks.Amount)
	}
	for name, a := range map[string]flow.Attempt{"switched away from": leftIn("chat_1", flow.AttemptSuperseded), "a card": trying("a", flow.Card)} {
		a.Amount = 200_000
		if asks, other := all.Session.AskForRest(a); other || asks.Amount != 200_000 {
			t.Errorf("%s: it asks for %d", name, asks.Amount)
		}
	}
	paid := s
	paid.Status, paid.AmountPaid = flow.SessionPaid, paid.Amount
	if c, err := flow.NewRefund(paid, p, flow.RefundAsk{ID: "wsp_rfd_1", Amount: 300_000}, noon); err != nil || c.Session.AmountPaid != paid.Amount || c.Refund.Held {
		t.Errorf("what is paid stays paid: %+v (%v)", c.Session, err)
	}
}

// Whatever is heard in whatever order, what lies in the accounts is what the
// refund's state says.
func TestTheLedgerSaysWhereARefundStands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := open(), came(flow.Excess)
		amount := flow.Kobo(rapid.IntRange(1, 500_000).Draw(t, "amount"))
		ask := flow.RefundAsk{
			ID: "wsp_rfd_1", Amount: amount, Aside: flow.Kobo(rapid.IntRange(0, int(amount)).Draw(t, "aside")),
			Origin: rapid.SampledFrom([]flow.RefundOrigin{flow.OriginMerchant, flow.OriginPolicy, flow.OriginClock, flow.OriginResolve}).Draw(t, "origin"),
		}
		p.Unapplied = ask.Aside
		accounts, posted := map[flow.LedgerAccount]flow.Kobo{}, map[string]bool{}
		var r flow.Refund
		keep := func(c flow.Change, err error) {
			if err != nil {
				var illegal *flow.IllegalMove
				gone := flow.CodeOf(err) == flow.CodeRefundExceeds && p.Amount-p.Reversed < amount
				if !errors.As(err, &illegal) && flow.CodeOf(err) != flow.CodeRefundNotRetryable && !gone {
					t.Fatal(err)
				}
				return
			}
			if c.Refund != nil {
				if r = *c.Refund; r.PutBack {
					p.Refunded = 0
				} else {
					p.Refunded = amount
				}
			}
			for _, e := range c.Entries {
				if name := string(e.Kind) + " " + e.Subject; posted[name] || flow.Sum(e.Postings) != 0 || e.Payment != p.ID {
					t.Fatalf("posted %s twice, or out of balance: %+v", name, e)
				} else {
					posted[name] = true
				}
				for _, line := range e.Postings {
					accounts[line.Account] += line.Amount
				}
			}
			p.Unapplied = ask.Aside - accounts[flow.Unapplied]
			for _, decided := range c.Payments {
				if decided.Unapplied != p.Unapplied || decided.Refunded != p.Refunded || decided.Resolution != flow.ResolvedRefunded {
					t.Fatalf("all that waits goes back, and the payment says %+v", decided)
				}
			}
		}
		keep(flow.NewRefund(s, p, ask, noon))
		now, reversed := noon, false
		notice := func(kind flow.NoticeKind) flow.Notice {
			return flow.Notice{Kind: kind, Reference: r.Reference, RailTransactionID: "B" + r.Reference + string(kind), Amount: amount, PaidAt: now}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			now = now.Add(time.Minute)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				keep(r.Send(s, p, now))
			case 1:
				keep(r.HeardNotice(s, p, notice(flow.PaidOut), false, now))
			case 2:
				keep(r.HeardNotice(s, p, notice(flow.PayoutFailed), false, now))
			case 3:
				back := notice(flow.PayoutFailed)
				back.Reverses = "B" + r.Reference + string(flow.PaidOut)
				if !r.PutBack { // then the bank is asked instead
					keep(r.HeardNotice(s, p, back, false, now))
				}
			case 4:
				keep(r.Heard(s, p, flow.Disbursed{Status: flow.DisbursementFailed, Reason: "no"}, false, now))
			case 5:
				keep(r.Doubt(s))
			case 6:
				keep(r.Retry(s, p, flow.Ruled{By: "wsp_key_1", At: now}))
			case 7:
				p.Reversed = flow.Kobo(rapid.IntRange(0, 500_000).Draw(t, "reversed"))
				reversed = reversed || p.Reversed > 0
			}
			taken := accounts[flow.Unapplied] // from what was unapplied: what the bank took back meanwhile is not put back there
			if taken < 0 || taken > ask.Aside || !reversed && taken != map[bool]flow.Kobo{true: 0, false: ask.Aside}[r.PutBack] {
				t.Fatalf("%s: %d of %d are taken from what was unapplied", r.Status, taken, ask.Aside)
			}
			if r.Status == flow.RefundFailed != r.PutBack && (r.Status != flow.RefundAttention || ask.Origin == flow.OriginMerchant || ask.Origin == flow.OriginResolve) {
				t.Fatalf("%s, put back: %v", r.Status, r.PutBack)
			}
			want := map[flow.LedgerAccount]flow.Kobo{flow.Unapplied: taken, flow.MerchantPending: amount - taken, flow.RefundsPayable: -amount}
			switch {
			case r.PutBack:
				want = map[flow.LedgerAccount]flow.Kobo{flow.Unapplied: taken, flow.MerchantPending: -taken}
			case r.Status == flow.RefundProcessed:
				want[flow.RefundsPayable], want[flow.RailClearing] = 0, -amount
			}
			for _, account := range flow.LedgerAccounts() {
				if accounts[account] != want[account] {
					t.Fatalf("%s: the ledger says %v, not %v", r.Status, accounts, want)
				}
			}
		}
	})
}

func TestARefundThatWasRefusedTooOftenIsGivenUpWhileItWaitsToBeSentAgain(t *testing.T) {
	r := refunded(t)
	r.Origin, r.Status, r.Failures = flow.OriginPolicy, flow.RefundPending, len(flow.SendAgainWaits())
	p := came(flow.Late)
	p.Refunded, r.Aside = r.Amount, r.Amount
	c, err := r.Heard(open(), p, flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B2", At: noon}, false, noon)
	if err != nil || c.Refund == nil || c.Refund.Status != flow.RefundAttention || !c.Refund.PutBack || len(c.Facts) != 1 || c.Facts[0].Kind != flow.RefundAttentionKind {
		t.Errorf("%+v (%v)", c, err)
	}
}

func TestARefundKnowsWhichOfItsOrdersWereBegun(t *testing.T) {
	for _, c := range []struct {
		is    string
		tries int
		asked string
		want  bool
	}{
		{"wsp_rfd_1", 0, "wsp_rfd_1", false},
		{"wsp_rfd_1", 1, "wsp_rfd_1", true},
		{"wsp_rfd_1", 1, "wsp_rfd_1-2", false},
		{"wsp_rfd_1-2", 0, "wsp_rfd_1", true},
		{"wsp_rfd_1-2", 0, "wsp_rfd_1-2", false},
		{"wsp_rfd_1-10", 1, "wsp_rfd_1-9", true},
		{"wsp_rfd_1-9", 1, "wsp_rfd_1-10", false},
	} {
		r := flow.Refund{ID: "wsp_rfd_1", Reference: c.is, Tries: c.tries}
		if flow.RefundOf(c.asked) != r.ID || r.Begun(c.asked) != c.want {
			t.Errorf("%s, begun %d times, is asked for %s of %s: not %v", c.is, c.tries, c.asked, flow.RefundOf(c.asked), c.want)
		}
	}
}
