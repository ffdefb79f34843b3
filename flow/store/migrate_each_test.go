package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"till/flow"
	"till/flow/store"
	"till/flow/store/storetest"
)

// What was kept by a program of any age is there after the way to today's schema:
// every invariant of the ledger and of the rows holds, nothing is lost, and what
// was owed to a merchant's endpoint is still owed, signed as it was.
func TestADatabaseOfEveryAgeIsBroughtToToday(t *testing.T) {
	if testing.Short() {
		t.Skip("a sweep: the race detector would make it minutes long")
	}
	files, err := filepath.Glob(filepath.Join("migration", "checkout", "*.sql"))
	must(t, err)
	slices.Sort(files)
	for age := 1; age <= len(files); age++ {
		t.Run(filepath.Base(files[age-1]), func(t *testing.T) {
			storetest.EachEmpty(t, store.Checkout, func(t *testing.T, c store.Config) {
				aged(t, c, files[:age])
				c.Seal = true
				db := storetest.Open(t, c)
				for what, want := range map[string]int{
					"sessions": 1, "attempts": 1, "payments": 1, "events": 1, "endpoints": 1, "deliveries": 1, "delivery_attempts": 1, "chats": 1, "watches": 1, "log": 2, "ledger": 1, "settlement_items": 1,
				} {
					if n, err := db.Count(t.Context(), "SELECT COUNT(*) FROM "+what); err != nil || n != want {
						t.Errorf("%d %s, want %d (%v)", n, what, want, err)
					}
				}
				for _, rule := range store.LedgerRules() {
					if list, wrong, _, err := db.LedgerFaults(t.Context(), rule, 9); err != nil || wrong != 0 {
						t.Errorf("%s: %+v (%v)", rule, list, err)
					}
				}
				for _, rule := range store.RowRules(store.Checkout) {
					if list, wrong, _, err := db.RowFaults(t.Context(), store.Checkout, rule, 9); err != nil || wrong != 0 {
						t.Errorf("%s: %+v (%v)", rule, list, err)
					}
				}
				if b, err := db.Balance(t.Context(), "wsp_prj_1"); err != nil || b != (flow.Balance{Pending: 482_500, Fees: 17_500}) {
					t.Errorf("the balance: %+v (%v)", b, err)
				}
				claimed := doing(t, db, func(ctx context.Context, tx *store.Tx) ([]flow.Delivery, error) {
					return tx.ClaimDeliveries(ctx, "L1", []string{"dlv_1"}, noon, noon.Add(time.Minute))
				})
				if len(claimed) != 1 || string(claimed[0].Body) != agedEvent || !slices.Equal(claimed[0].Secrets, []string{"whsec_old"}) || claimed[0].Attempts != 1 {
					t.Errorf("what is owed: %+v", claimed)
				}
				if n := inClear(t, db); n != 0 {
					t.Errorf("%d secrets are in the clear", n)
				}
			})
		})
	}
}

// agedEvent is what its merchant is told.
const agedEvent = `{"id":"evt_1","event":"charge.success","createdAt":"1970-01-01T00:00:00.008Z","sequence":1,"data":{"sessionId":"s1","amountMinor":"500000"}}`

