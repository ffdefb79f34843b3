package checkout

import (
	"fmt"

	"till/flow"
	"till/flow/planted"
)

// deliver owes an event to endpoints.
func (w *saving) deliver(e flow.Event, endpoints []flow.Endpoint) error {
	for _, to := range endpoints {
		if err := w.deliverTo(e, to, flow.CauseAuto); err != nil {
			return err
		}
	}
	return nil
}

// deliverTo owes an event to an endpoint, which was never owed it before.
func (w *saving) deliverTo(e flow.Event, to flow.Endpoint, cause string) error {
	id, err := w.s.ids.New(flow.PrefixDelivery)
	if err != nil {
		return err
	}
	d := flow.Delivery{
		ID: id, Event: e.ID, Session: e.Session, Endpoint: to.ID, Project: to.Project, URL: to.URL, Secrets: to.Signing(w.now), Pace: to.MaxPerSecond, Body: e.Body, Cause: cause, Trace: flow.TraceOf(w.ctx),
	}
	switch {
	case to.Takes(d) != flow.DeliveryPending:
		return w.tx.AddHeldDelivery(w.ctx, d, w.now)
	case !w.s.worker.takesPosts(d): // it is found when there is room
		return w.tx.AddDelivery(w.ctx, d, w.now, w.now)
	}
	d.Lease = w.s.token
	if planted.LostOutbox {
		w.handOver(d)
		return nil
	}
	if err := w.tx.AddDelivery(w.ctx, d, w.now, w.now.Add(lease)); err != nil {
		return err
	}
	w.handOver(d)
	return nil
}

// redo owes an event to an endpoint that is enabled once more, whatever became of it
// before, or for the first time. The try is beside the schedule.
func (w *saving) redo(e flow.Event, to flow.Endpoint, cause string) error {
	name, due := "", w.now
	if w.s.worker.takesPosts(flow.Delivery{Endpoint: to.ID, Cause: cause}) {
		name, due = fmt.Sprintf("%s/redo/%d", w.s.token, w.s.redone.Add(1)), w.now.Add(lease)
	}
	d, found, err := w.tx.RedoDelivery(w.ctx, e.ID, to.ID, cause, name, due)
	if err != nil {
		return err
	}
	if !found {
		return w.deliverTo(e, to, cause)
	}
	if name == "" {
		w.tx.After(w.s.worker.wake)
		return nil
	}
	d.Secrets = to.Signing(w.now)
	w.handOver(d)
	return nil
}

// handOver hands a delivery to the worker once it is committed.
func (w *saving) handOver(d flow.Delivery) {
	w.tx.After(func() { w.s.worker.post(queued{Delivery: d, until: w.now.Add(lease - postPatience), read: w.now}) })
}
