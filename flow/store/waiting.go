package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"till/flow"
)

// Queue is one kind of thing that waits for somebody.
type Queue string

// The queues.
const (
	QueueUnderpaid Queue = "underpaid" // some of the money came
	QueueOverpaid  Queue = "overpaid"  // more than was asked for came
	QueueLate      Queue = "late"      // money came after its session was over
	QueueTwice     Queue = "twice"     // money came after all was paid
	QueueUnmatched Queue = "unmatched" // money that belongs to no session
	QueueRefunds   Queue = "refunds"   // nobody knows what became of a refund, or the bank sent it twice
	QueueWebhooks  Queue = "webhooks"  // a merchant could not be told; pings tell nothing
	QueueStuck     Queue = "stuck"     // something should have gone on by now
	QueueSecond    Queue = "second"    // somebody asked for something that a second person has to agree to
)

// Queues are all queues, in the order in which they are shown.
func Queues() []Queue {
	return []Queue{QueueUnderpaid, QueueOverpaid, QueueLate, QueueTwice, QueueUnmatched, QueueRefunds, QueueSecond, QueueWebhooks, QueueStuck}
}

// The bounds of the queues.
const (
	// queueCounted is how far a queue is counted.
	queueCounted = 1000
	// stuckAfter is how long money on its way, a message or work that is due may
	// take before somebody should look.
	stuckAfter = 10 * time.Minute
	// silentAfter is how long a bank may say nothing of a payout or refund that it was told of.
	silentAfter = 24 * time.Hour
	// deadShown is how long after it was made a webhook that was given up is shown.
	deadShown = 30 * 24 * time.Hour
)

// Waiting is one thing in a queue.
type Waiting struct {
	Place   string // where it stands in its queue
	Session flow.SessionID
	Project flow.ProjectID
	Subject string    // id of the payment, refund, event or message; a kind and subject of work
	Amount  flow.Kobo // that came, or that is to go back
	Waits   flow.Kobo // of Amount, that somebody must decide about; of underpaid, what is still due
	Since   time.Time
	Detail  string
}

// QueueFilter says which of a queue's things are read.
type QueueFilter struct {
	Queue   Queue
	Project flow.ProjectID // "" for all of them
	After   string         // Place of the last one of the page before
	Now     time.Time
	Limit   int
}

const unappliedSQL = `(SELECT CAST(COALESCE(-SUM(l.unapplied), 0) AS BIGINT) FROM ledger l WHERE l.payment = x.id AND l.payment <> '')`

// matchOf are the outcomes of money that wait in each queue.
var matchOf = map[Queue]flow.MatchStatus{
	QueueOverpaid: flow.Excess, QueueLate: flow.Late, QueueTwice: flow.Duplicate, QueueUnmatched: flow.Unmatched,
}

// partOfPaid are the parts that wait for a decision, whose session is there among
// those that are paid, or is not.
func partOfPaid(isThere string) string {
	return ` FROM payments x WHERE x.returns_at > 0 AND x.resolution = '' AND x.match_status = 'PARTIAL' AND ` + isThere +
		` (SELECT 1 FROM sessions s WHERE s.id = x.session AND s.status = 'PAID')`
}

// query gives the columns of Waiting. Each is over a small partial index of what
// waits, never over a whole table.
func (f QueueFilter) query() (string, []any) {
	of := func(alias string) (string, []any) {
		if f.Project == "" {
			return ``, nil
		}
		return ` AND ` + alias + `.project = ?`, []any{string(f.Project)}
	}
	late := flow.Millis(f.Now.Add(-stuckAfter))
	switch f.Queue {
	case QueueOverpaid, QueueLate, QueueTwice, QueueUnmatched:
		where, args := of("x")
		columns := `SELECT x.id AS place, x.session, x.project, x.id AS subject, x.amount, ` + unappliedSQL + ` AS waits, x.received_at AS at, x.payer AS detail`
		query := columns + ` FROM payments x WHERE x.match_status = '` + string(matchOf[f.Queue]) + `' AND x.resolution = '' AND x.match_status <> 'MATCHED' AND x.match_status <> 'PARTIAL'` +
			where + ` AND ` + unappliedSQL + ` > 0`
		if f.Queue != QueueOverpaid {
			return query, args
		}
		return query + ` UNION ALL ` + columns + partOfPaid(`EXISTS`) + where + ` AND ` + unappliedSQL + ` > 0`, append(args, args...) // a part of what was paid without it
	case QueueUnderpaid:
		open, args := of("s")
		closed, more := of("x")
		return `SELECT s.id AS place, s.id AS session, s.project, s.id AS subject, s.amount_paid AS amount, s.amount - s.amount_paid AS waits,
 COALESCE((SELECT MAX(x.received_at) FROM payments x WHERE x.session = s.id), s.created_at) AS at, s.status AS detail
 FROM sessions s WHERE s.amount_paid > 0 AND s.status IN ('PENDING', 'PROCESSING')` + open + `
 UNION ALL SELECT x.session || '/' || x.id, x.session, x.project, x.id, x.amount, ` + unappliedSQL + `, x.received_at, 'over'` +
			partOfPaid(`NOT EXISTS`) + closed + ` AND ` + unappliedSQL + ` > 0`, append(args, more...)
	case QueueRefunds:
		where, args := of("r")
		return `SELECT r.id AS place, r.session, r.project, r.id AS subject, r.amount, r.amount AS waits, r.created_at AS at, r.failure AS detail
 FROM refunds r WHERE r.status = 'NEEDS_ATTENTION'` + where + `
 UNION ALL SELECT r.id, r.session, r.project, r.id, r.amount, r.overpaid, r.created_at, r.failure
 FROM refunds r WHERE r.overpaid > 0 AND r.status <> 'NEEDS_ATTENTION'` + where, append(args, args...)
	case QueueSecond:
		where, args := of("p")
		return `SELECT p.id AS place, p.session, p.project, p.id AS subject, p.amount, p.amount AS waits, p.asked_at AS at, p.act AS detail
 FROM proposals p WHERE p.status = 'OPEN' AND p.asked_at > ?` + where, append([]any{waitedFrom(f.Now)}, args...)
	case QueueWebhooks:
		where, args := of("e")
		return `SELECT d.id AS place, v.session, v.project, v.id AS subject, CAST(0 AS BIGINT) AS amount, CAST(0 AS BIGINT) AS waits,
 CASE WHEN d.done_at > 0 THEN d.done_at ELSE d.created_at END AS at, v.kind || ' ' || e.url AS detail
 FROM endpoints e CROSS JOIN deliveries d CROSS JOIN events v WHERE d.endpoint = e.id AND d.state = 'dead' AND d.id > ? AND v.id = d.event AND v.kind <> ? AND e.deleted_at = 0` + where,
			append([]any{flow.FirstID(flow.PrefixDelivery, f.Now.Add(-deadShown)), flow.Ping}, args...)
	case QueueStuck:
		return f.stuck(late)
	}
	return ``, nil
}

