package flow

import (
	"fmt"
	"strings"
	"time"
)

// Matrices prints every table of legal moves: a line for each state, a column
// for each trigger, and where it leads.
func Matrices() map[string]string {
	out := map[string]string{}
	for _, t := range []table{sessionTable, attemptTable, talkTable, kycTable, refundTable, settlementTable} {
		states, triggers := t.axes()
		var b strings.Builder
		for _, state := range states {
			fmt.Fprintf(&b, "%s\n", state)
			for _, trigger := range triggers {
				to, err := move(t, state, trigger)
				if err != nil {
					to = "-"
				}
				fmt.Fprintf(&b, "  %-22s %s\n", trigger, to)
			}
		}
		out[t.name] = b.String()
	}
	return out
}

// Sum is what a ledger transaction adds up to.
func Sum(postings []Posting) Kobo { return sum(postings) }

// TalkStates are all states of a talk.
func TalkStates() []TalkState {
	states, _ := talkTable.axes()
	out := make([]TalkState, len(states))
	for i, s := range states {
		out[i] = TalkState(s)
	}
	return out
}

// LiveOf finds the live attempt of a method.
func LiveOf(attempts []Attempt, m Method, now time.Time) (Attempt, bool) {
	return liveOf(attempts, m, now)
}
