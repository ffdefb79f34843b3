package checkout

import (
	"context"
	"slices"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of a replay.
const (
	// MaxReplay is the longest stretch of time that one replay is of.
	MaxReplay = 31 * 24 * time.Hour
	// MaxReplayed is how many events one replay puts on their way; more only where so
	// many were made in one millisecond.
	MaxReplayed = 1000
	// MaxOfAMillisecond is how many those may be: far more than are ever made in one,
	// unless a clock stood still.
	MaxOfAMillisecond = 10 * MaxReplayed
	replayedAtOnce    = 200 // in one transaction, so that nobody else waits for long
)

// Sending is what a call has put on its way: an event, and the endpoints that it
// is for with its deliveries to them.
type Sending struct {
	Event flow.EventID
	To    []flow.EndpointID
	Owed  map[flow.EndpointID]store.Owed
}

// Ping makes an event that is about nothing and sends it to one endpoint, once.
// Errors: resource_not_found, endpoint_disabled.
func (s *Service) Ping(ctx context.Context, id flow.EndpointID, c Call) (Answer, error) {
	return s.sends(ctx, c, "ping a webhook endpoint", func(w *saving) (Sending, error) {
		to, err := w.listening(c.Project, id)
		if err != nil {
			return Sending{}, err
		}
		e, err := w.eventAlone(c.Project, flow.Ping, string(id), flow.PingRecord{EndpointID: id}, w.now)
		if err != nil {
			return Sending{}, err
		}
		if err := w.deliverTo(e, to, flow.CausePing); err != nil {
			return Sending{}, err
		}
		return w.sending(e.ID, to)
	})
}

// Resend sends an event of a project now: to the endpoint that is named, or to
// all that it was for or that want its kind by now. Errors: resource_not_found,
// endpoint_disabled for a named one.
func (s *Service) Resend(ctx context.Context, id flow.EventID, named flow.EndpointID, c Call) (Answer, error) {
	return s.sends(ctx, c, "send an event again", func(w *saving) (Sending, error) {
		e, err := w.tx.Event(ctx, c.Project, id)
		if err != nil {
			return Sending{}, err
		}
		owed, err := w.tx.OwedOf(ctx, id)
		if err != nil {
			return Sending{}, err
		}
		to, err := w.addressees(e, named, owed)
		if err != nil {
			return Sending{}, err
		}
		for _, one := range to {
			if err := w.redo(e, one, flow.CauseResend); err != nil {
				return Sending{}, err
			}
		}
		return w.sending(id, to...)
	})
}

// sending reads what was put on its way.
func (w *saving) sending(id flow.EventID, to ...flow.Endpoint) (Sending, error) {
	owed, err := w.tx.OwedOf(w.ctx, id)
	out := Sending{Event: id, Owed: owed}
	for _, one := range to {
		out.To = append(out.To, one.ID)
	}
	return out, err
}

// addressees are the endpoints that an event is sent to again. A ping is for the
// one that it was made for.
func (w *saving) addressees(e flow.Event, named flow.EndpointID, owed map[flow.EndpointID]store.Owed) ([]flow.Endpoint, error) {
	if named != "" {
		to, err := w.listening(e.Project, named)
		return []flow.Endpoint{to}, err
	}
	all, err := w.tx.Endpoints(w.ctx, e.Project)
	return slices.DeleteFunc(all, func(to flow.Endpoint) bool {
		_, was := owed[to.ID]
		return to.Status != flow.EndpointEnabled || !was && (e.Kind == flow.Ping || !to.Asks(e.Kind))
	}), err
}

// listening reads an endpoint of a project that is sent to. Errors:
// resource_not_found, endpoint_disabled.
func (w *saving) listening(project flow.ProjectID, id flow.EndpointID) (flow.Endpoint, error) {
	e, err := w.tx.Endpoint(w.ctx, project, id)
	if err == nil && e.Status != flow.EndpointEnabled {
		err = flow.Refuse(flow.CodeEndpointDisabled, "Nothing is sent to this endpoint: it is disabled. Enable it first: PATCH it with {\"status\":\"ENABLED\"}.")
	}
	return e, err
}

// sends does a call that puts deliveries on their way.
func (s *Service) sends(ctx context.Context, c Call, doing string, send func(*saving) (Sending, error)) (Answer, error) {
	return s.effect(ctx, c, doing, func(w *saving) (Answer, error) {
		sent, err := send(w)
		if err != nil {
			return Answer{}, err
		}
		return w.rendered(c, "", Made{Sending: sent})
	})
}

// Replay is a stretch of time whose events an endpoint is to be sent again, and
// what became of that.
type Replay struct {
	Endpoint   flow.EndpointID
	From, To   time.Time // of when they were made: from the first on, before the second
	OnlyFailed bool      // only those that were given up
	Count      int       // that this call put on their way
	Next       time.Time // from when there are more, zero where there are none
}

// Replay sends an endpoint the events of a stretch of time again, MaxReplayed of them or
// those of one millisecond, oldest first. What is on its way already is not among them, nor
// what another call puts there meanwhile, so that a call that was cut off may be made
// again. Errors: resource_not_found, endpoint_disabled, invalid_field where one millisecond
// holds more than MaxOfAMillisecond.
func (s *Service) Replay(ctx context.Context, r Replay, c Call) (Answer, error) {
	done, err := s.calls.alone(c)
	if err != nil {
		return Answer{}, err
	}
	defer done()
	answer, err := s.replay(ctx, r, c)
	if err != nil {
		return s.calls.refused(ctx, c, wrap("send events again", err))
	}
	return answer, nil
}

func (s *Service) replay(ctx context.Context, r Replay, c Call) (answer Answer, err error) {
	owed, next, err := s.replayable(ctx, r, c)
	if err != nil {
		return Answer{}, err
	}
	r.Next = next
	err = s.inParts(ctx, func(w *saving) (more bool, err error) {
		kept, err := w.begun(c)
		if err != nil || kept != nil {
			answer = answeredBefore(kept)
			return false, err
		}
		to, err := w.listening(c.Project, r.Endpoint)
		if err != nil {
			return false, err
		}
		part, did := owed[:min(replayedAtOnce, len(owed))], r
		queued, err := w.replay(part, to)
		if err != nil {
			return false, err
		}
		did.Count += queued
		if len(part) < len(owed) {
			w.tx.After(func() { owed, r = owed[len(part):], did }) // once it is kept
			return true, nil
		}
		answer, err = w.rendered(c, "", Made{Replay: did})
		return false, err
	})
	return answer, err
}

// replay owes events to an endpoint once more, and says how many those are: what was
// put on its way since they were listed is not owed again.
func (w *saving) replay(listed []store.Owed, to flow.Endpoint) (queued int, err error) {
	list, err := w.tx.Unmoved(w.ctx, to.ID, listed)
	if err != nil {
		return 0, err
	}
	for _, o := range list {
		e := flow.Event{ID: o.Event}
		if o.Delivery == "" { // it was never sent there: its body is needed
			if e, err = w.tx.Event(w.ctx, to.Project, o.Event); err != nil {
				return 0, err
			}
		}
		if err := w.redo(e, to, flow.CauseReplay); err != nil {
			return 0, err
		}
	}
	return len(list), nil
}

// replayable finds what a replay is of, and from when there is more. Events of one
// millisecond stay together, so that none of them is sent by this call and the next.
func (s *Service) replayable(ctx context.Context, r Replay, c Call) (list []store.Owed, next time.Time, err error) {
	to, err := s.cfg.DB.Endpoint(ctx, c.Project, r.Endpoint)
	if err != nil {
		return nil, next, err
	}
	kinds := slices.DeleteFunc(flow.EventKinds(), func(k flow.EventKind) bool { return k == flow.Ping || !to.Asks(k) })
	if len(kinds) == 0 {
		return nil, next, nil
	}
	stretch := store.Stretch{To: to, Kinds: kinds, From: r.From, Until: r.To, Failed: r.OnlyFailed}
	if list, err = s.cfg.DB.Replayable(ctx, stretch, MaxReplayed+1); err != nil || len(list) <= MaxReplayed {
		return list, next, err
	}
	next, list = list[MaxReplayed].At, list[:MaxReplayed]
	whole := slices.IndexFunc(list, func(o store.Owed) bool { return !o.At.Before(next) })
	switch {
	case whole > 0:
		return list[:whole], next, nil
	case whole < 0:
		return list, next, nil
	}
	// All of them are of one millisecond, and so is what a call that goes on from it would
	// begin with: it is sent whole.
	behind := next.Add(time.Millisecond)
	stretch.Until = behind
	if list, err = s.cfg.DB.Replayable(ctx, stretch, MaxOfAMillisecond+1); err != nil {
		return nil, next, err
	}
	if len(list) > MaxOfAMillisecond {
		return nil, next, flow.Refuse(flow.CodeInvalidField, "More than %d events were made at %s, and are not sent again at once. Begin behind it: from %s.",
			MaxOfAMillisecond, flow.Stamp(next), flow.Stamp(behind)).At("from")
	}
	stretch.From, stretch.Until = behind, r.To
	more, err := s.cfg.DB.Replayable(ctx, stretch, 1)
	if err != nil || len(more) == 0 {
		return list, time.Time{}, err
	}
	return list, more[0].At, nil
}
