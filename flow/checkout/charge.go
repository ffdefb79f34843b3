package checkout

import (
	"context"
	"strings"
	"time"

	"till/flow"
)

// requeryAtMost is how often a merchant may have the bank asked about a charge.
const requeryAtMost = 10 * time.Second

// ViewByReference reads the session of a charge by its reference: the
// merchant's own, or the service's (wsp_ref_…) of any of its attempts.
func (s *Service) ViewByReference(ctx context.Context, project flow.ProjectID, reference string) (View, error) {
	session, err := s.byReference(ctx, project, reference)
	if notFound(err) || err == nil && (session.Project != project || session.Charge == "") {
		// In the same words for all, or they would tell whether it is somebody else's.
		err = flow.Refuse(flow.CodeNotFound, "There is no charge with the reference %q.", reference)
	}
	if err != nil {
		return View{}, err
	}
	return s.view(ctx, s.cfg.DB.Reader, session)
}

func (s *Service) byReference(ctx context.Context, project flow.ProjectID, reference string) (flow.Session, error) {
	session, err := s.cfg.DB.SessionByReference(ctx, project, reference)
	if !notFound(err) || !strings.HasPrefix(reference, flow.PrefixReference) {
		return session, err
	}
	attempt, err := s.cfg.DB.AttemptByReference(ctx, reference)
	if err != nil {
		return flow.Session{}, err
	}
	return s.cfg.DB.Session(ctx, attempt.Session)
}

// Requery asks the bank now what became of a charge, and takes in what it says.
// Errors: rate_limited when it was asked less than ten seconds ago,
// rail_unavailable when the bank does not answer, storage_unavailable.
func (s *Service) Requery(ctx context.Context, project flow.ProjectID, id flow.ChargeID) (View, error) {
	view, err := s.ViewOfCharge(ctx, project, id)
	if err != nil {
		return View{}, err
	}
	now := s.cfg.Now()
	s.mu.Lock()
	last, asked := s.asked[view.Session.ID]
	soon := asked && now.Sub(last) < requeryAtMost
	if !soon {
		if len(s.asked) > maxAsked {
			clear(s.asked)
		}
		s.asked[view.Session.ID] = now
	}
	s.mu.Unlock()
	if soon {
		refusal := flow.Refuse(flow.CodeRateLimited, "The bank was asked about this charge less than %d seconds ago. Wait, or rely on the webhook.", int(requeryAtMost.Seconds()))
		refusal.RetryAfter = requeryAtMost - now.Sub(last)
		return View{}, refusal
	}
	switch _, err := s.check(ctx, view.Session.ID); {
	case flow.CodeOf(err) == flow.CodeStorage:
		return View{}, err
	case err != nil:
		return View{}, &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank does not answer right now. Try again.", Err: err}
	}
	return s.ViewOfCharge(ctx, project, id)
}

// Story tells everything that happened to a charge of a project.
func (s *Service) Story(ctx context.Context, project flow.ProjectID, id flow.ChargeID) ([]Moment, error) {
	view, err := s.ViewOfCharge(ctx, project, id)
	if err != nil {
		return nil, err
	}
	return Timeline(ctx, s.cfg.DB.Reader, view.Session.ID)
}
