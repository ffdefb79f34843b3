package checkout

import (
	"context"
	"strings"

	"till/flow"
	"till/flow/store"
)

// Set keeps what a merchant sets for all sessions of a project of an account that
// are opened from now on. Whoever sets them saw those of a revision: had they been
// changed since, that would be taken back unseen. Errors: resource_not_found,
// invalid_field, flow.ErrSettings.
func (a *Accounts) Set(ctx context.Context, account string, project flow.ProjectID, seen string, s flow.Settings) error {
	if wrong := s.Check(); len(wrong) > 0 {
		return flow.Refuse(flow.CodeInvalidField, "%s", strings.Join(wrong, " "))
	}
	err := a.db.Update(ctx, func(tx *store.Tx) error {
		p, err := tx.Project(ctx, project)
		if err == nil && p.Account != account {
			err = flow.Refuse(flow.CodeNotFound, "There is no project %q.", string(project))
		}
		if err != nil {
			return err
		}
		if p.Settings.Revision() != seen {
			return flow.ErrSettings
		}
		return tx.SaveSettings(ctx, project, s)
	})
	a.keys.forget(func(k flow.Key) bool { return k.Project == project }) // with what it knows of the project
	return wrap("keep the settings of a project", err)
}

// Greeting is the first message that the payer of a project would read, with an
// amount and an order made up.
func (s *Service) Greeting(p flow.Project) string {
	args := map[string]string{"merchant": p.Shown(), "amount": flow.Kobo(450_000).Naira(), "order": "Order 1182", "brand": p.Settings.Brand}
	for _, m := range flow.Methods() {
		args[string(m)] = "yes"
	}
	return s.cfg.Words(flow.Say{Key: "summary", Lang: p.Settings.Lang, Args: args}, s.cfg.Now())
}
