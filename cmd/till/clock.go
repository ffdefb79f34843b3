package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// clock is the time of the test environment: the machine's, moved forward by
// POST /v1/test/clock. How far is kept in a file, so that a restart does not
// move time back.
type clock struct {
	file   string
	offset atomic.Int64
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

// Advance moves the clock forward.
func (c *clock) Advance(seconds int64) time.Time {
	n := c.offset.Add(seconds * int64(time.Second))
	// A clock that is not kept only matters after a restart of a pretend world.
	_ = os.WriteFile(c.file, []byte(strconv.FormatInt(n, 10)), 0o600)
	return c.Now()
}
