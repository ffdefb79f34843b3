package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"till/flow"
	"till/flow/store/lite"
)

// The rules of rows: what one row says of another, beside money. The names are
// those of RowRules.
const (
	RuleRelated     = "related rows"      // every row that the schema says belongs to another has it (SQLite; PostgreSQL holds it itself)
	RulePaymentOf   = "orphaned payments" // a payment's session and attempt are there
	RuleAttemptOpen = "open attempts"     // an attempt is open only while its session is
	RuleAttemptEnds = "attempts' ends"    // an open attempt has what ends it or its session, or starts it, among what is owed
	RuleAttemptAsks = "attempts' amounts" // an attempt asks for no more than its session, an open transfer for what is left of it
	RuleSessionEnds = "sessions' ends"    // an open session whose time was noted as over is owed its end
	RuleEventOf     = "orphaned events"   // an event's session is there, and numbered it
	RuleEventKept   = "logged events"     // what the logs say was told of a session is there: one line in its own while no chat watches it, else one in each chat
	RuleEventSays   = "events' bodies"    // an event's body is of that event, its session, and what it tells of
	RuleDeliveryOf  = "deliveries"        // a delivery has its event and its endpoint, of one project
	RuleRefundOwed  = "refunds owed"      // a refund that is under way is owed to the bank
	RulePayoutOwed  = "payouts owed"      // so is a settlement
	RuleReturnOwed  = "returns owed"      // money that goes back by itself is owed that
	RuleListedOf    = "settlement lines"  // a line of a settlement has its settlement
	RuleListedIs    = "lines' amounts"    // a line is what the ledger has of it
	RuleSettledSum  = "settlements' sums" // a settlement is what its lines and what was left before come to
	RuleRefundOf    = "refunds"           // a refund is of the project and session of its payment
	RuleTakenOf     = "reversals"         // what was taken back was of a payment that is there, of its project and session
	RuleLog         = "logs"              // the log of a chat or session has no gap, and is of one that is there
	RuleKYC         = "KYC"               // where a project stands is where its last step led
	RulePeople      = "people"            // somebody of an account has one
)

// rowRules are the rules of a schema with their queries, which both databases
// understand.
func rowRules(s Schema) []LedgerRule {
	if s == Accounts {
		return rowRulesOfAccounts()
	}
	return slices.Concat(rowRulesOfSessions(), rowRulesOfMoney())
}

func rowRulesOfAccounts() []LedgerRule {
	return []LedgerRule{
		{
			RuleKYC, `SELECT p.id, p.created_at, 0, 1 FROM projects p WHERE p.kyc <> COALESCE((SELECT m.kyc_to FROM kyc_moves m WHERE m.project = p.id ORDER BY m.seq DESC LIMIT 1), 'NONE')`,
			`SELECT COUNT(*) FROM projects`,
		},
		{
			RulePeople, `SELECT e.id, e.created_at, 0, 1 FROM people e WHERE e.account <> '' AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = e.account)`,
			`SELECT COUNT(*) FROM people`,
		},
	}
}

// nextOwed is whether a kind of task is owed to a row of an alias; one that was
// given up is not.
func nextOwed(kind, subject string) string {
	return `EXISTS (SELECT 1 FROM tasks t WHERE t.kind = '` + kind + `' AND t.subject = ` + subject + ` AND t.due < ` + strconv.FormatInt(flow.Millis(GivenUp), 10) + `)`
}

const openSession = `s.status IN ('PENDING', 'PROCESSING')`

