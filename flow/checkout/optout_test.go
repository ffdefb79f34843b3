package checkout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"till/flow"
)

// otherNumber is a number of ours beside ourNumber.
const otherNumber = "2349010000002"

// hearAt is hearsAt that must be taken in, and what follows from it done.
func (w *world) hearAt(number, person string, in flow.Intent) {
	w.t.Helper()
	w.heard++
	w.must(w.hearsAt(number, person, fmt.Sprintf("AT%d", w.heard), in))
	w.rest()
}

// adaAwaits has Ada open a session at one of our numbers, and stop before paying.
func (w *world) adaAwaits(number string) {
	w.t.Helper()
	w.hearAt(number, "ada", code(w.session(flow.InChat)))
	w.hearAt(number, "ada", method(flow.BankTransfer))
}

// killsOther has an operator switch the other number off.
func (w *world) killsOther() {
	w.t.Helper()
	moves(w.t, w.db, flow.SwitchMove{Kind: flow.SwitchNumber, Name: otherNumber, To: string(flow.NumberKill)})
	w.must(w.board.Refresh(w.t.Context()))
}

func TestStopHoldsForAPersonAtEachOfOurNumbers(t *testing.T) {
	t.Parallel()
	stop, start := flow.Intent{Kind: flow.MeansStop}, flow.Intent{Kind: flow.MeansResume}
	for name, c := range map[string]struct {
		does func(w *world)
		told int // of each: the reminder, and that the time is over
	}{
		"nobody said STOP": {func(w *world) { w.adaAwaits(ourNumber); w.adaAwaits(otherNumber) }, 2},
		"said afterwards at another number": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.hearAt(otherNumber, "ada", stop)
		}, 0},
		"said before there was a chat with this number": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.hearAt(ourNumber, "ada", stop)
			w.adaAwaits(otherNumber)
		}, 0},
		"undone at another number than it was said at": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.hearAt(ourNumber, "ada", stop)
			w.adaAwaits(otherNumber)
			w.hearAt(otherNumber, "ada", start)
		}, 2},
		"said and undone before there was a chat with this number": {func(w *world) {
			w.hearAt(ourNumber, "ada", stop)
			w.hearAt(ourNumber, "ada", start)
			w.adaAwaits(otherNumber)
		}, 1},
		"said by somebody else": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.hearAt(ourNumber, "bode", stop)
		}, 1},
		"said to a number that answers nothing any more": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.killsOther()
			w.hearAt(otherNumber, "ada", stop)
		}, 0},
		"said to such a number before there was a chat with this one": {func(w *world) {
			w.killsOther()
			w.hearAt(otherNumber, "ada", stop)
			w.adaAwaits(ourNumber)
		}, 0},
		"START of who never said STOP undoes nothing": {func(w *world) {
			w.adaAwaits(ourNumber)
			w.hearAt(ourNumber, "ada", stop)
			w.hearAt(otherNumber, "bode", start)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(w *world) {
				c.does(w)
				w.later(21 * time.Minute)
				w.later(10 * time.Minute)
				for _, key := range []string{"reminder", "lapsed"} {
					if n := strings.Count(strings.Join(w.texts("ada"), " "), key); n != c.told {
						t.Errorf("%d of %q, want %d: %q", n, key, c.told, w.texts("ada"))
					}
				}
			})
		})
	}
}
