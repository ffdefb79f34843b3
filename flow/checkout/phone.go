package checkout

import (
	"context"
	"time"

	"till/flow"
)

// ClaimPhone makes a pretend phone a project's. Errors: resource_not_found for
// one that is another project's.
func (s *Service) ClaimPhone(ctx context.Context, project flow.ProjectID, phone flow.Phone) error {
	var owner flow.ProjectID
	err := s.update(ctx, func(w *saving) error {
		var err error
		owner, err = w.tx.ClaimPhone(ctx, phone, project, w.now)
		return err
	})
	if err == nil && owner != project {
		err = noPhone()
	}
	return err
}

// OwnPhone is since when a pretend phone is a project's. Errors:
// resource_not_found for one that is not.
func (s *Service) OwnPhone(ctx context.Context, project flow.ProjectID, phone flow.Phone) (time.Time, error) {
	owner, since, err := s.cfg.DB.PhoneOwner(ctx, phone)
	if err == nil && owner != project {
		err = noPhone()
	}
	return since, err
}

// ReleasePhone forgets whose a pretend phone was.
func (s *Service) ReleasePhone(ctx context.Context, phone flow.Phone) error {
	return s.update(ctx, func(w *saving) error { return w.tx.ReleasePhone(ctx, phone) })
}

func noPhone() error { return flow.Refuse(flow.CodeNotFound, "There is no such phone.") }

// PayableBy says whether a project may play a payer of an account number: any
// number but that of another project's session; "" is whoever sits at this machine, who
// may play all. asked is what the number asks for by now, in kobo, 0 where it is none
// of ours. Errors: resource_not_found.
func (s *Service) PayableBy(ctx context.Context, project flow.ProjectID, account string) (asked flow.Kobo, err error) {
	attempt, err := s.cfg.DB.AttemptByAccount(ctx, account)
	if notFound(err) {
		return 0, nil // the bank's own affair
	}
	var session flow.Session
	switch {
	case err != nil:
	case project == "":
		session, err = s.cfg.DB.Session(ctx, attempt.Session)
	default:
		session, err = owned(ctx, s.cfg.DB.Reader, project, attempt.Session)
	}
	if notFound(err) {
		return 0, flow.Refuse(flow.CodeNotFound, "There is no such account number in your project.")
	}
	return session.AskedOn(attempt), err
}

// PaidTo refuses a movement of the rail that is no payment to the project: it
// looks like one that never was.
func (s *Service) PaidTo(ctx context.Context, project flow.ProjectID, railTransactionID string) error {
	p, found, err := s.cfg.DB.PaymentByTransaction(ctx, railTransactionID)
	if err == nil && (!found || p.Project != project) {
		err = flow.Refuse(flow.CodeNotFound, "There is no such payment in your project.")
	}
	return err
}
