package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"till/flow"
)

const attemptColumns = `id, session, method, reference, amount, status, tries, instructions, reason, chat, created_at, expires_at`

const saveAttemptSQL = `INSERT INTO attempts (` + attemptColumns + `, account_number, payment_code)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
 ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, status = excluded.status, tries = excluded.tries, instructions = excluded.instructions,
 reason = excluded.reason, chat = excluded.chat, expires_at = excluded.expires_at, account_number = excluded.account_number, payment_code = excluded.payment_code`

// SaveAttempt keeps an attempt, new or changed.
func (t *Tx) SaveAttempt(ctx context.Context, a flow.Attempt) error {
	instructions, account, code := "", "", ""
	if a.Instructions != nil {
		text, err := json.Marshal(a.Instructions)
		if err != nil {
			return fmt.Errorf("save attempt %s: %w", a.ID, err)
		}
		instructions, account, code = string(text), a.Instructions.AccountNumber, a.Instructions.PaymentCode
	}
	err := t.run.put(ctx, saveAttemptSQL, a.ID, a.Session, a.Method, a.Reference, a.Amount, a.Status, a.Tries, instructions, a.Reason, a.Chat,
		flow.Millis(a.CreatedAt), flow.Millis(a.ExpiresAt), account, code)
	if err != nil {
		return fmt.Errorf("save attempt %s: %w", a.ID, err)
	}
	return nil
}

