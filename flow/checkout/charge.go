package checkout

import (
	"context"
	"strings"
	"time"

	"till/flow"
	"till/flow/store"
)

// requeryAtMost is how often a merchant may have the bank asked about a charge.
const requeryAtMost = 10 * time.Second

// ViewByReference reads the session of a charge by its reference: the
// merchant's own, or the service's (wsp_ref_…) of any of its attempts.
func (s *Service) ViewByReference(ctx context.Context, project flow.ProjectID, reference string) (View, error) {
	return s.atOnce(ctx, func(r store.Reader) (View, error) {
		session, err := byReference(ctx, r, project, reference)
		if notFound(err) || err == nil && (session.Project != project || session.Charge == "") {
			// In the same words for all, or they would tell whether it is somebody else's.
			err = flow.Refuse(flow.CodeNotFound, "There is no charge with the reference %q.", reference)
		}
		if err != nil {
			return View{}, err
		}
		return s.view(ctx, r, session)
	})
}

func byReference(ctx context.Context, r store.Reader, project flow.ProjectID, reference string) (flow.Session, error) {
	session, err := r.SessionByReference(ctx, project, reference)
	sought := notFound(err) || err == nil && session.Charge == "" // an order may have been given our reference of another
	if !sought || !strings.HasPrefix(reference, flow.PrefixReference) {
		return session, err
	}
	attempt, err := r.AttemptByReference(ctx, reference)
	if err != nil {
		return flow.Session{}, err
	}
	return r.Session(ctx, attempt.Session)
}

// Requery asks the bank now what became of a charge, and takes in what it says.
// Errors: rate_limited when it was asked less than ten seconds ago,
// rail_unavailable when the bank does not answer, storage_unavailable.
func (s *Service) Requery(ctx context.Context, project flow.ProjectID, id flow.ChargeID) (View, error) {
	view, err := s.ViewOfCharge(ctx, project, id)
	if err != nil {
		return View{}, err
	}
	if err := s.askBank(ctx, view.Session.ID); err != nil {
		return View{}, err
	}
	return s.ViewOfCharge(ctx, project, id)
}

// AskBank is Requery of a session, whether it has a charge or not. Errors: the
// same, and resource_not_found.
func (s *Service) AskBank(ctx context.Context, project flow.ProjectID, id flow.SessionID) error {
	if _, err := owned(ctx, s.cfg.DB.Reader, project, id); err != nil {
		return err
	}
	return s.askBank(ctx, id)
}

func (s *Service) askBank(ctx context.Context, id flow.SessionID) error {
	now := s.cfg.Now()
	s.mu.Lock()
	last, asked := s.asked[id]
	soon := asked && now.Sub(last).Abs() < requeryAtMost
	if !soon {
		if len(s.asked) > maxAsked {
			clear(s.asked)
		}
		s.asked[id] = now
	}
	s.mu.Unlock()
	if soon {
		refusal := flow.Refuse(flow.CodeRateLimited, "The bank was asked about this payment less than %d seconds ago. Wait, or rely on the webhook.", int(requeryAtMost.Seconds()))
		refusal.RetryAfter = requeryAtMost - now.Sub(last)
		return refusal
	}
	switch err := s.check(ctx, id, checkPatience, false); {
	case flow.CodeOf(err) == flow.CodeStorage:
		return err
	case err != nil:
		refusal := &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank does not answer right now. Try again.", Err: err}
		refusal.RetryAfter = requeryAtMost - s.cfg.Now().Sub(now) // before that it is asked too soon
		return refusal
	}
	return nil
}

// Story tells what happened to a charge of a project, a page at a time: see
// StoryPage.
func (s *Service) Story(ctx context.Context, project flow.ProjectID, id flow.ChargeID, from StoryPlace, limit int) ([]Moment, StoryPlace, error) {
	view, err := s.ViewOfCharge(ctx, project, id)
	if err != nil {
		return nil, StoryPlace{}, err
	}
	return StoryPage(ctx, s.cfg.DB.Reader, view.Session.ID, from, limit)
}
