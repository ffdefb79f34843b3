package checkout

import (
	"context"
	"fmt"

	"till/flow"
	"till/flow/store"
)

// Milestones reads which milestones a project has met, by what is kept of them and
// by what the test environment's traffic shows now; what is seen for the first
// time is kept. in is the test environment.
func (a *Accounts) Milestones(ctx context.Context, project flow.ProjectID, in *Service) (map[flow.Milestone]flow.Met, error) {
	met, err := a.db.Milestones(ctx, project)
	if err != nil {
		return nil, fmt.Errorf("see how far a project is: %w", err)
	}
	var fresh []flow.Met
	for _, m := range flow.Milestones() {
		if _, known := met[m]; known {
			continue
		}
		seen, err := a.sees(ctx, project, m, in)
		if err != nil {
			return nil, fmt.Errorf("see how far a project is: %w", err)
		}
		if seen {
			met[m] = flow.Met{Milestone: m, At: a.desk()}
			fresh = append(fresh, met[m])
		}
	}
	if len(fresh) == 0 {
		return met, nil
	}
	return met, wrap("keep how far a project is", a.db.Update(ctx, func(tx *store.Tx) error {
		for _, m := range fresh {
			if err := tx.SaveMet(ctx, project, m); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sees says whether a milestone shows in the test environment's traffic.
func (a *Accounts) sees(ctx context.Context, project flow.ProjectID, m flow.Milestone, in *Service) (bool, error) {
	switch m {
	case flow.MilestoneKey:
		keys, err := a.db.Keys(ctx, project, "", flow.MaxKeys)
		for _, k := range keys {
			if k.Environment == flow.Test && k.Kind == flow.SecretKey && !k.LastUsedAt.IsZero() {
				return true, nil
			}
		}
		return false, err
	case flow.MilestoneOnce:
		return in.cfg.DB.HasCall(ctx, string(project))
	case flow.MilestoneWebhook, flow.MilestoneEnded:
		return in.cfg.DB.HasDelivered(ctx, project, m.Proof())
	case flow.MilestoneForged:
	}
	return false, nil
}

// SayMet keeps that somebody says their project met a milestone that Till cannot
// see. Errors: invalid_field.
func (a *Accounts) SayMet(ctx context.Context, project flow.ProjectID, m flow.Milestone, by string) error {
	if m != flow.MilestoneForged {
		return flow.Refuse(flow.CodeInvalidField, "Till sees this by itself, in your traffic.")
	}
	return wrap("keep how far a project is", a.db.Update(ctx, func(tx *store.Tx) error {
		return tx.SaveMet(ctx, project, flow.Met{Milestone: m, At: a.desk(), SaidBy: by})
	}))
}
