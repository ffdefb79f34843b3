package hooks_test

import (
	"math"
	"testing"
	"time"

	"till/hooks"
)

func TestNext(t *testing.T) {
	own := []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour,
		5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	if len(own) != hooks.MaxAttempts {
		t.Fatalf("%d waits for %d attempts", len(own), hooks.MaxAttempts)
	}
	for attempts, want := range own {
		for _, jitter := range []uint64{0, 1, 999, 2000, 2001, math.MaxInt64, math.MaxUint64} {
			got, more := hooks.Next(attempts, 0, jitter)
			if !more || got < want || got > want+want/5 {
				t.Errorf("after %d with jitter %d: %s, %t; want %s and at most a fifth more", attempts, jitter, got, more, want)
			}
		}
		if got, _ := hooks.Next(attempts, 0, 2000); got != want+want/5 {
			t.Errorf("after %d: %s is not the most jitter", attempts, got)
		}
	}
	for _, spent := range []int{-1, hooks.MaxAttempts, hooks.MaxAttempts + 1, math.MaxInt} {
		if wait, more := hooks.Next(spent, time.Hour, 0); more || wait != 0 {
			t.Errorf("after %d there is another one in %s", spent, wait)
		}
	}
}

func TestNextHonoursRetryAfter(t *testing.T) {
	for _, c := range []struct {
		attempts int
		asked    time.Duration
		want     time.Duration
	}{
		{1, time.Second, 5 * time.Second}, // less than our own: ours
		{1, time.Minute, time.Minute},
		{1, 24 * time.Hour, 24 * time.Hour},
		{1, 25 * time.Hour, 24 * time.Hour}, // no endpoint puts us off for ever
		{1, math.MaxInt64, 24 * time.Hour},
		{1, -time.Hour, 5 * time.Second},
		{9, time.Hour, 24 * time.Hour},
	} {
		if got, more := hooks.Next(c.attempts, c.asked, 0); got != c.want || !more {
			t.Errorf("after %d, asked for %s: %s, want %s", c.attempts, c.asked, got, c.want)
		}
	}
}

// The jitter reaches all of its range, so that endpoints do spread.
func TestNextSpreads(t *testing.T) {
	seen := map[time.Duration]bool{}
	for jitter := range uint64(2001) {
		wait, _ := hooks.Next(2, 0, jitter)
		seen[wait] = true
	}
	if len(seen) != 2001 {
		t.Errorf("%d different waits", len(seen))
	}
}
