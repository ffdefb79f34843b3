package store

import (
	"context"
	"time"
)

// soonWaits is how long an update that nobody waits for waits for others.
const soonWaits = 20 * time.Millisecond

// soon is the key under which a context says so.
type soon struct{}

// Soon is a context whose updates wait a moment for others to be committed with.
// It is for what follows something that is done, and leads to nothing that
// anybody waits for: alone it would cost an fsync of its own. On PostgreSQL it
// does not wait.
func Soon(ctx context.Context) context.Context { return context.WithValue(ctx, soon{}, true) }

// queue is where an update under a context waits for the writer.
func (d *DB) queue(ctx context.Context) chan<- *unit {
	if ctx.Value(soon{}) != nil && d.dialect == sqliteDialect {
		return d.later
	}
	return d.units
}

// joined waits a moment for a unit that is in a hurry, which takes another along.
func (d *DB) joined(u *unit) []*unit {
	wait := time.NewTimer(soonWaits)
	defer wait.Stop()
	select {
	case first := <-d.units:
		return []*unit{u, first}
	case <-wait.C:
	case <-d.stop:
	}
	return []*unit{u}
}
