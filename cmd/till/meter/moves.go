package meter

import (
	"slices"
	"time"
)

// The bounds of what is remembered of a clock that is moved.
const (
	moveSeen = time.Second // less is no move: the two clocks are not read at once
	maxMoves = 1000
)

// moves are the moments in which an environment's clock was seen to be set forward,
// the oldest first, and before them the one in which it was first seen. By them
// what is dated by that clock is dated by the machine's.
type moves []moment

// moment is one moment by both clocks.
type moment struct{ machine, told time.Time }

// see takes in what both clocks show now.
func (m moves) see(machine, told time.Time) moves {
	now := moment{machine.Round(0), told.Round(0)} // rounded, it is what the clocks show and no more
	if n := len(m); n > 0 && (now.told.Sub(m[n-1].told)-now.machine.Sub(m[n-1].machine)).Abs() < moveSeen {
		return m
	}
	m = append(m, now)
	return m[max(0, len(m)-maxMoves):]
}

// wait is for how long, by the machine's clock, something waits that began at a time
// of the environment's; zero for what did not begin. Of what began before the
// environment's clock was first seen, and then was moved already, it is known only
// that it waits since.
func (m moves) wait(began, machine time.Time) time.Duration {
	if began.IsZero() || len(m) == 0 {
		return 0
	}
	at := m[0].machine
	for i, by := range slices.Backward(m) {
		never := i == 0 && by.told.Sub(by.machine).Abs() < moveSeen // it had not been moved by then
		if began.Before(by.told) && !never {
			continue
		}
		at = by.machine.Add(began.Sub(by.told))
		if i+1 < len(m) && at.After(m[i+1].machine) { // it began after the move, which was seen later
			at = m[i+1].machine
		}
		break
	}
	return max(0, machine.Sub(at))
}
