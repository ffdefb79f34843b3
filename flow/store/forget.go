package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"till/flow"
)

// ForgetSession takes who a session's customer is out of its row and of what
// hangs on it; as stands for them from then on. Money stays as it is. reference
// and instructions are what is left of those texts: by them money finds back.
func (t *Tx) ForgetSession(ctx context.Context, s flow.Session, as, reference string) error {
	payer, err := json.Marshal(flow.PaidBy{Name: as})
	if err != nil {
		return fmt.Errorf("forget who session %s is of: %w", s.ID, err)
	}
	id := string(s.ID)
	for _, q := range []struct {
		query string
		args  []any
	}{
		{
			`UPDATE sessions SET customer_email = ?, customer_phone = '', customer_name = ?, reference = ?, description = '', metadata = 'null', callback_url = '' WHERE id = ?`,
			[]any{as + ForgottenHost, as, reference, id},
		},
		{`UPDATE payments SET payer = ?, resolve_reason = '' WHERE session = ? AND session <> ''`, []any{string(payer), id}},
		{`UPDATE refunds SET reason = '' WHERE session = ? AND session <> ''`, []any{id}},
		{`UPDATE proposals SET reason = '', ended_why = '' WHERE session = ? AND session <> ''`, []any{id}},
		{`UPDATE notes SET text = '(forgotten)' WHERE session = ?`, []any{id}},
		{t.answersSQL(), []any{id}},
	} {
		if err := t.run.put(ctx, q.query, q.args...); err != nil {
			return fmt.Errorf("forget who session %s is of: %w", s.ID, err)
		}
	}
	return nil
}

// ForgottenHost is the domain of what stands for a customer's e-mail address: one
// that nobody can have (RFC 2606).
const ForgottenHost = "@forgotten.invalid"

func (d dialect) noBytes() string {
	if d == postgresDialect {
		return `''::bytea`
	}
	return `x''`
}

// ForgetPaid takes who paid out of a payment, and out of what was answered to events
// about its session; as stands for them from then on.
func (t *Tx) ForgetPaid(ctx context.Context, p flow.Payment, as string) error {
	payer, err := json.Marshal(flow.PaidBy{Name: as})
	if err != nil {
		return fmt.Errorf("forget who payment %s is of: %w", p.ID, err)
	}
	for _, q := range []struct {
		query string
		args  []any
	}{
		{`UPDATE payments SET payer = ?, resolve_reason = '' WHERE id = ?`, []any{string(payer), string(p.ID)}},
		{`UPDATE refunds SET reason = '' WHERE payment = ?`, []any{string(p.ID)}},
		{
			`UPDATE proposals SET reason = '', ended_why = '' WHERE session = ? AND session <> '' AND (subject = ? OR subject IN (SELECT id FROM refunds WHERE payment = ?))`,
			[]any{string(p.Session), string(p.ID), string(p.ID)},
		},
		{t.answersSQL(), []any{string(p.Session)}},
	} {
		if err := t.run.put(ctx, q.query, q.args...); err != nil {
			return fmt.Errorf("forget who payment %s is of: %w", p.ID, err)
		}
	}
	return nil
}

// answersSQL forgets what was answered to the events about a session.
func (t *Tx) answersSQL() string {
	return `UPDATE delivery_attempts SET body = ` + t.run.dialect.noBytes() + ` WHERE delivery IN
 (SELECT d.id FROM deliveries d JOIN events v ON v.id = d.event WHERE v.session = ? AND v.session <> '')`
}

// ForgetNames makes a session be found by no name any more. With names only by those;
// without, by none that there is.
func (t *Tx) ForgetNames(ctx context.Context, s flow.Session, names []string) error {
	var err error
	if names == nil {
		err = t.run.put(ctx, `DELETE FROM names WHERE project = ? AND session = ?`, string(s.Project), string(s.ID))
	}
	for _, name := range names {
		err = errors.Join(err, t.forgetName(ctx, s, name))
	}
	if err != nil {
		return fmt.Errorf("forget the names of %s: %w", s.ID, err)
	}
	return nil
}

// ForgetChat takes who a chat is with out of its row, and the texts of what was
// said to them; as stands for them from then on. What was not sent yet never is.
func (t *Tx) ForgetChat(ctx context.Context, chat flow.ChatID, as string) error {
	id := string(chat)
	for _, q := range []struct {
		query string
		args  []any
	}{
		{`UPDATE chats SET person = ?, phone = '', name = '', desk = '', desk_by = '', desk_since = 0, flag = '' WHERE id = ?`, []any{as, id}},
		{`UPDATE says SET text = '', state = CASE state WHEN 'pending' THEN 'failed' ELSE state END WHERE chat = ?`, []any{id}},
		{`DELETE FROM tasks WHERE subject = ? AND kind IN ('chat.say', 'chat.timer')`, []any{id}},
	} {
		if err := t.run.put(ctx, q.query, q.args...); err != nil {
			return fmt.Errorf("forget who chat %s is with: %w", chat, err)
		}
	}
	return nil
}

