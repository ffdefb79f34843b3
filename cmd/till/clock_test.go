package main

import (
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Merchants move the clock as often as they like: it must never run over and go
// back, nor go back when the program starts again.
func TestTheClockNeverGoesBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "clock")
	c := newClock(file)
	const step = 400 * 24 * 3600
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for last := c.Now(); ; {
				now, moved := c.Advance(step)
				if now.Before(last) {
					t.Errorf("time went back from %v to %v", last, now)
					return
				}
				if last = now; !moved {
					return
				}
			}
		})
	}
	wg.Wait()
	ahead := time.Until(c.Now())
	if ahead > maxMoved || ahead < maxMoved-step*time.Second {
		t.Errorf("the clock ended %v ahead", ahead)
	}
	if _, moved := c.Advance(1 << 62); moved {
		t.Error("it was moved by more than time holds")
	}
	if again := newClock(file).Now(); again.Before(c.Now().Add(-time.Minute)) {
		t.Errorf("after a restart it is %v, and was %v", again, c.Now())
	}
}
