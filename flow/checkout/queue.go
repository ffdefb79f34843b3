package checkout

import (
	"context"
	"sync"

	"till/flow"
)

// hashers is how many passwords are hashed at once; each takes argonMemory.
// hashQueue is how many may wait for that, or have it done, and hashEach how many of
// those from one address: whoever has very many hashed keeps out who shares the
// address, and not who comes from elsewhere.
const (
	hashers   = 2
	hashQueue = 64
	hashEach  = 16
)

// queue is who has a password hashed, or waits for it.
type queue struct {
	slot chan struct{} // hashing is dear: one at a time for each slot

	mu   sync.Mutex
	all  int
	from map[string]int // by the address that they come from; "" for this machine's own commands
}

func newQueue() *queue {
	return &queue{slot: make(chan struct{}, hashers), from: map[string]int{}}
}

// turn waits for the turn of somebody from an address, which done ends. Errors:
// rate_limited.
func (q *queue) turn(ctx context.Context, address string) (done func(), err error) {
	if !q.takes(address) {
		return nil, flow.Refuse(flow.CodeRateLimited, "Too many people are logging in right now. Try again.")
	}
	select {
	case q.slot <- struct{}{}:
		return func() { <-q.slot; q.gives(address) }, nil
	case <-ctx.Done():
		q.gives(address)
		return nil, ctx.Err()
	}
}

// takes counts one more from an address, where there is room.
func (q *queue) takes(address string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all >= hashQueue || q.from[address] >= hashEach {
		return false
	}
	q.all++
	q.from[address]++
	return true
}

// gives takes one from an address back.
func (q *queue) gives(address string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all--
	if q.from[address]--; q.from[address] == 0 {
		delete(q.from, address)
	}
}
