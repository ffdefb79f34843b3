package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"till/flow"
	"till/flow/planted"
)

const settlementColumns = `id, project, settles_on, status, amount, carried, lines, bank_code, bank_name, account_number, account_name, tries, returned,
 rail_transaction_id, failure, created_at, sent_at, done_at`

const saveSettlementSQL = `INSERT INTO settlements (` + settlementColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (id) DO UPDATE SET settles_on = excluded.settles_on, status = excluded.status, amount = excluded.amount, carried = excluded.carried,
 lines = excluded.lines, bank_code = excluded.bank_code, bank_name = excluded.bank_name, account_number = excluded.account_number,
 account_name = excluded.account_name, tries = excluded.tries, returned = excluded.returned, rail_transaction_id = excluded.rail_transaction_id,
 failure = excluded.failure, created_at = excluded.created_at, sent_at = excluded.sent_at, done_at = excluded.done_at`

// SaveSettlement keeps a settlement, new or changed. A second one of a project
// for a day is refused.
func (t *Tx) SaveSettlement(ctx context.Context, b flow.Settlement) error {
	err := t.run.put(ctx, saveSettlementSQL, b.ID, b.Project, string(b.SettlesOn), b.Status, b.Amount, b.Carried, b.Lines, b.To.BankCode, b.BankName,
		b.To.Number, b.To.Name, b.Tries, flag(b.Returned), b.RailTransactionID, b.Failure, flow.Millis(b.CreatedAt), flow.Millis(b.SentAt),
		flow.Millis(b.DoneAt))
	if err != nil {
		return fmt.Errorf("save settlement %s: %w", b.ID, err)
	}
	return nil
}

const selectSettlementSQL = `SELECT ` + settlementColumns + ` FROM settlements`

// Settlement reads a settlement. Error: resource_not_found.
func (r Reader) Settlement(ctx context.Context, id flow.SettlementID) (flow.Settlement, error) {
	list, err := r.settlements(ctx, selectSettlementSQL+` WHERE id = ?`, string(id))
	return only(list, err, "settlement", string(id))
}

// SettlementOf reads a settlement of a project; another project's does not exist.
func (r Reader) SettlementOf(ctx context.Context, project flow.ProjectID, id flow.SettlementID) (flow.Settlement, error) {
	list, err := r.settlements(ctx, selectSettlementSQL+r.run.ofProject(), string(project), string(id))
	return only(list, err, "settlement", string(id))
}

// Gathering reads the settlement that a project's lines are being gathered for.
func (r Reader) Gathering(ctx context.Context, project flow.ProjectID) (b flow.Settlement, found bool, err error) {
	return r.settlement(ctx, ` WHERE project = ? AND created_at = 0`, string(project))
}

// SettlementOn reads a project's settlement of a day.
func (r Reader) SettlementOn(ctx context.Context, project flow.ProjectID, on flow.Date) (b flow.Settlement, found bool, err error) {
	return r.settlement(ctx, ` WHERE project = ? AND settles_on = ? AND created_at > 0`, string(project), string(on))
}

func (r Reader) settlement(ctx context.Context, where string, args ...any) (flow.Settlement, bool, error) {
	return first(r.settlements(ctx, selectSettlementSQL+where, args...))
}

// SettlementFilter narrows a list of settlements; zero fields do not.
type SettlementFilter struct {
	Project flow.ProjectID
	Status  flow.SettlementStatus
	Session flow.SessionID // that money of is in it
	From    time.Time      // when it was made
	Until   time.Time      // exclusive
	Before  string         // an id: only older settlements
	Limit   int
}

// linesOfSQL are the lines that a session's money is in settlements with.
const linesOfSQL = ` FROM payments p JOIN ledger l ON l.payment = p.id JOIN settlement_items i ON i.kind = l.kind AND i.subject = l.subject
 WHERE p.session = ? AND p.session <> '' AND l.payment <> '' AND i.settlement <> ''`

const listSettlementsSQL = selectSettlementSQL + ` WHERE project = ? AND created_at > 0 AND (? = '' OR status = ?) AND (? = '' OR id < ?)
 AND (? = '' OR id IN (SELECT i.settlement` + linesOfSQL + `)) AND created_at >= ? AND created_at < ? ORDER BY id DESC LIMIT ?`

// Settlements lists a project's settlements, newest first.
func (r Reader) Settlements(ctx context.Context, f SettlementFilter) ([]flow.Settlement, error) {
	return r.settlements(ctx, listSettlementsSQL, string(f.Project), string(f.Status), string(f.Status), f.Before, f.Before,
		string(f.Session), string(f.Session), flow.Millis(f.From), cmp.Or(flow.Millis(f.Until), never), f.Limit)
}

// OpenSettlements lists settlements that the bank has not said the last word
// about, of all projects, from after an id on.
func (r Reader) OpenSettlements(ctx context.Context, after flow.SettlementID, limit int) ([]flow.Settlement, error) {
	return r.settlements(ctx, selectSettlementSQL+` WHERE status IN ('PENDING', 'PROCESSING') AND created_at > 0 AND id > ? ORDER BY id LIMIT ?`,
		string(after), limit)
}

func (r Reader) settlements(ctx context.Context, query string, args ...any) ([]flow.Settlement, error) {
	return rowsOf(ctx, r.run, "read settlements", query, args, func(scan scanner) (flow.Settlement, error) { return scanSettlement(scan) })
}

// scanSettlement reads a settlement's columns, and those that follow them.
func scanSettlement(scan scanner, more ...any) (b flow.Settlement, err error) {
	var returned, created, sent, done int64
	err = scan(append([]any{
		&b.ID, &b.Project, &b.SettlesOn, &b.Status, &b.Amount, &b.Carried, &b.Lines, &b.To.BankCode, &b.BankName, &b.To.Number,
		&b.To.Name, &b.Tries, &returned, &b.RailTransactionID, &b.Failure, &created, &sent, &done,
	}, more...)...)
	b.Returned, b.CreatedAt, b.SentAt, b.DoneAt = returned == 1, flow.FromMillis(created), flow.FromMillis(sent), flow.FromMillis(done)
	return b, err
}

const settledSQL = `SELECT ` + settlementColumns + `, net FROM settlements JOIN (SELECT i.settlement AS holds, CAST(SUM(i.net) AS BIGINT) AS net` + linesOfSQL + `
 GROUP BY i.settlement) AS part ON holds = id WHERE created_at > 0 ORDER BY id`

// Settled lists the settlements that a session's money is in, oldest first.
func (r Reader) Settled(ctx context.Context, session flow.SessionID) ([]flow.SettlementShare, error) {
	return rowsOf(ctx, r.run, "read the settlements of session "+string(session), settledSQL, []any{string(session)}, func(scan scanner) (s flow.SettlementShare, err error) {
		s.Settlement, err = scanSettlement(scan, &s.Net)
		return s, err
	})
}

// waits keeps that a ledger transaction waits for its settlement day.
func (t *Tx) waits(ctx context.Context, e flow.Entry) error {
	var net flow.Kobo
	for _, line := range e.Postings {
		if line.Account == flow.MerchantPending {
			net -= line.Amount
		}
	}
	if net == 0 || e.Project == "" || e.Kind == flow.EntrySettle {
		return nil
	}
	err := t.run.put(ctx, `INSERT INTO settlement_items (kind, subject, settlement, project, net, created_at) VALUES (?, ?, '', ?, ?, ?)`,
		string(e.Kind), e.Subject, string(e.Project), net, flow.Millis(e.At))
	if err != nil {
		return fmt.Errorf("post %s %s: %w", e.Kind, e.Subject, err)
	}
	return nil
}

// dueSQL are a project's lines that are due before a time. What is against the
// merchant is due at once.
const dueSQL = `settlement = '' AND project = ? AND (created_at < ? OR net < 0)`

// Due sums up what a project's lines come to that are due before a time, in kobo.
func (r Reader) Due(ctx context.Context, project flow.ProjectID, before time.Time) (net flow.Kobo, err error) {
	_, err = r.run.one(ctx, `SELECT CAST(COALESCE(SUM(net), 0) AS BIGINT) FROM settlement_items WHERE `+dueSQL,
		[]any{string(project), flow.Millis(before)}, &net)
	if err != nil {
		return 0, fmt.Errorf("sum up what is due: %w", err)
	}
	return net, nil
}

// Available is what earlier payouts left of a project's money, in kobo.
func (r Reader) Available(ctx context.Context, project flow.ProjectID) (amount flow.Kobo, err error) {
	_, err = r.run.one(ctx, `SELECT CAST(COALESCE(SUM(-merchant_available), 0) AS BIGINT) FROM ledger WHERE merchant_available <> 0 AND project = ?`,
		[]any{string(project)}, &amount)
	if err != nil {
		return 0, fmt.Errorf("sum up what is available: %w", err)
	}
	return amount, nil
}

const gatherSQL = `UPDATE settlement_items SET settlement = ? WHERE (kind, subject) IN
 (SELECT kind, subject FROM settlement_items WHERE ` + dueSQL + ` ORDER BY created_at LIMIT ?)`

// Gather puts lines of a project that are due before a time into a settlement,
// at most so many, and returns how many there were.
func (t *Tx) Gather(ctx context.Context, b flow.Settlement, before time.Time, limit int) (int64, error) {
	query := gatherSQL
	if planted.SettledTwice {
		query = strings.Replace(query, "settlement = '' AND", "", 1)
	}
	n, err := t.run.exec(ctx, query, b.ID, string(b.Project), flow.Millis(before), limit)
	if err != nil {
		return 0, fmt.Errorf("gather the lines of settlement %s: %w", b.ID, err)
	}
	return n, nil
}

// Gathered sums up the lines of a settlement.
func (r Reader) Gathered(ctx context.Context, id flow.SettlementID) (g flow.Gathered, err error) {
	_, err = r.run.one(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(net), 0) AS BIGINT) FROM settlement_items WHERE settlement = ? AND settlement <> ''`,
		[]any{string(id)}, &g.Lines, &g.Net)
	if err != nil {
		return flow.Gathered{}, fmt.Errorf("sum up settlement %s: %w", id, err)
	}
	return g, nil
}

