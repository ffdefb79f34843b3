package checkout

import (
	"context"
	"errors"
	"slices"
	"time"

	"till/flow"
	"till/flow/store"
)

// Reconciliation is a day's movements as the rail, the ledger and the events
// tell them, and where they differ.
type Reconciliation struct {
	Date        flow.Date
	Read        time.Time // when the bank was asked for its statement
	Complete    bool      // the day was over for long enough then: what was sent before midnight has landed
	Rail        map[flow.MovementKind]flow.Total
	Ledger      map[flow.MovementKind]flow.Total
	Events      map[flow.MovementKind]flow.Total
	Differences []flow.Difference
}

// Balanced says whether all three agree.
func (r Reconciliation) Balanced() bool { return len(r.Differences) == 0 }

// FirstReconciled is the first day that can be asked for: before it there was nothing.
const FirstReconciled flow.Date = "2000-01-01"

// Reconcile compares a day of a project, by the bank's value time. The bank is
// asked for its statement at most once a minute. Errors: invalid_field for a day
// that has not begun, rate_limited, rail_unavailable, rail_rejected, rail_timeout.
func (s *Service) Reconcile(ctx context.Context, project flow.ProjectID, day flow.Date) (Reconciliation, error) {
	now := s.cfg.Now()
	if day.Start().After(now) {
		return Reconciliation{}, flow.Refuse(flow.CodeInvalidField, "%s has not begun in Lagos.", day)
	}
	lines, read, err := s.statementOf(ctx, project, day)
	if err != nil {
		return Reconciliation{}, err
	}
	var out Reconciliation
	err = s.cfg.DB.View(ctx, func(r store.Reader) error {
		out, err = ReconcileDay(ctx, r, lines, project, day, read)
		return err
	})
	return out, wrap("reconcile a day", err)
}

// ReconcileDay compares what a statement lists for a day with what is booked and
// was told; of one project, or of all and of nobody where it is "". read is when the
// bank was asked for the statement: what was booked since then cannot stand on it.
func ReconcileDay(ctx context.Context, r store.Reader, lines []flow.Notice, project flow.ProjectID, day flow.Date, read time.Time) (Reconciliation, error) {
	ledger, err := r.Movements(ctx, project, day.Start(), day.Plus(1).Start())
	if err != nil {
		return Reconciliation{}, err
	}
	ledger = bookedBy(ledger, lines, read)
	atRail, ledger, err := ofProject(ctx, r, lines, ledger, project)
	if err != nil {
		return Reconciliation{}, err
	}
	events, err := toldOfMoney(ctx, r, ledger, project, day.Start())
	if err != nil {
		return Reconciliation{}, err
	}
	if ledger, err = besides(ctx, r, ledger, events, project, day.Start()); err != nil {
		return Reconciliation{}, err
	}
	return Reconciliation{
		Date: day, Read: read, Complete: !read.Before(day.Plus(1).Start().Add(walkAfter)),
		Rail: flow.Totals(atRail), Ledger: flow.Totals(ledger), Events: flow.Totals(once(events)),
		Differences: flow.Reconcile(atRail, ledger, events),
	}, nil
}

// clocksApart is by how much the clocks of two processes may differ. One that is behind
// dates what it books before a statement that another one has read already.
const clocksApart = 3 * time.Second

// bookedBy is the ledger without what may have been booked after a statement was read
// and is not on it.
func bookedBy(ledger []flow.Movement, lines []flow.Notice, read time.Time) []flow.Movement {
	listed := map[string]bool{}
	for _, n := range lines {
		if m, ok := flow.MovementSaid(n); ok {
			listed[m.RailTransactionID] = true
		}
	}
	return slices.DeleteFunc(ledger, func(m flow.Movement) bool {
		return m.BookedAt.After(read.Add(-clocksApart)) && !listed[m.RailTransactionID]
	})
}

// once is each movement once, though several events tell of it.
func once(events []flow.Movement) []flow.Movement {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(events), func(m flow.Movement) bool {
		before := seen[m.RailTransactionID]
		seen[m.RailTransactionID] = true
		return before
	})
}

