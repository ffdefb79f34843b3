package store

import (
	"context"
	"time"

	"till/flow"
)

const selectMovementSQL = `SELECT l.kind, l.subject, l.payment, l.project, COALESCE(p.session, ''), l.rail_clearing, l.rail_id, l.value_at, l.created_at
 FROM ledger l LEFT JOIN payments p ON p.id = l.payment WHERE l.rail_clearing <> 0`

// Movements are the transactions that moved something at the rail with a value
// time from from until before to, oldest first; of one project, or of all where
// it is "".
func (r Reader) Movements(ctx context.Context, project flow.ProjectID, from, to time.Time) ([]flow.Movement, error) {
	return r.movements(ctx, selectMovementSQL+` AND l.value_at >= ? AND l.value_at < ? AND (? = '' OR l.project = ?) ORDER BY l.value_at, l.kind, l.subject`,
		flow.Millis(from), flow.Millis(to), string(project), string(project))
}

// AllMovements are all transactions that moved something at the rail, by the ledger's
// own order. They are read part by part, each at a moment of its own: of those that are
// booked meanwhile some are among them.
func (d *DB) AllMovements(ctx context.Context) (all []flow.Movement, err error) {
	err = allEntries().each(ctx, func(fn func(Reader) error) error { return d.View(ctx, fn) }, func(r Reader, part []any) error {
		some, err := r.movements(ctx, selectMovementSQL+` AND `+someEntries, part...)
		all = append(all, some...)
		return err
	})
	return all, err
}

// MovementsNamed are the transactions about movements that the rail calls by
// these names.
func (r Reader) MovementsNamed(ctx context.Context, names []string) ([]flow.Movement, error) {
	var list []flow.Movement
	for p := range r.run.parts(names) {
		some, err := r.movements(ctx, selectMovementSQL+` AND l.rail_id <> '' AND l.rail_id IN (`+p.marks+`) ORDER BY l.value_at, l.kind, l.subject`, p.args...)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// MovementsOf are what went back of payments: reversals, and refunds that moved something
// at the rail, those that came back too, on whatever day, oldest first.
func (r Reader) MovementsOf(ctx context.Context, payments []string) ([]flow.Movement, error) {
	var list []flow.Movement
	for p := range r.run.parts(payments) {
		some, err := r.movements(ctx, selectMovementSQL+` AND l.payment <> '' AND l.payment IN (`+p.marks+`) AND l.kind IN ('reversal', 'refund_paid', 'refund_returned') ORDER BY l.value_at, l.kind, l.subject`, p.args...)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

func (r Reader) movements(ctx context.Context, query string, args ...any) ([]flow.Movement, error) {
	return rowsOf(ctx, r.run, "read what moved at the rail", query, args, func(scan scanner) (m flow.Movement, err error) {
		var at, booked int64
		var subject string
		if err = scan(&m.Entry, &subject, &m.Payment, &m.Project, &m.Session, &m.Amount, &m.RailTransactionID, &at, &booked); err != nil {
			return m, err
		}
		m.Kind, m.Subject, m.ValueAt = flow.MovementOf(m.Entry), subject, flow.FromMillis(at)
		m.BookedAt = flow.FromMillis(booked)
		if m.RailTransactionID == "" { // its rail gave it no name: ours stands for it
			m.RailTransactionID = subject
		}
		return m, nil
	})
}

// MoneyEvent is an event as far as it tells of money.
type MoneyEvent struct {
	ID      flow.EventID
	Kind    flow.EventKind
	Project flow.ProjectID
	Session flow.SessionID
	Body    []byte
}

// tellsOfMoney are the kinds of event that tell of a movement at the rail.
const tellsOfMoney = `kind IN ('charge.success', 'charge.underpaid', 'charge.late', 'charge.duplicate', 'charge.reversed', 'payment.unmatched', 'payment.reversed',
 'refund.processed', 'refund.needs_attention', 'settlement.success', 'settlement.failed')`

// MoneyEvents are the events of sessions that tell of money, in their order.
func (r Reader) MoneyEvents(ctx context.Context, sessions []string) ([]MoneyEvent, error) {
	var list []MoneyEvent
	for p := range r.run.parts(sessions) {
		some, err := r.moneyEvents(ctx, ` session <> '' AND session IN (`+p.marks+`) AND `+tellsOfMoney+` ORDER BY session, sequence`, p.args...)
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	return list, nil
}

// MoneyEventsAlone are the events since then that tell of money without a
// session, oldest first; of one project, or of all where it is "".
func (r Reader) MoneyEventsAlone(ctx context.Context, project flow.ProjectID, since time.Time) ([]MoneyEvent, error) {
	return r.moneyEvents(ctx, ` id >= ? AND session = '' AND (? = '' OR project = ?) AND `+tellsOfMoney+` ORDER BY id`,
		flow.FirstID(flow.PrefixEvent, since), string(project), string(project))
}

func (r Reader) moneyEvents(ctx context.Context, where string, args ...any) ([]MoneyEvent, error) {
	return rowsOf(ctx, r.run, "read the events about money", `SELECT id, kind, project, session, body FROM events WHERE`+where, args, func(scan scanner) (e MoneyEvent, err error) {
		err = scan(&e.ID, &e.Kind, &e.Project, &e.Session, &e.Body)
		return e, err
	})
}
