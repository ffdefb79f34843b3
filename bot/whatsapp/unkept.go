package whatsapp

import (
	"context"
	"errors"

	"till/flow"
	"till/flow/checkout"
)

// blame remembers that a number does not run because of its keys, if it is because of
// them.
func (f *Fleet) blame(slot int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.ahead, slot)
	delete(f.faults, slot)
	if errors.Is(err, ErrKeys) {
		f.faults[slot] = err
	}
}

// Unkept says why keys of our numbers can be neither read nor kept, so that payers get
// no answers; nil where all can. It heals by itself.
func (f *Fleet) Unkept() error {
	for _, c := range f.running() {
		if _, why := c.file.unkept(); why != nil {
			return why
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, slot := range f.slots {
		if why := f.faults[slot]; why != nil && f.lines[slot] == nil {
			return why
		}
	}
	return nil
}

// mute keeps that a number does not run because of its keys, where operators read it,
// and since when. What else lasts of it is kept instead or beside it: it ends otherwise.
func (f *Fleet) mute(ctx context.Context, lease *checkout.Lease, why error) error {
	n := lease.Row
	if n.State.Lasts() && n.State != flow.NumberMute {
		return nil
	}
	n.Until = lockOf(n)
	if n.State != flow.NumberMute || n.Since.IsZero() {
		n.Since = f.cfg.Client.Now()
	}
	n.Slot, n.Token, n.State, n.Detail = lease.Slot, lease.Token, flow.NumberMute, scrub(why.Error())
	return f.cfg.Board.Report(ctx, n)
}