// LinePlace is where a page of a settlement's lines ended; the zero one is the
// beginning.
type LinePlace struct {
	At      time.Time
	Kind    flow.EntryKind
	Subject string
}

// PlaceOf is where a page that ends with a line of a settlement ended.
func PlaceOf(l flow.SettlementLine) LinePlace { return LinePlace{l.At, l.Kind, l.Subject} }

// String is the place as the address of the next page has it.
func (p LinePlace) String() string {
	return fmt.Sprintf("%d/%s/%s", flow.Millis(p.At), p.Kind, p.Subject)
}

// ReadLinePlace reads what String wrote; false for what is none.
func ReadLinePlace(text string) (p LinePlace, ok bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return LinePlace{}, false
	}
	at, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil || at <= 0 || strings.ContainsFunc(parts[1]+parts[2], func(r rune) bool { return r < '!' || r > '~' }) {
		return LinePlace{}, false
	}
	return LinePlace{flow.FromMillis(at), flow.EntryKind(parts[1]), parts[2]}, true
}

const settlementLinesSQL = `SELECT i.kind, i.subject, l.payment, i.net, -l.fees, i.created_at, COALESCE(s.id, ''), COALESCE(s.reference, ''),
 COALESCE(NULLIF(s.customer_name, ''), s.customer_email, '') FROM settlement_items i
 JOIN ledger l ON l.kind = i.kind AND l.subject = i.subject LEFT JOIN payments p ON p.id = l.payment LEFT JOIN sessions s ON s.id = p.session
 WHERE i.settlement = ? AND i.settlement <> '' AND (i.created_at, i.kind, i.subject) > (?, ?, ?) ORDER BY i.created_at, i.kind, i.subject LIMIT ?`

