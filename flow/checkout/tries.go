package checkout

import (
	"context"
	"fmt"
	"sync"
	"time"

	"till/flow"
)

// The bounds of what is remembered of tries. Beyond maxTried names the one that
// was idle longest among a few is forgotten.
const (
	maxTried   = 32 << 10
	triedLooks = 16
)

// tries counts tries by name in a sliding window: in this process, and with others
// together where there is a Redis. A try counts from when it begins, so that many at
// once are no way around.
type tries struct {
	far  *farTries // nil: there is no other process
	mu   sync.Mutex
	seen map[string][]time.Time // oldest first
}

// try is one count that a try is held against.
type try struct {
	name string
	most int
}

func newTries() *tries { return &tries{seen: map[string][]time.Time{}} }

// begin counts a try under all names, here and for all processes, or under none and
// refuses it. Errors: rate_limited.
func (t *tries) begin(ctx context.Context, now time.Time, all ...try) error {
	if err := t.take(now, all...); err != nil {
		return err
	}
	wait := t.far.take(ctx, now, all)
	if wait <= 0 {
		return nil
	}
	for _, one := range all {
		t.forgive(now, one.name)
	}
	return tooMany(wait)
}

// takeBack is forgive, here and for all processes.
func (t *tries) takeBack(ctx context.Context, at time.Time, names ...string) {
	t.forgive(at, names...)
	t.far.forgive(ctx, at, names...)
}

// drop is forget, here and for all processes.
func (t *tries) drop(ctx context.Context, name string) {
	t.forget(name)
	t.far.forget(ctx, name)
}

// tooMany refuses a try for which there is a place after a while.
func tooMany(wait time.Duration) error {
	when := "a minute"
	if wait > time.Minute {
		when = fmt.Sprintf("%d minutes", (wait+time.Minute-1)/time.Minute)
	}
	refused := flow.Refuse(flow.CodeRateLimited, "Too many tries. Try again in %s.", when)
	refused.RetryAfter = wait
	return refused
}

// take counts a try under all names, or under none and refuses it. Errors:
// rate_limited.
func (t *tries) take(now time.Time, all ...try) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range all {
		recent := t.recent(one.name, now)
		if len(recent) < one.most {
			continue
		}
		return tooMany(recent[len(recent)-one.most].Add(tryWindow).Sub(now))
	}
	for _, one := range all {
		t.room(one.name)
		t.seen[one.name] = append(t.seen[one.name], now)
	}
	return nil
}

// recent drops what is out of the window, on either side: a clock that was set
// back locks nobody out for more than one window beyond this one.
func (t *tries) recent(name string, now time.Time) []time.Time {
	all, there := t.seen[name]
	if !there {
		return nil
	}
	kept := all[:0]
	for _, at := range all {
		if now.Sub(at).Abs() < tryWindow {
			kept = append(kept, at)
		}
	}
	if len(kept) == 0 {
		delete(t.seen, name)
		return nil
	}
	t.seen[name] = kept
	return kept
}

// forgive takes back one try of a moment, under each name.
func (t *tries) forgive(at time.Time, names ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range names {
		all := t.seen[one]
		for i := range all {
			if all[i].Equal(at) {
				t.seen[one] = append(all[:i], all[i+1:]...)
				break
			}
		}
		if len(t.seen[one]) == 0 {
			delete(t.seen, one)
		}
	}
}

// forget drops a name.
func (t *tries) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, name)
}

// room makes room for a name.
func (t *tries) room(name string) {
	if _, there := t.seen[name]; there || len(t.seen) < maxTried {
		return
	}
	idlest, since, looked := "", time.Time{}, 0
	for other, all := range t.seen { // a map begins anywhere
		if last := all[len(all)-1]; idlest == "" || last.Before(since) {
			idlest, since = other, last
		}
		if looked++; looked == triedLooks {
			break
		}
	}
	delete(t.seen, idlest)
}
