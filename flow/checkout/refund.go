package checkout

import (
	"time"

	"till/flow"
	"till/flow/planted"
	"till/flow/store"
)

// refund sets money of a payment aside and owes that it is sent back to who paid
// it. The payment must be kept already. Errors: refund_exceeds_payment.
func (w *saving) refund(id flow.PaymentID, ask flow.RefundAsk) (flow.Refund, error) {
	p, session, err := w.paymentWith(id) // as it is by now: what it says of other refunds counts
	if err != nil {
		return flow.Refund{}, err
	}
	made, err := w.s.ids.New(flow.PrefixRefund)
	if err != nil {
		return flow.Refund{}, err
	}
	ask.ID = flow.RefundID(made)
	change, err := flow.NewRefund(session, p, ask, w.now)
	if err != nil {
		return flow.Refund{}, err
	}
	if err := w.keepRefund(change, session); err != nil {
		return flow.Refund{}, err
	}
	if planted.RefundForgotten {
		return *change.Refund, nil
	}
	return *change.Refund, w.owe(flow.TaskRefund, made, w.now)
}

// overtake ends the refunds that a decision about payments leaves nothing of. What is
// decided about a refund itself is seen to where that is.
func (w *saving) overtake(c flow.Change) error {
	for _, p := range c.Payments {
		if c.Refund != nil {
			continue
		}
		if err := w.endOvertaken(p.ID); err != nil {
			return err
		}
	}
	return nil
}

