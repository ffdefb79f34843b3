package checkout

import (
	"context"
	"fmt"
	"slices"

	"till/flow"
	"till/flow/store"
)

// tellMoney tells what became of the money of a session: what it was taken for, what was
// booked, and when it was paid out.
func tellMoney(ctx context.Context, r store.Reader, session flow.Session, attempts []flow.Attempt, refunds []flow.Refund) ([]Moment, error) {
	matches, err := matchedMoney(ctx, r, session, attempts, refunds)
	if err != nil {
		return nil, err
	}
	posted, err := tellLedger(ctx, r, session.ID)
	if err != nil {
		return nil, err
	}
	settled, err := r.Settled(ctx, session.ID)
	return slices.Concat(matches, posted, tellSettled(settled)), err
}

// matchedMoney tells of each payment of a session what it was taken for, and by
// what: nothing of who paid.
func matchedMoney(ctx context.Context, r store.Reader, session flow.Session, attempts []flow.Attempt, refunds []flow.Refund) ([]Moment, error) {
	payments, err := r.Payments(ctx, session.ID)
	if err != nil || len(payments) == 0 {
		return nil, err
	}
	story := make([]Moment, 0, len(payments)+len(refunds))
	for _, b := range refunds {
		decided := slices.ContainsFunc(payments, func(p flow.Payment) bool { return p.ID == b.Payment && p.Resolution == flow.ResolvedRefunded })
		if b.Origin == flow.OriginMerchant || !decided { // which is told with what was decided
			story = append(story, wantedBack(b))
		}
	}
	for _, p := range payments {
		why := fmt.Sprintf("%s; value time %s, session until %s", meantBy(p, session), flow.Stamp(p.PaidAt), flow.Stamp(session.ExpiresAt))
		var by flow.Attempt
		if at := slices.IndexFunc(attempts, func(a flow.Attempt) bool { return a.ID == p.Attempt }); at >= 0 {
			by = attempts[at]
			why += fmt.Sprintf(", %s until %s", by.Method, flow.Stamp(by.ExpiresAt))
		}
		story = append(story, Moment{At: p.ReceivedAt, Who: "till", What: fmt.Sprintf("matched %s: %s, %s", p.Amount.Naira(), p.Match, p.ID), Why: why, Told: matchTold(p, session, by), Raw: raw(flow.RecordPayment(p))})
		if p.Resolution != flow.Unresolved {
			story = append(story, decidedAbout(p))
		}
	}
	return story, nil
}

// wantedBack tells who wanted money sent back, and why.
func wantedBack(b flow.Refund) Moment {
	who := "merchant"
	if b.Origin == flow.OriginPolicy || b.Origin == flow.OriginClock {
		who = "till"
	}
	return Moment{At: b.CreatedAt, Who: who, What: fmt.Sprintf("refund of %s wanted: %s, %s", b.Amount.Naira(), b.Origin, b.ID), Why: b.Reason, Told: wantedTold(b)}
}

// decidedAbout tells what was decided about set-aside money, and by whom.
func decidedAbout(p flow.Payment) Moment {
	who := "merchant"
	if slices.Contains([]string{flow.ByPolicy, flow.ByClock, flow.ByOperator}, p.ResolvedBy) {
		who = "till"
	}
	why := "by " + p.ResolvedBy
	if p.ResolvedWhy != "" {
		why += ": " + p.ResolvedWhy
	}
	return Moment{At: p.ResolvedAt, Who: who, What: fmt.Sprintf("resolved %s: %s", p.ID, p.Resolution), Why: why, Told: resolvedTold(p)}
}

// meantBy says for people what the match status of a payment means, and what its
// session's policy makes of it.
func meantBy(p flow.Payment, s flow.Session) string {
	switch {
	case p.Match == flow.Matched:
		return "it is all that was due"
	case p.Match == flow.Partial && s.Policy.Underpayment == "accept":
		return "it is less than was due, and is taken as it is"
	case p.Match == flow.Partial && s.Policy.Underpayment == "refund":
		return "it is less than was due, and goes back"
	case p.Match == flow.Partial:
		return "it is less than was due, the rest is waited for"
	case p.Match == flow.Excess && s.Policy.Overpayment == "refund_excess":
		return "it is more than was due, what is too much goes back"
	case p.Match == flow.Excess:
		return "it is more than was due, what is too much is set aside"
	case p.Match == flow.Late && p.Resolution == flow.ResolvedRefunded && p.ResolvedBy == flow.ByPolicy:
		return lateBy(p, s) + ", and goes back"
	case p.Match == flow.Late:
		return lateBy(p, s) + ", and is set aside"
	case p.Match == flow.Duplicate:
		return "all was paid before, and it is set aside"
	}
	return "it belongs to no session"
}

// lateBy says what money was too late for.
func lateBy(p flow.Payment, s flow.Session) string {
	switch {
	case s.Status == flow.SessionCancelled:
		return "it is for a session that was cancelled"
	case p.PaidAt.After(s.ExpiresAt.Add(flow.Grace)):
		return "it came after the session’s time was over"
	}
	return "it is too late or too little for what is over"
}

// tellLedger tells what was booked for a session.
func tellLedger(ctx context.Context, r store.Reader, id flow.SessionID) ([]Moment, error) {
	posted, err := r.Ledger(ctx, id)
	if err != nil {
		return nil, err
	}
	var story []Moment
	for _, e := range posted {
		for _, line := range e.Postings {
			story = append(story, Moment{At: e.At, Who: "ledger", What: fmt.Sprintf("%s %s", line.Account, signed(line.Amount)), Why: string(e.Payment), Told: postedTold(e, line), Raw: raw(e)})
		}
	}
	return story, nil
}

func signed(k flow.Kobo) string {
	if k > 0 {
		return "+" + k.Naira()
	}
	return k.Naira()
}

// tellSettled tells which settlements a session's money is in, and which of them the
// bank has paid out. One that failed has no time of its own for that.
func tellSettled(settled []flow.SettlementShare) []Moment {
	var story []Moment
	for _, b := range settled {
		in := Moment{
			At: b.CreatedAt, Who: "till", What: fmt.Sprintf("%s in settlement %s of %s: %s", signed(b.Net), b.ID, b.SettlesOn, b.Status),
			Why: b.Failure, Told: settledTold(b),
		}
		story = append(story, in)
		if !b.DoneAt.IsZero() {
			story = append(story, Moment{
				At: b.DoneAt, Who: "bank", What: fmt.Sprintf("settlement %s was paid out, %s", b.ID, b.RailTransactionID),
				Told: fmt.Sprintf("The bank paid the settlement of %s out to the merchant.", dayTold(b.SettlesOn)),
			})
		}
	}
	return story
}
