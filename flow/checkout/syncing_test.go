package checkout_test

import (
	"slices"
	"testing"
	"time"

	"till/flow"
)

// A payer's "I have paid" may lie in what comes in after a line was down: no
// payer hears that the time is over before it is in.
func TestNothingIsToldByTheClockWhileMessagesAreStillComingIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sqlite(t))
	w.start(true)
	session := w.session(flow.InChat)
	w.hear("ada", code(session))
	w.hear("ada", method(flow.BankTransfer))
	w.syncing.Store(true)
	w.passes(3, 15*time.Minute) // the reminder and the end of the account number are due
	if got := w.texts("ada"); slices.Contains(got, "reminder") || slices.Contains(got, "lapsed") {
		t.Fatalf("while messages were coming in the payer read %q", got)
	}
	w.syncing.Store(false)
	w.later(3 * time.Second)
	if got := w.texts("ada"); !slices.Contains(got, "lapsed") {
		t.Errorf("afterwards the payer read %q", got)
	}
}
