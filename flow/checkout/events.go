package checkout

import (
	"context"
	"time"

	"till/flow"
	"till/flow/store"
)

// triesShown is how many of a delivery's tries are read: the newest.
const triesShown = 20

// EventFilter narrows a list of events. Zero fields do not.
type EventFilter struct {
	Kind          flow.EventKind
	Session       flow.SessionID
	CreatedAfter  time.Time
	CreatedBefore time.Time
	Before        store.EventPlace // the last event of the page before
	Limit         int
}

// EventView is an event and how many of its deliveries are in which state.
type EventView struct {
	Event    flow.Event
	Standing map[string]int
}

// Events lists a project's events, newest first; more says whether older ones
// follow.
func (s *Service) Events(ctx context.Context, project flow.ProjectID, f EventFilter) (views []EventView, more bool, err error) {
	list, err := s.cfg.DB.ProjectEvents(ctx, store.EventFilter{
		Project: project, Kind: f.Kind, Session: f.Session, From: f.CreatedAfter, Until: f.CreatedBefore, Before: f.Before, Limit: f.Limit + 1,
	})
	if list, more, err = page(list, f.Limit, err); err != nil {
		return nil, false, err
	}
	ids := make([]flow.EventID, 0, len(list))
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	standing, err := s.cfg.DB.Standing(ctx, ids)
	if err != nil {
		return nil, false, err
	}
	for _, e := range list {
		views = append(views, EventView{e, standing[e.ID]})
	}
	return views, more, nil
}

// Event reads an event of a project. Errors: resource_not_found.
func (s *Service) Event(ctx context.Context, project flow.ProjectID, id flow.EventID) (EventView, error) {
	e, err := s.cfg.DB.Event(ctx, project, id)
	if err != nil {
		return EventView{}, err
	}
	standing, err := s.cfg.DB.Standing(ctx, []flow.EventID{id})
	return EventView{e, standing[id]}, err
}

// DeliveriesOf lists the deliveries of an event of a project from behind an id on,
// oldest first; more says whether others follow. Errors: resource_not_found.
func (s *Service) DeliveriesOf(ctx context.Context, project flow.ProjectID, id flow.EventID, after string, limit int) (list []store.Sent, more bool, err error) {
	if _, err := s.cfg.DB.Event(ctx, project, id); err != nil {
		return nil, false, err
	}
	list, err = s.cfg.DB.Deliveries(ctx, id, after, limit+1, triesShown)
	return page(list, limit, err)
}

// DeliveriesTo reads what was sent to an endpoint of a project, newest first, from
// before a delivery's id on; dead takes what was given up alone. Errors:
// resource_not_found.
func (s *Service) DeliveriesTo(
	ctx context.Context, project flow.ProjectID, id flow.EndpointID, before string, dead bool, limit int,
) (list []store.SentTo, more bool, err error) {
	if _, err := s.cfg.DB.Endpoint(ctx, project, id); err != nil {
		return nil, false, err
	}
	list, err = s.cfg.DB.DeliveriesTo(ctx, id, before, dead, limit+1, triesShown)
	return page(list, limit, err)
}

// Outcomes says how many of the newest deliveries to an endpoint of a project are
// in which state. Errors: resource_not_found.
func (s *Service) Outcomes(ctx context.Context, project flow.ProjectID, id flow.EndpointID, newest int) (map[string]int, error) {
	if _, err := s.cfg.DB.Endpoint(ctx, project, id); err != nil {
		return nil, err
	}
	return s.cfg.DB.Outcomes(ctx, id, newest)
}
