package sim

import (
	"syscall"
)

// trap is a crash that waits for a moment in the middle of something: the bank
// has answered and that is not kept, the merchant has said 200 and that is not
// marked, a reply is on its way.
type trap struct {
	at  string
	hit bool
}

// caught stops a call of the service at a trap, for good: its process dies while
// it waits. Nil where there is none.
func (w *world) caught(i *instance, at string) error {
	w.mu.Lock()
	caught := w.trap != nil && w.trap.at == at && !w.trap.hit && !i.dead.Load()
	if caught {
		w.trap.hit = true
	}
	w.mu.Unlock()
	if !caught {
		return nil
	}
	w.saw("crash at %s", at)
	<-i.killed
	return syscall.ECONNRESET
}

// springs has the process die whose call is held in a trap.
func (w *world) springs() {
	w.mu.Lock()
	hit := w.trap != nil && w.trap.hit
	at := ""
	if hit {
		at = w.trap.at
		w.trap = nil
	}
	w.mu.Unlock()
	if !hit {
		return
	}
	w.observe()
	w.goals.reached("crash", at, w)
	w.crash()
	w.drain()
}
