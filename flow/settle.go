package flow

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"till/flow/planted"
)

// Money is what the bank confirmed, and what is known of where it belongs.
// Session and Attempt are zero for money that belongs to nothing of ours.
type Money struct {
	Notice   Notice
	Project  ProjectID // whose money without a session is, "" for nobody's
	Session  Session
	Attempt  Attempt
	Others   []Attempt // of the session: asked for the rest of a part, superseded once it is paid
	Payments []Payment // seen for the session before, oldest first
	Payment  PaymentID // of the new payment
	Charge   ChargeID  // of the charge, where the session has none yet
	Now      time.Time
}

// Settle gives money that a bank confirmed its one outcome, as its session's
// policy has it. It never refuses: what fits nowhere is kept as UNMATCHED.
func Settle(m Money) (Change, error) {
	if m.Notice.Amount <= 0 {
		return Change{}, fmt.Errorf("settle %s: %d kobo are no money", m.Notice.RailTransactionID, m.Notice.Amount)
	}
	if m.Notice.PaidAt.UnixMilli() <= 0 { // the bank gave no value time
		m.Notice.PaidAt = m.Now
	}
	p := m.payment()
	s := m.Session
	switch {
	case s.ID == "":
		p.Project, p.Match = m.Project, Unmatched
		return aside(s, p, PaymentUnmatched, ""), nil
	case s.Status == SessionPaid:
		p.Match, p.ReturnsAt = Duplicate, m.Now.Add(ReturnAfter)
		return aside(s.With(DuplicatePayment), p, ChargeDuplicate, NewsExtra), nil
	case tooLate(m):
		return late(m, p)
	case p.Amount < s.Outstanding():
		return short(m, p)
	}
	return take(m, p, overdue(m))
}

// payment is the money as it is seen: all of it set aside, with no outcome yet.
func (m Money) payment() Payment {
	return Payment{
		ID: m.Payment, Project: m.Session.Project, Session: m.Session.ID, Attempt: m.Attempt.ID, Amount: m.Notice.Amount,
		Channel: m.Notice.Channel, PaidAt: m.Notice.PaidAt, ReceivedAt: m.Now, Payer: m.Notice.Payer,
		NIPSessionID: m.Notice.NIPSessionID, RailTransactionID: m.Notice.RailTransactionID, Unapplied: m.Notice.Amount,
	}
}

// tooLate says whether money came too late for a session that is not paid. It
// judges by the bank's value time, neither by when we heard of it nor by when
// the session's end was noticed: a notice that was under way while the session
// ended is on time, and one that was made afterwards is not.
func tooLate(m Money) bool {
	if planted.LateInTime {
		return false
	}
	if m.Session.Open() || m.Session.Status == SessionExpired {
		return m.Notice.PaidAt.After(m.Session.ExpiresAt.Add(Grace))
	}
	return true
}

// overdue says whether money came after its attempt, or the session, was over.
// Within its session it is taken all the same, and marked.
func overdue(m Money) bool { return m.Session.endedFor(m.Attempt, m.Notice.PaidAt) }

// endedFor says whether a session, or the attempt of it that money came to, was over at
// the bank's value time of that money.
func (s Session) endedFor(a Attempt, paidAt time.Time) bool {
	ends := s.ExpiresAt
	if a.ExpiresAt.Before(ends) {
		ends = a.ExpiresAt
	}
	return paidAt.After(ends.Add(Grace))
}

// late is money for a session that was over: taken, sent back, or set aside
// until its merchant decides. Who takes late money takes all that was due of it:
// too little goes back or is accepted where the policy says that of too little,
// and is not held, for nobody is asked for the rest any more.
func late(m Money, p Payment) (Change, error) {
	policy := m.Session.Policy
	accepts := policy.LatePayment == "accept"
	if accepts && (p.Amount >= m.Session.Outstanding() || policy.Underpayment == "accept") {
		return take(m, p, true)
	}
	s, err := m.Session.landed()
	if err != nil {
		return Change{}, err
	}
	s = s.With(PaidLate)
	p.Match = Late
	if policy.LatePayment == "refund" || accepts && policy.Underpayment == "refund" {
		return sendBack(aside(s, p, ChargeLate, NewsReturning), m.Now), nil
	}
	p.ReturnsAt = m.Now.Add(ReturnAfter)
	return aside(s, p, ChargeLate, NewsLate), nil
}

