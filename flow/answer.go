package flow

import (
	"slices"
	"time"
)

// maxStands bounds of how many payments is told at once where they stand.
const maxStands = 3

// Answer is what a payer is told of a payment that did not fit, or did not stay, as
// it is now: for whoever answers them by hand. Outside of a chat there is no menu to
// reply to, and nobody who tells of more by themselves. It is false where there is
// nothing special to tell, or nobody's session to tell it of.
func Answer(co Checkout, p Payment, chat bool, lang Lang, now time.Time) (Say, bool) {
	d := deciding{turn: Turn{Now: now}, byHand: !chat}
	if p.Reversed < p.Amount { // of what is all gone the payer hears to wait for an answer, and this is one
		d.stands(co, p)
	}
	if len(d.says) == 0 && co.Session.ID != "" && p.Match != Unmatched {
		d.gone(co, p.Reversed)
	}
	if len(d.says) == 0 {
		return Say{}, false
	}
	say := d.says[0]
	say.Lang = lang
	return say, true
}

// stands says where money stands that did not fit, or did not stay; of what is all gone
// it is only asked where the session goes on without it.
func (d *deciding) stands(co Checkout, p Payment) {
	if co.Session.ID == "" || p.Match == Unmatched {
		return
	}
	var key string
	args := d.extra(co, News{Payment: &p, Amount: p.Unapplied})
	switch {
	case p.apart() && p.Reversed > 0:
		d.gone(co, p.Reversed)
		d.wentBack(co, p, min(p.SentBack(), p.Amount-p.Reversed)) // what the bank took as well may not have been sent
		return
	case p.Waits(co.Session):
		key, args["paid"] = waiting(p.Match), p.Unapplied.Naira()
	case p.held() && co.Session.Policy.Underpayment == "refund" && p.ReturnsAt.IsZero(): // nor tries to any more
		key = "not_sent"
	case p.held() && co.Session.Policy.Underpayment == "refund" && d.byHand:
		key = "went_back"
	case p.held() && co.Session.Policy.Underpayment == "refund": // the bank would not send it yet
		key = "returning"
	case p.held():
		key, args["paid"], args["left"] = "part_paid", p.Refundable().Naira(), co.Session.Outstanding().Naira()
		if d.byHand {
			key = "part_left"
			break
		}
		for _, m := range payable(co) {
			args[string(m)] = "yes"
		}
	case p.Refunded == 0 && p.Resolution == ResolvedAccepted && (p.Match == Late || p.Match == Duplicate):
		key, args["extra"] = "kept", (p.Applied - p.Lost - p.FeeBack).Naira() // not what the bank took of it
	}
	if key != "" {
		d.say(key, args)
	}
	d.wentBack(co, p, p.SentBack())
}

// wentBack says how much of money was sent back, and what is paid all the same; and
// first how much of it did not arrive, for that waits for somebody.
func (d *deciding) wentBack(co Checkout, p Payment, sent Kobo) {
	d.cameBack(co, p)
	if sent > 0 {
		args := d.extra(co, News{Amount: sent})
		args["paid"] = stays(co, p)
		d.say("went_back", args)
	}
}

// cameBack says how much of money was sent back, did not arrive and is here: the bank
// may have taken some of it since.
func (d *deciding) cameBack(co Checkout, p Payment) {
	if here := min(p.Bounced, p.Amount-p.Reversed-p.SentBack()); here > 0 {
		args := d.extra(co, News{Amount: here})
		args["paid"] = stays(co, p)
		d.say("came_back", args)
	}
}

// stays is what is paid all the same while money of a payment goes back, "" where
// nothing is.
func stays(co Checkout, p Payment) string {
	beside := p.apart() || p.Refunded <= p.Amount-p.Applied
	if beside && co.Session.Status == SessionPaid && !slices.Contains(co.Session.Exceptions, Reversed) {
		return paidOf(co.Session).Naira()
	}
	return ""
}

// wentOut says what became of money that was to go back.
func (d *deciding) wentOut(t *Talk, co Checkout, n News) {
	key, args := "refunded", d.extra(co, n)
	d.why = "the bank has sent money back"
	if n.Kind == NewsByHand {
		key, d.why = "sent_by_hand", "somebody has sent money back by hand"
	}
	if n.Kind == NewsBounced {
		key, d.why = "came_back", "money that was sent back did not arrive"
	}
	if n.Kind == NewsUnsent {
		key, d.why = "not_sent", "the bank refuses to send money back"
	}
	if !d.mine(co, n) {
		return
	}
	if n.Kind == NewsRefunded || n.Kind == NewsByHand { // a refund of its merchant's own is not told before
		d.looked(t, co)
	}
	d.say(key, args)
}

// waiting is what is said of money that waits for a decision.
func waiting(m MatchStatus) string {
	return map[MatchStatus]string{Partial: "part_waits", Excess: "paid_over", Late: "paid_late", Duplicate: "paid_twice"}[m]
}

// whereabouts says where the money of this chat's payer stands that is not simply
// what the session was paid with: who asks about money, or is told that all is done
// or over, must not be left to think that it is gone, nor that what is gone is there.
func (d *deciding) whereabouts(co Checkout) {
	d.misfits(co)
	d.gone(co, d.lost(co))
}

// misfits says where the money of this chat's payer stands that did not fit, the
// newest of it.
func (d *deciding) misfits(co Checkout) {
	told := 0
	for _, p := range slices.Backward(co.Payments) {
		lost := p.Reversed == p.Amount && !p.apart() // that is said with all that is gone
		if lost || told >= maxStands || !d.mine(co, News{Attempt: p.Attempt}) {
			continue
		}
		before := len(d.says)
		if p.held() && co.Session.Open() && co.Session.Policy.Underpayment != "refund" || p.Match == Late && p.Resolution == ResolvedAccepted { // it counts, and that is said with the session
			d.wentBack(co, p, p.SentBack())
		} else {
			d.stands(co, p)
		}
		told += len(d.says) - before
	}
}

// lost is how much the bank took back of what this chat's payer sent, but for what
// its session does not count.
func (d *deciding) lost(co Checkout) (sum Kobo) {
	for _, p := range co.Payments {
		if !p.apart() && d.mine(co, News{Attempt: p.Attempt}) {
			sum += p.Reversed
		}
	}
	return sum
}

// missing is how much of this chat's payer's money a session lacks for that: what the bank
// took of another's is nothing to this one.
func (d *deciding) missing(co Checkout) Kobo {
	if !slices.Contains(co.Session.Exceptions, Reversed) {
		return 0
	}
	return d.lost(co)
}

// gone says that the bank took so much back, and what is paid all the same.
func (d *deciding) gone(co Checkout, amount Kobo) {
	if amount == 0 {
		return
	}
	args := d.extra(co, News{Amount: amount})
	if co.Session.Status == SessionPaid && !slices.Contains(co.Session.Exceptions, Reversed) {
		args["paid"] = paidOf(co.Session).Naira()
	}
	d.say("taken_back", args)
}
