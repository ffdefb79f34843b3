package hooks

import (
	"time"

	"till/flow/planted"
)

// MaxAttempts is how often an event is tried before it is given up: over a
// little more than three days, so that a weekend's outage loses nothing.
const MaxAttempts = 10

// maxRetryAfter is the longest wait that an endpoint may ask for.
const maxRetryAfter = 24 * time.Hour

// Next says how long to wait after so many attempts, and whether there is
// another one at all. The wait is the schedule's plus 0 to 20 % by jitter (any
// number, a random one spreads best), so that endpoints which failed together do
// not all come back together: that is within the 20 % either way which merchants
// are told of, and never earlier than the schedule says. An endpoint that asked
// for more time gets it, up to a day.
func Next(attempts int, retryAfter time.Duration, jitter uint64) (time.Duration, bool) {
	schedule := [MaxAttempts]time.Duration{
		0,
		5 * time.Second, 5 * time.Minute, 30 * time.Minute,
		2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	if planted.GivesUpEarly && attempts >= 5 {
		return 0, false
	}
	if attempts < 0 || attempts >= len(schedule) {
		return 0, false
	}
	own := schedule[attempts]
	own += own * time.Duration(jitter%2001) / 10_000 // in hundredths of a percent; a day times 2000 still fits
	return max(own, min(retryAfter, maxRetryAfter)), true
}
