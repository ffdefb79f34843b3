package checkout

import (
	"slices"
	"strings"
	"time"

	"till/flow"
)

// tell makes an event out of a fact and owes it to every endpoint that wants it.
// look shows the session with all that belongs to it. What is only sent on request
// is kept only if somebody asked, also where nothing is sent to them now; the session
// has counted it all the same, so that the count does not depend on who listens.
func (w *saving) tell(session flow.Session, f flow.Fact, look func() (View, error)) error {
	asking, err := w.asking(session.Project, f.Kind)
	if err != nil || len(asking) == 0 && f.Kind.OnRequest() {
		return err
	}
	view, err := look()
	if err != nil {
		return err
	}
	view.Session = session
	e, err := w.event(view, f)
	if err != nil {
		return err
	}
	// The log is written first, as where the bank said something: of two processes that each
	// had kept what the other is about to, PostgreSQL undoes one, and takes a second to see it.
	if err := w.log(session.ID, "event", map[string]any{"id": e.ID, "event": e.Kind, "sequence": e.Sequence}); err != nil {
		return err
	}
	if err := w.tx.AddEvent(w.ctx, e); err != nil {
		return err
	}
	return w.deliver(e, wanting(asking, f.Kind))
}

// after is a session with all that belongs to it once a change of it is written:
// what was read before, with what the change adds where it only adds, as a
// settlement does; else it is read again.
func (w *saving) after(c flow.Change, session flow.Session) (View, error) {
	read := w.read
	adds := c.TakenBack == nil && c.Refund == nil && c.Settlement == nil && len(c.Payments) == 0 && len(c.Entries) == 0 && len(c.Returns) == 0
	if read == nil || read.Session.ID != session.ID || !adds {
		return w.s.view(w.ctx, w.tx.Reader, session)
	}
	v := View{Session: session, Attempts: slices.Clone(read.Attempts), Payments: slices.Clone(read.Payments)}
	for _, a := range c.Attempts {
		i := slices.IndexFunc(v.Attempts, func(is flow.Attempt) bool { return is.ID == a.ID })
		if i < 0 {
			return w.s.view(w.ctx, w.tx.Reader, session)
		}
		v.Attempts[i] = a
	}
	if c.Payment != nil {
		p := *c.Payment
		for _, at := range []*time.Time{&p.PaidAt, &p.ReceivedAt, &p.ResolvedAt, &p.ReturnsAt} { // as they are kept
			*at = flow.FromMillis(flow.Millis(*at))
		}
		v.Payments = append(v.Payments, p)
		slices.SortFunc(v.Payments, func(a, b flow.Payment) int { return strings.Compare(string(a.ID), string(b.ID)) })
	}
	v.Offers = flow.Offers(session, v.Attempts, w.s.served(session.Project), w.now)
	return v, nil
}

// asking are the endpoints of a project that ask for a kind of event, also those
// that nothing is sent to now.
func (w *saving) asking(project flow.ProjectID, kind flow.EventKind) ([]flow.Endpoint, error) {
	endpoints, err := w.tx.Endpoints(w.ctx, project)
	return slices.DeleteFunc(endpoints, func(e flow.Endpoint) bool { return !e.Asks(kind) }), err
}

// wanting are those of some endpoints that are told of a kind of event now.
func wanting(endpoints []flow.Endpoint, kind flow.EventKind) []flow.Endpoint {
	return slices.DeleteFunc(endpoints, func(e flow.Endpoint) bool { return !e.Wants(kind) })
}

// listeners are the endpoints of a project that are told of a kind of event now.
func (w *saving) listeners(project flow.ProjectID, kind flow.EventKind) ([]flow.Endpoint, error) {
	endpoints, err := w.tx.Endpoints(w.ctx, project)
	return wanting(endpoints, kind), err
}

// event makes an event out of a fact.
func (w *saving) event(view View, f flow.Fact) (flow.Event, error) {
	session := view.Session
	if f.Payment != nil { // what is sent back of it is ordered after this is told
		view.Payments = slices.Clone(view.Payments)
		for i, p := range view.Payments {
			if p.ID == f.Payment.ID {
				view.Payments[i] = *f.Payment
			}
		}
	}
	id, err := w.s.ids.New(flow.PrefixEvent)
	if err != nil {
		return flow.Event{}, err
	}
	e := flow.Event{
		ID: flow.EventID(id), Kind: f.Kind, Project: session.Project, Session: session.ID, Sequence: session.Sequence, CreatedAt: w.telling(),
	}
	charge := w.s.RecordCharge(view)
	for _, a := range view.Attempts {
		if a.ID == f.Attempt {
			charge.Reference = a.Reference // the attempt this event is about
		}
	}
	data := flow.ChargeData(charge, f.Attempt, f.Payment)
	if f.Refund != nil {
		data = flow.RecordRefund(*f.Refund, w.s.cfg.Around)
	}
	if f.Kind.OnRequest() {
		record := w.s.Record(view)
		record.ClientSecret = "" // a webhook's receiver is not the payer's browser
		data = record
	}
	if e.Body, err = flow.ComposeEvent(e, flow.EventReference(session, charge.Reference), data, w.s.cfg.Around.Live); err != nil {
		return flow.Event{}, err
	}
	return e, nil
}