// SettlementLines lists the lines of a settlement, oldest first.
func (r Reader) SettlementLines(ctx context.Context, id flow.SettlementID, after LinePlace, limit int) ([]flow.SettlementLine, error) {
	args := []any{string(id), flow.Millis(after.At), string(after.Kind), after.Subject, limit}
	return rowsOf(ctx, r.run, "read the lines of settlement "+string(id), settlementLinesSQL, args, func(scan scanner) (l flow.SettlementLine, err error) {
		var at int64
		err = scan(&l.Kind, &l.Subject, &l.Payment, &l.Net, &l.Fee, &at, &l.Session, &l.Reference, &l.Customer)
		l.At = flow.FromMillis(at)
		return l, err
	})
}

const settlementSumsSQL = `SELECT i.settlement, i.kind, COUNT(*), CAST(SUM(i.net) AS BIGINT), CAST(SUM(-l.fees) AS BIGINT) FROM settlement_items i
 JOIN ledger l ON l.kind = i.kind AND l.subject = i.subject WHERE i.settlement <> '' AND i.settlement IN (%s)
 GROUP BY i.settlement, i.kind ORDER BY i.settlement, i.kind`

// SettlementSums are what the lines of some settlements come to, by their kinds.
func (r Reader) SettlementSums(ctx context.Context, of []flow.Settlement) (map[flow.SettlementID][]flow.SettlementSum, error) {
	ids := make([]string, len(of))
	for i, b := range of {
		ids[i] = string(b.ID)
	}
	sums := make(map[flow.SettlementID][]flow.SettlementSum, len(of))
	for part := range r.run.parts(ids) {
		err := r.run.each(ctx, fmt.Sprintf(settlementSumsSQL, part.marks), part.args, func(scan scanner) error {
			var id flow.SettlementID
			var s flow.SettlementSum
			err := scan(&id, &s.Kind, &s.Lines, &s.Net, &s.Fee)
			sums[id] = append(sums[id], s)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("sum up settlements: %w", err)
		}
	}
	return sums, nil
}

const nextToSettleSQL = `SELECT COALESCE(MIN(project), '') FROM (
 SELECT MIN(project) AS project FROM settlement_items WHERE settlement = '' AND project > ?
 UNION ALL SELECT MIN(project) FROM settlements WHERE created_at = 0 AND project > ?
 UNION ALL SELECT MIN(project) FROM ledger WHERE merchant_available <> 0 AND project > ?) AS owed`

// NextToSettle is the first project after another one that has lines which wait
// for their day or are being gathered, or ever had money that was available; "" where
// there is none.
func (r Reader) NextToSettle(ctx context.Context, after flow.ProjectID) (next flow.ProjectID, err error) {
	_, err = r.run.one(ctx, nextToSettleSQL, []any{string(after), string(after), string(after)}, &next)
	if err != nil {
		return "", fmt.Errorf("find who is to be paid out: %w", err)
	}
	return next, nil
}

// KeepTask keeps that work is owed by a time at the latest. What is due sooner, or is
// being done, stays as it is.
func (t *Tx) KeepTask(ctx context.Context, task flow.Task) error {
	err := t.run.put(ctx, `INSERT INTO tasks (kind, subject, due, token, gen, attempts) VALUES (?, ?, ?, '', ?, 0)
 ON CONFLICT (kind, subject) DO UPDATE SET due = excluded.due WHERE tasks.token = '' AND excluded.due < tasks.due`,
		task.Kind, task.Subject, flow.Millis(task.Due), firstGen())
	if err != nil {
		return fmt.Errorf("keep the task %s %s: %w", task.Kind, task.Subject, err)
	}
	return nil
}