// endOvertaken ends the refunds of a payment that wait for somebody, and that what was
// just decided about it leaves nothing to be sent of.
func (w *saving) endOvertaken(id flow.PaymentID) error {
	p, err := w.tx.Payment(w.ctx, id)
	if err != nil {
		return err
	}
	waiting, err := w.tx.Refunds(w.ctx, store.RefundFilter{Project: p.Project, Status: flow.RefundAttention, Payment: id, Limit: maxWaiting})
	if err != nil {
		return err
	}
	for _, r := range waiting {
		session, err := w.sessionOf(p.Session) // as the one before left it
		if err != nil {
			return err
		}
		change, is, err := r.Overtaken(session, p)
		if err != nil {
			return err
		}
		if !is {
			continue
		}
		if err := w.keepRefund(change, session); err != nil {
			return err
		}
		if p.ReturnsAt = w.now.Add(flow.ReturnAfter); p.Decidable(session) { // nothing else would see to it
			if err := w.tx.ReopenPayment(w.ctx, p.ID, p.ReturnsAt); err != nil {
				return err
			}
			if err := w.returnLater(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxWaiting is how many refunds of one payment are looked at that wait for somebody.
const maxWaiting = 100

// sessionOf is the session of money; zero for money without one.
func (w *saving) sessionOf(id flow.SessionID) (flow.Session, error) {
	if id == "" {
		return flow.Session{}, nil
	}
	return w.tx.Session(w.ctx, id)
}

// paymentWith is a payment with its session, as both are now.
func (w *saving) paymentWith(id flow.PaymentID) (p flow.Payment, session flow.Session, err error) {
	if p, err = w.tx.Payment(w.ctx, id); err == nil {
		session, err = w.sessionOf(p.Session)
	}
	return p, session, err
}

// keepRefund keeps what was decided about a refund. One of money without a
// session has events all the same: they count nothing.
func (w *saving) keepRefund(c flow.Change, session flow.Session) error {
	if c.Refund == nil {
		return nil
	}
	p, err := w.tx.Payment(w.ctx, c.Refund.Payment)
	if err != nil {
		return err
	}
	for i := range c.Facts { // the reference that the merchant was told the money under
		c.Facts[i].Attempt = p.Attempt
	}
	if c.Refund.Status == flow.RefundProcessed && len(c.Facts) > 0 && len(c.News) == 0 && session.ID != "" { // the payer hears that it is sent; where a person sent it, that is told already
		c.News = append(c.News, flow.News{Kind: flow.NewsRefunded, Attempt: p.Attempt, Payment: &p, Amount: c.Refund.Amount})
	}
	if c.Bounced() && session.ID != "" { // or that it did not arrive
		c.News = append(c.News, flow.News{Kind: flow.NewsBounced, Attempt: p.Attempt, Payment: &p, Amount: c.Refund.Amount})
	}
	if back := c.NotSent(); back > 0 && session.ID != "" { // or that it is not sent
		c.News = append(c.News, flow.News{Kind: flow.NewsUnsent, Attempt: p.Attempt, Payment: &p, Amount: back})
	}
	if c.Session != nil && c.Session.AmountPaid != session.AmountPaid { // a held part goes back, or stays
		attempts, err := w.tx.Attempts(w.ctx, session.ID)
		if err != nil {
			return err
		}
		if a, other := c.Session.AskForRest(flow.Asking(attempts)); other {
			c.Attempts = append(c.Attempts, a)
		}
	}
	if err := w.save(c, session); err != nil {
		return err
	}
	if c.Refund.PutBack {
		if err := w.waitsAgain(c, session); err != nil {
			return err
		}
	} else if len(c.Entries) > 0 { // it took money that others may have waited for
		if err := w.endOvertaken(p.ID); err != nil {
			return err
		}
	}
	if session.ID != "" {
		return nil
	}
	for _, f := range c.Facts {
		if err := w.tellAlone(c.Refund.Project, f.Kind, "", flow.RecordRefund(*f.Refund, w.s.cfg.Around)); err != nil {
			return err
		}
	}
	return nil
}

// endRefund keeps what the bank says of a refund, with what follows: a part that
// stays after all may be what its session still waited for.
func (w *saving) endRefund(c flow.Change, session flow.Session) error {
	if err := w.keepRefund(c, session); err != nil || c.Refund == nil || !c.Refund.PutBack || !c.Refund.Held {
		return err
	}
	p, err := w.tx.Payment(w.ctx, c.Refund.Payment)
	if err != nil {
		return err
	}
	m, err := w.moneyOf(p)
	if err != nil {
		return err
	}
	change, err := flow.Complete(m, p)
	if err != nil || change.Session == nil {
		return err
	}
	return w.save(change, m.Session)
}

// waitsAgain lets money that could not go back wait for another decision, or for
// the time when it goes back by itself. That nothing of a payment went back is said of
// it also where the bank has taken it, so that nothing waits.
func (w *saving) waitsAgain(c flow.Change, session flow.Session) error {
	p, err := w.tx.Payment(w.ctx, c.Refund.Payment)
	if err != nil {
		return err
	}
	at := time.Time{}
	switch {
	case c.SetsAside():
		at = c.Refund.ReturnsAt(session, p, w.now)
	case p.Resolution != flow.ResolvedRefunded || p.Refunded > 0 || p.Unapplied > 0:
		return nil
	}
	if err := w.tx.ReopenPayment(w.ctx, p.ID, at); err != nil {
		return err
	}
	p.ReturnsAt = at
	return w.returnLater(p)
}

// sendAgain sends the refunds of a payment again that no merchant ordered and the
// bank refused to send, once their time has come. It gives back the payment and its
// session as they are then.
func (w *saving) sendAgain(p flow.Payment, session flow.Session) (flow.Payment, flow.Session, error) {
	if p.Project == "" {
		return p, session, nil
	}
	refused, err := w.tx.Refunds(w.ctx, store.RefundFilter{Project: p.Project, Payment: p.ID, Status: flow.RefundFailed, Limit: refundsCalledOff})
	if err != nil {
		return p, session, err
	}
	for _, r := range refused {
		change, err := r.Again(session, p, w.now)
		if err != nil {
			return p, session, err
		}
		if change.Refund == nil {
			continue
		}
		if err := w.keepRefund(change, session); err != nil {
			return p, session, err
		}
		if err := w.owe(flow.TaskRefund, string(r.ID), w.now); err != nil {
			return p, session, err
		}
		if p, session, err = w.paymentWith(p.ID); err != nil {
			return p, session, err
		}
	}
	return p, session, nil
}

// tellAlone tells a project's endpoints of what belongs to no session; reference
// is "" where there is nobody's to give.
func (w *saving) tellAlone(project flow.ProjectID, kind flow.EventKind, reference string, data any) error {
	e, err := w.eventAlone(project, kind, reference, data, w.telling())
	if err != nil {
		return err
	}
	to, err := w.listeners(project, kind)
	if err != nil {
		return err
	}
	return w.deliver(e, to)
}

// eventAlone makes an event of what belongs to no session and keeps it.
func (w *saving) eventAlone(project flow.ProjectID, kind flow.EventKind, reference string, data any, at time.Time) (flow.Event, error) {
	id, err := w.s.ids.New(flow.PrefixEvent)
	if err != nil {
		return flow.Event{}, err
	}
	e := flow.Event{ID: flow.EventID(id), Kind: kind, Project: project, CreatedAt: at}
	if e.Body, err = flow.ComposeEvent(e, reference, data, w.s.cfg.Around.Live); err != nil {
		return flow.Event{}, err
	}
	return e, w.tx.AddEvent(w.ctx, e)
}
