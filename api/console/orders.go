package console

import (
	"net/http"
	"time"

	"till/flow"
	"till/flow/checkout"
	"till/flow/store"
)

// confirmed refuses what cannot be undone without the box that says so.
func (v *visit) confirmed() error {
	if v.field("confirm") != "yes" {
		return flow.Refuse(flow.CodeMissingField, "Tick the box: this cannot be undone.")
	}
	return nil
}

// askFor stands in the audit log before the name of an act that waits for a second
// person; agreeTo and refuseTo before what that person did.
const (
	askFor   = "ask."
	agreeTo  = "agree."
	refuseTo = "refuse."
)

// ordering fills in who orders and why, and says how that stands in the audit log:
// as done, or as asked for where a second person has to agree. What is refused is
// refused here, unless the same form did it already: it must not stand there as done.
func (v *visit) ordering(project flow.ProjectID, o checkout.MoneyOrder) (checkout.MoneyOrder, string, error) {
	o.Reason, o.Key, o.By = v.reason(), v.by(), v.who.Email
	again, err := v.service.Answered(v.ctx, v.plainly(project))
	if err == nil && !again {
		err = v.service.Refused(v.ctx, project, o)
	}
	if err != nil {
		return o, "", err
	}
	_, second, err := v.service.NeedsSecond(v.ctx, project, o)
	if second {
		return o, askFor + string(o.Act), err
	}
	return o, string(o.Act), err
}

// order orders it, and says what came of that.
func (v *visit) order(project flow.ProjectID, o checkout.MoneyOrder) (string, error) {
	a, err := v.service.Once(v.ctx, v.plainly(project), func() (checkout.Answer, error) {
		waits, err := v.service.Order(v.ctx, project, o)
		return checkout.Answer{Status: http.StatusOK, Body: []byte(orderDone(o, waits))}, err
	})
	return string(a.Body), err
}

// orderDone says what came of an order.
func orderDone(o checkout.MoneyOrder, waits flow.Proposal) string {
	if waits.ID != "" {
		return "It waits for a second person: somebody else who may move money agrees under Exceptions, within 24 hours."
	}
	return map[flow.MoneyAct]string{
		flow.ActAccept: "The money is accepted.", flow.ActSendBack: "The money goes back to who paid it.", flow.ActRetry: "The bank is told of the refund once more.",
		flow.ActByHand: "The refund is kept as paid by hand.",
	}[o.Act]
}

// orderHere orders something about the money of the session that an address names.
func (c *Console) orderHere(v *visit, o checkout.MoneyOrder) error {
	s, err := v.session()
	if err != nil {
		return err
	}
	of := func(flow.Session) error { return v.ofSession(s, o) }
	if err := of(s); err != nil {
		return err
	}
	o, action, err := v.ordering(s.Project, o)
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: o.Reason, Transfer: o.Transfer, SentAt: v.field("sent")})
	}
	return c.sessionAct(v, action, o.Subject, of, func(s flow.Session) (string, error) { return v.order(s.Project, o) })
}

// ofSession refuses what is not the session's.
func (v *visit) ofSession(s flow.Session, o checkout.MoneyOrder) error {
	if o.Act.OfRefund() {
		r, err := v.service.ViewRefund(v.ctx, s.Project, flow.RefundID(o.Subject))
		if err == nil && r.Session != s.ID {
			err = flow.Refuse(flow.CodeNotFound, "There is no refund %q of this session.", o.Subject)
		}
		return err
	}
	p, err := v.service.Payment(v.ctx, s.Project, flow.PaymentID(o.Subject))
	if err == nil && p.Session != s.ID {
		err = flow.Refuse(flow.CodeNotFound, "There is no payment %q of this session.", o.Subject)
	}
	return err
}

// retryRefund is POST /sessions/{id}/retry: a refund that did not work is sent
// once more.
func (c *Console) retryRefund(v *visit) error {
	if err := v.confirmed(); err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.reason()})
	}
	return c.orderHere(v, checkout.MoneyOrder{Act: flow.ActRetry, Subject: v.field("refund")})
}

// refundByHand is POST /sessions/{id}/by-hand: a refund that needs attention was
// paid by somebody.
func (c *Console) refundByHand(v *visit) error {
	o, err := v.byHand()
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.reason(), Transfer: o.Transfer, SentAt: v.field("sent")})
	}
	return c.orderHere(v, o)
}

// byHand reads the form that says that a refund was paid by hand.
func (v *visit) byHand() (checkout.MoneyOrder, error) {
	o := checkout.MoneyOrder{Act: flow.ActByHand, Subject: v.field("refund"), Transfer: v.field("transfer")}
	if err := v.confirmed(); err != nil || v.field("sent") == "" {
		return o, err
	}
	t := v.typing()
	if o.SentAt = t.moment("sent", "When the bank sent it"); !t.ok() {
		return o, flow.Refuse(flow.CodeInvalidField, "%s", t.Wrong[0])
	}
	return o, nil
}

