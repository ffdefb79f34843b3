package meter_test

import (
	"testing"
	"time"

	"till/cmd/till/meter"
)

// What is dated by a clock that merchants move waits by the machine's, as far as its
// moves were seen.
func TestAWaitIsToldByTheMachinesClock(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const month = 30 * 24 * time.Hour
	at := func(machine, moved time.Duration) [2]time.Time {
		return [2]time.Time{start.Add(machine), start.Add(machine + moved)}
	}
	for name, c := range map[string]struct {
		seen  [][2]time.Time // what the machine's clock and the moved one showed
		began time.Duration  // by the moved one, after the start
		want  time.Duration  // an hour after the start
	}{
		"never moved":                            {[][2]time.Time{at(0, 0), at(time.Minute, 0)}, 10 * time.Minute, 50 * time.Minute},
		"never moved, before it was looked at":   {[][2]time.Time{at(0, 0)}, -time.Hour, 2 * time.Hour},
		"moved after it began":                   {[][2]time.Time{at(0, 0), at(20*time.Minute, month)}, 10 * time.Minute, 50 * time.Minute},
		"moved twice after it began":             {[][2]time.Time{at(0, 0), at(20*time.Minute, month), at(30*time.Minute, 2*month)}, 10 * time.Minute, 50 * time.Minute},
		"moved before it began":                  {[][2]time.Time{at(0, 0), at(20*time.Minute, month)}, month + 30*time.Minute, 30 * time.Minute},
		"between two moves":                      {[][2]time.Time{at(0, 0), at(20*time.Minute, month), at(40*time.Minute, 2*month)}, month + 30*time.Minute, 30 * time.Minute},
		"after a move that was seen later":       {[][2]time.Time{at(0, 0), at(20*time.Minute, month)}, month + 19*time.Minute, 40 * time.Minute},
		"moved before it was looked at":          {[][2]time.Time{at(0, month), at(20*time.Minute, 2*month)}, month + 10*time.Minute, 50 * time.Minute},
		"before it was looked at, moved by then": {[][2]time.Time{at(0, month)}, month - time.Hour, time.Hour},
		"in what is to come":                     {[][2]time.Time{at(0, 0)}, 2 * time.Hour, 0},
		"never moved, the two not read at once":  {[][2]time.Time{at(0, 0), at(20*time.Minute, time.Second/2)}, -time.Hour, 2 * time.Hour},
	} {
		if got := meter.Wait(c.seen, start.Add(c.began), start.Add(time.Hour)); got != c.want {
			t.Errorf("%s: it waits for %s, want %s", name, got, c.want)
		}
	}
	if got := meter.Wait([][2]time.Time{at(0, 0)}, time.Time{}, start.Add(time.Hour)); got != 0 {
		t.Errorf("nothing waits for %s", got)
	}
	many := make([][2]time.Time, 5000)
	for i := range many {
		many[i] = at(time.Duration(i)*time.Second, time.Duration(i)*month)
	}
	if got := meter.Wait(many, start.Add(time.Minute), start.Add(2*time.Hour)); got > 2*time.Hour {
		t.Errorf("after many moves it waits for %s", got)
	}
}
