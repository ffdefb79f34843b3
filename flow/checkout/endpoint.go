package checkout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"till/flow"
)

// cancelAtOnce is how many deliveries are cancelled in one transaction, so that
// nobody else waits for long.
const cancelAtOnce = 500

// AddEndpoint keeps a webhook endpoint; its id, status and time are filled in,
// its secrets are given. Errors: invalid_field when the project has too many.
func (s *Service) AddEndpoint(ctx context.Context, e flow.Endpoint, c Call) (Answer, error) {
	id, err := s.ids.New(flow.PrefixEndpoint)
	if err != nil {
		return Answer{}, err
	}
	e.ID, e.Project, e.Status, e.CreatedAt = flow.EndpointID(id), c.Project, flow.EndpointEnabled, s.cfg.Now()
	return s.effect(ctx, c, "add a webhook endpoint", func(w *saving) (Answer, error) {
		have, err := w.tx.Endpoints(ctx, e.Project)
		if err != nil {
			return Answer{}, err
		}
		if len(have) >= maxEndpoints {
			return Answer{}, flow.Refuse(flow.CodeInvalidField, "A project has at most %d webhook endpoints. Remove one that you do not need first: DELETE /v1/webhook-endpoints/{id}.", maxEndpoints)
		}
		if err := w.tx.AddEndpoint(ctx, e); err != nil {
			return Answer{}, err
		}
		return w.rendered(c, id, Made{Endpoint: e})
	})
}

// Endpoints are a project's webhook endpoints, oldest first: few, for there is a
// bound.
func (s *Service) Endpoints(ctx context.Context, project flow.ProjectID) ([]flow.Endpoint, error) {
	return s.cfg.DB.Endpoints(ctx, project)
}

// Endpoint reads a webhook endpoint of a project. Errors: resource_not_found, also
// for one that was removed.
func (s *Service) Endpoint(ctx context.Context, project flow.ProjectID, id flow.EndpointID) (flow.Endpoint, error) {
	return s.cfg.DB.Endpoint(ctx, project, id)
}

// EndpointChange is what of an endpoint is to change. Nil fields are not.
type EndpointChange struct {
	URL         *string
	Description *string
	Events      *[]flow.EventKind // empty: every kind that is not on request
	PerSecond   *int              // that it is sent at most; 0: as many as it takes
	Status      string            // ENABLED, DISABLED, or "" for as it is
	DropHeld    bool              // with ENABLED: what was held is cancelled, not delivered
}

// Told is what of an endpoint becomes otherwise, for who asks later what was done to it.
func (c EndpointChange) Told(e flow.Endpoint) string {
	var told []string
	if c.moves(e) {
		told = append(told, "from "+flow.HostOf(e.URL)+" to "+flow.HostOf(*c.URL))
	}
	if c.Description != nil && *c.Description != e.Description {
		told = append(told, "description")
	}
	if c.Events != nil && !slices.Equal(*c.Events, e.Events) {
		told = append(told, "events")
	}
	switch {
	case c.PerSecond == nil || *c.PerSecond == e.MaxPerSecond:
	case *c.PerSecond == 0:
		told = append(told, "as many a second as it takes")
	default:
		told = append(told, fmt.Sprintf("%d a second at most", *c.PerSecond))
	}
	if c.Status != "" {
		told = append(told, strings.ToLower(c.Status))
	}
	return strings.Join(told, ", ")
}

// moves says whether an endpoint gets another URL, and begins whether it begins
// anew by the change: then what is held for it is sent at once.
func (c EndpointChange) moves(e flow.Endpoint) bool { return c.URL != nil && *c.URL != e.URL }

func (c EndpointChange) begins(e flow.Endpoint) bool {
	return c.moves(e) || c.Status == flow.EndpointEnabled
}