// resolvePayment is POST /sessions/{id}/resolve.
func (c *Console) resolvePayment(v *visit) error {
	act, err := v.decision()
	if err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.reason()})
	}
	return c.orderHere(v, checkout.MoneyOrder{Act: act, Subject: v.field("payment")})
}

// decision reads what a form decides about set-aside money: never without the
// box that confirms it.
func (v *visit) decision() (flow.MoneyAct, error) {
	act, known := map[string]flow.MoneyAct{"accept": flow.ActAccept, "refund": flow.ActSendBack}[v.field("decision")]
	if !known {
		return "", flow.Refuse(flow.CodeInvalidField, "Decide: accept the money, or send it back.")
	}
	return act, v.confirmed()
}

// resolveUnmatched is POST /exceptions/resolve: money that no session is of.
func (c *Console) resolveUnmatched(v *visit) error {
	return c.refusedThere(v, v.decideUnmatched(), store.QueueUnmatched, v.field("payment"))
}

func (v *visit) decideUnmatched() error {
	act, err := v.decision()
	if err != nil {
		return err
	}
	id := flow.PaymentID(v.field("payment"))
	p, err := v.service.Reader().Payment(v.ctx, id)
	if err == nil && (p.Session != "" || v.project.ID != "" && p.Project != v.project.ID) {
		err = flow.Refuse(flow.CodeNotFound, "There is no payment %q.", id) // as of one that never was
	}
	if err == nil && p.Project == "" {
		err = flow.Refuse(flow.CodeNotResolvable, "This money came to no project of ours, so that there is nobody to give it to and no books to send it back from. Settle it with the bank.")
	}
	if err != nil {
		return err
	}
	return v.orderThere(p.Project, checkout.MoneyOrder{Act: act, Subject: string(id)}, store.QueueUnmatched)
}

// orderThere orders something about money that no session is of, where it waits.
func (v *visit) orderThere(project flow.ProjectID, o checkout.MoneyOrder, queue store.Queue) error {
	o, action, err := v.ordering(project, o)
	if err != nil {
		return err
	}
	if err := v.auditIn(project, action, o.Subject, o.Reason, true); err != nil {
		return err
	}
	done, err := v.order(project, o)
	if err != nil {
		return err
	}
	return v.to("/exceptions?queue="+string(queue), done)
}

// retryUnmatched is POST /exceptions/retry, and unmatchedByHand POST /exceptions/by-hand:
// what is done about a refund of money that no session is of.
func (c *Console) retryUnmatched(v *visit) error {
	err := v.confirmed()
	if err == nil {
		err = v.orderRefund(checkout.MoneyOrder{Act: flow.ActRetry, Subject: v.field("refund")})
	}
	return c.refusedThere(v, err, store.QueueRefunds, v.field("refund"))
}

func (c *Console) unmatchedByHand(v *visit) error {
	o, err := v.byHand()
	if err == nil {
		err = v.orderRefund(o)
	}
	return c.refusedThere(v, err, store.QueueRefunds, o.Subject)
}

func (v *visit) orderRefund(o checkout.MoneyOrder) error {
	r, err := v.service.Reader().Refund(v.ctx, flow.RefundID(o.Subject))
	if err == nil && (r.Session != "" || v.project.ID != "" && r.Project != v.project.ID) {
		err = flow.Refuse(flow.CodeNotFound, "There is no refund %q.", o.Subject)
	}
	if err != nil {
		return err
	}
	return v.orderThere(r.Project, o, store.QueueRefunds)
}

// leastWhy is the shortest reason that says something, in characters.
const leastWhy = 4

// secondPerson is POST /exceptions/second: somebody agrees to what another person
// asked for, or refuses it.
func (c *Console) secondPerson(v *visit) error {
	return c.refusedThere(v, v.endsProposal(), store.QueueSecond, v.field("proposal"))
}

