package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// PlainDigits is a text with the digits of every script as those of ASCII.
func PlainDigits(text string) string { return plainDigits(text) }

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

// states and triggers of a table, sorted, for the printed matrices.
func (t table) axes() (states, triggers []string) {
	for _, e := range t.events {
		triggers = append(triggers, e.Name)
		states = append(states, e.Src...)
		states = append(states, e.Dst)
	}
	slices.Sort(states)
	slices.Sort(triggers)
	return slices.Compact(states), slices.Compact(triggers)
}

// Sum is what a ledger transaction adds up to.
func Sum(postings []Posting) (total Kobo) {
	for _, p := range postings {
		total += p.Amount
	}
	return total
}

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
