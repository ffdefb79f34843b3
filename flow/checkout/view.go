package checkout

import (
	"context"

	"till/flow"
	"till/flow/store"
)

// atOnce reads a view at one moment: read one after the other, an older status could
// stand beside a newer payment. On SQLite that costs less than reads that each begin
// anew, on PostgreSQL no more.
func (s *Service) atOnce(ctx context.Context, read func(store.Reader) (View, error)) (v View, err error) {
	err = s.cfg.DB.View(ctx, func(r store.Reader) error {
		v, err = read(r)
		return err
	})
	return v, err
}

// View reads a session of a project, without the payments that were seen for it.
func (s *Service) View(ctx context.Context, project flow.ProjectID, id flow.SessionID) (View, error) {
	return s.atOnce(ctx, func(r store.Reader) (View, error) {
		session, err := owned(ctx, r, project, id)
		if err != nil {
			return View{}, err
		}
		return s.offered(ctx, r, session)
	})
}

// ViewPaid reads a session of a project with the payments that were seen for it.
func (s *Service) ViewPaid(ctx context.Context, project flow.ProjectID, id flow.SessionID) (View, error) {
	return s.atOnce(ctx, func(r store.Reader) (View, error) {
		session, err := owned(ctx, r, project, id)
		if err != nil {
			return View{}, err
		}
		return s.view(ctx, r, session)
	})
}

// ViewOfCharge reads the session of a charge of a project.
func (s *Service) ViewOfCharge(ctx context.Context, project flow.ProjectID, id flow.ChargeID) (View, error) {
	return s.atOnce(ctx, func(r store.Reader) (View, error) {
		session, err := r.SessionByCharge(ctx, id)
		if err == nil && session.Project != project {
			err = flow.Refuse(flow.CodeNotFound, "There is no charge %q.", id)
		}
		if err != nil {
			return View{}, err
		}
		return s.view(ctx, r, session)
	})
}

// page is a list, read with one more than are wanted, without that one; more says
// whether it was there.
func page[T any](list []T, limit int, err error) (wanted []T, more bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	return list[:min(limit, len(list))], len(list) > limit, nil
}

// List lists a project's sessions, newest first, all at one moment; more says whether
// older ones follow.
func (s *Service) List(ctx context.Context, project flow.ProjectID, f Filter) (views []View, more bool, err error) {
	err = s.cfg.DB.View(ctx, func(r store.Reader) error {
		list, err := r.Sessions(ctx, store.SessionFilter{
			Project: project, Status: f.Status, Reference: f.Reference, Email: f.CustomerEmail, CreatedFrom: f.CreatedAfter,
			CreatedBefore: f.CreatedBefore, Before: f.Before, ChargesOnly: f.Charges, Limit: f.Limit + 1,
		})
		if list, more, err = page(list, f.Limit, err); err != nil {
			return err
		}
		for _, session := range list {
			v, err := s.view(ctx, r, session)
			if err != nil {
				return err
			}
			views = append(views, v)
		}
		return nil
	})
	return views, more, err
}

// Attempt reads an attempt of a project.
func (s *Service) Attempt(ctx context.Context, project flow.ProjectID, id flow.AttemptID) (flow.Attempt, error) {
	a, err := s.cfg.DB.Attempt(ctx, id)
	return s.ownedAttempt(ctx, project, a, err)
}

// AttemptByPaymentCode reads the attempt of a project with a USSD payment code.
func (s *Service) AttemptByPaymentCode(ctx context.Context, project flow.ProjectID, code string) (flow.Attempt, error) {
	a, err := s.cfg.DB.AttemptByPaymentCode(ctx, code)
	return s.ownedAttempt(ctx, project, a, err)
}

// ownedAttempt hides whose an attempt is that is not the project's: it looks like
// one that never was.
func (s *Service) ownedAttempt(ctx context.Context, project flow.ProjectID, a flow.Attempt, err error) (flow.Attempt, error) {
	if err == nil {
		_, err = owned(ctx, s.cfg.DB.Reader, project, a.Session)
	}
	if flow.CodeOf(err) == flow.CodeNotFound {
		err = flow.Refuse(flow.CodeNotFound, "There is no such attempt.")
	}
	if err != nil {
		return flow.Attempt{}, err
	}
	return a, nil
}

// OwnedSessions says which of some sessions are a project's.
func (s *Service) OwnedSessions(ctx context.Context, project flow.ProjectID, ids []flow.SessionID) (map[flow.SessionID]bool, error) {
	out := make(map[flow.SessionID]bool, len(ids))
	for _, id := range ids {
		if _, seen := out[id]; seen {
			continue
		}
		_, err := owned(ctx, s.cfg.DB.Reader, project, id)
		if err != nil && flow.CodeOf(err) != flow.CodeNotFound {
			return nil, err
		}
		out[id] = err == nil
	}
	return out, nil
}
