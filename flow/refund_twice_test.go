package flow_test

import (
	"testing"
	"time"

	"till/flow"
)

// What the bank says late of a name that a refund had before is the refund itself
// where nothing is, or may be, out under the name it has now; else money left twice.
func TestWhatABankSaysOfANameThatARefundHadBefore(t *testing.T) {
	sent := flow.Disbursed{Status: flow.DisbursementDone, RailTransactionID: "B9", At: noon.Add(time.Minute)}
	back := flow.Disbursed{Status: flow.DisbursementFailed, RailTransactionID: "B10", Reverses: "B9", At: noon.Add(2 * time.Minute)}
	for name, c := range map[string]struct {
		is    func(r *flow.Refund)
		gone  flow.Kobo // of its payment, back or on its way
		to    flow.RefundStatus
		twice bool
		then  flow.RefundStatus // once it came back
	}{
		"nobody was told of the new one":       {func(r *flow.Refund) { r.Status = flow.RefundPending }, 200_000, flow.RefundProcessed, false, flow.RefundAttention},
		"the bank may know of the new one":     {func(r *flow.Refund) { r.Status, r.Tries = flow.RefundPending, 1 }, 200_000, flow.RefundPending, true, flow.RefundPending},
		"the new one is under way":             {func(r *flow.Refund) { r.Status, r.Tries = flow.RefundProcessing, 1 }, 200_000, flow.RefundProcessing, true, flow.RefundProcessing},
		"nobody knows of the new one":          {func(r *flow.Refund) { r.Status, r.Tries = flow.RefundAttention, 1 }, 200_000, flow.RefundAttention, true, flow.RefundAttention},
		"the new one came back":                {func(r *flow.Refund) { r.Status, r.Tries, r.Returned = flow.RefundAttention, 1, true }, 200_000, flow.RefundProcessed, false, flow.RefundAttention},
		"the new one was sent":                 {func(r *flow.Refund) { r.Status, r.RailTransactionID = flow.RefundProcessed, "B1" }, 200_000, flow.RefundProcessed, true, flow.RefundProcessed},
		"the new one was refused":              {func(r *flow.Refund) { r.Status, r.Refused, r.PutBack = flow.RefundFailed, true, true }, 300_000, flow.RefundProcessed, false, flow.RefundAttention},
		"refused, and its money went back":     {func(r *flow.Refund) { r.Status, r.Refused, r.PutBack = flow.RefundFailed, true, true }, 300_001, flow.RefundFailed, true, flow.RefundFailed},
		"refused, and the bank took the money": {func(r *flow.Refund) { r.Status, r.Refused, r.PutBack = flow.RefundAttention, true, true }, 0, flow.RefundProcessed, false, flow.RefundAttention},
	} {
		r, p := refunded(t), came(flow.Excess)
		r.Reference = "wsp_rfd_1-2"
		c.is(&r)
		if p.Refunded = c.gone; c.gone == 0 {
			p.Reversed = p.Amount
		}
		got, err := r.SentUnder("wsp_rfd_1", open(), p, sent, noon)
		if err != nil || got.Refund == nil || len(got.Entries) != 1 {
			t.Errorf("%s: %+v (%v)", name, got, err)
			continue
		}
		e, now := got.Entries[0], *got.Refund
		if e.Kind != flow.EntryRefundPaid || e.Subject != "wsp_rfd_1" || e.RailID != "B9" || !e.ValueAt.Equal(sent.At) || flow.Sum(e.Postings) != 0 || out(e) != -200_000 {
			t.Errorf("%s: booked is %+v", name, e)
		}
		if now.Status != c.to || now.Reference != "wsp_rfd_1-2" || now.Returned || (now.Overpaid == 200_000) != c.twice || (now.Failure != "") != c.twice || (len(got.Facts) == 0) != c.twice {
			t.Errorf("%s: %+v, told %+v", name, now, got.Facts)
		}
		if first := r.RailTransactionID; now.RailTransactionID != map[bool]string{true: "B9", false: first}[first == ""] {
			t.Errorf("%s: the bank calls it %s", name, now.RailTransactionID)
		}
		got, err = now.BackUnder(open(), back, noon)
		if err != nil || got.Refund == nil || got.Refund.Status != c.then || got.Refund.Overpaid != 0 || got.Refund.Returned == c.twice || len(got.Entries) != 1 {
			t.Errorf("%s: it came back, %+v (%v)", name, got, err)
			continue
		}
		if e := got.Entries[0]; e.Kind != flow.EntryRefundReturned || e.RailID != "B10" || !e.ValueAt.Equal(back.At) || flow.Sum(e.Postings) != 0 || out(e) != 200_000 {
			t.Errorf("%s: booked as back is %+v", name, e)
		}
	}
	r := refunded(t)
	r.Overpaid, r.Failure = 400_000, "sent three times"
	if c, err := r.BackUnder(open(), back, noon); err != nil || c.Refund.Overpaid != 200_000 || c.Refund.Failure == "" {
		t.Errorf("one of two that left too often came back: %+v (%v)", c.Refund, err)
	}
	if c, err := refunded(t).BackUnder(open(), back, noon); err != nil || c.Refund != nil || len(c.Entries) != 0 {
		t.Errorf("nothing had left: %+v (%v)", c, err)
	}
}