func (v *visit) endsProposal() error {
	agree := v.field("decision") == "agree"
	if !agree && v.field("decision") != "refuse" {
		return flow.Refuse(flow.CodeInvalidField, "Decide: agree, or refuse.")
	}
	if err := v.confirmed(); agree && err != nil {
		return err
	}
	why := v.reason()
	if flow.Says(why) < leastWhy {
		return flow.Refuse(flow.CodeMissingField, "Say why, in a few words: it is kept with what you do.")
	}
	p, err := v.service.Reader().Proposal(v.ctx, flow.ProposalID(v.field("proposal")))
	if err == nil && v.project.ID != "" && p.Project != v.project.ID {
		err = flow.Refuse(flow.CodeNotFound, "There is no proposal %q.", v.field("proposal"))
	}
	if err != nil {
		return err
	}
	action, done := agreeTo, "It is done: two people agreed."
	if !agree {
		action, done = refuseTo, "It is refused, and nothing was done."
	}
	told := why + checkout.AskedBy + p.By + ")"
	again, err := v.service.Answered(v.ctx, v.plainly(p.Project))
	if err == nil && !again { // of what is refused nobody did anything
		err = v.service.EndRefused(v.ctx, p.Project, p.ID, agree, v.who.Email, why)
	}
	if err != nil {
		return err
	}
	if err := v.auditIn(p.Project, action+string(p.Act), p.Subject, told, true); err != nil {
		return err
	}
	end := v.service.Disagree
	if agree {
		end = v.service.Agree
	}
	if err := v.onlyOnce(p.Project, func() error {
		_, err := end(v.ctx, p.Project, p.ID, v.who.Email, why)
		return err
	}); err != nil {
		return err
	}
	if p.Session != "" {
		return v.to("/sessions/"+string(p.Session), done)
	}
	return v.to("/exceptions?queue=second", done)
}

// asking is what waits for a second person, as a page shows it.
type asking struct {
	flow.Proposal

	Told   string    // what is to be done
	Back   flow.Kobo // of its amount, what goes back as too much once the rest is given to the merchant
	Until  time.Time
	Mine   bool // whoever looks asked for it
	Barred bool // nobody can agree while the project is stopped: its merchant is given nothing
	Gone   bool // nobody can agree: it is about other money by now, or none
	Now    flow.Kobo
}

// barred says whether a project was stopped or suspended in the environment that is
// looked at.
func (v *visit) barred(project flow.ProjectID) bool {
	board := v.console.cfg.Boards[v.env]
	return board != nil && board.Barred(project)
}

func (v *visit) asking(p flow.Proposal) (*asking, error) {
	a := &asking{
		Proposal: p, Told: checkout.OrderTold(p.Act), Until: p.At.Add(flow.ProposalLife), Mine: p.By == v.who.Email,
		Barred: p.Act == flow.ActAccept && v.barred(p.Project),
	}
	if p.Act.OfRefund() {
		r, err := v.service.ViewRefund(v.ctx, p.Project, flow.RefundID(p.Subject))
		a.Gone = r.Status != flow.RefundAttention && (r.Status != flow.RefundFailed || p.Act == flow.ActByHand)
		return a, err
	}
	var err error
	if a.Now, _, err = v.service.NeedsSecond(v.ctx, p.Project, checkout.MoneyOrder{Act: p.Act, Subject: p.Subject}); err != nil {
		return nil, err
	}
	if a.Gone = a.Now != p.Amount; p.Act != flow.ActAccept || p.Session == "" {
		return a, nil
	}
	s, err := v.service.Reader().Session(v.ctx, p.Session)
	if err != nil {
		return nil, err
	}
	list, err := v.service.Reader().Payments(v.ctx, p.Session)
	for _, paid := range list {
		if string(paid.ID) == p.Subject {
			_, a.Back = flow.Accepting(flow.Money{Session: s, Payments: list}, paid)
		}
	}
	return a, err
}

// asked are what waits for a second person about the money of a session, by the
// payment or the refund.
func (c *Console) asked(v *visit, s flow.Session) (map[string]*asking, error) {
	list, err := v.service.Reader().Proposals(v.ctx, s.ID, eventsShown)
	if err != nil {
		return nil, err
	}
	return v.askings(list)
}

func (v *visit) askings(list []flow.Proposal) (map[string]*asking, error) {
	out := map[string]*asking{}
	for _, p := range list {
		if p.Open(v.service.Now()) {
			a, err := v.asking(p)
			if err != nil {
				return nil, err
			}
			out[p.Subject] = a
		}
	}
	return out, nil
}

// cancelSession is POST /sessions/{id}/cancel.
func (c *Console) cancelSession(v *visit) error {
	if err := v.confirmed(); err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.reason()})
	}
	return c.sessionAct(v, "session.cancel", "", nil, func(s flow.Session) (string, error) {
		_, err := v.service.Cancel(v.ctx, s.ID, v.plainly(s.Project))
		return "The session is cancelled. Whoever opened it in a chat hears so.", err
	})
}

// expireSession is POST /sessions/{id}/expire.
func (c *Console) expireSession(v *visit) error {
	if err := v.confirmed(); err != nil {
		return c.refusedAct(v, err, sessionView{Reason: v.reason()})
	}
	return c.sessionAct(v, "session.expire", "", nil, func(s flow.Session) (string, error) {
		return "The session’s time is over. Money that is sent within five minutes still pays it; later it comes late.",
			v.onlyOnce(s.Project, func() error { return v.service.EndNow(v.ctx, s.Project, s.ID, v.by()) })
	})
}
