package crash

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
	"till/flow/await"
	"till/flow/store"
	"till/flow/store/storetest"
)

// ownDatabase is a PostgreSQL database that no other test has.
func ownDatabase(tb testing.TB, name string) string {
	tb.Helper()
	at := storetest.EmptyPostgres(tb, store.Checkout).URL
	db, err := sql.Open("pgx", at)
	must(tb, err)
	defer db.Close()
	if _, err := db.ExecContext(context.Background(), "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	return strings.Replace(at, "/postgres?", "/"+name+"?", 1)
}

// books opens a database for reading.
func (w *world) books(name string) *sql.DB {
	w.tb.Helper()
	for _, setting := range w.env {
		if at, on := strings.CutPrefix(setting, "TILL_DATABASE_URL="); on && name == "test" {
			db, err := sql.Open("pgx", at+"&search_path=test")
			must(w.tb, err)
			return db
		}
	}
	file := w.file(name + ".db")
	if name == "bank" {
		file = w.bankFile()
	}
	db, err := sql.Open("sqlite", "file:"+url.PathEscape(file)+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	must(w.tb, err)
	return db
}

// file is a file of Till's data.
func (w *world) file(name string) string { return filepath.Join(w.data, name) }

// number reads one number.
func (w *world) number(db *sql.DB, query string) (n int64) {
	w.tb.Helper()
	if err := db.QueryRowContext(context.Background(), query).Scan(&n); err != nil {
		w.tb.Fatalf("%s: %v", query, err)
	}
	return n
}

// texts reads a column of texts, and how often each is there.
func (w *world) texts(db *sql.DB, query string) map[string]int {
	w.tb.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		w.tb.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	out := map[string]int{}
	for rows.Next() {
		var one string
		must(w.tb, rows.Scan(&one))
		out[one]++
	}
	must(w.tb, rows.Err())
	return out
}

// end waits until everything has come to its end, kills once more, and compares
// all of it.
func (a *audit) end() {
	w := a.w
	w.tb.Helper()
	a.w.proofs.Wait()
	kept, bank := w.books("test"), w.books("bank")
	defer kept.Close()
	defer bank.Close()
	if !await.Within(drained, func() bool {
		return w.number(kept, "SELECT COUNT(*) FROM deliveries WHERE state <> 'delivered'") == 0 &&
			w.number(bank, "SELECT COUNT(*) FROM notices WHERE state = 'owed'") == 0 &&
			w.number(kept, "SELECT COUNT(*) FROM refunds WHERE status IN ('PENDING', 'PROCESSING')") == 0 &&
			w.number(kept, "SELECT COUNT(*) FROM settlements WHERE status <> 'SUCCEEDED'") == 0 &&
			w.number(kept, "SELECT COUNT(*) FROM says WHERE state = 'pending'") == 0 && a.allPaid()
	}) {
		w.wrong("stuck", "after %s deliveries are still %v, and the bank owes %d notices", drained,
			w.texts(kept, "SELECT state FROM deliveries"), w.number(bank, "SELECT COUNT(*) FROM notices WHERE state = 'owed'"))
	}
	progress("all is delivered and sent; once more from the start, and all of it compared")
	w.p.Kill()
	w.start()
	w.until("Till is ready for the last time", w.ready)
	calls := w.journal.of("call")
	a.replies(calls)
	each(a.shop.all(), func(one sale) { a.settled(one) })
	a.checks++
	a.prove()
	a.money(kept, bank)
	a.events(kept)
	a.messages(kept)
	a.decidedAgain()
}

// replayed is how many chats are decided again in the end: each is a process.
const replayed = 10

// decidedAgain has some chats decided again, each of which must come out as it was
// (I14).
func (a *audit) decidedAgain() {
	chats := slices.DeleteFunc(a.shop.all(), func(one sale) bool { return !one.chat })
	each(chats[:min(replayed, len(chats))], func(one sale) {
		if out, err := tilltest.Output(context.Background(), a.w.dir, a.w.env, "replay", one.session, "--verify"); err != nil {
			a.w.wrong("replay", "till replay %s --verify: %v\n%s", one.session, err, out)
		}
	})
}

// allPaid says whether the payer's part of everything has had its effect.
func (a *audit) allPaid() bool {
	return !slices.ContainsFunc(a.shop.all(), func(one sale) bool { return one.due() && a.sink.told(one.session) == 0 })
}

// settled compares one session with what was done to it (I4, I6).
func (a *audit) settled(one sale) {
	is, told, want := a.look(one.session), a.sink.told(one.session), 0
	if one.due() {
		want = 1
	}
	switch {
	case one.due() && is != "PAID":
		a.w.wrong("lost", "%s was paid for and is %s", one.session, is)
	case one.cancelled && is != "CANCELLED":
		a.w.wrong("lost", "%s was cancelled and is %s", one.session, is)
	case !one.due() && is == "PAID":
		a.w.wrong("doubled", "%s is PAID with %d of %d", one.session, one.paid, one.amount)
	}
	if told < want {
		a.w.wrong("lost", "no charge.success of %s came", one.session)
	}
	if told > want {
		a.w.wrong("doubled", "%d different charge.success of %s came, for %d", told, one.session, want)
	}
}

// money compares the bank's books with what was kept, movement by movement, and
// with the driver's own transfers (I2, I3, I8).
func (a *audit) money(kept, bank *sql.DB) {
	w := a.w
	credits := w.texts(bank, "SELECT id FROM movements WHERE kind = 'credit'")
	payments := w.texts(kept, "SELECT rail_transaction_id FROM payments")
	a.movements = int(w.number(bank, "SELECT COUNT(*) FROM movements"))
	for id := range credits {
		if payments[id] == 0 {
			w.wrong("lost", "the bank booked %s, and there is no payment of it", id)
		}
	}
	for id, n := range payments {
		if n > 1 || credits[id] == 0 {
			w.wrong("doubled", "there are %d payments of %s, and %d credits at the bank", n, id, credits[id])
		}
	}
	transfers := w.journal.of("transfer")
	sum := int64(0)
	for _, one := range transfers {
		sum += one.Amount
		if credits[one.ID] != 1 {
			w.wrong("lost", "the bank acknowledged %s and has it %d times", one.ID, credits[one.ID])
		}
	}
	if there := w.number(bank, "SELECT COALESCE(SUM(amount), 0) FROM movements WHERE kind = 'credit' AND channel = 'bank_transfer'"); there != sum {
		w.wrong("doubled", "%d kobo were transferred, and the bank booked %d", sum, there)
	}
	came := w.number(bank, "SELECT COALESCE(SUM(CASE kind WHEN 'credit' THEN amount WHEN 'paid_out' THEN -amount WHEN 'reversal' THEN -amount ELSE amount END), 0) FROM movements WHERE kind IN ('credit', 'paid_out', 'reversal')")
	if lies := a.clearing(); lies != came {
		w.wrong("doubled", "%d kobo lie at the bank, and the ledger says %d", came, lies)
	}
	for twice, n := range w.texts(bank, "SELECT session || ' ' || method FROM instruments") {
		if n > 1 {
			w.wrong("doubled", "the bank made %d instruments for %s", n, twice)
		}
	}
	paidOut := w.texts(bank, "SELECT reference || ' ' || amount FROM disbursements WHERE kind = 'payout' AND refused = ''")
	if settled := w.texts(kept, "SELECT id || ' ' || amount FROM settlements"); !maps.Equal(paidOut, settled) {
		w.wrong("doubled", "the bank paid out %v, and the settlements are %v", paidOut, settled)
	}
	for twice, n := range w.texts(bank, "SELECT credit FROM disbursements WHERE kind = 'refund' AND refused = ''") {
		if n > 1 {
			w.wrong("doubled", "the bank sent %d refunds of %s", n, twice)
		}
	}
}

// clearing is what lies at the bank, as till ledger balance says.
func (a *audit) clearing() int64 {
	out, err := tilltest.Output(context.Background(), a.w.dir, a.w.env, "ledger", "balance", "--json")
	var accounts map[string]json.Number
	if err == nil {
		err = json.Unmarshal([]byte(out), &accounts)
	}
	if err != nil {
		a.w.wrong("ledger", "till ledger balance: %v\n%s", err, out)
		return 0
	}
	n, err := accounts["rail_clearing"].Int64()
	if err != nil {
		a.w.wrong("ledger", "till ledger balance says %s", out)
	}
	return n
}

// events compares the events that are kept with those that came (I7), and those
// that came with what is kept (I11).
func (a *audit) events(kept *sql.DB) {
	w := a.w
	is := w.texts(kept, "SELECT id FROM events")
	came := w.journal.of("hook")
	arrived := map[string]bool{}
	for _, one := range came {
		arrived[one.ID] = true
		if is[one.ID] == 0 {
			w.wrong("lost", "%s came and is not kept", one.ID)
		}
	}
	for id := range w.texts(kept, "SELECT event FROM deliveries") {
		if !arrived[id] {
			w.wrong("lost", "%s is said to be delivered and never came", id)
		}
	}
}

// messages compares what payers wrote with what was heard (I12).
func (a *audit) messages(kept *sql.DB) {
	heard := a.w.texts(kept, "SELECT message FROM log WHERE kind = 'heard'")
	said := a.w.journal.of("said")
	for _, one := range said {
		if n := heard[one.ID]; n != 1 {
			a.w.wrong("lost", "message %s was heard %d times", one.ID, n)
		}
	}
}