// RewriteLine changes what a line of a log holds.
func (t *Tx) RewriteLine(ctx context.Context, l Line) error {
	if err := t.run.put(ctx, `UPDATE log SET data = ? WHERE stream = ? AND seq = ?`, string(l.Data), l.Stream, l.Seq); err != nil {
		return fmt.Errorf("change line %d of %s: %w", l.Seq, l.Stream, err)
	}
	return nil
}

// RewriteEvent changes the body of an event.
func (t *Tx) RewriteEvent(ctx context.Context, id flow.EventID, body []byte) error {
	if err := t.run.put(ctx, `UPDATE events SET body = ? WHERE id = ?`, body, string(id)); err != nil {
		return fmt.Errorf("change event %s: %w", id, err)
	}
	return nil
}

// PutSetting keeps a named value, in place of the one that there is.
func (t *Tx) PutSetting(ctx context.Context, name, value string) error {
	if err := t.run.put(ctx, `INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value); err != nil {
		return fmt.Errorf("keep the setting %s: %w", name, err)
	}
	return nil
}

// Replace puts something else in the place of a text wherever it stands in the
// database, and says in how many columns it did. Columns that may never change
// are changed by nothing else. Of an e-mail address only the whole one is replaced,
// in whatever case.
func (t *Tx) Replace(ctx context.Context, text, by string) (places int64, err error) {
	columns, err := t.textColumns(ctx)
	if err != nil {
		return 0, fmt.Errorf("list the columns: %w", err)
	}
	for _, c := range columns {
		where, sought := ` WHERE `+t.run.dialect.in(c.column)+` > 0`, text
		if flow.IsAddress(text) {
			where, sought = ` WHERE `+t.run.dialect.in(`LOWER(`+c.column+`)`)+` > 0`, flow.FoldEmail(text)
		}
		n := int64(0)
		if _, err := t.run.one(ctx, `SELECT COUNT(*) FROM `+c.table+where, []any{sought}, &n); err != nil {
			return places, fmt.Errorf("search %s: %w", c.table, err)
		}
		if n == 0 {
			continue
		}
		change := func() (err error) {
			if flow.IsAddress(text) {
				n, err = t.replaceAddress(ctx, c, where, text, func(value string) (any, bool) {
					left, in := flow.ReplaceAddress(value, text, by)
					return left, in > 0
				})
				return err
			}
			_, err = t.run.exec(ctx, `UPDATE `+c.table+` SET `+c.column+` = REPLACE(`+c.column+`, ?, ?)`+where, text, by, text)
			return err
		}
		if c.table == "audit" {
			err = t.unguarded(ctx, change)
		} else {
			err = change()
		}
		if err != nil {
			return places, fmt.Errorf("forget what %s says: %w", c.table, err)
		}
		places += n
	}
	n, err := t.replaceBodies(ctx, text, by)
	return places + n, err
}

// replaceBodies is Replace for bytes: of events, and of what was answered to them.
func (t *Tx) replaceBodies(ctx context.Context, text, by string) (places int64, err error) {
	if there, err := t.hasTable(ctx, "events"); err != nil || !there {
		return 0, err
	}
	in, changed := t.run.dialect.inBytes("body"), `CAST(REPLACE(CAST(body AS TEXT), ?, ?) AS BLOB)`
	if t.run.dialect == postgresDialect {
		changed = `CONVERT_TO(REPLACE(CONVERT_FROM(body, 'UTF8'), ?, ?), 'UTF8')`
	}
	if flow.IsAddress(text) {
		return t.replaceInBodies(ctx, text, by)
	}
	n, err := t.run.exec(ctx, `UPDATE events SET body = `+changed+` WHERE `+in+` > 0`, text, by, text)
	if err != nil {
		return 0, fmt.Errorf("forget what events say: %w", err)
	}
	m, err := t.run.exec(ctx, `UPDATE delivery_attempts SET body = `+t.run.dialect.noBytes()+` WHERE `+in+` > 0`, text)
	if err != nil {
		return 0, fmt.Errorf("forget what was answered to events: %w", err)
	}
	return n + m, nil
}

// replaceInBodies is replaceBodies for an e-mail address.
func (t *Tx) replaceInBodies(ctx context.Context, text, by string) (places int64, err error) {
	for _, c := range bodyColumns() {
		n, err := t.replaceAddress(ctx, c, ` WHERE `+t.run.dialect.inFolded(c.column)+` > 0`, text, func(value string) (any, bool) {
			left, in := flow.ReplaceAddress(value, text, by)
			if c.table == "delivery_attempts" {
				left = "" // of what was answered nothing is kept
			}
			return []byte(left), in > 0
		})
		if err != nil {
			return places, fmt.Errorf("forget what %s say: %w", c.table, err)
		}
		places += n
	}
	return places, nil
}

// addressesAtOnce is how many values with an e-mail address in them are read at once,
// and how many subjects of the audit log are named at once.
const addressesAtOnce = 500

// replaceAddress changes the values of a column in which an e-mail address stands,
// value by value: SQL alone cannot tell it from a part of a longer one.
func (t *Tx) replaceAddress(ctx context.Context, c textColumn, where, text string, change func(value string) (any, bool)) (places int64, err error) {
	as := func(value string) any { return value }
	if slices.Contains(bodyColumns(), c) {
		as = func(value string) any { return []byte(value) }
	}
	query := `SELECT DISTINCT ` + c.column + ` FROM ` + c.table + where + ` AND ` + c.column + ` > ? ORDER BY ` + c.column + ` LIMIT ?`
	for last, full := "", true; full; {
		var values []string
		if err := t.run.each(ctx, query, []any{flow.FoldEmail(text), as(last), addressesAtOnce}, func(scan scanner) error {
			var value []byte
			err := scan(&value)
			values = append(values, string(value))
			return err
		}); err != nil {
			return places, err
		}
		for _, value := range values {
			last = value
			left, changes := change(value)
			if !changes {
				continue
			}
			n, err := t.run.exec(ctx, `UPDATE `+c.table+` SET `+c.column+` = ? WHERE `+c.column+` = ?`, left, as(value))
			if err != nil {
				return places, err
			}
			places += n
		}
		full = len(values) == addressesAtOnce
	}
	return places, nil
}

// unguarded changes the audit log, which nothing else ever does: whoever is
// forgotten is forgotten there too.
func (t *Tx) unguarded(ctx context.Context, change func() error) error {
	off, on := `ALTER TABLE audit DISABLE TRIGGER audit_stays`, `ALTER TABLE audit ENABLE TRIGGER audit_stays`
	if t.run.dialect == sqliteDialect {
		off = `DROP TRIGGER audit_never_changes`
		if found, err := t.run.one(ctx, `SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = 'audit_never_changes'`, nil, &on); err != nil || !found {
			return errors.Join(errors.New("the guard of the audit log is missing"), err)
		}
	}
	if _, err := t.run.exec(ctx, off); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	_, err := t.run.exec(ctx, on)
	return err
}

// forgottenReason stands in the audit log for why something was done.
const forgottenReason = "(forgotten)"

// ForgetReasons forgets why things were done to what has these ids, and says in how
// many rows of the audit log that stood.
func (t *Tx) ForgetReasons(ctx context.Context, subjects []string) (places int64, err error) {
	for some := range slices.Chunk(subjects, addressesAtOnce) {
		err := t.unguarded(ctx, func() error {
			args := []any{forgottenReason, forgottenReason}
			for _, id := range some {
				args = append(args, id)
			}
			n, err := t.run.exec(ctx, `UPDATE audit SET reason = ? WHERE reason NOT IN ('', ?) AND subject IN (`+marks(len(some))+`)`, args...)
			places += n
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("forget why things were done: %w", err)
		}
	}
	return places, nil
}

// OweWipe remembers that what was kept in the clear may still stand in parts of
// the file that are not used any more: Wipe, or the next start, sees to it.
func (t *Tx) OweWipe(ctx context.Context) error {
	if t.run.dialect == postgresDialect {
		return nil
	}
	return t.SetSetting(ctx, wipeDue, "yes")
}

// Wipe writes a database anew, so that nothing of what was deleted or overwritten
// is left in its files. Nobody else may use it meanwhile. PostgreSQL's own log and
// copies are not touched.
func Wipe(ctx context.Context, c Config) (err error) {
	if c.URL != "" {
		return wipePostgres(ctx, c)
	}
	db, err := sql.Open("sqlite", "file:"+inURI.Replace(filepath.Join(c.Dir, c.Name+".db"))+"?mode=rw&_pragma=busy_timeout(5000)&_pragma=secure_delete(1)")
	if err != nil {
		return fmt.Errorf("open %s to wipe it: %w", c.Name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	// That it is due goes last: killed before, the next start does it.
	for _, stmt := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)", "DELETE FROM settings WHERE name = '" + wipeDue + "'"} {
		if _, err := db.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("wipe %s: %w", c.Name, err)
		}
	}
	return nil
}

func wipePostgres(ctx context.Context, c Config) (err error) {
	db, err := dialled(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables := []string{"audit", "filters", "settings"}
	if c.Schema == Checkout {
		tables = strings.Fields("sessions attempts payments refunds proposals notes names events delivery_attempts chats says log phones tasks lookups verifications")
	}
	for _, table := range tables {
		if _, err := db.ExecContext(ctx, "VACUUM (FULL) "+table); err != nil {
			return fmt.Errorf("wipe %s: %w", c.Name, err)
		}
	}
	return nil
}
