package checkout

import (
	"context"
	"log/slog"
	"time"

	"till/flow"
	"till/flow/crashpoint"
	"till/rail"
)

// This file makes settlements: which project is owed one, and what is in it.

// The bounds of settlements.
const (
	// gatherAtOnce is how many lines of the ledger one transaction puts into a
	// settlement, so that nobody else waits for long.
	gatherAtOnce = 1000
	// oweAtOnce is how many projects, or payouts, one transaction hands to the worker.
	oweAtOnce = 100
	// paydayAgain is when a payday is tried again that met a fault.
	paydayAgain = 10 * time.Minute
	// allProjects is the subject of the task of a payday.
	allProjects = "all"
)

// keepPayday keeps that merchants are paid out on each day on which banks work. One that
// is overdue stays; one that was kept for later gives way to a day that is open by now.
func (s *Service) keepPayday(ctx context.Context) error {
	if s.cfg.Payee == nil {
		return nil
	}
	return wrap("keep the next payday", s.update(ctx, func(w *saving) error {
		return w.tx.KeepTask(w.ctx, flow.Task{Kind: flow.TaskPayday, Subject: allProjects, Due: s.cfg.Calendar.NextPayday(w.now)})
	}))
}

// payday owes a settlement to every project that something may be due to, and
// has the bank asked about every payout that it has not said the last word on.
// Its task never ends and is never given up: it is put off to the next time.
func (s *Service) payday(ctx context.Context) error {
	now := s.cfg.Now()
	next := s.cfg.Calendar.NextPayday(now)
	if s.cfg.Payee == nil {
		return &NotYetError{Wait: next.Sub(now)}
	}
	err := s.owePages(ctx, s.oweSettlements)
	if err == nil {
		err = s.owePages(ctx, s.owePayouts)
	}
	if err != nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelError, "a payday met a fault, and is tried again", slog.String("error", err.Error()))
		next = now.Add(paydayAgain)
	}
	return &NotYetError{Wait: next.Sub(now)}
}

