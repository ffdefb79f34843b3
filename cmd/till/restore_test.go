package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"till/cmd/till/tilltest"
	"till/flow"
)

// does runs one command of Till on its data dir.
func (x *till) does(args ...string) {
	x.t.Helper()
	out, err := tilltest.Output(x.t.Context(), x.dir, x.o.env, args...)
	if err != nil {
		x.t.Fatalf("till %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// chosen opens a chat session and has somebody choose bank transfer in it.
func (m *merchant) chosen(who *payer, reference string) (account string) {
	m.t.Helper()
	_, text := m.openChat(250_000, reference)
	who.says(text)
	who.hears(`1 Bank transfer`)
	who.says("1")
	return who.hears(`^\d{10}$`)[0]
}

// ratchets is how many a number's keys hold.
func ratchets(t *testing.T, file string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=rw")
	must(t, err)
	must(t, errors.Join(db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM whatsmeow_sessions").Scan(&n), db.Close()))
	return n
}

// A backup has the keys of each number as they were then, and the payers' phones
// have gone on since. Whoever is restored to it writes to them and reads them all
// the same: those who are written to first, those who write first, and those who
// came after the backup.
func TestPayersAreHeardAndReachedAfterAnOldBackupIsRestored(t *testing.T) {
	t.Parallel() // it mostly waits
	x, m := running(t, newOutside(t))
	reached, writes, late := newPayer(m), newPayer(m), newPayer(m)
	paid, asked := m.chosen(reached, "is-reached"), m.chosen(writes, "writes")
	x.does("backup", filepath.Join(x.dir, "old.tar.gz"))
	if ratchets(t, filepath.Join(x.dir, "data", keysDir, "test-1.db")) == 0 {
		t.Error("nobody has a ratchet: what is to be forgotten?")
	}

	// What was said since: the phones' keys move on, the backup's do not.
	for range 4 {
		for who, account := range map[*payer]string{reached: paid, writes: asked} {
			who.says("5")
			who.hears("^" + account + "$")
		}
	}
	m.chosen(late, "comes-late")
	x.p.Kill()
	x.does("restore", filepath.Join(x.dir, "old.tar.gz"), "--yes")
	if n := ratchets(t, filepath.Join(x.dir, "data", keysDir, "test-1.db")); n != 0 {
		t.Errorf("%d ratchets are restored, which the phones have moved past", n)
	}
	x.does("ledger", "release", "--reason", "nothing left since")
	x.does("ledger", "release", "--live")
	x.start()
	waitReady(m)

	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": paid})
	reached.hears(`(?i)receipt(?s:.*)is-reached`)
	reached.says("receipt")
	reached.hears(`is-reached`)
	writes.says("5")
	writes.hears("^" + asked + "$")
	m.chosen(late, "comes-again")
	m.chosen(newPayer(m), "is-new")
}

// sentOut is how many payouts the bank was ordered to send.
func (m *merchant) sentOut() (n int) {
	m.t.Helper()
	for _, one := range items(m.call(http.MethodGet, "/v1/test/bank/calls", nil)) {
		if one["operation"] == "disburse" {
			n++
		}
	}
	return n
}

// A merchant was paid out after the backup. What is restored owes the same money
// still, and sends it to nobody until an operator looked at what the bank sent.
func TestARestoredBackupPaysNobodyOutTwice(t *testing.T) {
	x, m := running(t, newOutside(t))
	who := newPayer(m)
	account := m.chosen(who, "is-paid-out")
	m.call(http.MethodPost, "/v1/test/bank/transfers", object{"accountNumber": account})
	who.hears(`(?i)receipt`)
	x.does("backup", filepath.Join(x.dir, "old.tar.gz"))
	runs := func() {
		t.Helper()
		made := items(m.call(http.MethodPost, "/v1/test/settlements/run", object{"date": string(flow.DateOf(time.Now()).Plus(10))}))
		if len(made) != 1 {
			t.Fatalf("settlements: %v", made)
		}
	}
	runs()
	m.until("the payout is sent", func() bool {
		return m.sentOut() == 1 && items(m.call(http.MethodGet, "/v1/settlements", nil))[0]["status"] == "SUCCEEDED"
	})

	x.p.Kill()
	x.does("restore", filepath.Join(x.dir, "old.tar.gz"), "--yes")
	x.start()
	m.until("the server says that payouts are held", func() bool {
		_, out, err := m.try(http.MethodGet, "/readyz", nil)
		return err == nil && strings.Contains(fmt.Sprint(out), "till ledger release")
	})
	runs() // the payday that the backup has before it
	out, err := x.p.Beside("ledger", "release")
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != exitRefused || !strings.Contains(out, flow.PrefixSettlement) || !strings.Contains(out, "Nothing was released") {
		t.Errorf("ledger release: %v\n%s", err, out)
	}
	if n := m.sentOut(); n != 1 {
		t.Errorf("the bank was ordered to send %d payouts", n)
	}
	for _, args := range [][]string{{"--yes", "--reason", "the merchant gave it back"}, {"--live"}} {
		if out, err = x.p.Beside(append([]string{"ledger", "release"}, args...)...); err != nil {
			t.Fatalf("ledger release %v: %v\n%s", args, err, out)
		}
	}
	waitReady(m)
}
