package main

import (
	"database/sql"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"till/cmd/till/tilltest"
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
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM whatsmeow_sessions").Scan(&n), db.Close()); err != nil {
		t.Fatal(err)
	}
	return n
}

// A backup has the keys of each number as they were then, and the payers' phones
// have gone on since. Whoever is restored to it writes to them and reads them all
// the same: those who are written to first, those who write first, and those who
// came after the backup.
func TestPayersAreHeardAndReachedAfterAnOldBackupIsRestored(t *testing.T) {
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
