package sandbox_test

import (
	"database/sql"
	_ "embed"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"till/flow"
	"till/rail/sandbox"
)

//go:embed testdata/older.sql
var olderBooks string

// Books of before the bank sent anything out are opened with all that is in
// them: what was owed is told, and what lies there can be sent.
func TestOlderBooks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.db")
	db, err := sql.Open("sqlite", "file:"+file)
	must(t, err)
	if _, err := db.ExecContext(t.Context(), olderBooks); err != nil {
		t.Fatal(err)
	}
	must(t, db.Close())
	w := town{door: openDoor(t), clock: &clock{}}
	if w.bank, err = sandbox.Open(sandbox.Config{Now: w.clock.Now, File: file}); err != nil {
		t.Fatal(err)
	}
	w.rail = newRail(t, serve(t, w.bank), w.clock.Now, 0)
	must(t, w.rail.Register(t.Context(), w.door.url))
	if n := w.hear(t); n.RailTransactionID != "ttb_taken" {
		t.Errorf("notice %+v", n)
	}
	var got []string
	moves, err := w.rail.Check(t.Context(), "ref")
	for _, n := range moves {
		got = append(got, n.RailTransactionID+" "+string(n.Kind))
	}
	if want := []string{"ttb_credit credit", "ttb_taken credit", "ttb_back reversal", "ttb_sent_back returned"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Check = %q, %v; want %q", got, err, want)
	}
	if calls, err := w.rail.Calls(t.Context(), 0, 100); err != nil || len(calls) != 2 || calls[0].Operation != "create_virtual_account" || calls[0].Session != "wsp_sess_x" {
		t.Errorf("calls %+v, %v", calls, err)
	}
	if err := w.bank.Exec(`INSERT INTO notices (movement, state, due) VALUES (999, 'owed', 0)`); err == nil {
		t.Error("a notice of a movement that there is not is kept")
	}
	d := refund("rf", 500_000, "ttb_credit")
	w.disburse(t, d)
	w.clock.advance(time.Second)
	if n := w.hear(t); n.Kind != flow.PaidOut || n.Reference != "rf" {
		t.Errorf("notice %+v", n)
	}

	// They are these books now: opened once more, nothing is done to them.
	again, err := sandbox.Open(sandbox.Config{Now: w.clock.Now, File: file})
	must(t, err)
	must(t, again.Close())
	if got := w.disburse(t, d); got.Status != flow.DisbursementDone {
		t.Errorf("after opening again %+v", got)
	}
}
