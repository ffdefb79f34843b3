package checkout_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"till/flow/checkout"
	"till/flow/store"
	"till/flow/store/storetest"
)

// broken are the rules of rows that do not hold, as one look from outside finds
// them.
func broken(t *testing.T, c store.Config) (names []string) {
	t.Helper()
	err := store.Still(t.Context(), c, func(r store.Reader) error {
		told := 0
		list, err := checkout.RowsOf(t.Context(), r, c.Schema, func(checkout.Invariant) { told++ })
		if told != len(list) || len(list) != len(store.RowRules(c.Schema)) {
			t.Errorf("%d rules were checked, %d were told and there are %d", len(list), told, len(store.RowRules(c.Schema)))
		}
		for _, i := range list {
			if i.Wrong == 0 {
				continue
			}
			names = append(names, i.Name)
			for _, o := range i.Offenders {
				if o.ID == "" || o.Says == "" || o.Next == "" {
					t.Errorf("%s: %+v says too little", i.Name, o)
				}
			}
		}
		return err
	})
	must(t, err)
	slices.Sort(names)
	return names
}

// Whatever rows say of others that is not so is found by its own rule, and by no
// other.
func TestWhateverIsWrongWithTheRowsIsFound(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.endpoint("https://shop.test")
		w.everything()
		w.paying()
		w.later(time.Second)
		nobodys := credit("T1", "", 250_000, w.clock())
		nobodys.Collects = project
		w.must(w.tell(nobodys))
		w.rest()
		w.spoilt = true
		whole := w.keptBodies()
		changed := w.changedBodies
		plants := []struct{ rule, plant, mend string }{
			{store.RulePaymentOf, "UPDATE payments SET attempt = attempt || '-gone' WHERE attempt <> ''", "UPDATE payments SET attempt = REPLACE(attempt, '-gone', '')"},
			{store.RuleAttemptOpen, "UPDATE sessions SET status = 'CANCELLED' WHERE status = 'PENDING' AND amount_paid = 0", "UPDATE sessions SET status = 'PENDING' WHERE status = 'CANCELLED'"},
			{store.RuleAttemptEnds, "UPDATE tasks SET subject = subject || '-gone' WHERE kind = 'attempt.expire'", "UPDATE tasks SET subject = REPLACE(subject, '-gone', '')"},
			{store.RuleAttemptAsks, "UPDATE attempts SET amount = amount + 1 WHERE status = 'ACTIVE'", "UPDATE attempts SET amount = amount - 1 WHERE status = 'ACTIVE'"},
			{store.RuleAttemptAsks, "UPDATE attempts SET amount = amount * 100 WHERE status = 'SUCCEEDED'", "UPDATE attempts SET amount = amount / 100 WHERE status = 'SUCCEEDED'"},
			{store.RuleSessionEnds, "UPDATE sessions SET swept = 1 WHERE status = 'PENDING'", "UPDATE sessions SET swept = 0 WHERE status = 'PENDING'"},
			{store.RuleEventOf, "UPDATE sessions SET sequence = sequence - 100", "UPDATE sessions SET sequence = sequence + 100"},
			{store.RuleDeliveryOf, "UPDATE endpoints SET project = project || '-gone'", "UPDATE endpoints SET project = REPLACE(project, '-gone', '')"},
			{store.RuleRefundOwed, "UPDATE tasks SET subject = subject || '-gone' WHERE kind = 'refund.send'", "UPDATE tasks SET subject = REPLACE(subject, '-gone', '')"},
			{
				store.RulePayoutOwed, "INSERT INTO settlements VALUES ('wsp_stl_x', 'wsp_prj_1', '2026-11-21', 'PENDING', 100, 100, 0, '999', 'b', '1', 'n', 0, 0, '', '', 5, 0, 0)",
				"DELETE FROM settlements WHERE id = 'wsp_stl_x'",
			},
			{store.RuleReturnOwed, "UPDATE tasks SET subject = subject || '-gone' WHERE kind = 'payment.return'", "UPDATE tasks SET subject = REPLACE(subject, '-gone', '')"},
			{store.RuleListedOf, "UPDATE settlement_items SET settlement = 'gone'", "UPDATE settlement_items SET settlement = ''"},
			{
				store.RuleSettledSum, "INSERT INTO settlements VALUES ('wsp_stl_y', 'wsp_prj_1', '2026-11-21', 'SUCCEEDED', 100, 0, 0, '999', 'b', '1', 'n', 0, 0, 'tx', '', 5, 5, 5)",
				"DELETE FROM settlements WHERE id = 'wsp_stl_y'",
			},
			{store.RuleListedIs, "UPDATE settlement_items SET net = net + 1", "UPDATE settlement_items SET net = net - 1"},
			{store.RuleListedIs, "UPDATE settlement_items SET project = project || '-other'", "UPDATE settlement_items SET project = REPLACE(project, '-other', '')"},
			{store.RuleRefundOf, "UPDATE refunds SET project = project || '-other'", "UPDATE refunds SET project = REPLACE(project, '-other', '')"},
			{store.RuleRefundOf, "UPDATE refunds SET session = session || '-other'", "UPDATE refunds SET session = REPLACE(session, '-other', '')"},
			{store.RuleTakenOf, "UPDATE reversals SET project = project || '-other' WHERE payment <> ''", "UPDATE reversals SET project = REPLACE(project, '-other', '')"},
			{store.RuleEventSays, "UPDATE events SET body = (SELECT e.body FROM events e ORDER BY e.id LIMIT 1)", whole},
			{store.RuleEventSays, changed("charge.success", `"amountMinor":"500000"`, `"amountMinor":"50000"`), whole},
			{store.RuleEventSays, changed("charge.success", `"sessionId":"wsp_sess_`, `"sessionId":"wsp_sess_0`), whole},
			{store.RuleEventSays, changed("charge.success", `"event":"charge.success"`, `"event":"charge.late"`), whole},
			{store.RuleEventSays, changed("charge.success", `"id":"wsp_pay_`, `"id":"wsp_pay_0`), whole},
			{store.RuleEventSays, changed("charge.success", `"id":"wsp_pay_`, `"id":"\u0000`), whole}, // which PostgreSQL has no text for
			{store.RuleEventSays, changed("charge.underpaid", `"amountMinor":"200000"`, `"amountMinor":"300000"`), whole},
			{store.RuleEventSays, changed("refund.pending", `"amountMinor":"`, `"amountMinor":"1`), whole},
			{store.RuleEventSays, changed("payment.unmatched", `"amountMinor":"`, `"amountMinor":"1`), whole},
			{store.RuleTakenOf, "UPDATE reversals SET payment = payment || '-gone' WHERE payment <> ''", "UPDATE reversals SET payment = REPLACE(payment, '-gone', '')"},
			{store.RuleLog, "UPDATE log SET seq = seq + 1 WHERE stream = (SELECT MIN(stream) FROM log) AND seq = (SELECT MAX(l.seq) FROM log l WHERE l.stream = log.stream)", ""},
		}
		if w.store.URL == "" { // PostgreSQL refuses it
			plants = slices.Insert(plants, 0, struct{ rule, plant, mend string }{
				store.RuleRelated, "UPDATE notes SET session = session || '-gone'", "UPDATE notes SET session = REPLACE(session, '-gone', '')",
			})
			w.change("INSERT INTO notes (id, session, author, text, at) SELECT 'note_1', MIN(id), 'ada', 'hello', 1 FROM sessions")
		}
		if got := broken(w.t, w.store); len(got) > 0 {
			w.t.Fatalf("before anything was planted: %v", got)
		}
		for _, c := range plants {
			w.change(c.plant)
			if got := broken(w.t, w.store); !slices.Equal(got, []string{"rows " + c.rule}) {
				w.t.Errorf("%s: broken is %v", c.plant, got)
			}
			if c.mend != "" {
				w.change(c.mend)
			}
		}
	})
}

