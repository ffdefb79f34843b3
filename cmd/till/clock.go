package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"till/config"
	"till/flow"
)

// clock is the time of the test environment: the machine's, moved forward by
// POST /v1/test/clock. How far is kept in a file, so that a restart does not
// move time back.
//
// Processes that share a data dir share the file: each looks into it when it moves
// the clock, and every second (follow). For that long their times may differ. Two
// that move it in the same moment may count one move alone; neither goes back.
// Processes that share a database and no data dir have clocks of their own.
type clock struct {
	file   string
	offset atomic.Int64
	mu     sync.Mutex // of who moves it, so that the file has what was moved last
}

// newClock reads how far the clock was moved; a file that is not there means
// not at all.
func newClock(file string) *clock {
	c := &clock{file: file}
	c.read()
	return c
}

// clockOf is the clock of an environment, as whoever works beside the program that
// serves reads it.
func clockOf(set config.Settings, env flow.Environment) func() time.Time {
	if env == flow.Live {
		return time.Now
	}
	return newClock(under(set.DataDir, "clock")).Now
}

// Now is the time.
func (c *clock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// read takes what the file says, if it is further, and says whether it was.
func (c *clock) read() bool {
	n, err := c.kept()
	if err != nil || n <= c.offset.Load() {
		return false
	}
	c.offset.Store(n)
	return true
}

// kept is how far the file says the clock was moved, in nanoseconds.
func (c *clock) kept() (int64, error) {
	text, err := os.ReadFile(c.file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// lost is why it is not known how far the clock was moved; nil where it is known, or it
// never was. What was kept at a later time than this one's then waits for it.
func (c *clock) lost() error {
	if _, err := c.kept(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read how far the test clock was moved: %w", err)
	}
	return nil
}

// followEvery is how often it is looked whether another process moved the clock.
const followEvery = time.Second

// follow goes where other processes move the clock, until ctx ends. moved is
// called each time: what was not due may be.
func (c *clock) follow(ctx context.Context, moved func()) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		c.mu.Lock()
		further := c.read()
		c.mu.Unlock()
		if further {
			moved()
		}
	}
}

// maxMoved bounds how far the clock goes: far below where the sum would run over
// and time go back, which no id and no timer survives.
const maxMoved = 100 * 365 * 24 * time.Hour

// Advance moves the clock forward and says what time it is then. false means that
// it would go too far, and stands as it stood.
func (c *clock) Advance(seconds int64) (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read()
	moved := time.Duration(c.offset.Load())
	if seconds > int64((maxMoved-moved)/time.Second) {
		return c.Now(), false
	}
	moved += time.Duration(seconds) * time.Second
	c.offset.Store(int64(moved))
	if seconds > 0 {
		c.write(moved)
	}
	return c.Now(), true
}

// write keeps how far the clock was moved. Nobody ever reads half of it. One that
// is not kept only matters after a restart of a pretend world.
func (c *clock) write(moved time.Duration) {
	next := c.file + ".next"
	if os.WriteFile(next, []byte(strconv.FormatInt(int64(moved), 10)), 0o600) == nil {
		_ = os.Rename(next, c.file)
	}
}
