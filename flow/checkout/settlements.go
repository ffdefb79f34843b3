package checkout

import (
	"context"
	"time"

	"till/flow"
	"till/flow/store"
)

// SettlementFilter narrows a list of settlements; zero fields do not.
type SettlementFilter struct {
	Status        flow.SettlementStatus
	Session       flow.SessionID // that money of is in it
	CreatedAfter  time.Time
	CreatedBefore time.Time // exclusive
	Before        string    // the last id of the page before
	Limit         int
}

// Settlements lists a project's settlements, newest first; more says whether
// older ones follow.
func (s *Service) Settlements(ctx context.Context, project flow.ProjectID, f SettlementFilter) (list []flow.Settlement, more bool, err error) {
	list, err = s.cfg.DB.Settlements(ctx, store.SettlementFilter{
		Project: project, Status: f.Status, Session: f.Session, From: f.CreatedAfter, Until: f.CreatedBefore, Before: f.Before, Limit: f.Limit + 1,
	})
	return page(list, f.Limit, err)
}

// Settlement reads a settlement of a project; another project's does not exist,
// and neither does one whose lines are still being gathered.
func (s *Service) Settlement(ctx context.Context, project flow.ProjectID, id flow.SettlementID) (flow.Settlement, error) {
	b, err := s.cfg.DB.SettlementOf(ctx, project, id)
	if err == nil && b.CreatedAt.IsZero() {
		err = flow.Refuse(flow.CodeNotFound, "There is no settlement %q.", id)
	}
	if err != nil {
		return flow.Settlement{}, err
	}
	return b, nil
}

// SettlementLines lists what is in a settlement of a project, oldest first, from
// after a place on; more says whether others follow.
func (s *Service) SettlementLines(
	ctx context.Context, project flow.ProjectID, id flow.SettlementID, after store.LinePlace, limit int,
) (list []flow.SettlementLine, more bool, err error) {
	if _, err := s.Settlement(ctx, project, id); err != nil {
		return nil, false, err
	}
	list, err = s.cfg.DB.SettlementLines(ctx, id, after, limit+1)
	return page(list, limit, err)
}

// NextPayout is when a project is paid out next, and before when money must have come to
// be in that. A day that was tried out ahead of itself has had its payout.
func (s *Service) NextPayout(ctx context.Context, project flow.ProjectID) (at, before time.Time, err error) {
	at = s.cfg.Calendar.NextPayday(s.cfg.Now())
	for made := true; made && err == nil; {
		if _, made, err = s.cfg.DB.SettlementOn(ctx, project, flow.DateOf(at)); made {
			at = s.cfg.Calendar.NextPayday(at)
		}
	}
	return at, s.cfg.Calendar.DueBefore(flow.DateOf(at)), err
}

// SettlesOn is the day on which merchants are paid out what comes now.
func (s *Service) SettlesOn() flow.Date { return s.cfg.Calendar.SettlesOn(s.cfg.Now()) }

// SettleNow makes a project's settlement of a day without waiting for that day,
// and says why there is none where it is blocked. It is for the test environment,
// whose merchants try it out.
func (s *Service) SettleNow(ctx context.Context, project flow.ProjectID, on flow.Date) (b flow.Settlement, made bool, blocked string, err error) {
	if blocked, err = s.Blocked(ctx, project); err != nil || blocked != "" {
		return flow.Settlement{}, false, blocked, err
	}
	b, made, err = s.settleProject(ctx, project, on)
	return b, made, "", wrap("settle a project", err)
}

// RecordSettlement is a settlement as its merchant reads it.
func (s *Service) RecordSettlement(b flow.Settlement) flow.SettlementRecord {
	return flow.RecordSettlement(b, s.cfg.Around)
}
