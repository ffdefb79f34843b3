package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"till/flow"
)

// LedgerFault is a row that breaks a rule of the ledger: two numbers that should
// be the same, in kobo or counted.
type LedgerFault struct {
	ID      string
	At      time.Time // when it was made, zero for what many rows come to
	Says    int64     // what the ledger says
	Expects int64     // what the rest of the store says
}

// LedgerRule is one rule of the ledger that the store can check by itself.
type LedgerRule struct {
	Name   string // of the rule: one of Rule…
	faults string // id, at, says, expects
	counts string
}

// The rules. Each names what is compared; a query lists what breaks it.
const (
	RuleRows        = "rows"        // every transaction sums to zero
	RuleProjects    = "projects"    // everything of a project sums to zero
	RulePayments    = "payments"    // every payment is booked, as it came
	RuleStrays      = "strays"      // nothing is booked for a payment or reversal that is not there
	RuleReversals   = "reversals"   // every reversal of a known payment is booked
	RuleAside       = "aside"       // what fits nowhere is set aside whole
	RuleReasons     = "reasons"     // what is set aside has a payment that waits
	RuleLeft        = "left"        // of no payment more is set aside than is left of it
	RuleSent        = "sent back"   // of no payment more goes back than came
	RuleResolutions = "resolutions" // what was accepted is booked, and nothing else is
	RulePaid        = "paid"        // what a session says was paid is what was applied, or is held
	RuleWhole       = "whole"       // a paid session is paid whole, or says that it is paid in part
	RuleSuccess     = "success"     // a paid session has one charge.success, another has none
	RuleRefunds     = "refunds"     // every refund is booked for its state
	RulePayable     = "payable"     // what is to be sent back is that of the open refunds
	RuleSettlements = "settlements" // every settlement is booked for its state
	RuleSettled     = "settled"     // what is on its way to merchants is that of the open settlements
	RulePending     = "pending"     // what waits for its settlement day is listed line by line
)

const lineSum = `rail_clearing + merchant_pending + merchant_available + fees + unapplied + refunds_payable + settled`

// owner is what money belongs to: its session, or itself where it has none.
const owner = `CASE WHEN p.session = '' THEN p.id ELSE p.session END`

// heldPart is what is left of a part that is held for its session.
const heldPart = `CASE WHEN p.match_status <> 'PARTIAL' THEN 0 ELSE
 p.amount - COALESCE((SELECT SUM(r.amount) FROM reversals r WHERE r.payment = p.id AND r.payment <> ''), 0)
 - COALESCE((SELECT SUM(f.amount) FROM refunds f WHERE f.payment = p.id AND f.held = 1 AND f.put_back = 0), 0) END`

// taken is a ledger transaction that took the money of a refund: the first of them
// has its id as subject, later ones a name derived from it. Which kind it is is
// asked in words that no index serves: that of the payment is to be used.
const taken = `l.payment = f.payment AND l.payment <> '' AND (l.subject = f.id OR l.subject LIKE f.id || '-%')`

// ofPayment are the ledger transactions of a payment. That it has a name is said so
// that the index of those that are about one is used, and the kinds are looked at
// only then: else each payment costs a look at the whole ledger.
const ofPayment = `l.payment = p.id AND l.payment <> ''`

// The parts of a table in which a rule about each of its rows is checked: the query
// says them, and gets where a part begins and ends.
const (
	somePayments = `p.id > ? AND p.id <= ?`
	someSessions = `s.id > ? AND s.id <= ?`
	someEntries  = `(l.kind, l.subject) > (?, ?) AND (l.kind, l.subject) <= (?, ?)`
)

// inParts is a table that is looked at part by part, in the order of its key.
type inParts struct{ table, key, marks string }

func allEntries() inParts { return inParts{"ledger", "kind, subject", "?, ?"} }

// partsOf says which table a rule is checked in part by part; false where it compares
// what is of one moment.
func partsOf(rule LedgerRule) (inParts, bool) {
	switch {
	case strings.Contains(rule.faults, somePayments):
		return inParts{"payments", "id", "?"}, true
	case strings.Contains(rule.faults, someSessions):
		return inParts{"sessions", "id", "?"}, true
	case strings.Contains(rule.faults, someEntries):
		return allEntries(), true
	}
	return inParts{}, false
}

