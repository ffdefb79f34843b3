package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"till/flow"
	"till/rail"
)

// The bounds of the books.
const (
	callsKept   = 100_000 // of the call log; the oldest go first
	maxOwed     = 10_000  // notices that may be owed at once
	pruneEvery  = 1_000
	fileTimeout = 10 * time.Second
)

// file is the bank's books. There is one connection, so one transaction at a
// time: that is what makes a reference give one instrument.
type file struct{ db *sql.DB }

// openFile opens the books, in memory when path is empty.
func openFile(ctx context.Context, path string) (*file, error) {
	dsn := "file::memory:?_txlock=immediate&_pragma=foreign_keys(1)"
	if path != "" {
		made, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is the operator's setting
		if err != nil {
			return nil, fmt.Errorf("open the bank's file: %w", err)
		}
		if err := made.Close(); err != nil {
			return nil, fmt.Errorf("open the bank's file: %w", err)
		}
		escaped := strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
		// NORMAL survives the death of the process, which is what a pretend
		// bank must; it may forget its last commits when the machine dies.
		dsn = "file:" + escaped + "?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)" +
			"&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)"
	}
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open the bank's file: %w", err)
	}
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("open the bank's file: %w", err), db.Close())
	}
	return &file{db: db}, nil
}

// update does fn in one transaction. It does not stop because a caller has
// gone: a bank that was asked does what it was asked.
func (f *file) update(ctx context.Context, fn func(books) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fileTimeout)
	defer cancel()
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin in the bank's file: %w", err)
	}
	if err := fn(books{ctx: ctx, tx: tx}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit to the bank's file: %w", err)
	}
	return nil
}

// books is the bank's file within one transaction.
type books struct {
	ctx context.Context //nolint:containedctx // lives as long as its transaction
	tx  *sql.Tx
}

func (b books) exec(query string, args ...any) (sql.Result, error) {
	res, err := b.tx.ExecContext(b.ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("write the bank's file: %w", err)
	}
	return res, nil
}

// setting reads a setting into into, which stays as it is when there is none.
func (b books) setting(name string, into any) error {
	var text string
	err := b.tx.QueryRowContext(b.ctx, `SELECT value FROM settings WHERE name = ?`, name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the setting %s: %w", name, err)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("read the setting %s: %w", name, err)
	}
	return nil
}

func (b books) set(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the setting %s: %w", name, err)
	}
	_, err = b.exec(`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, string(text))
	return err
}

// conditions are those set last; a new bank is up and faultless.
func (b books) conditions() (rail.Conditions, error) {
	c := rail.Conditions{Up: true}
	return c, b.setting("conditions", &c)
}

// client is who registered last, zero before anyone did.
func (b books) client() (client, error) {
	var c client
	return c, b.setting("client", &c)
}

// made is an instrument as it is kept.
type made struct {
	order

	Method    flow.Method
	Account   string
	Code      string
	Token     string
	Outcome   string
	CreatedAt time.Time
}

// instrumentBy finds an instrument by reference, account, payment_code or token.
func (b books) instrumentBy(column, value string) (made, bool, error) {
	queries := map[string]string{
		"reference": `reference = ?`, "account": `account = ?`, "payment_code": `payment_code = ?`, "token": `token = ?`,
	}
	var m made
	var expires, created int64
	err := b.tx.QueryRowContext(b.ctx, `SELECT reference, session, method, amount, account_name, coalesce(account, ''), coalesce(payment_code, ''),
		coalesce(token, ''), outcome, expires_at, created_at FROM instruments WHERE `+queries[column], value).
		Scan(&m.Reference, &m.Session, &m.Method, &m.Amount, &m.AccountName, &m.Account, &m.Code, &m.Token, &m.Outcome, &expires, &created)
	if errors.Is(err, sql.ErrNoRows) {
		return made{}, false, nil
	}
	if err != nil {
		return made{}, false, fmt.Errorf("look up an instrument: %w", err)
	}
	m.ExpiresAt, m.CreatedAt = time.UnixMilli(expires).UTC(), time.UnixMilli(created).UTC()
	return m, true, nil
}

// add keeps a new instrument; false when its number is another's already.
func (b books) add(m made) (bool, error) {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	res, err := b.exec(`INSERT INTO instruments (reference, session, method, amount, account_name, account, payment_code, token, expires_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`, m.Reference, m.Session, string(m.Method), m.Amount, m.AccountName,
		null(m.Account), null(m.Code), null(m.Token), m.ExpiresAt.UnixMilli(), m.CreatedAt.UnixMilli())
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("keep an instrument: %w", err)
	}
	return n == 1, nil
}

// call keeps one line of the call log.
func (b books) call(c rail.Call) error {
	res, err := b.exec(`INSERT INTO calls (at, operation, reference, session, outcome, project) VALUES (?, ?, ?, ?, ?, ?)`,
		c.At.UnixMilli(), c.Operation, c.Reference, c.Session, c.Outcome, string(c.Project))
	if err != nil {
		return err
	}
	seq, err := res.LastInsertId()
	if err != nil {
		return fmt.Errorf("keep a call: %w", err)
	}
	if seq%pruneEvery == 0 {
		_, err = b.exec(`DELETE FROM calls WHERE seq <= ?`, seq-callsKept)
	}
	return err
}

// calls lists the call log from after a line.
func (b books) calls(after int64, limit int) (out []rail.Call, err error) {
	rows, err := b.tx.QueryContext(b.ctx, `SELECT seq, at, operation, reference, session, outcome, project FROM calls WHERE seq > ? ORDER BY seq LIMIT ?`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list the calls: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	out = []rail.Call{}
	for rows.Next() {
		var c rail.Call
		var at int64
		if err := rows.Scan(&c.Seq, &at, &c.Operation, &c.Reference, &c.Session, &c.Outcome, &c.Project); err != nil {
			return nil, fmt.Errorf("list the calls: %w", err)
		}
		c.At = time.UnixMilli(at).UTC()
		out = append(out, c)
	}
	return out, rows.Err()
}