// Attempts are a session's attempts, oldest first.
func (r Reader) Attempts(ctx context.Context, session flow.SessionID) ([]flow.Attempt, error) {
	return r.attempts(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE session = ? ORDER BY id`, string(session))
}

// Attempt reads one attempt.
func (r Reader) Attempt(ctx context.Context, id flow.AttemptID) (flow.Attempt, error) {
	return r.attempt(ctx, "attempt", "id", string(id))
}

// AttemptByReference reads an attempt by our reference.
func (r Reader) AttemptByReference(ctx context.Context, reference string) (flow.Attempt, error) {
	return r.attempt(ctx, "reference", "reference", reference)
}

// AttemptByAccount reads the attempt that a virtual account was made for.
func (r Reader) AttemptByAccount(ctx context.Context, number string) (flow.Attempt, error) {
	return r.attempt(ctx, "virtual account", "account_number", number)
}

// AttemptByPaymentCode reads the newest attempt with a USSD payment code.
func (r Reader) AttemptByPaymentCode(ctx context.Context, code string) (flow.Attempt, error) {
	return r.attempt(ctx, "payment code", "payment_code", code)
}

// attempt reads by a column, whose name is the program's own word.
func (r Reader) attempt(ctx context.Context, what, column, value string) (flow.Attempt, error) {
	if value == "" {
		return flow.Attempt{}, missing(what, value)
	}
	list, err := r.attempts(ctx, `SELECT `+attemptColumns+` FROM attempts WHERE `+column+` = ? ORDER BY id DESC LIMIT 1`, value)
	return only(list, err, what, value)
}

func (r Reader) attempts(ctx context.Context, query string, arg string) ([]flow.Attempt, error) {
	return rowsOf(ctx, r.run, "read attempts", query, []any{arg}, func(scan scanner) (a flow.Attempt, err error) {
		var instructions string
		var created, expires int64
		if err = scan(&a.ID, &a.Session, &a.Method, &a.Reference, &a.Amount, &a.Status, &a.Tries, &instructions, &a.Reason, &a.Chat,
			&created, &expires); err != nil {
			return a, err
		}
		a.CreatedAt, a.ExpiresAt = flow.FromMillis(created), flow.FromMillis(expires)
		if instructions != "" {
			a.Instructions = new(flow.Instructions)
			err = json.Unmarshal([]byte(instructions), a.Instructions)
		}
		return a, err
	})
}

const paymentColumns = `id, project, session, attempt, amount, fee, channel, paid_at, received_at, payer, nip_session, rail_transaction_id, match_status,
 resolution, resolved_at, resolved_by, resolve_reason, returns_at`

const insertPaymentSQL = `INSERT INTO payments (` + paymentColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// lostSQL is what the bank took of a payment from its merchant: by reversals, less what
// refunds that failed gave back beyond what they had taken, because a reversal had
// found that money gone. What is still with a refund is none of it; one that was found
// to be sent although it had failed took its money with its own transaction.
const lostSQL = `COALESCE((SELECT SUM(l.merchant_pending) FROM ledger l WHERE l.payment = payments.id AND l.payment <> '' AND l.kind IN ('reversal', 'refund', 'refund_failed', 'refund_paid')), 0)
 - COALESCE((SELECT SUM(b.amount - b.aside) FROM refunds b WHERE b.payment = payments.id AND b.put_back = 0), 0)`

// What became of a payment's money is what the ledger and the rows about it say.
const selectPaymentSQL = `SELECT ` + paymentColumns + `,
 CAST(COALESCE((SELECT SUM(r.amount) FROM reversals r WHERE r.payment = payments.id AND r.payment <> ''), 0) AS BIGINT),
 CAST(COALESCE((SELECT SUM(b.amount) FROM refunds b WHERE b.payment = payments.id AND b.put_back = 0), 0) AS BIGINT),
 CAST(COALESCE((SELECT SUM(b.amount) FROM refunds b WHERE b.payment = payments.id AND b.put_back = 0 AND b.returned = 1 AND b.status = 'NEEDS_ATTENTION'), 0) AS BIGINT),
 CAST(COALESCE((SELECT SUM(b.aside) FROM refunds b WHERE b.payment = payments.id AND b.put_back = 0 AND b.returned = 1 AND b.status = 'NEEDS_ATTENTION'), 0) AS BIGINT),
 CAST(COALESCE((SELECT -SUM(l.merchant_pending + l.fees) FROM ledger l WHERE l.payment = payments.id AND l.payment <> '' AND l.kind IN ('payment', 'accept')), 0) AS BIGINT),
 CAST(` + lostSQL + ` AS BIGINT),
 CAST(COALESCE((SELECT SUM(l.fees) FROM ledger l WHERE l.payment = payments.id AND l.payment <> '' AND l.kind = 'reversal'), 0) AS BIGINT),
 CAST(COALESCE((SELECT -SUM(l.unapplied) FROM ledger l WHERE l.payment = payments.id AND l.payment <> ''), 0) AS BIGINT) FROM payments`

// AddPayment books money that a bank confirmed, with its ledger lines.
func (t *Tx) AddPayment(ctx context.Context, p flow.Payment, postings []flow.Posting) error {
	payer, err := json.Marshal(p.Payer)
	if err != nil {
		return fmt.Errorf("book payment %s: %w", p.ID, err)
	}
	err = t.run.put(ctx, insertPaymentSQL, p.ID, p.Project, p.Session, p.Attempt, p.Amount, p.Fee, p.Channel, flow.Millis(p.PaidAt),
		flow.Millis(p.ReceivedAt), string(payer), p.NIPSessionID, p.RailTransactionID, p.Match, p.Resolution, flow.Millis(p.ResolvedAt), p.ResolvedBy,
		p.ResolvedWhy, flow.Millis(p.ReturnsAt))
	if err != nil {
		return fmt.Errorf("book payment %s: %w", p.ID, err)
	}
	if p.Match != flow.Matched { // whoever asks about one that fits knows of its session
		if err := t.AddNames(ctx, p.Session, p.Payer.Name); err != nil {
			return err
		}
	}
	return t.Post(ctx, flow.Entry{
		Kind: flow.EntryPayment, Subject: string(p.ID), Payment: p.ID, Project: p.Project, At: p.ReceivedAt, Postings: postings,
		RailID: p.RailTransactionID, ValueAt: p.PaidAt,
	})
}

// decidePaymentSQL touches no row that was decided about before: of two who
// decide, one is refused.
const decidePaymentSQL = `UPDATE payments SET fee = ?, resolution = ?, resolved_at = ?, resolved_by = ?, resolve_reason = ?, returns_at = ?
 WHERE id = ? AND (resolution = '' OR resolution = ?)`

// DecidePayment keeps what was decided about a payment. One that was decided
// otherwise before is refused.
func (t *Tx) DecidePayment(ctx context.Context, p flow.Payment) error {
	n, err := t.run.exec(ctx, decidePaymentSQL, p.Fee, p.Resolution, flow.Millis(p.ResolvedAt), p.ResolvedBy, p.ResolvedWhy, flow.Millis(p.ReturnsAt), p.ID, p.Resolution)
	if err != nil {
		return fmt.Errorf("decide about payment %s: %w", p.ID, err)
	}
	if n != 1 {
		return fmt.Errorf("decide about payment %s: it was decided about before", p.ID)
	}
	return nil
}

// ReopenPayment lets a payment be decided about once more: what was decided could
// not be carried out. It goes back by itself at a time, zero for never. One that
// waits for a decision already keeps the time that it has.
func (t *Tx) ReopenPayment(ctx context.Context, id flow.PaymentID, returnsAt time.Time) error {
	err := t.run.put(ctx, `UPDATE payments SET resolution = '', resolved_at = 0, resolved_by = '', resolve_reason = '', returns_at = ? WHERE id = ? AND (resolution <> '' OR returns_at = 0)`,
		flow.Millis(returnsAt), id)
	if err != nil {
		return fmt.Errorf("reopen payment %s: %w", id, err)
	}
	return nil
}

// PaymentFilter narrows a list of payments; zero fields do not.
type PaymentFilter struct {
	Project      flow.ProjectID
	Match        flow.MatchStatus
	Session      flow.SessionID
	From, Before time.Time // when it was heard of; Before is exclusive
	Older        string    // an id: only older payments
	Limit        int
}

const listPaymentsSQL = selectPaymentSQL + ` WHERE project = ? AND (? = '' OR match_status = ?) AND (? = '' OR session = ?)
 AND received_at >= ? AND received_at < ? AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ?`

// PaymentsOf lists a project's payments, newest first.
func (r Reader) PaymentsOf(ctx context.Context, f PaymentFilter) ([]flow.Payment, error) {
	until := cmp.Or(flow.Millis(f.Before), never)
	return r.payments(ctx, listPaymentsSQL, string(f.Project), string(f.Match), string(f.Match), string(f.Session), string(f.Session),
		flow.Millis(f.From), until, f.Older, f.Older, f.Limit)
}

// Payments are the payments seen for a session, oldest first.
func (r Reader) Payments(ctx context.Context, session flow.SessionID) ([]flow.Payment, error) {
	return r.payments(ctx, selectPaymentSQL+` WHERE session = ? AND session <> '' ORDER BY id`, string(session))
}

// PaymentsFor reads the payments of each of some sessions, oldest first; one that has none
// is left out.
func (r Reader) PaymentsFor(ctx context.Context, sessions []string) (map[flow.SessionID][]flow.Payment, error) {
	of := map[flow.SessionID][]flow.Payment{}
	for part := range r.run.parts(sessions) {
		list, err := r.payments(ctx, selectPaymentSQL+` WHERE session IN (`+part.marks+`) AND session <> '' ORDER BY id`, part.args...)
		if err != nil {
			return nil, err
		}
		for _, p := range list {
			of[p.Session] = append(of[p.Session], p)
		}
	}
	return of, nil
}

// Payment reads a payment. Error: resource_not_found.
func (r Reader) Payment(ctx context.Context, id flow.PaymentID) (flow.Payment, error) {
	list, err := r.payments(ctx, selectPaymentSQL+` WHERE id = ?`, string(id))
	return only(list, err, "payment", string(id))
}

// PaymentOf reads a payment of a project; another project's does not exist.
func (r Reader) PaymentOf(ctx context.Context, project flow.ProjectID, id flow.PaymentID) (flow.Payment, error) {
	list, err := r.payments(ctx, selectPaymentSQL+r.run.ofProject(), string(project), string(id))
	return only(list, err, "payment", string(id))
}

// BookedAs says which payment a movement of the rail was booked as, and how much
// it was; "" where it is new.
func (r Reader) BookedAs(ctx context.Context, railTransactionID string) (id flow.PaymentID, amount flow.Kobo, err error) {
	_, err = r.run.one(ctx, `SELECT id, amount FROM payments WHERE rail_transaction_id = ?`, []any{railTransactionID}, &id, &amount)
	if err != nil {
		return "", 0, fmt.Errorf("look for a movement of the rail: %w", err)
	}
	return id, amount, nil
}

// PaymentByTransaction reads the payment of a movement of the rail; found is
// false where it is new.
func (r Reader) PaymentByTransaction(ctx context.Context, id string) (p flow.Payment, found bool, err error) {
	return first(r.payments(ctx, selectPaymentSQL+` WHERE rail_transaction_id = ?`, id))
}

func (r Reader) payments(ctx context.Context, query string, args ...any) ([]flow.Payment, error) {
	return rowsOf(ctx, r.run, "read payments", query, args, func(scan scanner) (p flow.Payment, err error) {
		var paid, received, resolved, returns int64
		var payer string
		if err = scan(&p.ID, &p.Project, &p.Session, &p.Attempt, &p.Amount, &p.Fee, &p.Channel, &paid, &received, &payer, &p.NIPSessionID,
			&p.RailTransactionID, &p.Match, &p.Resolution, &resolved, &p.ResolvedBy, &p.ResolvedWhy, &returns, &p.Reversed, &p.Refunded, &p.Bounced, &p.BouncedAside, &p.Applied, &p.Lost, &p.FeeBack, &p.Unapplied); err != nil {
			return p, err
		}
		p.PaidAt, p.ReceivedAt = flow.FromMillis(paid), flow.FromMillis(received)
		p.ResolvedAt, p.ReturnsAt = flow.FromMillis(resolved), flow.FromMillis(returns)
		err = json.Unmarshal([]byte(payer), &p.Payer)
		return p, err
	})
}

// Came is the money that came in one hour, whatever became of it.
type Came struct {
	From     time.Time
	Payments int
	Amount   flow.Kobo
}

// CameRead is how many payments CameByHour reads at most: the newest.
const CameRead = 20_000

const cameSQL = `SELECT (p.received_at - ?) / 3600000 AS hour, COUNT(*), CAST(SUM(p.amount) AS BIGINT) FROM
 (SELECT received_at, amount FROM payments WHERE project = ? AND id >= ? ORDER BY id DESC LIMIT ?) AS p WHERE p.received_at >= ? GROUP BY 1 ORDER BY 1`

// CameByHour is the money that came to a project by hour, from a time on. Hours in
// which none came are left out.
func (r Reader) CameByHour(ctx context.Context, project flow.ProjectID, from time.Time) ([]Came, error) {
	at := flow.Millis(from)
	return rowsOf(ctx, r.run, "read what came by hour", cameSQL, []any{at, string(project), flow.FirstID(flow.PrefixPayment, from), CameRead, at},
		func(scan scanner) (c Came, err error) {
			var hour int64
			err = scan(&hour, &c.Payments, &c.Amount)
			c.From = from.Add(time.Duration(hour) * time.Hour)
			return c, err
		})
}