// aged makes a database as the program of an age left it: a session that was paid,
// and its webhook on the way.
func aged(t *testing.T, c store.Config, files []string) {
	t.Helper()
	has := func(part string) bool {
		return slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, part) })
	}
	script := `INSERT INTO sessions (id, project, merchant, mode, amount, amount_paid, status, exceptions, methods, customer_email, customer_phone, customer_name, reference, description, metadata,
 callback_url, policy, entry_code, number, charge, charge_asked, sequence, version, created_at, expires_at, paid_at)
 VALUES ('s1', 'wsp_prj_1', 'Ada', 'chat', 500000, 500000, 'PAID', '[]', '["bank_transfer"]', 'a@example.com', '', '', '', '', '{}', '', '{}', '', '', '', 0, 1, 3, 1, 100, 7);
INSERT INTO attempts VALUES ('a1', 's1', 'bank_transfer', 'ref1', 500000, 'SUCCEEDED', 1, '', '', '', '', '', 1, 50);
INSERT INTO payments (id, project, session, attempt, amount, fee, channel, paid_at, received_at, payer, nip_session, rail_transaction_id, match_status)
 VALUES ('p1', 'wsp_prj_1', 's1', 'a1', 500000, 17500, 'bank_transfer', 7, 8, '{}', '', 'T1', 'MATCHED');
INSERT INTO events (id, kind, project, session, sequence, body, created_at) VALUES ('evt_1', 'charge.success', 'wsp_prj_1', 's1', 1, {{told}}, 8);
INSERT INTO endpoints (id, project, url, description, events, secrets, status, created_at) VALUES ('we_1', 'wsp_prj_1', 'https://shop.example/', '', '[]', '["whsec_old"]', 'ENABLED', 1);
INSERT INTO deliveries (id, event, endpoint, state, attempts, next_at, token, done_at) VALUES ('dlv_1', 'evt_1', 'we_1', 'pending', 1, 9, '', 0);
INSERT INTO delivery_attempts (delivery, n, at, status, reason, body, micros) VALUES ('dlv_1', 1, 8, 500, 'status', {{body}}, 3);
INSERT INTO chats (id, number, person, phone, name, decided, created_at) VALUES ('c1', 'n', 'ada', '', '', 0, 1);
INSERT INTO watches VALUES ('s1', 'c1');
INSERT INTO log (stream, seq, at, kind, cause, session, message, data) VALUES ('c1', 1, 8, 'event', 0, 's1', '', '{}');
`
	if !has("0011_ledger.sql") {
		script += `INSERT INTO postings (payment, line, project, account, amount, created_at) VALUES ('p1', 1, 'wsp_prj_1', 'rail_clearing', 500000, 8),
 ('p1', 2, 'wsp_prj_1', 'merchant_pending', -482500, 8), ('p1', 3, 'wsp_prj_1', 'fees', -17500, 8);
`
	}
	next := 1
	if !has("0009_due.sql") { // that a session was opened was the first line of its log
		script += "INSERT INTO log (stream, seq, at, kind, cause, session, message, data) VALUES ('s1', 1, 1, 'opened', 0, 's1', '', '{}');\n"
		next = 2
	}
	script += fmt.Sprintf("INSERT INTO log (stream, seq, at, kind, cause, session, message, data) VALUES ('s1', %d, 2, 'bank.asked', 0, 's1', '', '{}');\n", next)
	script += moreOfAge(has)
	bytes := map[bool]string{true: "BLOB", false: "BYTEA"}[c.URL == ""]
	madeBy(t, c, files, strings.NewReplacer("{{told}}", "CAST('"+agedEvent+"' AS "+bytes+")", "{{body}}", "CAST('{}' AS "+bytes+")").Replace(script))
}

// madeBy makes a database by some migrations, with rows.
func madeBy(t *testing.T, c store.Config, files []string, rows string) {
	t.Helper()
	script := ""
	words := strings.NewReplacer("{{int}}", "INTEGER", "{{blob}}", "BLOB", "{{strict}}", "STRICT", "{{sqlite}}", "", "{{postgres}}", "{{not here}}")
	if c.URL != "" {
		script = "CREATE SCHEMA " + c.Name + ";\n"
		words = strings.NewReplacer("{{int}}", "BIGINT", "{{blob}}", "BYTEA", "{{strict}}", "", "{{postgres}}", "", "{{sqlite}}", "{{not here}}")
	}
	script += "CREATE TABLE schema_version (version BIGINT NOT NULL);\n"
	for i, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		script += words.Replace(string(text)) + fmt.Sprintf(";\nINSERT INTO schema_version VALUES (%d);\n", i+1)
	}
	outside(t, c, script+rows)
}

// outside runs a script in a database that no program has open.
func outside(t *testing.T, c store.Config, script string) {
	t.Helper()
	driver, name := "sqlite", "file:"+filepath.Join(c.Dir, c.Name+".db")
	if c.URL != "" {
		driver, name = "pgx", c.URL+"&search_path="+c.Name
	}
	db, err := sql.Open(driver, name)
	must(t, err)
	for stmt := range strings.SplitSeq(script, ";\n") {
		if stmt = strings.TrimSpace(stmt); stmt == "" || strings.Contains(stmt, "{{not here}}") {
			continue
		}
		if _, err := db.ExecContext(t.Context(), stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
	must(t, db.Close())
}

// moreOfAge is what a program of an age kept beside that.
func moreOfAge(has func(string) bool) string {
	script, ledger := "", "INSERT INTO ledger (kind, subject, payment, project, rail_clearing, merchant_pending, merchant_available, fees, unapplied, refunds_payable, settled, created_at"
	lines := ") VALUES ('payment', 'p1', 'p1', 'wsp_prj_1', 500000, -482500, 0, -17500, 0, 0, 0, 8"
	switch {
	case has("0016_reconciliation.sql"):
		script = ledger + ", rail_id, value_at" + lines + ", 'T1', 7);\n"
	case has("0011_ledger.sql"):
		script = ledger + lines + ");\n"
	}
	if has("0013_settlements.sql") {
		script += "INSERT INTO settlement_items (settlement, kind, subject, project, net, created_at) VALUES ('', 'payment', 'p1', 'wsp_prj_1', 482500, 8);\n"
	}
	return script
}
