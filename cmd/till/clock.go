package main

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clock is the time of the test environment: the machine's, moved forward by
// POST /v1/test/clock. How far is kept in a file, so that a restart does not
// move time back.
type clock struct {
	file   string
	offset atomic.Int64
	mu     sync.Mutex // of who moves it, so that the file has what was moved last
}

// newClock reads how far the clock was moved; a file that is not there means
// not at all.
func newClock(file string) *clock {
	c := &clock{file: file}
	if text, err := os.ReadFile(file); err == nil {
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			c.offset.Store(n)
		}
	}
	return c
}

// Now is the time.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// maxMoved bounds how far the clock goes: far below where the sum would run over
// and time go back, which no id and no timer survives.
const maxMoved = 100 * 365 * 24 * time.Hour

// Advance moves the clock forward and says what time it is then. false means that
// it would go too far, and stands as it stood.
func (c *clock) Advance(seconds int64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := time.Duration(c.offset.Load())
	if seconds > int64((maxMoved-moved)/time.Second) {
		return c.Now(), false
	}
	moved += time.Duration(seconds) * time.Second
	c.offset.Store(int64(moved))
	// A clock that is not kept only matters after a restart of a pretend world.
	_ = os.WriteFile(c.file, []byte(strconv.FormatInt(int64(moved), 10)), 0o600)
	return c.Now(), true
}
