package checkout

import (
	"context"
	"slices"
	"sync"

	"till/flow"
)

// hashers is how many passwords are hashed at once; each takes argonMemory.
// hashQueue is how many may wait for that, or have it done.
const (
	hashers   = 2
	hashQueue = 128
)

// queue is who has a password hashed, or waits for it. One address has no more places than
// are left for others, and addresses take turns: whoever has very many hashed keeps out, and
// waiting, who shares the address, and not who comes from elsewhere.
type queue struct {
	mu    sync.Mutex
	idle  int            // hashers with nothing to do
	all   int            // places that are taken
	from  map[string]int // the same by address; "" is that of this machine's own commands
	lines []*line        // of those addresses somebody waits from, the next one first
}

// line is who waits from an address, each for its channel to be closed.
type line struct {
	address string
	waits   []chan struct{}
}

func newQueue() *queue { return &queue{idle: hashers, from: map[string]int{}} }

// turn waits for the turn of somebody from an address, which done ends. Errors:
// rate_limited.
func (q *queue) turn(ctx context.Context, address string) (done func(), err error) {
	now, ok := q.enter(address)
	if !ok {
		return nil, flow.Refuse(flow.CodeRateLimited, "Too many people are logging in right now. Try again.")
	}
	select {
	case <-now:
		return func() { q.leave(address, now) }, nil
	case <-ctx.Done():
		q.leave(address, now)
		return nil, ctx.Err()
	}
}

// enter takes a place, where there is one; now is closed when it is its turn.
func (q *queue) enter(address string) (now chan struct{}, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.from[address] >= hashQueue-q.all {
		return nil, false
	}
	q.all++
	q.from[address]++
	now = make(chan struct{})
	i := slices.IndexFunc(q.lines, func(l *line) bool { return l.address == address })
	if i < 0 {
		i = len(q.lines)
		q.lines = append(q.lines, &line{address: address})
	}
	q.lines[i].waits = append(q.lines[i].waits, now)
	q.next()
	return now, true
}

// leave gives a place back, and the hasher where it had one.
func (q *queue) leave(address string, now chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all--
	if q.from[address]--; q.from[address] == 0 {
		delete(q.from, address)
	}
	select {
	case <-now:
		q.idle++
	default: // it waits no longer
		i := slices.IndexFunc(q.lines, func(l *line) bool { return l.address == address })
		l := q.lines[i]
		at := slices.Index(l.waits, now)
		if l.waits = slices.Delete(l.waits, at, at+1); len(l.waits) == 0 {
			q.lines = slices.Delete(q.lines, i, i+1)
		}
	}
	q.next()
}

// next gives hashers to those whose turn it is. The caller holds the lock.
func (q *queue) next() {
	for q.idle > 0 && len(q.lines) > 0 {
		l := q.lines[0]
		q.lines = q.lines[1:]
		close(l.waits[0])
		q.idle--
		if l.waits = l.waits[1:]; len(l.waits) > 0 {
			q.lines = append(q.lines, l)
		}
	}
}