func rowRulesOfSessions() []LedgerRule {
	return []LedgerRule{
		{
			RulePaymentOf, `SELECT p.id, p.received_at, 0, 1 FROM payments p WHERE p.session <> '' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = p.session AND s.project = p.project)
 OR p.attempt <> '' AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = p.attempt AND a.session = p.session)`,
			`SELECT COUNT(*) FROM payments`,
		},
		{
			RuleAttemptOpen, `SELECT a.id, a.created_at, 1, 0 FROM attempts a WHERE a.status = 'ACTIVE' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = a.session AND ` + openSession + `)`,
			`SELECT COUNT(*) FROM attempts`,
		},
		{
			RuleAttemptEnds, `SELECT a.id, a.created_at, 0, 1 FROM attempts a WHERE a.status = 'ACTIVE' AND NOT ` + nextOwed("attempt.expire", "a.id") + ` AND NOT ` + nextOwed("rail.start", "a.id") +
				` AND NOT ` + nextOwed("session.expire", "a.session"),
			`SELECT COUNT(*) FROM attempts WHERE status = 'ACTIVE'`,
		},
		{
			RuleAttemptAsks, `SELECT a.id, a.created_at, a.amount, s.amount - s.amount_paid FROM attempts a JOIN sessions s ON s.id = a.session
 WHERE a.amount > s.amount OR a.status = 'ACTIVE' AND a.method = 'bank_transfer' AND a.amount <> s.amount - s.amount_paid AND ` + openSession,
			`SELECT COUNT(*) FROM attempts`,
		},
		{
			RuleSessionEnds, `SELECT s.id, s.created_at, 0, 1 FROM sessions s WHERE s.swept = 1 AND ` + openSession + ` AND NOT ` + nextOwed("session.expire", "s.id"),
			`SELECT COUNT(*) FROM sessions`,
		},
		{
			RuleEventOf, `SELECT e.id, e.created_at, e.sequence, COALESCE((SELECT s.sequence FROM sessions s WHERE s.id = e.session), 0) FROM events e
 WHERE e.session <> '' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = e.session AND s.project = e.project AND s.sequence >= e.sequence)`,
			`SELECT COUNT(*) FROM events`,
		},
		{
			RuleEventKept, `SELECT id, at, told, kept FROM (SELECT session AS id, MAX(at) AS at,
 CAST(SUM(CASE WHEN stream = session THEN n ELSE 0 END) + MAX(CASE WHEN stream <> session THEN n ELSE 0 END) AS BIGINT) AS told,
 (SELECT COUNT(*) FROM events e WHERE e.session = lines.session AND e.session <> '') AS kept
 FROM (SELECT session, stream, MAX(at) AS at, COUNT(*) AS n FROM log WHERE session <> '' AND kind = 'event' GROUP BY session, stream) AS lines
 GROUP BY session) AS compared WHERE told > kept`,
			`SELECT COUNT(*) FROM log WHERE session <> '' AND kind = 'event'`,
		},
		{
			RuleDeliveryOf, `SELECT d.id, d.created_at, 0, 1 FROM deliveries d
 WHERE NOT EXISTS (SELECT 1 FROM events e JOIN endpoints n ON n.id = d.endpoint AND n.project = e.project WHERE e.id = d.event)`,
			`SELECT COUNT(*) FROM deliveries`,
		},
		{
			// The first line of a session's log is gone where an older program had kept one:
			// that it was opened stands in its row (0009_due.sql).
			RuleLog, `SELECT stream, MAX(at), COUNT(*), MAX(seq) FROM log GROUP BY stream
 HAVING COUNT(*) <> MAX(seq) - MIN(seq) + 1 OR MIN(seq) <> 1 AND (MIN(seq) <> 2 OR NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = stream)) OR NOT EXISTS (SELECT 1 FROM chats c WHERE c.id = stream) AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = stream)`,
			`SELECT COUNT(*) FROM log`,
		},
	}
}

func rowRulesOfMoney() []LedgerRule {
	return []LedgerRule{
		{
			RuleRefundOwed, `SELECT f.id, f.created_at, 0, 1 FROM refunds f WHERE f.status IN ('PENDING', 'PROCESSING') AND NOT ` + nextOwed("refund.send", "f.id"),
			`SELECT COUNT(*) FROM refunds`,
		},
		{
			RulePayoutOwed, `SELECT b.id, b.created_at, 0, 1 FROM settlements b WHERE b.created_at > 0 AND b.status IN ('PENDING', 'PROCESSING') AND NOT ` + nextOwed("settlement.send", "b.id"),
			`SELECT COUNT(*) FROM settlements`,
		},
		{
			RuleReturnOwed, `SELECT p.id, p.received_at, 0, 1 FROM payments p WHERE p.returns_at > 0 AND p.resolution = '' AND NOT ` + nextOwed("payment.return", "p.id"),
			`SELECT COUNT(*) FROM payments WHERE returns_at > 0`,
		},
		{
			RuleListedOf, `SELECT i.kind || ' ' || i.subject, i.created_at, 0, 1 FROM settlement_items i
 WHERE i.settlement <> '' AND NOT EXISTS (SELECT 1 FROM settlements b WHERE b.id = i.settlement AND b.project = i.project)`,
			`SELECT COUNT(*) FROM settlement_items`,
		},
		{
			RuleListedIs, `SELECT i.kind || ' ' || i.subject, i.created_at, i.net, CAST(COALESCE((SELECT -l.merchant_pending FROM ledger l WHERE l.kind = i.kind AND l.subject = i.subject), 0) AS BIGINT)
 FROM settlement_items i WHERE NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = i.kind AND l.subject = i.subject AND l.project = i.project AND -l.merchant_pending = i.net)`,
			`SELECT COUNT(*) FROM settlement_items`,
		},
		{
			RuleSettledSum, `SELECT id, at, amount, CAST(due AS BIGINT) FROM (SELECT b.id AS id, b.created_at AS at, b.amount AS amount, b.lines AS lines,
 b.carried + COALESCE((SELECT SUM(i.net) FROM settlement_items i WHERE i.settlement = b.id AND i.settlement <> ''), 0) AS due,
 (SELECT COUNT(*) FROM settlement_items i WHERE i.settlement = b.id AND i.settlement <> '') AS listed FROM settlements b WHERE b.created_at > 0) AS compared
 WHERE amount <> due OR lines <> listed`,
			`SELECT COUNT(*) FROM settlements WHERE created_at > 0`,
		},
		{
			RuleRefundOf, `SELECT f.id, f.created_at, 0, 1 FROM refunds f WHERE NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = f.payment AND p.project = f.project AND p.session = f.session)`,
			`SELECT COUNT(*) FROM refunds`,
		},
		{
			RuleTakenOf, `SELECT r.rail_transaction_id, r.received_at, 0, 1 FROM reversals r
 WHERE r.payment <> '' AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = r.payment AND p.project = r.project AND p.session = r.session)`,
			`SELECT COUNT(*) FROM reversals`,
		},
	}
}

