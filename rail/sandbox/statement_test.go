package sandbox_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"till/rail"
)

// A day with more on its statement than is read at once is read in parts, each line
// once and in order; what is too much for the shortest of them is not.
func TestADayThatIsTooLongIsReadInParts(t *testing.T) {
	w := openTown(t)
	made := w.transfer(t, rail.Transfer{AccountNumber: "0123456789", Amount: 7, Drop: true})
	books := func(n int, apart time.Duration) {
		t.Helper()
		err := w.bank.Exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO movements (id, kind, reference, account, amount, channel, value_time, payer_name, payer_bank, payer_account, nip, reason, reverses, collects)
			SELECT m.id || '_%s_' || n.i, m.kind, m.reference, m.account, m.amount, m.channel, m.value_time + n.i * %d, m.payer_name, m.payer_bank, m.payer_account,
			m.nip || n.i, m.reason, m.reverses, m.collects FROM movements m, n WHERE m.id = '%s'`, n, apart, apart.Milliseconds(), made.RailTransactionID))
		must(t, err)
	}
	books(1400, 30*time.Second)
	w.rail.SetPages(1)
	from := w.clock.Now().Add(-12 * time.Hour)
	list, err := w.rail.Statement(t.Context(), from, from.Add(24*time.Hour))
	if err != nil || len(list) != 1401 {
		t.Fatalf("%d lines (%v)", len(list), err)
	}
	for i := range list[1:] {
		if !list[i].PaidAt.Before(list[i+1].PaidAt) {
			t.Fatalf("line %d is of %s, the next of %s", i, list[i].PaidAt, list[i+1].PaidAt)
		}
	}
	if _, err := w.rail.Statement(t.Context(), from, from.Add(72*time.Hour)); !errors.Is(err, rail.ErrTooMuch) {
		t.Errorf("three days at once: %v", err)
	}
	books(2000, time.Millisecond)
	if _, err := w.rail.Statement(t.Context(), from, from.Add(24*time.Hour)); !errors.Is(err, rail.ErrTooMuch) {
		t.Errorf("too much for a minute: %v", err)
	}
}

// A statement holds what was booked from its beginning until before its end: an answer with
// anything else is about another time.
func TestAStatementOfAnotherTimeIsNotBelieved(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[{"seq":1,"id":"ttb_1","kind":"credit","reference":"ref","amount":1,"channel":"card","valueTime":"2026-01-01T00:00:00Z"}]}`)
	}))
	t.Cleanup(server.Close)
	r := newRail(t, server.URL, time.Now, 0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if list, err := r.Statement(t.Context(), at, at.Add(time.Millisecond)); err != nil || len(list) != 1 {
		t.Errorf("from its first moment: %+v, %v", list, err)
	}
	for _, from := range []time.Time{at.Add(time.Millisecond), at.Add(-time.Hour)} {
		if list, err := r.Statement(t.Context(), from, from.Add(time.Hour)); !errors.Is(err, rail.ErrUnknown) {
			t.Errorf("from %v: %+v, %v", from, list, err)
		}
	}
}