// ChangeEndpoint changes a webhook endpoint of a project. One that is disabled
// holds what it is owed; one that is enabled, or gets another URL, is sent to as
// if it had never failed.
// Errors: resource_not_found.
func (s *Service) ChangeEndpoint(ctx context.Context, project flow.ProjectID, id flow.EndpointID, to EndpointChange) (flow.Endpoint, error) {
	var e flow.Endpoint
	err := s.inParts(ctx, func(w *saving) (more bool, err error) {
		if e, err = w.tx.Endpoint(ctx, project, id); err != nil {
			return false, err
		}
		if to.Status == flow.EndpointEnabled && to.DropHeld {
			n, err := w.tx.CancelDeliveries(ctx, id, flow.DeliveryHeld, w.now, cancelAtOnce)
			if err != nil || n == cancelAtOnce {
				return true, err
			}
		}
		if to.begins(e) {
			n, err := w.tx.HurryHeld(ctx, id, w.now, cancelAtOnce)
			if err != nil || n == cancelAtOnce {
				return true, err
			}
		}
		if err := w.change(&e, to); err != nil {
			return false, err
		}
		e, err = w.tx.Endpoint(ctx, project, id)
		return false, err
	})
	return e, wrap("change a webhook endpoint", err)
}

// change keeps what of an endpoint changes.
func (w *saving) change(e *flow.Endpoint, to EndpointChange) error {
	moved, begins := to.moves(*e), to.begins(*e)
	if moved {
		e.URL = *to.URL
	}
	if to.Description != nil {
		e.Description = *to.Description
	}
	if to.Events != nil {
		e.Events = *to.Events
	}
	if to.PerSecond != nil {
		e.MaxPerSecond = *to.PerSecond
	}
	if err := w.tx.ChangeEndpoint(w.ctx, e); err != nil {
		return err
	}
	w.anew(e.ID, begins)
	if moved {
		if err := w.tx.MoveEndpoint(w.ctx, e.ID, w.now); err != nil {
			return err
		}
	}
	switch to.Status {
	case flow.EndpointEnabled:
		return w.tx.EnableEndpoint(w.ctx, e.ID, w.now)
	case flow.EndpointDisabled:
		if was, err := w.tx.DisableEndpoint(w.ctx, e.ID, flow.DisabledRequested, w.now); err != nil || !was {
			return err
		}
		return w.holdBack(w.ctx, e.ID)
	}
	return nil
}

// anew has what waits in memory for an endpoint read again once it is changed.
// With well, it is also as if it had never failed.
func (w *saving) anew(id flow.EndpointID, well bool) {
	w.tx.After(func() {
		w.s.worker.forgetEndpoint(id, well)
		w.s.worker.wake()
	})
}

// RemoveEndpoint takes a webhook endpoint of a project away and cancels what it is
// owed. What was sent stays to be read. Errors: resource_not_found.
func (s *Service) RemoveEndpoint(ctx context.Context, project flow.ProjectID, id flow.EndpointID) error {
	err := s.inParts(ctx, func(w *saving) (more bool, err error) {
		if _, err := w.tx.Endpoint(ctx, project, id); err != nil {
			return false, err
		}
		for _, state := range []string{flow.DeliveryPending, flow.DeliveryHeld} {
			n, err := w.tx.CancelDeliveries(ctx, id, state, w.now, cancelAtOnce)
			if err != nil || n == cancelAtOnce {
				return true, err
			}
		}
		w.anew(id, false)
		return false, w.tx.DeleteEndpoint(ctx, id, w.now)
	})
	return wrap("remove a webhook endpoint", err)
}

// inParts runs a command in one transaction after the other until it says that
// there is no more to do.
func (s *Service) inParts(ctx context.Context, part func(*saving) (more bool, err error)) error {
	for more := true; more; {
		err := s.update(ctx, func(w *saving) (err error) {
			more, err = part(w)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// RotateSecret gives an endpoint a new secret, which is given; those that it had
// sign beside it, each for a day. Errors: resource_not_found,
// secret_rotation_limit.
func (s *Service) RotateSecret(ctx context.Context, id flow.EndpointID, secret string, c Call) (Answer, error) {
	return s.effect(ctx, c, "rotate the secret of a webhook endpoint", func(w *saving) (Answer, error) {
		e, err := w.tx.Endpoint(ctx, c.Project, id)
		if err != nil {
			return Answer{}, err
		}
		if err := e.Rotate(secret, w.now); err != nil {
			return Answer{}, err
		}
		if err := w.tx.ChangeSecrets(ctx, &e); err != nil {
			return Answer{}, err
		}
		w.anew(id, false)
		return w.rendered(c, string(id), Made{Endpoint: e})
	})
}
