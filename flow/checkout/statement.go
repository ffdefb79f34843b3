package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"till/flow"
	"till/flow/store"
	"till/rail"
)

// The bounds of what is read of the bank's statement.
const (
	// walkAfter is how long after a day its statement is read: what is booked
	// around midnight is there by then.
	walkAfter = 30 * time.Minute
	// walkBack is how many days before it are read again with a day: a bank may
	// book a movement later than its value time.
	walkBack = 2
	// walkPatience is how long one of those days may take; by itself it may take all
	// the time that a task has.
	walkPatience = taskPatience / 4
	// walkAgain is how long a bank that does not give its statement of a day is left
	// alone, and walkSeldom how long once that day is over for longer than walkSoon.
	walkAgain  = 10 * time.Minute
	walkSeldom = time.Hour
	walkSoon   = 48 * time.Hour
	// statementLasts is how long a statement is not read again for those who only
	// look; tellsSoon, how long a failure stands.
	statementLasts = time.Minute
	tellsSoon      = 10 * time.Second
	// maxStatements bounds the days that are kept, and that are read in a minute;
	// statementsOfOne, those that are for one project. The last newStatements of
	// them are for projects for which none was read, however many others ask.
	maxStatements   = 24
	statementsOfOne = 5
	newStatements   = 8
)

// plansWalk sees to it that the statement is read every day: once it is owed, each
// day owes the next. After a downtime that catches up day by day.
func (w *saving) plansWalk() error { return w.oweWalk(flow.DateOf(w.now)) }

func (w *saving) oweWalk(day flow.Date) error {
	return w.owe(flow.TaskStatement, string(day), day.Plus(1).Start().Add(walkAfter))
}

// dayAlone ends the subject of work that reads the statement of one day alone, which
// the bank did not give before.
const dayAlone = "/alone"

// walkStatement reads the bank's statement of a day, and of the days before it
// again, and takes in whatever we never heard of. Each day is read by itself: one
// that the bank does not give, because it holds too much or a line of it cannot be
// read, keeps none of the others from being read, and is asked for on and on.
func (s *Service) walkStatement(ctx context.Context, subject string) error {
	last, alone := strings.CutSuffix(subject, dayAlone)
	day := flow.Date(last)
	if alone {
		return s.walkDay(ctx, day)
	}
	var failures error
	var unread []flow.Date
	for back := walkBack; back >= 0; back-- {
		one, cancel := context.WithTimeout(ctx, walkPatience) // one that is slow leaves time for the others
		err := guarded(func() error { return s.walkDay(one, day.Plus(-back)) })
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if notYet(err) || errors.Is(err, context.DeadlineExceeded) {
			unread = append(unread, day.Plus(-back))
			continue
		}
		failures = errors.Join(failures, err)
	}
	// Whatever became of this day: a line that cannot be booked, and stays so, or that we
	// have a bug with, must not keep the money of all later days from being found.
	return errors.Join(failures, s.update(ctx, func(w *saving) error {
		for _, d := range unread {
			if err := w.owe(flow.TaskStatement, string(d)+dayAlone, w.now.Add(walkAgain)); err != nil {
				return err
			}
		}
		return w.oweWalk(day.Plus(1))
	}))
}

// walkDay takes in what we never heard of on the statement of one day. Error:
// NotYetError where the bank does not give it.
func (s *Service) walkDay(ctx context.Context, day flow.Date) error {
	list, err := s.bank.Statement(ctx, day.Start(), day.Plus(1).Start())
	if errors.Is(ctx.Err(), context.Canceled) { // a bank that takes too long is another thing
		return ctx.Err()
	}
	if err != nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelError, "the bank does not give its statement of a day", slog.String("day", string(day)), slog.String("error", err.Error()))
		if s.cfg.Now().Sub(day.Plus(1).Start()) > walkSoon {
			return &NotYetError{Wait: walkSeldom}
		}
		return &NotYetError{Wait: walkAgain}
	}
	unheard, err := unheardOf(ctx, s.cfg.DB.Reader, list)
	if err != nil {
		return err
	}
	var failures error
	for _, n := range unheard {
		failures = errors.Join(failures, guarded(func() error { return s.found(ctx, day, n) }))
	}
	return failures
}

// found takes in what stands on the statement and was not heard of.
func (s *Service) found(ctx context.Context, day flow.Date, n flow.Notice) error {
	if err := s.settle(ctx, n, fromStatement); err != nil {
		return err
	}
	booked, err := s.cfg.DB.MovementsNamed(ctx, []string{n.RailTransactionID})
	if err == nil && len(booked) > 0 {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "found on the statement: the bank had not told us", append(movement(n), slog.String("day", string(day)),
			slog.String("kind", string(n.Kind)))...)
	}
	return err
}