// short is money on time that is not all of it. Held for a session that expired
// meanwhile it would wait for nothing: then it is as if it had come late.
func short(m Money, p Payment) (Change, error) {
	policy := m.Session.Policy.Underpayment
	if policy == "accept" {
		return take(m, p, overdue(m))
	}
	if policy != "refund" && !m.Session.Open() {
		return late(m, p)
	}
	s, err := m.Session.landed()
	if err != nil {
		return Change{}, err
	}
	p.Match = Partial
	if policy == "refund" {
		return sendBack(aside(s, p, ChargeUnderpaid, NewsTooLittle), m.Now), nil
	}
	return part(Asking(append([]Attempt{m.Attempt}, m.Others...)), s, p), nil
}

// aside keeps money that does not count towards its session.
func aside(s Session, p Payment, kind EventKind, news NewsKind) Change {
	change := Change{
		Payment: &p, Postings: post(p.Amount, 0, 0), Facts: []Fact{{Kind: kind, Attempt: p.Attempt, Payment: &p}},
	}
	if s.ID != "" {
		change.Session = &s
		change.News = []News{{Kind: news, Attempt: p.Attempt, Payment: &p, Amount: p.Amount}}
	}
	return change
}

// sendBack has what is set aside of a change's new money sent back at once, as
// the policy of its session says.
func sendBack(c Change, now time.Time) Change {
	p := c.Payment
	c.Returns = append(c.Returns, Return{Payment: p.ID, Amount: p.Unapplied, Origin: OriginPolicy, Reason: byPolicy})
	*p = p.resolved(ResolvedRefunded, Ruled{By: ByPolicy, At: now})
	p.Refunded, p.Unapplied = p.Refunded+p.Unapplied, 0
	return c
}

// Unsent is a change that takes new money in, less an amount in kobo that the bank has
// taken back already: of what is beside what its session is paid with that is sent to
// nobody, nor told as here. It is set aside until its loss is booked.
func (c Change) Unsent(amount Kobo) Change {
	p := c.Payment
	gone := min(amount, p.Unapplied+p.Refunded)
	for i := range c.Returns {
		if c.Returns[i].Payment != p.ID { // of what was held beside it the bank has taken nothing
			continue
		}
		c.Returns[i].Amount -= gone
		p.Refunded, p.Unapplied = p.Refunded-gone, p.Unapplied+gone
		if c.Returns[i].Amount == 0 {
			*p = p.resolved(Unresolved, Ruled{})
		}
	}
	c.Returns = slices.DeleteFunc(c.Returns, func(r Return) bool { return r.Amount == 0 })
	for i := range c.News {
		switch n := &c.News[i]; {
		case n.Kind == NewsPaid:
			n.Extra -= min(n.Extra, gone)
		case c.keeps(*n):
			n.Amount -= gone
		}
	}
	c.News = slices.DeleteFunc(c.News, func(n News) bool { return c.keeps(n) && n.Amount == 0 })
	return c
}

// keeps says whether news tells a payer that money is kept for them or goes back, and
// nothing besides: while their session is open a part that does is asked for anew.
func (c Change) keeps(n News) bool {
	return slices.Contains([]NewsKind{NewsLate, NewsExtra, NewsReturning}, n.Kind) || n.Kind == NewsTooLittle && !c.Session.Open()
}

// part holds money that is not all of it; more completes it, so that the account
// that is asked for, whichever this came to, asks for the rest from now on.
func part(asking Attempt, s Session, p Payment) Change {
	s = s.With(PartiallyPaid)
	s.AmountPaid += p.Amount
	change := aside(s, p, ChargeUnderpaid, NewsPartial)
	if asking, other := s.AskForRest(asking); other {
		change.Attempts = []Attempt{asking}
	}
	return change
}

// take applies money to its session, which is paid with it: with all of it, or
// with less where the merchant takes that.
func take(m Money, p Payment, late bool) (Change, error) {
	due := m.Session.Outstanding()
	p.Match = Matched
	if p.Amount < due {
		p.Match = Partial
	}
	if p.Amount > due {
		p.Match = Excess
	}
	p.Applied = min(p.Amount, due)
	p.Unapplied = p.Amount - p.Applied
	change, err := m.pay(&p, p.Applied, p.Unapplied, late)
	if err != nil {
		return Change{}, err
	}
	change.Payment, change.Postings = &p, post(p.Amount, p.Applied, p.Fee)
	if p.Unapplied > 0 && m.Session.Policy.Overpayment == "refund_excess" {
		change = sendBack(change, m.Now)
	}
	return change, nil
}