// What left once too often is neither sent again nor paid by hand, for then it would have
// left three times.
func TestWhatLeftOnceTooOftenIsNotSentAgain(t *testing.T) {
	r := refunded(t)
	r.Status = flow.RefundAttention
	for over, may := range map[flow.Kobo]bool{0: true, r.Amount: false, 2 * r.Amount: false} {
		r.Overpaid = over
		_, again := r.Retry(open(), came(flow.Excess), flow.Ruled{By: "wsp_key_1", At: noon})
		_, byHand := r.DoneByHand(open(), came(flow.Excess), "HAND-7", noon, noon)
		for _, err := range []error{again, byHand} {
			if (err == nil) != may || err != nil && flow.CodeOf(err) != flow.CodeRefundNotRetryable {
				t.Errorf("%d left too often: %v", over, err)
			}
		}
	}
}

// out is what an entry moves at the rail.
func out(e flow.Entry) (sum flow.Kobo) {
	for _, line := range e.Postings {
		if line.Account == flow.RailClearing {
			sum += line.Amount
		}
	}
	return sum
}

// A refund that was given up ends once what was decided about its payment leaves
// nothing of it to be sent as it is.
func TestARefundThatWasGivenUpEndsWithItsMoney(t *testing.T) {
	for name, c := range map[string]struct {
		is  func(r *flow.Refund, p *flow.Payment)
		why string // "" where it waits still
	}{
		"all of it waits":                 {func(_ *flow.Refund, p *flow.Payment) { p.Unapplied = 200_000 }, ""},
		"some was accepted":               {func(_ *flow.Refund, p *flow.Payment) { p.Unapplied, p.Resolution = 199_999, flow.ResolvedAccepted }, "Some of its money was accepted, and the rest waits for a decision."},
		"some of a part is with the rest": {func(_ *flow.Refund, p *flow.Payment) { p.Unapplied, p.Match = 1, flow.Partial }, "Some of its money was accepted, and the rest waits for a decision."},
		"some was accepted, and some went": {func(_ *flow.Refund, p *flow.Payment) {
			p.Unapplied, p.Resolution, p.Refunded = 1, flow.ResolvedAccepted, 300_001
		}, "Some of its money went back another way, and the rest waits for a decision."},
		"some went":                      {func(_ *flow.Refund, p *flow.Payment) { p.Unapplied = 1 }, "Some of its money went back another way, and the rest waits for a decision."},
		"accepted":                       {func(_ *flow.Refund, p *flow.Payment) { p.Resolution, p.Refunded = flow.ResolvedAccepted, 300_000 }, "Its money was accepted."},
		"accepted, and the bank took it": {func(_ *flow.Refund, p *flow.Payment) { p.Resolution, p.Reversed = flow.ResolvedAccepted, 300_001 }, "Its money went back another way."},
		"a part went whole":              {func(_ *flow.Refund, p *flow.Payment) { p.Match, p.Resolution = flow.Partial, flow.ResolvedRefunded }, "Its money went back another way."},
		"gone":                           {func(*flow.Refund, *flow.Payment) {}, "Its money went back another way."},
		"gone, and left too often":       {func(r *flow.Refund, _ *flow.Payment) { r.Overpaid = 1 }, ""},
		"gone, and it is not put back":   {func(r *flow.Refund, _ *flow.Payment) { r.PutBack = false }, ""},
		"gone, and it failed already":    {func(r *flow.Refund, _ *flow.Payment) { r.Status = flow.RefundFailed }, ""},
	} {
		r, p := refunded(t), came(flow.Late)
		r.Status, r.Refused, r.PutBack, r.Failure = flow.RefundAttention, true, true, "No."
		c.is(&r, &p)
		got, ended, err := r.Overtaken(open(), p)
		if err != nil || ended != (c.why != "") {
			t.Errorf("%s: ended %v (%v)", name, ended, err)
			continue
		}
		if ended && (got.Refund.Status != flow.RefundFailed || got.Refund.Failure != "No. "+c.why || len(got.Facts) != 1 || got.Facts[0].Kind != flow.RefundFailedKind || len(got.Entries) != 0) {
			t.Errorf("%s: %+v, %+v", name, got.Refund, got)
		}
	}
}
