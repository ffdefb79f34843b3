package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"till/cmd/till/meter"
	"till/flow"
	"till/rail"
)

// away is a bank that answers nothing until it is back.
type away struct {
	rail.Closed

	back bool
}

// Check implements rail.Rail.
func (b *away) Check(context.Context, string) ([]flow.Notice, error) {
	if b.back {
		return nil, nil
	}
	return nil, rail.ErrUnavailable
}

// A full disk and a bank that does not answer are said, and no longer than they
// last.
func TestPartsSayThatTheyAreAway(t *testing.T) {
	free, failed := uint64(1<<30), error(nil)
	a := &app{meter: meter.New("test", time.Now)}
	a.checkDisk(func(string) (uint64, uint64, error) { return free, 1 << 40, failed })
	a.checkBank()
	says := func(when string, want ...bool) {
		t.Helper()
		for i, got := range a.ready(t.Context()) {
			if got.OK != want[i] || got.OK != (got.Reason == "") || got.OK != (got.Err == nil) {
				t.Errorf("%s: %+v", when, got)
			}
		}
	}
	says("at first", true, true)
	bank := &away{}
	timed := a.meter.Rail(bank)
	asks := func(n int) {
		for range n {
			_, _ = timed.Check(t.Context(), "wsp_ref_1")
		}
	}
	asks(4)
	says("a few calls went unanswered", true, true)
	asks(1)
	says("the bank is away", true, false)
	free = 1<<20 - 1
	says("and the disk is full", false, false)
	failed = errors.New("not known here")
	says("the system does not say", true, false)
	free, failed, bank.back = 1<<20, nil, true
	asks(1)
	says("all is back", true, true)
	bank.back = false
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	for range 9 {
		_, _ = timed.Check(gone, "wsp_ref_1")
	}
	says("callers hung up, which says nothing of the bank", true, true)
}