// pay makes a session PAID with what is held for it and more that p adds to it,
// in kobo; beyond is what p brings that does not fit. p bears the fee of all that
// is taken. What p itself posts is for the caller to say, and what becomes of it yet is
// told as well.
func (m Money) pay(p *Payment, more, beyond Kobo, late bool) (Change, error) {
	trigger := triggerPay
	if !m.Session.Open() {
		trigger = triggerAccept
	}
	s, err := m.Session.move(trigger)
	if err != nil {
		return Change{}, err
	}
	if late {
		s = s.With(PaidLate)
	}
	if beyond > 0 {
		s = s.With(Overpaid)
	}
	s.AmountPaid += more
	s = s.Without(Reversed) // what was taken back before is none of what it is paid with
	if s = s.Without(PartiallyPaid); s.AmountPaid < s.Amount {
		s = s.With(PartiallyPaid)
	}
	s.PaidAt = m.Notice.PaidAt
	s.Charge = cmp.Or(s.Charge, m.Charge)
	attempts, err := succeeded(m)
	if err != nil {
		return Change{}, err
	}
	p.Fee = Fee(s.AmountPaid)
	change := Change{
		Session: &s, Attempts: attempts,
		Facts: []Fact{{Kind: ChargeSuccess, Attempt: p.Attempt, Payment: p}},
		News:  []News{{Kind: NewsPaid, Attempt: p.Attempt, Payment: p, Extra: beyond}},
	}
	if planted.LostEvent && late {
		change.Facts = nil
	}
	if rest := m.releaseHeld(&change); rest > 0 {
		s = s.With(Overpaid)
		change.News[0].Extra += rest
	}
	return change, nil
}

// releaseHeld gives what is held of earlier payments to the merchant, now that the
// session is paid, and says how much was held beyond what the session counts: that
// is not released. Where parts go back by policy none is held for a session: those
// that could not go back are sent again when their time comes.
func (m Money) releaseHeld(c *Change) (rest Kobo) {
	left := m.Session.AmountPaid
	for _, p := range m.Payments {
		if !p.held() {
			continue
		}
		if left == 0 && m.Session.Policy.Underpayment == "refund" {
			if !p.ReturnsAt.After(m.Now) {
				p.ReturnsAt = m.Now.Add(ReturnAfter)
				c.Payments = append(c.Payments, p)
			}
			continue
		}
		amount := min(p.Unapplied, left)
		left -= amount
		if amount > 0 {
			c.Entries = append(c.Entries, p.accept(amount, 0, m.Now))
			p.Applied, p.Unapplied = p.Applied+amount, p.Unapplied-amount
		}
		rest += p.Unapplied
		c.Payments = append(c.Payments, m.beyond(c, p))
	}
	return rest
}

// beyond is a part once its session is paid: what is left set aside of it is too
// much, and goes back at once where the policy sends such money back. Else it waits
// for a decision, and goes back when nobody made one in time.
func (m Money) beyond(c *Change, p Payment) Payment {
	switch {
	case p.Unapplied == 0:
		p.ReturnsAt = time.Time{}
	case m.Session.Policy.Overpayment == "refund_excess":
		c.Returns = append(c.Returns, Return{Payment: p.ID, Amount: p.Unapplied, Origin: OriginPolicy, Reason: byPolicy})
		p = p.resolved(ResolvedRefunded, Ruled{By: ByPolicy, At: m.Now})
		p.Refunded, p.Unapplied = p.Refunded+p.Unapplied, 0
	case !p.ReturnsAt.After(m.Now):
		p.ReturnsAt = m.Now.Add(ReturnAfter)
	}
	return p
}

// beside is what is known without one of the payments, for which the session
// counts what is held of the others.
func (m Money) beside(p Payment) Money {
	m.Payments = slices.DeleteFunc(slices.Clone(m.Payments), func(q Payment) bool { return q.ID == p.ID })
	m.Session.AmountPaid = min(m.aside(), m.Session.Amount)
	m.Notice.PaidAt = p.PaidAt
	return m
}

// succeeded are the attempts of a session once one of them paid it: no other is
// asked for any more.
func succeeded(m Money) ([]Attempt, error) {
	done, err := m.Attempt.move(triggerSucceed)
	if err != nil {
		return nil, err
	}
	out := []Attempt{done}
	for _, a := range m.Others {
		if a.ID == done.ID || a.Status != AttemptActive {
			continue
		}
		over, err := a.move(triggerSupersede)
		if err != nil {
			return nil, err
		}
		out = append(out, over)
	}
	return out, nil
}
