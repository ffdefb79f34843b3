package checkout

import (
	"context"

	"till/flow"
)

// AddEndpoint keeps a webhook endpoint; its id, status and time are filled in,
// its secrets are given. Errors: invalid_field when the project has too many.
func (s *Service) AddEndpoint(ctx context.Context, e flow.Endpoint, c Call) (Answer, error) {
	id, err := s.ids.New(flow.PrefixEndpoint)
	if err != nil {
		return Answer{}, err
	}
	e.ID, e.Project, e.Status, e.CreatedAt = flow.EndpointID(id), c.Project, flow.EndpointEnabled, s.cfg.Now()
	var answer Answer
	err = s.update(ctx, func(w *saving) error {
		kept, err := w.begun(c)
		if err != nil || kept != nil {
			answer = answeredBefore(kept)
			return err
		}
		have, err := w.tx.Endpoints(ctx, e.Project)
		if err != nil {
			return err
		}
		if len(have) >= maxEndpoints {
			return flow.Refuse(flow.CodeInvalidField, "A project has at most %d webhook endpoints.", maxEndpoints)
		}
		if err := w.tx.AddEndpoint(ctx, e); err != nil {
			return err
		}
		answer, err = w.rendered(c, id, Made{Endpoint: e})
		return err
	})
	if err != nil {
		return s.calls.refused(ctx, c, wrap("add a webhook endpoint", err))
	}
	return answer, nil
}

// Endpoints are a project's webhook endpoints.
func (s *Service) Endpoints(ctx context.Context, project flow.ProjectID) ([]flow.Endpoint, error) {
	return s.cfg.DB.Endpoints(ctx, project)
}
