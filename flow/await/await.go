// Package await waits in tests until something has become so. Where an event
// can be waited for, wait for that; this is for what no event announces.
package await

import (
	"testing"
	"time"
)

// Patience is how long something may take to become so: far longer than it
// does on a busy machine, for only a test that fails spends it.
const Patience = time.Minute

// Until asks again and again, and fails the test when the answer is still no
// after Patience. The words say what was waited for.
func Until(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	if !Within(Patience, so) {
		tb.Fatalf("in vain waited until %s", what)
	}
}

// Within asks again and again, and says whether the answer was yes in time. What takes
// long to ask is asked less often, or asking would keep from work what is waited for.
func Within(most time.Duration, so func() bool) bool {
	over := time.NewTimer(most)
	defer over.Stop()
	for {
		asked := time.Now() //nolint:forbidigo // how long it takes to ask is the machine's time
		if so() {
			return true
		}
		took := time.Since(asked) //nolint:forbidigo // likewise
		select {
		case <-time.After(min(max(2*time.Millisecond, 3*took), 200*time.Millisecond)):
		case <-over.C:
			return false
		}
	}
}