// each looks at one part after the other, each in a view: look gets the key after which
// it begins and that with which it ends.
func (p inParts) each(ctx context.Context, view func(func(Reader) error) error, look func(r Reader, part []any) error) error {
	after := slices.Repeat([]any{""}, strings.Count(p.marks, "?"))
	for more := true; more; {
		err := view(func(r Reader) error {
			last, whole, err := p.end(ctx, r, after)
			if more = whole; err != nil || last == nil {
				return err
			}
			err = r.byKeys(ctx, func() error { return look(r, append(slices.Clone(after), last...)) })
			after = last
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// byKeysSQL has PostgreSQL find rows by their keys, and says how it was told to before;
// asBeforeSQL tells it that again. How large a part is it takes from one column of its
// key alone, so that it would read another table to its end for each.
const (
	byKeysSQL = `SELECT name, was, set_config(name, 'off', true) FROM (SELECT name, current_setting(name) AS was
 FROM (VALUES ('enable_seqscan'), ('enable_hashjoin'), ('enable_mergejoin'), ('jit')) AS how (name) OFFSET 0) AS before`
	asBeforeSQL = `SELECT set_config(?, ?, true)`
)

// byKeys does something for which rows are found by their keys.
func (r Reader) byKeys(ctx context.Context, do func() error) error {
	if r.run.dialect != postgresDialect {
		return do()
	}
	was, is := map[string]string{}, ""
	err := r.run.each(ctx, byKeysSQL, nil, func(scan scanner) error {
		var name, before string
		err := scan(&name, &before, &is)
		was[name] = before
		return err
	})
	if err == nil {
		err = do()
	}
	for name, before := range was {
		if err == nil { // or the transaction is over
			_, err = r.run.one(ctx, asBeforeSQL, []any{name, before}, &is)
		}
	}
	return err
}

// end is the key of the last row of the part that begins after a key, and whether it
// is a whole one; nil where nothing follows.
func (p inParts) end(ctx context.Context, r Reader, after []any) (last []any, whole bool, err error) {
	rows := `SELECT ` + p.key + ` FROM ` + p.table + ` WHERE (` + p.key + `) > (` + p.marks + `) ORDER BY `
	key := make([]string, len(after))
	to := make([]any, len(key))
	for i := range key {
		to[i] = &key[i]
	}
	found, err := r.run.one(ctx, rows+p.key+` LIMIT 1 OFFSET ?`, append(slices.Clone(after), partOf-1), to...)
	if whole = found; err == nil && !found {
		found, err = r.run.one(ctx, rows+strings.ReplaceAll(p.key, ",", " DESC,")+` DESC LIMIT 1`, after, to...)
	}
	if err != nil || !found {
		return nil, false, err
	}
	for _, k := range key {
		last = append(last, k)
	}
	return last, whole, nil
}

// partOf is how many rows a part has. SQLite's log cannot be begun again while
// somebody reads, and on PostgreSQL a query has a bound on its time: no rule may take
// the longer for one moment the more there is.
const partOf = 5000

// applied is what was given to the merchant of a session by some of its
// transactions, our fee with it.
func applied(which string) string {
	return `COALESCE((SELECT -SUM(CASE WHEN ` + which + ` THEN l.merchant_pending + l.fees ELSE 0 END)
 FROM payments p CROSS JOIN ledger l WHERE p.session = s.id AND ` + ofPayment + `), 0)`
}

// ledgerRules are the rules with their queries, which both databases understand.
func ledgerRules() []LedgerRule {
	return slices.Concat(rulesOfMoneyIn(), rulesOfSessions(), rulesOfMoneyOut())
}

func rulesOfMoneyIn() []LedgerRule {
	return []LedgerRule{
		{RuleRows, `SELECT l.kind || ' ' || l.subject, l.created_at, ` + lineSum + `, 0 FROM ledger l WHERE ` + someEntries + ` AND ` + lineSum + ` <> 0`, `SELECT COUNT(*) FROM ledger`},
		{
			RuleProjects, `SELECT CASE WHEN project = '' THEN 'nobody' ELSE project END, 0, CAST(SUM(` + lineSum + `) AS BIGINT), 0 FROM ledger GROUP BY project HAVING SUM(` + lineSum + `) <> 0`,
			`SELECT COUNT(DISTINCT project) FROM ledger`,
		},
		{
			RulePayments, `SELECT p.id, p.received_at, CAST(COALESCE(l.rail_clearing, 0) AS BIGINT), p.amount FROM payments p
 LEFT JOIN ledger l ON l.kind = 'payment' AND l.subject = p.id
 WHERE ` + somePayments + ` AND (l.subject IS NULL OR l.rail_clearing <> p.amount OR l.payment <> p.id OR l.project <> p.project OR l.rail_id <> p.rail_transaction_id
 OR p.fee <> -(SELECT SUM(CASE WHEN l.kind IN ('payment', 'accept') THEN l.fees ELSE 0 END) FROM ledger l WHERE ` + ofPayment + `))`, `SELECT COUNT(*) FROM payments`,
		},
		{
			RuleStrays, `SELECT l.kind || ' ' || l.subject, l.created_at, l.rail_clearing, 0 FROM ledger l
 WHERE ` + someEntries + ` AND (l.kind = 'payment' AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = l.subject)
 OR l.kind = 'reversal' AND NOT EXISTS (SELECT 1 FROM reversals r WHERE r.rail_transaction_id = l.subject AND r.payment = l.payment)
 OR l.kind = 'refund' AND NOT EXISTS (SELECT 1 FROM refunds f WHERE f.payment = l.payment AND (l.subject = f.id OR l.subject LIKE f.id || '-%'))
 OR l.kind IN ('settle', 'settle_paid', 'settle_failed') AND NOT EXISTS (SELECT 1 FROM settlements b WHERE b.id = l.subject AND b.project = l.project)
 AND NOT (l.kind = 'settle_paid' AND EXISTS (SELECT 1 FROM settlements b WHERE b.project = l.project AND l.subject LIKE b.id || '-%'))
 OR l.payment <> '' AND NOT EXISTS (SELECT 1 FROM payments p WHERE p.id = l.payment))`, `SELECT COUNT(*) FROM ledger`,
		},
		{
			RuleReversals, `SELECT r.rail_transaction_id, r.received_at, CAST(COALESCE(l.rail_clearing, 0) AS BIGINT), -r.amount FROM reversals r
 LEFT JOIN ledger l ON l.kind = 'reversal' AND l.subject = r.rail_transaction_id
 WHERE r.payment <> '' AND (l.subject IS NULL OR l.rail_clearing <> -r.amount)`, `SELECT COUNT(*) FROM reversals`,
		},
		{
			RuleAside, `SELECT p.id, p.received_at, -l.unapplied, p.amount FROM payments p JOIN ledger l ON l.kind = 'payment' AND l.subject = p.id
 WHERE ` + somePayments + ` AND p.match_status IN ('DUPLICATE', 'UNMATCHED') AND l.unapplied <> -p.amount`, `SELECT COUNT(*) FROM payments WHERE match_status IN ('DUPLICATE', 'UNMATCHED')`,
		},
		{
			RuleReasons, `SELECT id, 0, CAST(SUM(aside) AS BIGINT), CAST(SUM(waits) AS BIGINT) FROM (
 SELECT ` + owner + ` AS id, -l.unapplied AS aside, 0 AS waits, 0 AS taken FROM ledger l JOIN payments p ON p.id = l.payment WHERE l.unapplied <> 0
 UNION ALL SELECT ` + owner + `, 0, p.amount, COALESCE((SELECT SUM(r.amount) FROM reversals r WHERE r.payment = p.id AND r.payment <> ''), 0)
 FROM payments p WHERE p.match_status <> 'MATCHED') AS both_sides
 GROUP BY id HAVING SUM(aside) > SUM(waits) OR SUM(aside) < -SUM(taken)`,
			`SELECT COUNT(*) FROM payments WHERE match_status <> 'MATCHED'`,
		},
		{
			RuleLeft, `SELECT id, at, CAST(aside AS BIGINT), CAST(had AS BIGINT) FROM (SELECT p.id AS id, p.received_at AS at,
 COALESCE((SELECT -SUM(l.unapplied) FROM ledger l WHERE ` + ofPayment + `), 0) AS aside, p.amount
 - COALESCE((SELECT SUM(r.amount) FROM reversals r WHERE r.payment = p.id AND r.payment <> ''), 0)
 - COALESCE((SELECT SUM(f.amount) FROM refunds f WHERE f.payment = p.id AND f.put_back = 0), 0) AS had
 FROM payments p WHERE ` + somePayments + `) AS compared
 WHERE aside > CASE WHEN had > 0 THEN had ELSE 0 END OR aside < 0`, `SELECT COUNT(*) FROM payments`,
		},
		{
			RuleResolutions, `SELECT id, resolved_at, accepted, decided FROM (SELECT p.id AS id, p.resolved_at AS resolved_at, p.match_status AS match_status,
 (SELECT COUNT(CASE WHEN l.kind = 'accept' AND l.subject NOT LIKE '%/parts' THEN 1 END) FROM ledger l WHERE ` + ofPayment + `) AS accepted,
 CASE WHEN p.resolution = 'ACCEPTED' THEN 1 ELSE 0 END AS decided FROM payments p WHERE ` + somePayments + `) AS compared
 WHERE decided = 1 AND accepted = 0 OR match_status = 'MATCHED' AND accepted > 0`,
			`SELECT COUNT(*) FROM payments WHERE resolution <> ''`,
		},
	}
}

func rulesOfSessions() []LedgerRule {
	return []LedgerRule{
		{
			RulePaid, `SELECT id, at, said, CAST(least AS BIGINT) FROM (SELECT s.id AS id, s.created_at AS at, s.amount_paid AS said, s.amount AS whole, s.status AS status,
 ` + applied(`l.kind = 'payment' OR l.kind = 'accept' AND (p.match_status = 'PARTIAL' AND l.subject = p.id OR l.subject LIKE '%/parts')`) + ` AS least,
 ` + applied(`l.kind IN ('payment', 'accept') AND p.match_status <> 'DUPLICATE'`) + ` AS most,
 CASE WHEN s.policy LIKE '%"underpayment":"refund"%' THEN 0
 ELSE COALESCE((SELECT SUM(CASE WHEN ` + heldPart + ` > 0 THEN ` + heldPart + ` ELSE 0 END) FROM payments p WHERE p.session = s.id), 0) END AS held
 FROM sessions s WHERE ` + someSessions + ` AND (s.amount_paid > 0 OR EXISTS (SELECT 1 FROM payments p WHERE p.session = s.id))) AS compared
 WHERE status = 'PAID' AND (said > most OR said < least AND said < whole) OR status <> 'PAID' AND said <> CASE WHEN held >= whole AND status IN ('EXPIRED', 'CANCELLED') THEN whole - 1 ELSE held END`,
			`SELECT COUNT(*) FROM sessions`,
		},
		{
			RuleWhole, `SELECT s.id, s.paid_at, s.amount_paid, s.amount FROM sessions s
 WHERE ` + someSessions + ` AND s.status = 'PAID' AND s.amount_paid < s.amount AND s.exceptions NOT LIKE '%"PARTIALLY_PAID"%'`, `SELECT COUNT(*) FROM sessions WHERE status = 'PAID'`,
		},
		{
			RuleSuccess, `SELECT s.id, s.paid_at, COUNT(e.id), CASE WHEN s.status = 'PAID' THEN 1 ELSE 0 END FROM sessions s
 LEFT JOIN events e ON e.session = s.id AND e.kind = 'charge.success' WHERE ` + someSessions + ` GROUP BY s.id, s.paid_at, s.status
 HAVING COUNT(e.id) <> CASE WHEN s.status = 'PAID' THEN 1 ELSE 0 END`, `SELECT COUNT(*) FROM sessions WHERE status = 'PAID'`,
		},
	}
}

func rulesOfMoneyOut() []LedgerRule {
	return []LedgerRule{
		{
			RuleSent, `SELECT p.id, p.received_at, CAST(SUM(f.amount) AS BIGINT), p.amount FROM payments p JOIN refunds f ON f.payment = p.id AND f.put_back = 0
 WHERE ` + somePayments + ` GROUP BY p.id, p.received_at, p.amount HAVING SUM(f.amount) > p.amount`, `SELECT COUNT(DISTINCT payment) FROM refunds`,
		},
		{
			RuleRefunds, `SELECT f.id, f.created_at, CAST(COALESCE((SELECT -MIN(l.refunds_payable) FROM ledger l WHERE ` + taken + ` AND l.kind || '' = 'refund'), 0) AS BIGINT), f.amount FROM refunds f
 WHERE NOT EXISTS (SELECT 1 FROM ledger l WHERE ` + taken + ` AND (l.kind || '' = 'refund' AND l.refunds_payable = -f.amount OR l.kind || '' = 'refund_paid' AND l.refunds_payable = 0) AND l.unapplied = f.aside)
 OR f.status = 'PROCESSED' AND NOT EXISTS (SELECT 1 FROM ledger l WHERE ` + taken + ` AND l.kind || '' = 'refund_paid' AND l.rail_clearing = -f.amount)
 OR f.status = 'FAILED' AND f.put_back = 0 OR f.put_back = 1 AND f.status NOT IN ('FAILED', 'NEEDS_ATTENTION')
 OR f.put_back = 1 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = 'refund_failed' AND l.subject = f.reference AND l.refunds_payable = f.amount)
 OR f.returned = 1 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.payment = f.payment AND l.payment <> '' AND l.kind || '' = 'refund_returned' AND l.rail_clearing = f.amount)`, `SELECT COUNT(*) FROM refunds`,
		},
		{
			RulePayable, `SELECT id, 0, CAST(SUM(owed) AS BIGINT), CAST(SUM(not_done) AS BIGINT) FROM (SELECT payment AS id, -refunds_payable AS owed, 0 AS not_done FROM ledger WHERE refunds_payable <> 0
 UNION ALL SELECT payment, 0, amount FROM refunds WHERE status IN ('PENDING', 'PROCESSING', 'NEEDS_ATTENTION') AND put_back = 0
 UNION ALL SELECT payment, 0, -overpaid FROM refunds WHERE overpaid > 0) AS both_sides GROUP BY id HAVING SUM(owed) <> SUM(not_done)`,
			`SELECT COUNT(*) FROM refunds WHERE status IN ('PENDING', 'PROCESSING', 'NEEDS_ATTENTION')`,
		},
		{
			RuleSettlements, `SELECT b.id, b.created_at, CAST(COALESCE((SELECT -l.settled FROM ledger l WHERE l.kind = 'settle' AND l.subject = b.id), 0) AS BIGINT), b.amount FROM settlements b
 WHERE b.created_at > 0 AND (NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = 'settle' AND l.subject = b.id AND l.settled = -b.amount AND l.project = b.project)
 OR b.status = 'SUCCEEDED' AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = 'settle_paid' AND l.subject = b.id AND l.rail_clearing = -b.amount)
 OR b.status = 'FAILED' AND b.returned = 0 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = 'settle_failed' AND l.subject = b.id AND l.settled = b.amount)
 OR b.returned = 1 AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.kind = 'settle_returned' AND l.project = b.project AND l.rail_clearing = b.amount))`,
			`SELECT COUNT(*) FROM settlements WHERE created_at > 0`,
		},
		{
			RuleSettled, `SELECT CASE WHEN id = '' THEN 'nobody' ELSE id END, 0, CAST(SUM(owed) AS BIGINT), CAST(SUM(under_way) AS BIGINT) FROM (SELECT project AS id, -settled AS owed, 0 AS under_way FROM ledger WHERE settled <> 0
 UNION ALL SELECT project, 0, amount FROM settlements WHERE created_at > 0 AND status IN ('PENDING', 'PROCESSING')) AS both_sides GROUP BY id HAVING SUM(owed) <> SUM(under_way)`,
			`SELECT COUNT(*) FROM settlements WHERE created_at > 0 AND status IN ('PENDING', 'PROCESSING')`,
		},
		{
			RulePending, `SELECT CASE WHEN id = '' THEN 'nobody' ELSE id END, 0, CAST(SUM(owed) AS BIGINT), CAST(SUM(listed) AS BIGINT) FROM (SELECT project AS id, -merchant_pending AS owed, 0 AS listed FROM ledger WHERE merchant_pending <> 0
 UNION ALL SELECT i.project, 0, i.net FROM settlement_items i WHERE i.settlement = '' OR EXISTS (SELECT 1 FROM settlements b WHERE b.id = i.settlement AND b.created_at = 0)) AS both_sides
 GROUP BY id HAVING SUM(owed) <> SUM(listed)`, `SELECT COUNT(*) FROM settlement_items WHERE settlement = ''`,
		},
	}
}

// LedgerFaults checks one rule: how many rows it is about, how many break it, and
// the first of those, at most as many as most.
func (r Reader) LedgerFaults(ctx context.Context, name string, most int) (list []LedgerFault, wrong, of int, err error) {
	return r.faults(ctx, ledgerRules(), name, most)
}

// LedgerFaults checks one rule as a Reader's does, and reads no moment for long: each
// part of a table is looked at as it is when its turn comes.
func (d *DB) LedgerFaults(ctx context.Context, name string, most int) (list []LedgerFault, wrong, of int, err error) {
	return faults(ctx, func(fn func(Reader) error) error { return d.View(ctx, fn) }, ledgerRules(), name, most)
}

// faults checks one of some rules.
func (r Reader) faults(ctx context.Context, rules []LedgerRule, name string, most int) (list []LedgerFault, wrong, of int, err error) {
	return faults(ctx, func(fn func(Reader) error) error { return fn(r) }, rules, name, most)
}

// faults checks one of some rules, part by part, each in a view.
func faults(ctx context.Context, view func(func(Reader) error) error, rules []LedgerRule, name string, most int) (list []LedgerFault, wrong, of int, err error) {
	i := slices.IndexFunc(rules, func(rule LedgerRule) bool { return rule.Name == name })
	if i < 0 {
		return nil, 0, 0, fmt.Errorf("check what is kept: there is no rule %q", name)
	}
	found := func(f LedgerFault) {
		if wrong++; len(list) < most {
			list = append(list, f)
		}
	}
	err = view(func(r Reader) error {
		_, err := r.run.one(ctx, rules[i].counts, nil, &of)
		return err
	})
	check := func(r Reader, part []any) error { return r.broken(ctx, rules[i], part, found) }
	if table, ok := partsOf(rules[i]); err == nil && ok {
		err = table.each(ctx, view, check)
	} else if err == nil {
		err = view(func(r Reader) error { return check(r, nil) })
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("check %s: %w", name, err)
	}
	return list, wrong, of, nil
}

// broken finds what breaks a rule, in a part of its table where it has those.
func (r Reader) broken(ctx context.Context, rule LedgerRule, part []any, found func(LedgerFault)) error {
	return r.run.each(ctx, rule.faults, part, func(scan scanner) error {
		var f LedgerFault
		var at int64
		if err := scan(&f.ID, &at, &f.Says, &f.Expects); err != nil {
			return err
		}
		f.At = flow.FromMillis(at)
		found(f)
		return nil
	})
}

// Balances are what lies in each account, in kobo; of one project, or of all and
// of nobody where it is "".
func (r Reader) Balances(ctx context.Context, project flow.ProjectID) (map[flow.LedgerAccount]flow.Kobo, error) {
	accounts := flow.LedgerAccounts()
	sums := make([]string, len(accounts))
	balances, to := make([]flow.Kobo, len(accounts)), make([]any, len(accounts))
	for i, account := range accounts {
		sums[i] = `CAST(COALESCE(SUM(` + string(account) + `), 0) AS BIGINT)` // the program's own word
		to[i] = &balances[i]
	}
	query, args := `SELECT `+strings.Join(sums, ", ")+` FROM ledger`, []any(nil)
	if project != "" {
		query, args = query+` WHERE project = ?`, []any{string(project)}
	}
	if _, err := r.run.one(ctx, query, args, to...); err != nil {
		return nil, fmt.Errorf("read the balances: %w", err)
	}
	out := map[flow.LedgerAccount]flow.Kobo{}
	for i, account := range accounts {
		out[account] = balances[i]
	}
	return out, nil
}
