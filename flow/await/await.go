// Package await waits in tests until something has become so. Where an event
// can be waited for, wait for that; this is for what no event announces.
package await

import (
	"testing"
	"time"
)

// Patience is how long something may take to become so: far longer than it
// does on a busy machine, for only a test that fails spends it.
const Patience = 20 * time.Second

// Until asks again and again, and fails the test when the answer is still no
// after Patience. The words say what was waited for.
func Until(tb testing.TB, what string, so func() bool) {
	tb.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	over := time.NewTimer(Patience)
	defer over.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-over.C:
			tb.Fatalf("in vain waited until %s", what)
		}
	}
}
