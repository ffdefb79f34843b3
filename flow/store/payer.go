package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// maxOfPayer bounds how many chats, and how many sessions, one payer is looked
// for in.
const maxOfPayer = 10_000

// ChatsOfPhone are the chats of whoever has a telephone number, also those that
// were made while the number was not known.
func (r Reader) ChatsOfPhone(ctx context.Context, phone flow.Phone) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE phone = ? AND phone <> ''
 OR person IN (SELECT person FROM chats WHERE phone = ? AND phone <> '') ORDER BY id LIMIT ?`, string(phone), string(phone), maxOfPayer)
}

// SessionsOfPayer are the sessions that were made for a telephone number or an
// e-mail address, which may be empty.
func (r Reader) SessionsOfPayer(ctx context.Context, phone flow.Phone, email string) ([]flow.Session, error) {
	return r.sessions(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE customer_phone = ? AND customer_phone <> ''
 OR LOWER(customer_email) = ? AND customer_email <> '' ORDER BY id LIMIT ?`, []any{string(phone), strings.ToLower(email), maxOfPayer})
}

// Watched are the sessions that a chat observes.
func (r Reader) Watched(ctx context.Context, chat flow.ChatID) ([]flow.Session, error) {
	return r.sessions(ctx, `SELECT `+sessionColumns+` FROM sessions WHERE id IN (SELECT session FROM watches WHERE chat = ?) ORDER BY id LIMIT ?`,
		[]any{string(chat), maxOfPayer})
}

// Unsettled is something about a payer that is not over: what it is, a session,
// refund, payment, proposal or chat, and which.
type Unsettled struct {
	What    string         `json:"what"`
	ID      string         `json:"id"`
	Session flow.SessionID `json:"session,omitempty"`
}

// Seen is what a payer is known by, a telephone number or else an e-mail address
// alone, and when something last happened about it.
type Seen struct {
	Phone flow.Phone
	Email string
	At    time.Time
}

// The parts of lastSeenSQL.
const (
	madeOrPaidSQL  = `CASE WHEN paid_at > created_at THEN paid_at ELSE created_at END`
	lastWrittenSQL = `COALESCE((SELECT l.at FROM log l WHERE l.stream = c.id ORDER BY l.seq DESC LIMIT 1), c.created_at)`
	addressedSQL   = `customer_email LIKE '%@%' AND customer_email NOT LIKE '%` + ForgottenHost + `'` // not of who was forgotten
)

// lastSeenSQL is what each payer is known by, when something last happened about them
// (a session was made or paid for them, or something written in a chat of theirs with
// any of our numbers), and whether a telephone number stands for them too.
const lastSeenSQL = `SELECT who, MAX(at) FROM (
 SELECT customer_phone AS who, ` + madeOrPaidSQL + ` AS at, 0 AS numbered FROM sessions WHERE customer_phone <> ''
 UNION ALL SELECT n.phone, ` + lastWrittenSQL + `, 0 FROM chats n JOIN chats c ON c.person = n.person WHERE n.phone <> ''
 UNION ALL SELECT LOWER(customer_email), ` + madeOrPaidSQL + `, CASE WHEN customer_phone <> '' THEN 1 ELSE 0 END FROM sessions WHERE ` + addressedSQL + `
 UNION ALL SELECT LOWER(s.customer_email), ` + lastWrittenSQL + `, CASE WHEN c.phone <> '' THEN 1 ELSE 0 END
 FROM sessions s JOIN watches w ON w.session = s.id JOIN chats n ON n.id = w.chat JOIN chats c ON c.person = n.person WHERE ` + addressedSQL + `
) AS seen GROUP BY who HAVING `

// UnseenSince are payers about whom nothing happened since a time, those seen longest
// ago first, at most so many.
func (r Reader) UnseenSince(ctx context.Context, before time.Time, limit int) ([]Seen, error) {
	var list []Seen
	err := r.lastSeen(ctx, `MAX(numbered) = 0 AND MAX(at) < ? ORDER BY MAX(at), who LIMIT ?`, []any{flow.Millis(before), limit}, func(one Seen) { list = append(list, one) })
	return list, err
}