// owePages owes work a page in a transaction. page returns where it ended, "" for
// the last one.
func (s *Service) owePages(ctx context.Context, page func(w *saving, after string) (string, error)) error {
	for after, more := "", true; more; more = after != "" {
		err := s.update(ctx, func(w *saving) error {
			end, err := page(w, after)
			if err == nil {
				w.tx.After(func() { after = end })
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) oweSettlements(w *saving, after string) (string, error) {
	for range oweAtOnce {
		project, err := w.tx.NextToSettle(w.ctx, flow.ProjectID(after))
		if err != nil || project == "" {
			return "", err
		}
		if err := w.owe(flow.TaskSettle, string(project), w.now); err != nil {
			return "", err
		}
		after = string(project)
	}
	return after, nil
}

func (s *Service) owePayouts(w *saving, after string) (string, error) {
	list, err := w.tx.OpenSettlements(w.ctx, flow.SettlementID(after), oweAtOnce)
	if err != nil {
		return "", err
	}
	for _, b := range list {
		if err := w.owe(flow.TaskPayout, string(b.ID), w.now); err != nil {
			return "", err
		}
	}
	if len(list) < oweAtOnce {
		return "", nil
	}
	return string(list[len(list)-1].ID), nil
}

// settleLast makes a project's settlement of the last payday: of this day, or of
// one that was missed, which makes up for those before it too.
func (s *Service) settleLast(ctx context.Context, project flow.ProjectID) error {
	_, _, err := s.settleProject(ctx, project, s.cfg.Calendar.LastPayday(s.cfg.Now()))
	return err
}

// settleProject makes a project's settlement of a day; made is false where there
// is none, because nothing is due or because it is blocked. There is one for each
// day: the one that was made before is given again.
func (s *Service) settleProject(ctx context.Context, project flow.ProjectID, on flow.Date) (b flow.Settlement, made bool, err error) {
	to, blocked, err := s.payee(ctx, project)
	if err != nil {
		return flow.Settlement{}, false, err
	}
	if blocked != "" {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a project is not paid out", slog.String("project", string(project)), slog.String("blocked", blocked))
		return flow.Settlement{}, false, nil
	}
	b, found, err := s.beginSettlement(ctx, project, on)
	if err != nil || !found {
		return flow.Settlement{}, false, err
	}
	crashpoint.At(crashpoint.SettlementBegun)
	for more := b.CreatedAt.IsZero(); more; {
		if b, more, err = s.gather(ctx, b.ID, on, to); err != nil {
			return flow.Settlement{}, false, err
		}
	}
	return b, !b.CreatedAt.IsZero(), nil
}

// payee is where a project is paid out to, or why it is not.
func (s *Service) payee(ctx context.Context, project flow.ProjectID) (to flow.BankAccount, blocked string, err error) {
	if s.cfg.Board.Barred(project) {
		return to, flow.BlockedStopped, nil
	}
	if s.cfg.Payee == nil {
		return to, flow.BlockedNoAccount, nil
	}
	to, found, err := s.cfg.Payee(ctx, project)
	if err == nil && !found {
		blocked = flow.BlockedNoAccount
	}
	return to, blocked, wrap("find where a project is paid out to", err)
}

// Blocked says why a project is not paid out, "" where nothing is in the way.
func (s *Service) Blocked(ctx context.Context, project flow.ProjectID) (string, error) {
	_, blocked, err := s.payee(ctx, project)
	return blocked, err
}

// beginSettlement keeps that a project's lines are being gathered, where they
// come to something. What was begun and cut off is taken up.
func (s *Service) beginSettlement(ctx context.Context, project flow.ProjectID, on flow.Date) (b flow.Settlement, found bool, err error) {
	err = s.update(ctx, func(w *saving) error {
		if b, found, err = w.tx.SettlementOn(w.ctx, project, on); err != nil || found {
			return err
		}
		if b, found, err = w.tx.Gathering(w.ctx, project); err != nil || found {
			return err
		}
		due, err := w.tx.Due(w.ctx, project, s.cfg.Calendar.DueBefore(on))
		if err != nil {
			return err
		}
		available, err := w.tx.Available(w.ctx, project)
		if err != nil || due+available <= 0 {
			return err
		}
		id, err := s.ids.New(flow.PrefixSettlement)
		if err != nil {
			return err
		}
		b = flow.Settlement{ID: flow.SettlementID(id), Project: project, SettlesOn: on, Status: flow.SettlementPending}
		found = true
		return w.tx.SaveSettlement(w.ctx, b)
	})
	return b, found, wrap("begin a settlement", err)
}

// gather puts more lines into a settlement, and ends it with the last of them.
// One whose lines come to nothing, because something was taken back meanwhile,
// stays open for those of later days.
func (s *Service) gather(ctx context.Context, id flow.SettlementID, on flow.Date, to flow.BankAccount) (b flow.Settlement, more bool, err error) {
	err = s.update(ctx, func(w *saving) error {
		more = false
		if b, err = w.tx.Settlement(w.ctx, id); err != nil || !b.CreatedAt.IsZero() {
			return err
		}
		n, err := w.tx.Gather(w.ctx, b, s.cfg.Calendar.DueBefore(on), gatherAtOnce)
		if err != nil || n == gatherAtOnce {
			more = true
			return err
		}
		gathered, err := w.tx.Gathered(w.ctx, id)
		if err != nil {
			return err
		}
		available, err := w.tx.Available(w.ctx, b.Project)
		if err != nil {
			return err
		}
		bank, _ := rail.BankByCode(to.BankCode)
		b.To, b.BankName = to, bank.Name
		change, enough := b.Close(gathered, available, on, w.now)
		if !enough {
			return nil
		}
		b = *change.Settlement
		if err := w.keepSettlement(change); err != nil {
			return err
		}
		return w.owe(flow.TaskPayout, string(id), w.now)
	})
	return b, more, wrap("gather the lines of a settlement", err)
}

// keepSettlement keeps what was decided about a settlement.
func (w *saving) keepSettlement(c flow.Change) error {
	if c.Settlement == nil {
		return nil
	}
	if err := w.save(c, flow.Session{}); err != nil {
		return err
	}
	for _, f := range c.Facts {
		b := *f.Settlement
		if err := w.tellAlone(b.Project, f.Kind, string(b.ID), flow.RecordSettlement(b, w.s.cfg.Around)); err != nil {
			return err
		}
	}
	return nil
}