// ofProject are the lines of a statement that are a project's, and the ledger
// with what it booked of them under another value time.
func ofProject(ctx context.Context, r store.Reader, lines []flow.Notice, ledger []flow.Movement, project flow.ProjectID) (atRail, all []flow.Movement, err error) {
	here := map[string]bool{}
	for _, m := range ledger {
		here[m.RailTransactionID] = true
	}
	var names []string
	for _, n := range lines {
		if m, ok := flow.MovementSaid(n); ok && !here[m.RailTransactionID] {
			names = append(names, m.RailTransactionID)
		}
	}
	others, err := r.MovementsNamed(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	elsewhere := map[string]flow.Movement{}
	for _, m := range others {
		elsewhere[m.RailTransactionID] = m
	}
	for _, n := range lines {
		m, ok := flow.MovementSaid(n)
		if !ok {
			continue
		}
		booked, found := elsewhere[m.RailTransactionID]
		switch {
		case here[m.RailTransactionID]:
		case found && (project == "" || booked.Project == project):
			ledger = append(ledger, booked)
			here[m.RailTransactionID] = true
		case found:
			continue // another project's
		default:
			if m.Session, m.Project, err = whose(ctx, r, n); err != nil {
				return nil, nil, err
			}
			if project != "" && m.Project != project {
				continue
			}
		}
		atRail = append(atRail, m)
	}
	return atRail, silenced(ledger), nil
}

// whose is whose money a line of the statement is that is not booked: zero values
// where nobody can tell.
func whose(ctx context.Context, r store.Reader, n flow.Notice) (flow.SessionID, flow.ProjectID, error) {
	if isPayout(n.Reference) {
		settlement, err := r.Settlement(ctx, flow.SettlementID(n.Reference))
		if notFound(err) {
			return "", "", nil
		}
		return "", settlement.Project, err
	}
	if n.Kind == flow.PaidOut || n.Kind == flow.PayoutFailed {
		refund, err := r.Refund(ctx, flow.RefundOf(n.Reference))
		if notFound(err) {
			return "", "", nil
		}
		return refund.Session, refund.Project, err
	}
	attempt, err := r.AttemptByReference(ctx, n.Reference)
	if notFound(err) {
		attempt, err = r.AttemptByAccount(ctx, n.AccountNumber)
	}
	if notFound(err) {
		return "", n.Collects, nil
	}
	if err != nil {
		return "", "", err
	}
	session, err := r.Session(ctx, attempt.Session)
	return session.ID, session.Project, err
}

// silenced marks what no merchant is told of: money of no known project.
func silenced(ledger []flow.Movement) []flow.Movement {
	for i, m := range ledger {
		ledger[i].Silent = m.Project == ""
	}
	return ledger
}

// besides marks what no merchant is told of because it is none of theirs: what left
// once more than a refund and came back since, on whatever day. While it is out
// nothing is marked: a person is to look.
func besides(ctx context.Context, r store.Reader, ledger, told []flow.Movement, project flow.ProjectID, since time.Time) ([]flow.Movement, error) {
	payments := paymentsOf(untold(ledger, told), flow.MoveRefund, flow.MoveRefundReturned)
	if len(payments) == 0 {
		return ledger, nil
	}
	all, err := r.MovementsOf(ctx, payments)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m flow.Movement) bool { return m.Kind == flow.MoveReversal })
	if told, err = toldOfMoney(ctx, r, all, project, since); err != nil {
		return nil, err
	}
	quiet := map[string]bool{}
	for list := untold(all, told); len(list) > 0; list = list[1:] {
		i := slices.IndexFunc(list, func(m flow.Movement) bool { return m.Payment == list[0].Payment && m.Amount == -list[0].Amount })
		if i < 0 {
			continue
		}
		quiet[list[0].RailTransactionID], quiet[list[i].RailTransactionID] = true, true
		list = slices.Delete(list, i, i+1)
	}
	for i, m := range ledger {
		ledger[i].Silent = m.Silent || quiet[m.RailTransactionID]
	}
	return ledger, nil
}

// paymentsOf are the payments that movements of some kinds are of, each once.
func paymentsOf(list []flow.Movement, kinds ...flow.MovementKind) (payments []string) {
	for _, m := range list {
		if slices.Contains(kinds, m.Kind) && m.Payment != "" {
			payments = append(payments, string(m.Payment))
		}
	}
	slices.Sort(payments)
	return slices.Compact(payments)
}

// untold are the movements of the ledger that no event tells of.
func untold(ledger, told []flow.Movement) []flow.Movement {
	heard := map[string]bool{}
	for _, m := range told {
		heard[m.RailTransactionID] = true
	}
	return slices.DeleteFunc(slices.Clone(ledger), func(m flow.Movement) bool { return heard[m.RailTransactionID] })
}

// toldOfMoney are the events that tell of movements of the ledger, as movements.
func toldOfMoney(ctx context.Context, r store.Reader, ledger []flow.Movement, project flow.ProjectID, since time.Time) ([]flow.Movement, error) {
	back, err := r.MovementsOf(ctx, paymentsOf(ledger, flow.MoveReversal, flow.MoveRefundReturned))
	if err != nil {
		return nil, err
	}
	var sessions []string
	alone := false
	for _, m := range slices.Concat(ledger, silenced(back)) {
		if m.Session != "" {
			sessions = append(sessions, string(m.Session))
			continue
		}
		if alone = alone || !m.Silent; m.BookedAt.Before(since) { // the bank's day may come after ours
			since = m.BookedAt
		}
	}
	slices.Sort(sessions)
	events, err := r.MoneyEvents(ctx, slices.Compact(sessions))
	if err != nil {
		return nil, err
	}
	if alone { // made when it was booked, or later
		more, err := r.MoneyEventsAlone(ctx, project, since)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	booked := newBooked(ledger, back)
	var out, elsewhere []flow.Movement
	var failures error
	for _, e := range events {
		m, here, err := booked.toldBy(e)
		failures = errors.Join(failures, err)
		switch {
		case here:
			out = append(out, m)
		case m.RailTransactionID != "":
			elsewhere = append(elsewhere, m)
		}
	}
	if failures != nil {
		return nil, failures
	}
	unbooked, err := unbookedOf(ctx, r, elsewhere)
	return append(out, unbooked...), err
}

// unbookedOf are the movements that were told and are booked on no day.
func unbookedOf(ctx context.Context, r store.Reader, told []flow.Movement) ([]flow.Movement, error) {
	names := make([]string, len(told))
	for i, m := range told {
		names[i] = m.RailTransactionID
	}
	booked, err := r.MovementsNamed(ctx, names)
	return slices.DeleteFunc(told, func(m flow.Movement) bool {
		return slices.ContainsFunc(booked, func(b flow.Movement) bool { return b.RailTransactionID == m.RailTransactionID })
	}), err
}
