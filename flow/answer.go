package flow

import (
	"time"
)

// Answer is what a payer is told of a payment that did not fit, as it stands now:
// for whoever answers them by hand. It is false where there is nothing special to
// tell, or nobody's session to tell it of.
func Answer(co Checkout, p Payment, lang Lang, now time.Time) (Say, bool) {
	if co.Session.ID == "" || p.Match == Matched && p.Reversed < p.Amount {
		return Say{}, false
	}
	d := deciding{turn: Turn{Now: now}}
	n := News{Attempt: p.Attempt, Payment: &p, Amount: p.Unapplied}
	say := Say{Lang: lang, Args: d.extra(co, n)}
	switch {
	case p.Reversed == p.Amount:
		say.Key = "reversed"
	case p.Resolution == ResolvedRefunded:
		say.Key = "returning"
		n.Amount = p.Refunded
		say.Args = d.extra(co, n)
		if p.Match == Late {
			say.Args["late"] = "yes"
		}
	case p.Resolution == ResolvedAccepted && (p.Match == Late || p.Match == Duplicate):
		say.Key = "kept"
	case p.Waits(co.Session):
		say.Key = map[MatchStatus]string{Partial: "part_waits", Excess: "paid_over", Late: "paid_late", Duplicate: "paid_twice"}[p.Match]
		say.Args["paid"] = p.Unapplied.Naira()
	case p.held():
		say.Key = "part_paid"
		say.Args["paid"], say.Args["left"] = p.Refundable().Naira(), co.Session.Outstanding().Naira()
		for _, m := range payable(co) {
			say.Args[string(m)] = "yes"
		}
	}
	return say, say.Key != "" && p.Match != Unmatched
}
