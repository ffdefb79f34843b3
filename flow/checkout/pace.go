package checkout

import (
	"sync"
	"time"

	"till/flow"
	"till/flow/store"
)

// The bounds of what the bank is asked because time passed. After a downtime
// thousands of questions are due at once: they are spread.
const (
	askEvery    = 50 * time.Millisecond // twenty a second
	askBurst    = 64                    // at once, before they are spread
	maxPromised = 20_000
)

// pacer gives every question its time: the first ones at once, the others one
// after the other.
type pacer struct {
	mu       sync.Mutex
	next     time.Time            // when a question may be asked that is not in a burst
	promised map[string]time.Time // what was put off, and until when
}

// wait is how long a question must wait, 0 for not at all. What was put off is
// asked when it comes again at its time.
func (p *pacer) wait(key string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.promised[key]; ok && !now.Before(at) {
		delete(p.promised, key)
		return 0
	}
	if earliest := now.Add(-askBurst * askEvery); p.next.Before(earliest) {
		p.next = earliest
	}
	at := p.next
	p.next = p.next.Add(askEvery)
	if !at.After(now) {
		return 0
	}
	if p.promised == nil || len(p.promised) >= maxPromised {
		p.promised = map[string]time.Time{} // whoever is forgotten gets another time
	}
	p.promised[key] = at
	return at.Sub(now)
}

// paced is how long a task must wait before it asks the bank. What somebody
// waits for, and hands over with the commit that asks for it, waits for nothing.
func (s *Service) paced(w store.Work) time.Duration {
	asks := w.Kind == flow.TaskCheck || w.Kind == flow.TaskExpireAttempt || w.Kind == flow.TaskExpireSession
	if !asks || !w.Due.IsZero() { // what is found when it is due does not say when that was
		return 0
	}
	return s.pace.wait(string(w.Kind)+"/"+w.Subject, s.cfg.Now())
}
