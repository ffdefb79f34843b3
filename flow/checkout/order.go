package checkout

import (
	"context"
	"errors"
	"regexp"
	"time"

	"till/flow"
	"till/flow/store"
)

// This file is what people order in the console about money that is there already,
// and who has to agree to it.

// MoneyOrder is what somebody wants done with money.
type MoneyOrder struct {
	Act      flow.MoneyAct
	Subject  string    // id of the payment or the refund
	Transfer string    // of what was paid by hand: the bank's name of it
	SentAt   time.Time // and when the bank sent it; zero for now
	Reason   string
	Key      string // id of who orders, as records show it
	By       string // their e-mail address
}

// transferName is what a bank's name of a transfer looks like, as people type it.
var transferName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{2,99}$`)

// check finds what is wrong with an order before anything is read.
func (o MoneyOrder) check(now time.Time) error {
	if o.Act != flow.ActByHand {
		return nil
	}
	if !transferName.MatchString(o.Transfer) {
		return flow.Refuse(flow.CodeInvalidField, "Give the bank's own reference of the transfer, as its statement shows it: 3 to 100 letters, digits, dots, dashes and slashes.")
	}
	if o.SentAt.After(now) {
		return flow.Refuse(flow.CodeInvalidField, "The transfer cannot have been sent later than now.")
	}
	return nil
}

// sentAt is when a transfer by hand was sent.
func (o MoneyOrder) sentAt(now time.Time) time.Time {
	if o.SentAt.IsZero() {
		return now
	}
	return o.SentAt
}

// NeedsSecond says whether a second person has to agree to an order, and what it is
// about. Errors: resource_not_found.
func (s *Service) NeedsSecond(ctx context.Context, project flow.ProjectID, o MoneyOrder) (amount flow.Kobo, second bool, err error) {
	amount, _, err = ordered(ctx, s.cfg.DB.Reader, project, o)
	return amount, s.aboveLimit(amount), err
}

// Refused says whether an order would be refused as things stand. Whoever keeps
// beforehand what somebody does asks that first: of what is refused nobody did
// anything. Errors: those of Order.
func (s *Service) Refused(ctx context.Context, project flow.ProjectID, o MoneyOrder) error {
	return s.tried(ctx, func(w *saving) error {
		_, err := w.place(project, o)
		return err
	})
}

// EndRefused says of Agree, or else of Disagree, what Refused says of Order.
func (s *Service) EndRefused(ctx context.Context, project flow.ProjectID, id flow.ProposalID, agree bool, by, why string) error {
	return s.tried(ctx, func(w *saving) error {
		_, err := w.endProposal(project, id, agree, by, why)
		return err
	})
}

// errTried undoes what was only tried.
var errTried = errors.New("checkout: only tried")

// tried does something in a transaction that is undone, and says whether it is refused.
func (s *Service) tried(ctx context.Context, do func(*saving) error) error {
	err := s.update(ctx, func(w *saving) error {
		if err := do(w); err != nil {
			return err
		}
		return errTried
	})
	if errors.Is(err, errTried) {
		return nil
	}
	return wrap("look whether an order would be refused", err)
}

// SecondAbove is the amount beyond which a second person has to agree; 0 for never.
func (s *Service) SecondAbove() flow.Kobo { return s.cfg.SecondAbove }

func (s *Service) aboveLimit(amount flow.Kobo) bool {
	return s.cfg.SecondAbove > 0 && amount > s.cfg.SecondAbove
}

// ordered reads how much money an order would move, and of which session: who gives
// one part to the merchant gives all that is held beside it too.
func ordered(ctx context.Context, r store.Reader, project flow.ProjectID, o MoneyOrder) (flow.Kobo, flow.SessionID, error) {
	if o.Act.OfRefund() {
		refund, err := r.RefundOf(ctx, project, flow.RefundID(o.Subject))
		return refund.Amount, refund.Session, err
	}
	p, err := r.PaymentOf(ctx, project, flow.PaymentID(o.Subject))
	if err != nil || p.Session == "" {
		return p.Unapplied, p.Session, err
	}
	session, err := r.Session(ctx, p.Session)
	if err != nil {
		return 0, "", err
	}
	payments, err := r.Payments(ctx, p.Session)
	return flow.Moves(flow.Money{Session: session, Payments: payments}, p, o.Act == flow.ActAccept), p.Session, err
}

// mayOrder refuses what would give money to a merchant who is stopped or suspended.
// What goes back to payers does so all the same where a person orders it, as here;
// the keys of such a merchant are shut out of refunds and decisions too, for its
// programs may be what it was stopped for. Errors: project_suspended.
func (s *Service) mayOrder(project flow.ProjectID, act flow.MoneyAct) error {
	if act != flow.ActAccept {
		return nil
	}
	return s.admitted(project)
}

// Order does what somebody wants done with money, or keeps it for a second person
// where it is about more than one may decide alone: then what waits is not zero.
// Errors: project_suspended, resource_not_found, invalid_field, those of what is
// ordered; payment_not_resolvable where it waits already.
func (s *Service) Order(ctx context.Context, project flow.ProjectID, o MoneyOrder) (waits flow.Proposal, err error) {
	err = s.update(ctx, func(w *saving) error {
		waits, err = w.place(project, o)
		return err
	})
	return waits, wrap("order what becomes of money", err)
}

// place is Order inside a transaction.
func (w *saving) place(project flow.ProjectID, o MoneyOrder) (waits flow.Proposal, err error) {
	if err := w.s.mayOrder(project, o.Act); err != nil {
		return flow.Proposal{}, err
	}
	if err := o.check(w.now); err != nil {
		return flow.Proposal{}, err
	}
	amount, session, err := ordered(w.ctx, w.tx.Reader, project, o)
	if err != nil {
		return flow.Proposal{}, err
	}
	if !w.s.aboveLimit(amount) {
		return flow.Proposal{}, w.order(project, o)
	}
	if err := w.feasible(project, o); err != nil {
		return flow.Proposal{}, err
	}
	id, err := w.s.ids.New(flow.PrefixProposal)
	if err != nil {
		return flow.Proposal{}, err
	}
	waits = flow.Proposal{
		ID: flow.ProposalID(id), Project: project, Session: session, Act: o.Act, Subject: o.Subject, Amount: amount, Reason: o.Reason,
		Transfer: o.Transfer, SentAt: o.SentAt, Key: o.Key, By: o.By, At: w.now, Status: flow.ProposalOpen,
	}
	added, err := w.tx.AddProposal(w.ctx, waits)
	if err == nil && !added {
		err = flow.Refuse(flow.CodeNotResolvable, "Somebody asked for something about this money already, and it waits for a second person.")
	}
	if err != nil {
		return flow.Proposal{}, err
	}
	return waits, nil
}

// Agree does what another person asked for. Whoever comes second finds it done.
// Errors: project_suspended, resource_not_found, payment_not_resolvable, those of
// what is ordered.
func (s *Service) Agree(ctx context.Context, project flow.ProjectID, id flow.ProposalID, by, why string) (flow.Proposal, error) {
	return s.endProposal(ctx, project, id, true, by, why)
}

// Disagree ends what somebody asked for without doing it; who asked may do so too.
// Errors: resource_not_found, payment_not_resolvable.
func (s *Service) Disagree(ctx context.Context, project flow.ProjectID, id flow.ProposalID, by, why string) (flow.Proposal, error) {
	return s.endProposal(ctx, project, id, false, by, why)
}

func (s *Service) endProposal(ctx context.Context, project flow.ProjectID, id flow.ProposalID, agree bool, by, why string) (p flow.Proposal, err error) {
	err = s.update(ctx, func(w *saving) error {
		p, err = w.endProposal(project, id, agree, by, why)
		return err
	})
	return p, wrap("decide about what somebody asked for", err)
}

// endProposal ends a proposal in the transaction of what follows from that.
func (w *saving) endProposal(project flow.ProjectID, id flow.ProposalID, agree bool, by, why string) (flow.Proposal, error) {
	p, err := w.tx.Proposal(w.ctx, id)
	if err == nil && p.Project != project {
		err = flow.Refuse(flow.CodeNotFound, "There is no proposal %q.", id)
	}
	if err != nil {
		return p, err
	}
	if agree {
		p, err = w.agree(p, by, why)
	} else {
		p, err = p.Refuse(by, why, w.now)
	}
	if err != nil {
		return p, err
	}
	ended, err := w.tx.EndProposal(w.ctx, p)
	if err == nil && !ended {
		err = flow.Refuse(flow.CodeNotResolvable, "Somebody else decided about this at the same moment.")
	}
	return p, err
}

// agree is a proposal that a second person agrees to, once that is done.
func (w *saving) agree(p flow.Proposal, by, why string) (flow.Proposal, error) {
	if err := w.s.mayOrder(p.Project, p.Act); err != nil {
		return p, err
	}
	o := MoneyOrder{Act: p.Act, Subject: p.Subject, Transfer: p.Transfer, SentAt: p.SentAt, Reason: p.Reason, Key: p.Key, By: p.By}
	amount, _, err := ordered(w.ctx, w.tx.Reader, p.Project, o)
	if err != nil {
		return p, err
	}
	ended, err := p.Agree(by, why, amount, w.now)
	if err != nil {
		return p, err
	}
	return ended, w.order(p.Project, o)
}

// order does with money what was ordered.
func (w *saving) order(project flow.ProjectID, o MoneyOrder) error {
	switch o.Act {
	case flow.ActAccept, flow.ActSendBack:
		p, err := w.tx.PaymentOf(w.ctx, project, flow.PaymentID(o.Subject))
		if err != nil {
			return err
		}
		return w.resolve(p, NewResolution{Accept: o.Act == flow.ActAccept, Key: o.Key, Reason: o.Reason})
	case flow.ActRetry:
		_, err := w.retryRefund(project, flow.RefundID(o.Subject), o.Key)
		return err
	case flow.ActByHand:
		return w.byHand(project, o)
	}
	return flow.Refuse(flow.CodeInvalidField, "There is no act %q.", o.Act)
}

// feasible refuses what would be refused now, but for what a balance does not cover:
// that is another one by the time a second person agrees.
func (w *saving) feasible(project flow.ProjectID, o MoneyOrder) error {
	if !o.Act.OfRefund() {
		p, err := w.tx.PaymentOf(w.ctx, project, flow.PaymentID(o.Subject))
		if err != nil {
			return err
		}
		m, err := w.moneyOf(p)
		if err != nil {
			return err
		}
		_, err = flow.Resolve(m, p, o.Act == flow.ActAccept, flow.Ruled{By: o.Key, At: w.now, Reason: o.Reason})
		return err
	}
	r, session, p, err := w.refundWith(project, flow.RefundID(o.Subject))
	if err != nil {
		return err
	}
	if o.Act == flow.ActRetry {
		_, err = r.Retry(session, p, flow.Ruled{By: o.Key, At: w.now, Reason: r.Reason})
		return err
	}
	if _, err = r.DoneByHand(session, p, o.Transfer, o.sentAt(w.now), w.now); err != nil {
		return err
	}
	return w.unheard(o.Transfer)
}

// unheard refuses a transfer by hand that the books know: it is another one's.
func (w *saving) unheard(transfer string) error {
	known, err := w.tx.Moved(w.ctx, transfer)
	if err == nil && known {
		err = flow.Refuse(flow.CodeInvalidField, "The books know the transfer %s already: it is another one's. Give the reference of this refund's own.", transfer)
	}
	return err
}

// byHand keeps that a refund was paid by hand.
func (w *saving) byHand(project flow.ProjectID, o MoneyOrder) error {
	r, session, p, err := w.refundWith(project, flow.RefundID(o.Subject))
	if err != nil {
		return err
	}
	change, err := r.DoneByHand(session, p, o.Transfer, o.sentAt(w.now), w.now)
	if err != nil {
		return err
	}
	if err := w.unheard(o.Transfer); err != nil {
		return err
	}
	if err := w.keepRefund(change, session); err != nil || !r.PutBack {
		return err
	}
	return w.afforded(p, r.Amount-min(r.Aside, max(p.Unapplied, 0)))
}

// refundWith is a refund of a project with its session and its payment.
func (w *saving) refundWith(project flow.ProjectID, id flow.RefundID) (r flow.Refund, session flow.Session, p flow.Payment, err error) {
	if r, err = w.tx.RefundOf(w.ctx, project, id); err == nil {
		session, p, err = w.around(r)
	}
	return r, session, p, err
}

// around are a refund's session and its payment.
func (w *saving) around(r flow.Refund) (session flow.Session, p flow.Payment, err error) {
	if session, err = w.sessionOf(r.Session); err == nil {
		p, err = w.tx.Payment(w.ctx, r.Payment)
	}
	return session, p, err
}