// SeenSince hands over each payer about whom something happened since a time.
func (r Reader) SeenSince(ctx context.Context, since time.Time, do func(Seen)) error {
	return r.lastSeen(ctx, `MAX(at) >= ?`, []any{flow.Millis(since)}, do)
}

func (r Reader) lastSeen(ctx context.Context, having string, args []any, do func(Seen)) error {
	err := r.run.each(ctx, lastSeenSQL+having, args, func(scan scanner) error {
		var who string
		var at int64
		if err := scan(&who, &at); err != nil {
			return err
		}
		one := Seen{At: flow.FromMillis(at)}
		if flow.IsAddress(who) {
			one.Email = who
		} else {
			one.Phone = flow.Phone(who)
		}
		do(one)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list when payers were seen: %w", err)
	}
	return nil
}

// Touched is something about a payer that changed in a time: a session or a chat,
// of which project and telephone number, or else e-mail address; each may be unknown.
type Touched struct {
	What    string         `json:"what"`
	ID      string         `json:"id"`
	Project flow.ProjectID `json:"project,omitempty"`
	Phone   flow.Phone     `json:"phone,omitempty"`
	Email   string         `json:"email,omitempty"` // where there is no number
}

// TouchedBetween hands over the sessions that were made, paid or talked about from
// one time up to another, then the chats in which something was written, each in the
// order of their ids: all of them, however many there are. It reads so many at once.
func (r Reader) TouchedBetween(ctx context.Context, from, to time.Time, atOnce int, do func(Touched) error) error {
	a, b := flow.Millis(from), flow.Millis(to)
	paid := max(a, 1) // 0 is not paid yet
	for _, q := range []struct {
		what, query string
		args        []any
	}{
		{"session", `SELECT id, project, customer_phone, CASE WHEN customer_phone = '' AND ` + addressedSQL + ` THEN LOWER(customer_email) ELSE '' END FROM sessions s WHERE id > ? AND (created_at >= ? AND created_at < ? OR paid_at >= ? AND paid_at < ?
 OR EXISTS (SELECT 1 FROM watches w, log l WHERE w.session = s.id AND l.stream = w.chat AND l.at >= ? AND l.at < ?)) ORDER BY id LIMIT ?`, []any{a, b, paid, b, a, b, atOnce}},
		{"chat", `SELECT id, '', phone, '' FROM chats c WHERE id > ? AND EXISTS (SELECT 1 FROM log l WHERE l.stream = c.id AND l.at >= ? AND l.at < ?) ORDER BY id LIMIT ?`, []any{a, b, atOnce}},
	} {
		for last, full := "", true; full; {
			var list []Touched
			err := r.run.each(ctx, q.query, append([]any{last}, q.args...), func(scan scanner) error {
				one := Touched{What: q.what}
				err := scan(&one.ID, (*string)(&one.Project), (*string)(&one.Phone), &one.Email)
				list = append(list, one)
				return err
			})
			if err != nil {
				return fmt.Errorf("list what was touched: %w", err)
			}
			for _, one := range list {
				if err := do(one); err != nil {
					return err
				}
				last = one.ID
			}
			full = len(list) == atOnce
		}
	}
	return nil
}

// UnsettledOf lists what is not over about a session now: that it is open itself,
// money that waits for a decision, is on its way back, or waits for somebody to
// agree who still may.
func (r Reader) UnsettledOf(ctx context.Context, session flow.SessionID, now time.Time) ([]Unsettled, error) {
	var list []Unsettled
	id := string(session)
	for _, q := range []struct {
		what, query string
		more        []any
	}{
		{"session", `SELECT id FROM sessions WHERE id = ? AND status IN ('PENDING', 'PROCESSING')`, nil},
		{"refund", `SELECT id FROM refunds WHERE session = ? AND session <> '' AND (status IN ('PENDING', 'PROCESSING') OR status = 'NEEDS_ATTENTION' AND put_back = 0 OR overpaid > 0) ORDER BY id`, nil},
		{"payment", `SELECT p.id FROM payments p WHERE p.session = ? AND p.session <> '' AND (p.returns_at > 0 AND p.resolution = ''
 OR (SELECT COALESCE(SUM(l.unapplied), 0) FROM ledger l WHERE l.payment = p.id AND l.payment <> '') <> 0) ORDER BY p.id`, nil},
		{"proposal", `SELECT id FROM proposals WHERE session = ? AND session <> '' AND status = 'OPEN' AND asked_at > ? ORDER BY id`, []any{waitedFrom(now)}},
	} {
		ids, err := r.texts(ctx, q.query, append([]any{id}, q.more...))
		if err != nil {
			return nil, fmt.Errorf("look what is open of %s: %w", session, err)
		}
		for _, one := range ids {
			list = append(list, Unsettled{What: q.what, ID: one, Session: session})
		}
	}
	return list, nil
}

// ChatsAfter are chats behind one, in the order of their ids.
func (r Reader) ChatsAfter(ctx context.Context, after flow.ChatID, limit int) ([]ChatRow, error) {
	return r.chats(ctx, `SELECT `+chatColumns+` FROM chats WHERE id > ? ORDER BY id LIMIT ?`, string(after), limit)
}

// SaysOf are the messages to a chat, oldest first, at most so many.
func (r Reader) SaysOf(ctx context.Context, chat flow.ChatID, limit int) ([]Said, error) {
	return r.says(ctx, `SELECT `+saidColumns+` FROM says WHERE chat = ? ORDER BY seq, bubble LIMIT ?`, string(chat), limit)
}

// textColumn is a column of a table that holds text.
type textColumn struct{ table, column string }

// textColumns are all columns of the database that hold text, but for those of
// the ledger, which names nobody.
func (r Reader) textColumns(ctx context.Context) ([]textColumn, error) {
	query := `SELECT m.name, p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' AND p.type = 'TEXT' ORDER BY m.name, p.cid`
	if r.run.dialect == postgresDialect {
		query = `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema() AND data_type = 'text' ORDER BY table_name, ordinal_position`
	}
	var list []textColumn
	err := r.run.each(ctx, query, nil, func(scan scanner) error {
		var c textColumn
		err := scan(&c.table, &c.column)
		list = append(list, c)
		return err
	})
	return slices.DeleteFunc(list, func(c textColumn) bool { return c.table == "ledger" }), err
}

// Mentions counts the places in which a text stands, as "table.column".
func (r Reader) Mentions(ctx context.Context, text string) (map[string]int, error) {
	columns, err := r.textColumns(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the columns: %w", err)
	}
	found := map[string]int{}
	for _, c := range columns {
		n := 0
		if _, err := r.run.one(ctx, `SELECT COUNT(*) FROM `+c.table+` WHERE `+r.run.dialect.in(c.column)+` > 0`, []any{text}, &n); err != nil {
			return nil, fmt.Errorf("search %s: %w", c.table, err)
		}
		if n > 0 {
			found[c.table+"."+c.column] = n
		}
	}
	for _, c := range bodyColumns() {
		if there, err := r.hasTable(ctx, c.table); err != nil || !there {
			continue
		}
		n := 0
		if _, err := r.run.one(ctx, `SELECT COUNT(*) FROM `+c.table+` WHERE `+r.run.dialect.inBytes(c.column)+` > 0`, []any{text}, &n); err != nil {
			return nil, fmt.Errorf("search %s: %w", c.table, err)
		}
		if n > 0 {
			found[c.table+"."+c.column] = n
		}
	}
	return found, nil
}

// bodyColumns are the columns that hold bytes in the clear.
func bodyColumns() []textColumn {
	return []textColumn{{"events", "body"}, {"delivery_attempts", "body"}}
}

// in is where a text begins in a column, 0 where it is not in it.
func (d dialect) in(column string) string {
	if d == postgresDialect {
		return `STRPOS(` + column + `, ?)`
	}
	return `INSTR(` + column + `, ?)`
}

// inFolded is in for a column of bytes, in whatever case the letters of ASCII are.
func (d dialect) inFolded(column string) string {
	if d == postgresDialect {
		return `STRPOS(LOWER(ENCODE(` + column + `, 'escape')), ?)`
	}
	return `INSTR(LOWER(CAST(` + column + ` AS TEXT)), ?)`
}

// inBytes is in for a column of bytes.
func (d dialect) inBytes(column string) string {
	if d == postgresDialect {
		return `POSITION(CONVERT_TO(?, 'UTF8') IN ` + column + `)`
	}
	return `INSTR(` + column + `, CAST(? AS BLOB))`
}
