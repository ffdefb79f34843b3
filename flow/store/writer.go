package store

import (
	"errors"
	"log/slog"
	"sync/atomic"
)

// unit is one caller's work, waiting for the writer.
type unit struct {
	run  func(*Tx) error
	gone func() error // why the caller does not want it any more
	err  error
	tx   *Tx
	keys *Keyring
	done chan struct{}
	is   atomic.Int32 // waiting, taken or left
}

// What a unit is: it waits, the writer has begun it, or its caller took it back
// before that.
const (
	unitWaits int32 = iota
	unitTaken
	unitLeft
)

// errLeft says of a unit that its caller took it back. Nobody reads it.
var errLeft = errors.New("the caller did not wait")

// begin takes a unit that is still wanted: from then on its caller waits for the
// outcome, however often it is run.
func (u *unit) begin() error {
	if !u.is.CompareAndSwap(unitWaits, unitTaken) && u.is.Load() == unitLeft {
		return errLeft
	}
	return u.gone()
}

// leave takes a unit back that nobody has begun, and that nobody will then.
func (u *unit) leave() bool { return u.is.CompareAndSwap(unitWaits, unitLeft) }

// writer is the one goroutine that writes. It takes whatever is queued, so that
// work queued during an fsync shares the next one.
func (d *DB) writer(commit func(units []*unit), end func() error) {
	defer close(d.done)
	defer func() {
		if err := end(); err != nil {
			d.log.Error("close the writer", slog.String("error", err.Error()))
		}
	}()
	for {
		select {
		case u := <-d.units: // first, where both wait: what comes of them does not hang on chance
			commit(d.queued(u))
			continue
		default:
		}
		select {
		case u := <-d.units:
			commit(d.queued(u))
		case u := <-d.later:
			commit(d.queued(d.joined(u)...))
		case <-d.stop:
			for {
				select {
				case u := <-d.units:
					commit(d.queued(u))
				case u := <-d.later:
					commit(d.queued(u))
				default:
					return
				}
			}
		}
	}
}

// queued are first units and what else is queued: from both queues by turns, so
// that what is in a hurry never keeps the rest out.
func (d *DB) queued(first ...*unit) []*unit {
	units := append(make([]*unit, 0, batchSize), first...)
	for turn, empty := 0, 0; len(units) < batchSize && empty < 2; turn++ {
		from := d.later
		if turn%2 == 1 {
			from = d.units
		}
		select {
		case u := <-from:
			units = append(units, u)
			empty = 0
		default:
			empty++
		}
	}
	return units
}
