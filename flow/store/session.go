package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"till/flow"
)

const sessionColumns = `id, project, merchant, mode, amount, amount_paid, status, exceptions, methods, customer_email, customer_phone,
 customer_name, reference, description, metadata, callback_url, policy, entry_code, number, charge, charge_asked, sequence, version,
 created_at, expires_at, paid_at`

const insertSessionSQL = `INSERT INTO sessions (` + sessionColumns + `)
 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

const updateSessionSQL = `UPDATE sessions SET amount_paid = ?, status = ?, exceptions = ?, charge = ?, charge_asked = ?, sequence = ?,
 number = ?, paid_at = ?, expires_at = ?, version = version + 1 WHERE id = ? AND version = ?`

// AddSession keeps a new session. It returns false, and keeps nothing, when its
// reference, entry code or id is taken.
func (t *Tx) AddSession(ctx context.Context, s flow.Session) (bool, error) {
	texts, err := jsonTexts(s.Exceptions, s.AllowedMethods, s.Metadata, s.Policy)
	if err != nil {
		return false, fmt.Errorf("keep session %s: %w", s.ID, err)
	}
	n, err := t.run.exec(ctx, insertSessionSQL, s.ID, s.Project, s.Merchant, s.Mode, s.Amount, s.AmountPaid, s.Status, texts[0], texts[1],
		s.CustomerEmail, string(s.CustomerPhone), s.CustomerName, s.Reference, s.Description, texts[2], s.CallbackURL, texts[3],
		s.EntryCode, s.Number, s.Charge, flag(s.ChargeAsked), s.Sequence, s.Version,
		flow.Millis(s.CreatedAt), flow.Millis(s.ExpiresAt), flow.Millis(s.PaidAt))
	if err != nil {
		return false, fmt.Errorf("keep session %s: %w", s.ID, err)
	}
	if n == 0 || s.CustomerName == "" {
		return n == 1, nil
	}
	return true, t.addNames(ctx, s)
}

// SaveSession keeps a changed session, whose Version is the one that was read.
func (t *Tx) SaveSession(ctx context.Context, s *flow.Session) error {
	texts, err := jsonTexts(s.Exceptions)
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	n, err := t.run.exec(ctx, updateSessionSQL, s.AmountPaid, s.Status, texts[0], s.Charge, flag(s.ChargeAsked), s.Sequence, s.Number,
		flow.Millis(s.PaidAt), flow.Millis(s.ExpiresAt), s.ID, s.Version)
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	if n != 1 {
		return flow.Refuse(flow.CodeStorage, "Session %s was changed by somebody else at the same time. Try again.", s.ID)
	}
	s.Version++
	return nil
}

// GiveCode gives a session that has none an entry code. It returns false, and
// keeps nothing, when the code is taken.
func (t *Tx) GiveCode(ctx context.Context, id flow.SessionID, code string) (bool, error) {
	n, err := t.run.exec(ctx, `UPDATE sessions SET entry_code = ? WHERE id = ? AND entry_code = ''
 AND NOT EXISTS (SELECT 1 FROM sessions WHERE entry_code = ? AND entry_code <> '')`, code, id, code)
	if err != nil {
		return false, fmt.Errorf("give session %s an entry code: %w", id, err)
	}
	return n == 1, nil
}

const sessionByIDSQL = `SELECT ` + sessionColumns + ` FROM sessions WHERE id = ?`

// Session reads a session; an unknown one is a resource_not_found.
func (r Reader) Session(ctx context.Context, id flow.SessionID) (flow.Session, error) {
	return r.session(ctx, "session", sessionByIDSQL, string(id))
}

// SessionOf reads a session of a project; another project's does not exist.
func (r Reader) SessionOf(ctx context.Context, project flow.ProjectID, id flow.SessionID) (flow.Session, error) {
	return r.session(ctx, "session", `SELECT `+sessionColumns+` FROM sessions`+r.run.ofProject(), string(project), string(id))
}

// SessionByCode reads the session an entry code opens.
func (r Reader) SessionByCode(ctx context.Context, code string) (flow.Session, error) {
	return r.session(ctx, "entry code", `SELECT `+sessionColumns+` FROM sessions WHERE entry_code = ? AND entry_code <> ''`, code)
}

// SessionByCharge reads the session of a charge.
func (r Reader) SessionByCharge(ctx context.Context, id flow.ChargeID) (flow.Session, error) {
	return r.session(ctx, "charge", `SELECT `+sessionColumns+` FROM sessions WHERE charge = ? AND charge <> ''`, string(id))
}

// SessionByReference reads a project's session by the merchant's own reference.
func (r Reader) SessionByReference(ctx context.Context, project flow.ProjectID, reference string) (flow.Session, error) {
	return r.session(ctx, "session with the reference",
		`SELECT `+sessionColumns+` FROM sessions WHERE project = ? AND reference = ? AND reference <> ''`, string(project), reference)
}

func (r Reader) session(ctx context.Context, what, query string, args ...string) (flow.Session, error) {
	list, err := r.sessions(ctx, query, anys(args))
	return only(list, err, what, args[len(args)-1])
}

// SessionFilter narrows a list of sessions; zero fields do not.
type SessionFilter struct {
	Project          flow.ProjectID
	Status           flow.SessionStatus
	Reference, Email string
	CreatedFrom      time.Time
	CreatedBefore    time.Time // exclusive
	Before           string    // an id: only older sessions
	ChargesOnly      bool
	Limit            int
}

// query is what lists them. It asks for nothing that was not asked for: with a
// condition that may also not be one, the index of what is looked for is not used.
func (f SessionFilter) query() (string, []any) {
	query, args := `SELECT `+sessionColumns+` FROM sessions WHERE project = ?`, []any{string(f.Project)}
	where := func(given bool, condition string, arg any) {
		if given {
			query, args = query+" AND "+condition, append(args, arg)
		}
	}
	where(f.Status != "", "status = ?", string(f.Status))
	where(f.Reference != "", "reference <> '' AND reference = ?", f.Reference)
	where(f.Email != "", "customer_email = ?", f.Email)
	where(!f.CreatedFrom.IsZero(), "created_at >= ?", flow.Millis(f.CreatedFrom))
	where(!f.CreatedBefore.IsZero(), "created_at < ?", flow.Millis(f.CreatedBefore))
	where(f.Before != "", "id < ?", f.Before)
	if f.ChargesOnly {
		query += " AND charge <> ''"
	}
	return query + " ORDER BY id DESC LIMIT ?", append(args, f.Limit)
}

// Sessions lists a project's sessions, newest first.
func (r Reader) Sessions(ctx context.Context, f SessionFilter) ([]flow.Session, error) {
	query, args := f.query()
	return r.sessions(ctx, query, args)
}

func (r Reader) sessions(ctx context.Context, query string, args []any) ([]flow.Session, error) {
	return rowsOf(ctx, r.run, "read sessions", query, args, func(scan scanner) (s flow.Session, err error) {
		var exceptions, methods, metadata, policy string
		var asked, created, expires, paid int64
		if err = scan(&s.ID, &s.Project, &s.Merchant, &s.Mode, &s.Amount, &s.AmountPaid, &s.Status, &exceptions, &methods, &s.CustomerEmail,
			&s.CustomerPhone, &s.CustomerName, &s.Reference, &s.Description, &metadata, &s.CallbackURL, &policy, &s.EntryCode, &s.Number,
			&s.Charge, &asked, &s.Sequence, &s.Version, &created, &expires, &paid); err != nil {
			return s, err
		}
		s.ChargeAsked = asked == 1
		s.CreatedAt, s.ExpiresAt, s.PaidAt = flow.FromMillis(created), flow.FromMillis(expires), flow.FromMillis(paid)
		err = fromTexts([]string{exceptions, methods, metadata, policy}, &s.Exceptions, &s.AllowedMethods, &s.Metadata, &s.Policy)
		return s, err
	})
}

// jsonTexts writes values as JSON for text columns.
func jsonTexts(values ...any) ([]string, error) {
	out := make([]string, len(values))
	for i, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out[i] = string(text)
	}
	return out, nil
}

// fromTexts reads what jsonTexts wrote; an empty text leaves its value as it is.
func fromTexts(texts []string, dest ...any) error {
	for i, text := range texts {
		if text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(text), dest[i]); err != nil {
			return err
		}
	}
	return nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func anys(in []string) []any {
	out := make([]any, len(in))
	for i, s := range in {
		out[i] = s
	}
	return out
}
