package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// Action is one of the things that a seed has happen: a session that is asked for
// and all that its merchant and its payer do about it, a crash, bad weather. Each
// has dice of its own, so that it goes the same way whichever of the others are
// left out.
type Action struct {
	N    int           // its number
	At   time.Duration // since the beginning
	Name string
}

// String names it as a trace would.
func (a Action) String() string { return fmt.Sprintf("%3d  %s  %s", a.N, clockOf(a.At), a.Name) }

// planned numbers an action of the seed and gives it its dice; false where it is
// left out.
func (w *world) planned(e *event) bool {
	e.nth = len(w.acts) + 1
	e.rng = w.dice("action", fmt.Sprint(e.nth))
	w.acts = append(w.acts, Action{e.nth, e.at, e.name})
	return !w.some || w.with[e.nth]
}

// dice depend on the seed and what they are for alone.
func (w *world) dice(what ...string) *rand.Rand {
	sum := w.sum(what...)
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16]))) //nolint:gosec // it is no secret
}