// stuck is money on its way, to a merchant or back to a payer too, messages that do not go out and, for
// those who run Till, work that nobody does. What a chat is owed after one message
// was refused three times waits for a word of its payer, who may never write again. Money waits since the bank's last word of the
// session: that it comes is kept once, and what was said of other money before is
// another matter.
func (f QueueFilter) stuck(late int64) (string, []any) {
	of, args := ``, []any(nil)
	if f.Project != "" {
		of, args = ` AND s.project = ?`, []any{string(f.Project)}
	}
	query := `SELECT CAST(q.at AS TEXT) || q.subject AS place, q.session, q.project, q.subject, q.amount, q.waits, q.at, q.detail FROM (
 SELECT s.id AS session, s.project, s.id AS subject, s.amount, CAST(0 AS BIGINT) AS waits, COALESCE((SELECT MAX(l.at) FROM log l
 WHERE l.session = s.id AND l.session <> '' AND l.kind IN ('bank.notice', 'bank.answer')), s.created_at) AS at, 'money' AS detail
 FROM sessions s WHERE s.status = 'PROCESSING'` + of + `
 UNION ALL SELECT s.id, s.project, y.id, s.amount, CAST(0 AS BIGINT), y.created_at, 'message ' || y.key
 FROM says y CROSS JOIN log l CROSS JOIN sessions s WHERE y.state = 'pending' AND NOT EXISTS (SELECT 1 FROM says p WHERE p.chat = y.chat AND p.state = 'pending' AND p.refusals >= 3) AND l.stream = y.chat AND l.seq = y.seq AND l.session <> '' AND s.id = l.session` + of + `
 UNION ALL SELECT '', s.project, s.id, s.amount, CAST(0 AS BIGINT), s.sent_at, 'payout' FROM settlements s
 WHERE s.status IN ('PENDING', 'PROCESSING') AND s.sent_at > 0 AND s.sent_at < ?` + of + `
 UNION ALL SELECT s.session, s.project, s.id, s.amount, CAST(0 AS BIGINT), s.sent_at, 'refund' FROM tasks t CROSS JOIN refunds s
 WHERE t.kind = '` + string(flow.TaskRefund) + `' AND s.id = t.subject AND s.status = 'PROCESSING' AND s.sent_at > 0 AND s.sent_at < ?` + of
	silent := append([]any{flow.Millis(f.Now.Add(-silentAfter))}, args...)
	values := slices.Concat(args, args, silent, silent)
	if f.Project == "" {
		query += ` UNION ALL SELECT '', '', t.kind || ' ' || t.subject, CAST(0 AS BIGINT), CAST(0 AS BIGINT), t.due, 'work' FROM tasks t WHERE t.due < ?`
		values = append(values, late)
	}
	return query + `) AS q WHERE q.at < ?`, append(values, late)
}

// Waits reads a queue: what has waited longest stands first.
func (r Reader) Waits(ctx context.Context, f QueueFilter) ([]Waiting, error) {
	query, args := f.query()
	if query == "" {
		return nil, nil
	}
	query, args = `SELECT * FROM (`+query+`) AS w WHERE w.place > ? ORDER BY w.place LIMIT ?`, append(args, f.After, f.Limit)
	return rowsOf(ctx, r.run, "read the queue "+string(f.Queue), query, args, func(scan scanner) (w Waiting, err error) {
		var at int64
		err = scan(&w.Place, &w.Session, &w.Project, &w.Subject, &w.Amount, &w.Waits, &at, &w.Detail)
		w.Since = flow.FromMillis(at)
		return w, err
	})
}

// QueueSize says how much waits in a queue, at most a thousand, and since when
// the oldest of it does: zero where nothing waits.
func (r Reader) QueueSize(ctx context.Context, f QueueFilter) (count int, since time.Time, err error) {
	query, args := f.query()
	if query == "" {
		return 0, time.Time{}, nil
	}
	var at int64
	_, err = r.run.one(ctx, `SELECT COUNT(*), COALESCE(MIN(c.at), 0) FROM (SELECT w.at FROM (`+query+`) AS w LIMIT ?) AS c`, append(args, queueCounted), &count, &at)
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("count the queue %s: %w", f.Queue, err)
	}
	return count, flow.FromMillis(at), nil
}