// unheardOf are the lines of a statement that are not booked.
func unheardOf(ctx context.Context, r store.Reader, list []flow.Notice) ([]flow.Notice, error) {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = n.RailTransactionID
	}
	booked, err := r.MovementsNamed(ctx, names)
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(booked))
	for _, m := range booked {
		known[m.RailTransactionID] = true
	}
	return slices.DeleteFunc(slices.Clone(list), func(n flow.Notice) bool { return known[n.RailTransactionID] }), nil
}

// Unknown are the lines of a statement of money that was sent out and that the
// ledger has not booked: a bank sent it for data that is not kept any more.
func Unknown(ctx context.Context, r store.Reader, lines []flow.Notice) ([]flow.Notice, error) {
	return unheardOf(ctx, r, slices.DeleteFunc(slices.Clone(lines), func(n flow.Notice) bool { return n.Kind != flow.PaidOut }))
}

// statements are the days that were read for those who only look: however many
// they are, the bank is asked seldom.
type statements struct {
	mu   sync.Mutex
	read map[flow.Date]*statement
}

// statement is what the bank gave for a day.
type statement struct {
	whose flow.ProjectID // it was read for, first
	made  time.Time
	mu    sync.Mutex // held while it is read
	at    time.Time
	lines []flow.Notice
	err   error
}

// fresh says whether a statement need not be read again.
func (t *statement) fresh(now time.Time) bool {
	lasts := statementLasts
	if t.err != nil {
		lasts = tellsSoon
	}
	return !t.at.IsZero() && now.Sub(t.at) < lasts && !now.Before(t.at)
}

// of is the place of a day's statement, which a project asks for. What was read for
// another one serves it too. Errors: rate_limited, where too many others were read
// just now, for it or for all.
func (d *statements) of(project flow.ProjectID, day flow.Date, now time.Time) (*statement, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.read == nil {
		d.read = map[flow.Date]*statement{}
	}
	mine := 0
	for old, t := range d.read {
		if t.mu.TryLock() { // nobody reads it
			if !t.fresh(now) && now.Sub(t.made).Abs() >= tellsSoon { // whoever made it is about to read it
				delete(d.read, old)
			}
			t.mu.Unlock()
		}
		if kept := d.read[old]; kept != nil && kept.whose == project {
			mine++
		}
	}
	if t, ok := d.read[day]; ok {
		return t, nil
	}
	most := maxStatements
	if mine > 0 {
		most -= newStatements
	}
	if mine >= statementsOfOne || len(d.read) >= most {
		refusal := flow.Refuse(flow.CodeRateLimited, "The bank was asked for its statement of many days just now. Try again in a minute.")
		refusal.RetryAfter = statementLasts
		return nil, refusal
	}
	d.read[day] = &statement{whose: project, made: now}
	return d.read[day], nil
}

// statementOf is the bank's statement of a day, which a project asks for, read at
// most once a minute, and when it was read.
// Errors: rate_limited, rail_unavailable, rail_rejected, rail_timeout.
func (s *Service) statementOf(ctx context.Context, project flow.ProjectID, day flow.Date) (lines []flow.Notice, read time.Time, err error) {
	t, err := s.days.of(project, day, s.cfg.Now())
	if err != nil {
		return nil, time.Time{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := s.cfg.Now(); !t.fresh(now) {
		t.lines, t.err = s.bank.Statement(ctx, day.Start(), day.Plus(1).Start())
		if t.at = now; errors.Is(t.err, context.Canceled) {
			t.at = time.Time{} // whoever asked has gone: that says nothing of the bank
		}
	}
	switch {
	case t.err == nil:
		return t.lines, t.at, nil
	case errors.Is(t.err, rail.ErrUnavailable):
		return nil, time.Time{}, &flow.Error{Code: flow.CodeRailUnavailable, Message: "The bank cannot be reached right now. Try again.", Err: t.err}
	case errors.Is(t.err, rail.ErrRejected):
		return nil, time.Time{}, &flow.Error{Code: flow.CodeRailRejected, Message: "The bank gives no statement of this day.", Err: t.err}
	}
	return nil, time.Time{}, &flow.Error{Code: flow.CodeRailTimeout, Message: "The bank has not given its statement in time. Try again.", Err: fmt.Errorf("read the statement of %s: %w", day, t.err)}
}