// keptBodies keeps the bodies of events, and is what gives them back.
func (w *world) keptBodies() string {
	w.t.Helper()
	w.change("CREATE TABLE kept_events AS SELECT id, body FROM events")
	return "UPDATE events SET body = (SELECT k.body FROM kept_events k WHERE k.id = events.id)"
}

// changedBodies has the events of a kind say something else.
func (w *world) changedBodies(kind, from, to string) string {
	text, bytes := "CAST(body AS TEXT)", "CAST(%s AS BLOB)"
	if w.store.URL != "" {
		text, bytes = "convert_from(body, 'UTF8')", "convert_to(%s, 'UTF8')"
	}
	return "UPDATE events SET body = " + fmt.Sprintf(bytes, "REPLACE("+text+", '"+from+"', '"+to+"')") + " WHERE kind = '" + kind + "'"
}

// An event that is gone with its deliveries, as if it had never been, is missed by the log
// of its session.
func TestAnEventThatIsGoneIsMissed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world) {
		w.endpoint("https://shop.test")
		w.everything()
		w.rest()
		w.spoilt = true
		if got := broken(w.t, w.store); len(got) > 0 {
			w.t.Fatalf("before anything was deleted: %v", got)
		}
		for _, table := range []string{"delivery_attempts", "deliveries", "events WHERE kind = 'charge.underpaid'"} {
			w.change("DELETE FROM " + table)
		}
		if got := broken(w.t, w.store); !slices.Equal(got, []string{"rows " + store.RuleEventKept}) {
			w.t.Errorf("broken is %v", got)
		}
	})
}