// RowRules are the names of the rules of a schema that RowFaults knows.
func RowRules(s Schema) []string {
	names := []string{RuleRelated}
	if s == Checkout {
		names = append(names, RuleEventSays)
	}
	for _, rule := range rowRules(s) {
		names = append(names, rule.Name)
	}
	return names
}

// RowFaults checks one rule of a schema: how many rows it is about, how many
// break it, and the first of those, at most as many as most.
func (r Reader) RowFaults(ctx context.Context, s Schema, name string, most int) (list []LedgerFault, wrong, of int, err error) {
	switch name {
	case RuleRelated:
		return r.unrelated(ctx, most)
	case RuleEventSays:
		return r.misspoken(ctx, most)
	}
	return r.faults(ctx, rowRules(s), name, most)
}

// unrelated lists the rows of SQLite that name others which are not there.
func (r Reader) unrelated(ctx context.Context, most int) (list []LedgerFault, wrong, of int, err error) {
	if r.run.dialect == postgresDialect {
		return nil, 0, 0, nil
	}
	if _, err := r.run.one(ctx, `SELECT COUNT(*) FROM sqlite_schema s, pragma_foreign_key_list(s.name) WHERE s.type = 'table'`, nil, &of); err != nil {
		return nil, 0, 0, fmt.Errorf("check related rows: %w", err)
	}
	err = r.run.each(ctx, `SELECT "table", COALESCE(rowid, 0), parent FROM pragma_foreign_key_check`, nil, func(scan scanner) error {
		var table, parent string
		var row int64
		if err := scan(&table, &row, &parent); err != nil {
			return err
		}
		if wrong++; len(list) < most {
			list = append(list, LedgerFault{ID: fmt.Sprintf("row %d of %s, of %s", row, table, parent), Expects: 1})
		}
		return nil
	})
	if err != nil {
		return nil, 0, 0, fmt.Errorf("check related rows: %w", err)
	}
	return list, wrong, of, nil
}

// ProjectsHere are the projects that something of an environment belongs to.
func (r Reader) ProjectsHere(ctx context.Context) ([]string, error) {
	return valuesOf[string](ctx, r.run, "list the projects of an environment",
		`SELECT project FROM sessions GROUP BY project UNION SELECT project FROM endpoints UNION SELECT project FROM payments WHERE project <> ''`)
}

// Still looks in a database as it stands at one moment, whatever its schema, and
// leaves every byte of it as it is: it neither makes nor migrates one, nor takes
// in what a program that was killed left in its log. Errors: fs.ErrNotExist for a
// file that is not there.
func Still(ctx context.Context, c Config, look func(Reader) error) (err error) {
	if c.URL != "" {
		db, err := dialled(c, readOnly)
		if err != nil {
			return err
		}
		d := &DB{dialect: postgresDialect, read: db}
		return errors.Join(d.viewPostgres(ctx, look), db.Close())
	}
	file := filepath.Join(c.Dir, c.Name+".db")
	if _, err := os.Stat(file); err != nil {
		return fmt.Errorf("look at %s: %w", c.Name, err)
	}
	db, err := lite.Open("file:"+inURI.Replace(file)+"?mode=ro", "busy_timeout(5000)", "query_only(1)", "temp_store(MEMORY)")
	if err != nil {
		return fmt.Errorf("look at %s: %w", c.Name, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		_, ended := db.Exec("ROLLBACK") // nothing was written
		err = errors.Join(err, ended)
	}()
	return look(Reader{run: runner{statements: liteWriter{db}, dialect: sqliteDialect}})
}
