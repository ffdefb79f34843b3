package store

import (
	"context"
	"encoding/json"
	"errors"
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
	_, err := t.run.exec(ctx, saveAttemptSQL, a.ID, a.Session, a.Method, a.Reference, a.Amount, a.Status, a.Tries, instructions, a.Reason, a.Chat,
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
	if err != nil {
		return flow.Attempt{}, err
	}
	if len(list) == 0 {
		return flow.Attempt{}, missing(what, value)
	}
	return list[0], nil
}

func (r Reader) attempts(ctx context.Context, query string, arg string) ([]flow.Attempt, error) {
	var list []flow.Attempt
	err := r.run.each(ctx, query, []any{arg}, func(scan scanner) error {
		var a flow.Attempt
		var instructions string
		var created, expires int64
		if err := scan(&a.ID, &a.Session, &a.Method, &a.Reference, &a.Amount, &a.Status, &a.Tries, &instructions, &a.Reason, &a.Chat,
			&created, &expires); err != nil {
			return err
		}
		a.CreatedAt, a.ExpiresAt = flow.FromMillis(created), flow.FromMillis(expires)
		if instructions != "" {
			a.Instructions = new(flow.Instructions)
			if err := json.Unmarshal([]byte(instructions), a.Instructions); err != nil {
				return err
			}
		}
		list = append(list, a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts: %w", err)
	}
	return list, nil
}

const paymentColumns = `id, project, session, attempt, amount, fee, channel, paid_at, received_at, payer, nip_session, rail_transaction_id, match_status`

const insertPaymentSQL = `INSERT INTO payments (` + paymentColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const insertPostingSQL = `INSERT INTO postings (payment, line, project, account, amount, created_at, reversal) VALUES (?, ?, ?, ?, ?, ?, ?)`

const selectPaymentSQL = `SELECT ` + paymentColumns + `,
 CAST(COALESCE((SELECT SUM(r.amount) FROM reversals r WHERE r.payment = payments.id AND r.payment <> ''), 0) AS BIGINT) FROM payments`

// errImbalance is a ledger transaction that does not sum to zero: a bug.
var errImbalance = errors.New("the ledger lines do not sum to zero")

// AddPayment books money that a bank confirmed, with its ledger lines.
func (t *Tx) AddPayment(ctx context.Context, p flow.Payment, postings []flow.Posting) error {
	payer, err := json.Marshal(p.Payer)
	if err != nil {
		return fmt.Errorf("book payment %s: %w", p.ID, err)
	}
	_, err = t.run.exec(ctx, insertPaymentSQL, p.ID, p.Project, p.Session, p.Attempt, p.Amount, p.Fee, p.Channel, flow.Millis(p.PaidAt),
		flow.Millis(p.ReceivedAt), string(payer), p.NIPSessionID, p.RailTransactionID, p.Match)
	if err != nil {
		return fmt.Errorf("book payment %s: %w", p.ID, err)
	}
	return t.post(ctx, entry{payment: p.ID, project: p.Project, at: p.ReceivedAt}, postings)
}

// entry is one ledger transaction of a payment: its lines are counted on from
// those before, and reversal is what it is of, "" for the payment itself.
type entry struct {
	payment  flow.PaymentID
	project  flow.ProjectID
	before   int // lines
	reversal string
	at       time.Time
}

func (t *Tx) post(ctx context.Context, e entry, postings []flow.Posting) error {
	var total flow.Kobo
	for i, line := range postings {
		total += line.Amount
		if _, err := t.run.exec(ctx, insertPostingSQL, e.payment, e.before+i, e.project, line.Account, line.Amount, flow.Millis(e.at), e.reversal); err != nil {
			return fmt.Errorf("post payment %s: %w", e.payment, err)
		}
	}
	if total != 0 || len(postings) < 2 {
		return fmt.Errorf("post payment %s (off by %d kobo): %w", e.payment, total, errImbalance)
	}
	return nil
}

// Payments are the payments seen for a session, oldest first.
func (r Reader) Payments(ctx context.Context, session flow.SessionID) ([]flow.Payment, error) {
	return r.payments(ctx, selectPaymentSQL+` WHERE session = ? AND session <> '' ORDER BY id`, string(session))
}

// PaymentByTransaction reads the payment of a movement of the rail; found is
// false where it is new.
func (r Reader) PaymentByTransaction(ctx context.Context, id string) (p flow.Payment, found bool, err error) {
	list, err := r.payments(ctx, selectPaymentSQL+` WHERE rail_transaction_id = ?`, id)
	if err != nil || len(list) == 0 {
		return flow.Payment{}, false, err
	}
	return list[0], true, nil
}

func (r Reader) payments(ctx context.Context, query, arg string) ([]flow.Payment, error) {
	var list []flow.Payment
	err := r.run.each(ctx, query, []any{arg}, func(scan scanner) error {
		var p flow.Payment
		var paid, received int64
		var payer string
		if err := scan(&p.ID, &p.Project, &p.Session, &p.Attempt, &p.Amount, &p.Fee, &p.Channel, &paid, &received, &payer, &p.NIPSessionID,
			&p.RailTransactionID, &p.Match, &p.Reversed); err != nil {
			return err
		}
		p.PaidAt, p.ReceivedAt = flow.FromMillis(paid), flow.FromMillis(received)
		if err := json.Unmarshal([]byte(payer), &p.Payer); err != nil {
			return err
		}
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read payments: %w", err)
	}
	return list, nil
}

// Posted is one kept line of the ledger.
type Posted struct {
	Payment  flow.PaymentID
	Reversal string // the rail's name of what took the payment back, "" for the payment itself
	Account  flow.LedgerAccount
	Amount   flow.Kobo
	At       time.Time
}

// Ledger reads the lines that belong to a session's payments.
func (r Reader) Ledger(ctx context.Context, session flow.SessionID) ([]Posted, error) {
	var list []Posted
	err := r.run.each(ctx, `SELECT l.payment, l.reversal, l.account, l.amount, l.created_at FROM postings l JOIN payments p ON p.id = l.payment
 WHERE p.session = ? ORDER BY l.payment, l.line`, []any{string(session)}, func(scan scanner) error {
		var p Posted
		var at int64
		if err := scan(&p.Payment, &p.Reversal, &p.Account, &p.Amount, &at); err != nil {
			return err
		}
		p.At = flow.FromMillis(at)
		list = append(list, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the ledger of %s: %w", session, err)
	}
	return list, nil
}