// An event that tells of a settlement tells of one that there is, and of its amount.
func TestWhatAnEventSaysOfASettlementIsHeldAgainstIt(t *testing.T) {
	t.Parallel()
	eachPaying(t, "", func(w *world) {
		w.endpoint("https://shop.test/hook")
		w.earns()
		w.at("2026-11-24T08:00:01Z")
		w.ended(project, 1)
		w.rest()
		w.spoilt = true
		whole := w.keptBodies()
		if got := broken(w.t, w.store); len(got) > 0 {
			w.t.Fatalf("before anything was changed: %v", got)
		}
		for from, to := range map[string]string{`"amountMinor":"482500"`: `"amountMinor":"482501"`, `"id":"wsp_stl_`: `"id":"wsp_stl_0`} {
			w.change(w.changedBodies("settlement.success", from, to))
			if got := broken(w.t, w.store); !slices.Equal(got, []string{"rows " + store.RuleEventSays}) {
				w.t.Errorf("with %s broken is %v", to, got)
			}
			w.change(whole)
		}
	})
}

// So it is for the accounts.
func TestWhateverIsWrongWithTheRowsOfAccountsIsFound(t *testing.T) {
	t.Parallel()
	storetest.EachConfig(t, store.Accounts, func(t *testing.T, c store.Config) {
		db := storetest.Open(t, c)
		a, _ := desk(t, db)
		_, err := a.Demo(t.Context(), "ada@example.com", "Ada Stores", func(checkout.SignedUp) error { return nil })
		must(t, err)
		w := &world{t: t, store: c}
		w.change("INSERT INTO people SELECT 'per_1', id, 'obi@example.com', 'x', 'support', 1, 0 FROM accounts")
		if got := broken(t, c); len(got) > 0 {
			t.Fatalf("before anything was planted: %v", got)
		}
		for _, p := range []struct{ rule, plant, mend string }{
			{store.RuleKYC, "UPDATE projects SET kyc = 'APPROVED'", "UPDATE projects SET kyc = 'NONE'"},
			{store.RulePeople, "UPDATE people SET account = 'gone'", ""},
		} {
			w.change(p.plant)
			if got := broken(t, c); !slices.Equal(got, []string{"rows " + p.rule}) {
				t.Errorf("%s: broken is %v", p.plant, got)
			}
			if p.mend != "" {
				w.change(p.mend)
			}
		}
	})
}

// A look from outside leaves every byte as it is, also of one whose program was
// killed, and sees what that one had committed.
func TestALookFromOutsideChangesNothing(t *testing.T) {
	t.Parallel()
	c := storetest.SQLite(t, store.Checkout)
	db := storetest.Open(t, c)
	must(t, db.Update(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), "name", "value") }))
	killed := c // what a kill leaves: the file and its log, without what is shared
	killed.Dir = t.TempDir()
	for _, ending := range []string{".db", ".db-wal"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, c.Name+ending))
		if err == nil {
			err = os.WriteFile(filepath.Join(killed.Dir, c.Name+ending), text, 0o600)
		}
		must(t, err)
	}
	before := contents(t, killed.Dir)
	err := store.Still(t.Context(), killed, func(r store.Reader) error {
		value, err := r.Setting(t.Context(), "name")
		if value != "value" {
			t.Errorf("it sees %q", value)
		}
		return err
	})
	must(t, err)
	after := contents(t, killed.Dir)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
	killed.Name = "none"
	if err := store.Still(t.Context(), killed, func(store.Reader) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a look at nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(killed.Dir, "none.db")); err == nil {
		t.Error("the look made a file")
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		out[e.Name()] = string(text)
	}
	return out
}
