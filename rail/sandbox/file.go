package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"till/flow"
	"till/flow/store/lite"
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
type file struct {
	conn   *lite.Conn
	turn   chan struct{} // holds one: whoever took it has the connection
	closed chan struct{}
	once   sync.Once
}

// Errors of the books.
var (
	errClosed = errors.New("the bank's file is closed")
	errBusy   = errors.New("the bank's file is busy")
)

// openFile opens the books, in memory when path is empty.
func openFile(path string) (*file, error) {
	uri, pragmas := "file::memory:", []string{"foreign_keys(1)"}
	if path != "" {
		made, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the path is the operator's setting
		if err != nil {
			return nil, fmt.Errorf("open the bank's file: %w", err)
		}
		if err := made.Close(); err != nil {
			return nil, fmt.Errorf("open the bank's file: %w", err)
		}
		uri = "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path)
		// NORMAL survives the death of the process, which is what a pretend
		// bank must; it may forget its last commits when the machine dies.
		pragmas = append(pragmas, "busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)")
	}
	conn, err := lite.Open(uri, pragmas...)
	if err != nil {
		return nil, fmt.Errorf("open the bank's file: %w", err)
	}
	if err := prepare(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("open the bank's file: %w", err), conn.Close())
	}
	f := &file{conn: conn, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	f.turn <- struct{}{}
	return f, nil
}

// close waits for who has the connection, and closes it.
func (f *file) close() (err error) {
	f.once.Do(func() {
		close(f.closed)
		<-f.turn
		err = f.conn.Close()
	})
	return err
}

// take waits for the connection, but not for ever. It does not stop because a
// caller has gone: a bank that was asked does what it was asked.
func (f *file) take() error {
	select {
	case <-f.closed:
		return errClosed
	default:
	}
	select {
	case <-f.turn:
		return nil
	default:
	}
	wait := time.NewTimer(fileTimeout)
	defer wait.Stop()
	select {
	case <-f.turn:
		return nil
	case <-f.closed:
		return errClosed
	case <-wait.C:
		return errBusy
	}
}

// update does fn in one transaction.
func (f *file) update(fn func(books) error) error { return f.within("BEGIN IMMEDIATE", fn) }

// view does fn, which only reads, in one transaction.
func (f *file) view(fn func(books) error) error { return f.within("BEGIN", fn) }

func (f *file) within(begin string, fn func(books) error) (err error) {
	if err := f.take(); err != nil {
		return err
	}
	defer func() { f.turn <- struct{}{} }()
	if _, err := f.conn.Exec(begin); err != nil {
		return fmt.Errorf("begin in the bank's file: %w", err)
	}
	f.conn.Inside = true
	defer func() {
		if f.conn.Inside { // it failed, or fn panics
			err = errors.Join(err, f.conn.Undo())
		}
	}()
	if err := fn(books{f.conn}); err != nil {
		return err
	}
	if _, err := f.conn.Exec("COMMIT"); err != nil {
		return fmt.Errorf("commit to the bank's file: %w", err)
	}
	f.conn.Inside = false
	return nil
}

// books is the bank's file within one transaction.
type books struct{ conn *lite.Conn }

// exec runs a statement and says how many rows it touched.
func (b books) exec(query string, args ...any) (int64, error) {
	n, err := b.conn.Exec(query, args...)
	return n, wrap("write the bank's file", err)
}

// one reads the only row of a statement, or the first; false where there is none.
func (b books) one(query string, args []any, dest ...any) (found bool, err error) {
	err = b.conn.Each(query, args, func(scan lite.Scanner) error {
		if found {
			return nil
		}
		found = true
		return scan(dest...)
	})
	return found, err
}

// setting reads a setting into into, which stays as it is when there is none.
func (b books) setting(name string, into any) error {
	var text string
	found, err := b.one(`SELECT value FROM settings WHERE name = ?`, []any{name}, &text)
	if err != nil {
		return fmt.Errorf("read the setting %s: %w", name, err)
	}
	if !found {
		return nil
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
	err := b.setting("conditions", &c)
	return c, err
}

// client is who registered last, zero before anyone did.
func (b books) client() (registered, error) {
	var c registered
	err := b.setting("client", &c)
	return c, err
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

const instrumentsSQL = `SELECT reference, session, method, amount, account_name, coalesce(account, ''), coalesce(payment_code, ''), coalesce(token, ''), outcome,
 expires_at, created_at FROM instruments WHERE `

// instrumentSQL finds an instrument by what names it.
var instrumentSQL = map[string]string{
	"reference": instrumentsSQL + `reference = ?`, "account": instrumentsSQL + `account = ?`,
	"payment_code": instrumentsSQL + `payment_code = ?`, "token": instrumentsSQL + `token = ?`,
}

// instrumentBy finds an instrument by reference, account, payment_code or token.
func (b books) instrumentBy(column, value string) (made, bool, error) {
	var m made
	var expires, created int64
	found, err := b.one(instrumentSQL[column], []any{value}, &m.Reference, &m.Session, &m.Method, &m.Amount, &m.AccountName, &m.Account, &m.Code, &m.Token,
		&m.Outcome, &expires, &created)
	if err != nil || !found {
		return made{}, false, wrap("look up an instrument", err)
	}
	m.ExpiresAt, m.CreatedAt = time.UnixMilli(expires).UTC(), time.UnixMilli(created).UTC()
	return m, true, nil
}

// add keeps a new instrument; false when its number is another's already.
func (b books) add(m made) (bool, error) {
	n, err := b.exec(`INSERT INTO instruments (reference, session, method, amount, account_name, account, payment_code, token, expires_at, created_at)
		VALUES (?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?) ON CONFLICT DO NOTHING`, m.Reference, m.Session, m.Method, m.Amount,
		m.AccountName, m.Account, m.Code, m.Token, m.ExpiresAt.UnixMilli(), m.CreatedAt.UnixMilli())
	return n == 1, err
}

// call keeps one line of the call log.
func (b books) call(c rail.Call) error {
	var seq int64
	_, err := b.one(`INSERT INTO calls (at, operation, reference, session, outcome, project) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq`,
		[]any{c.At.UnixMilli(), c.Operation, c.Reference, c.Session, c.Outcome, c.Project}, &seq)
	if err != nil {
		return fmt.Errorf("keep a call: %w", err)
	}
	if seq%pruneEvery == 0 {
		_, err = b.exec(`DELETE FROM calls WHERE seq <= ?`, seq-callsKept)
	}
	return err
}

// calls lists the call log from after a line.
func (b books) calls(after int64, limit int) ([]rail.Call, error) {
	out := []rail.Call{}
	err := b.conn.Each(`SELECT seq, at, operation, reference, session, outcome, project FROM calls WHERE seq > ? ORDER BY seq LIMIT ?`, []any{after, limit},
		func(scan lite.Scanner) error {
			var c rail.Call
			var at int64
			err := scan(&c.Seq, &at, &c.Operation, &c.Reference, &c.Session, &c.Outcome, &c.Project)
			c.At = time.UnixMilli(at).UTC()
			out = append(out, c)
			return err
		})
	return out, wrap("list the calls", err)
}
